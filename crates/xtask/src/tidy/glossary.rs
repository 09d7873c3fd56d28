//! Words of the glossary: one word for each thing, in names, documentation and messages.

use super::Source;

/// The page that explains the words.
const GLOSSARY: &str = "CONTRIBUTING.md";

/// A thing with its one word, and words that would say the same. The words that a GPU, MPI or
/// storage engineer says at work are allowed: page, chunk, flush, host, device, snapshot, staging
/// buffer, candidate, tolerance.
struct Term {
    say: &'static str,
    not: &'static [&'static str],
}

/// Things of the field. Other words for them are spelled in two parts, so that this file is not
/// found.
const THINGS: [Term; 8] = [
    Term { say: "safe point", not: &[concat!("sync po", "int")] },
    Term { say: "MTTI", not: &[concat!("mt", "tf")] },
    Term { say: "interval", not: &[concat!("fre", "quency")] },
    Term { say: "partner, and partner copy", not: &[concat!("bud", "dy"), concat!("mir", "ror")] },
    Term { say: "frame", not: &[concat!("bl", "ob")] },
    Term { say: "codec", not: &[concat!("compr", "essor")] },
    Term { say: "overhead", not: &[concat!("pen", "alty")] },
    Term { say: "incremental cache", not: &[concat!("lazy ca", "che")] },
];

/// English that a reader in a hurry stumbles over.
const ENGLISH: [Term; 7] = [
    Term { say: "Tao et al. 2018", not: &[concat!("seed pa", "per")] },
    Term { say: "again, or a verb of its own", not: &[concat!("an", "ew")] },
    Term { say: "none, or name who", not: &[concat!("no", "body")] },
    Term { say: "the number", not: &[concat!("so ma", "ny")] },
    Term { say: "always, or without end", not: &[concat!("for e", "ver")] },
    Term { say: "is told", not: &[concat!("hear o", "f")] },
    Term { say: "available", not: &[concat!("to be h", "ad")] },
];

/// The same, on pages alone.
const PAGES: [Term; 2] = [
    Term { say: "continues or resumes", not: &[concat!("goe", "s on"), concat!("going", " on")] },
    Term { say: "recover", not: &[concat!("win ba", "ck"), concat!("won ba", "ck")] },
];

/// Notebooks keep their words.
const NOTEBOOKS: &str = "docs/lab/";

/// The files of payloads in a node's memory: their name does not change.
const FIXED: [&str; 1] = [concat!("bl", "ob-")];

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    let is_page = |source: &&Source| source.path.ends_with(".md");
    let is_ours = |source: &&Source| {
        (source.is_rust() || is_page(source)) && source.path != GLOSSARY && !source.path.starts_with(NOTEBOOKS)
    };
    let ours = sources.iter().filter(is_ours);
    let everywhere = ours.clone().flat_map(|source| THINGS.iter().chain(&ENGLISH).flat_map(|term| check(source, term)));
    let on_pages = ours.filter(is_page).flat_map(|source| PAGES.iter().flat_map(|term| check(source, term)));
    everywhere.chain(on_pages).collect()
}

fn check(source: &Source, term: &Term) -> Vec<String> {
    let said = |word: &&str| {
        let what = format!("`{word}`: say {}", term.say);
        said_in(source, word).into_iter().map(|line_index| source.complaint(line_index, &what)).collect::<Vec<_>>()
    };
    term.not.iter().flat_map(said).collect()
}

/// Lines that say the word, alone or as a part of a name. It may begin on the line before.
fn said_in(source: &Source, word: &str) -> Vec<usize> {
    let word = words(word).join(" ");
    let n_words = word.split(' ').count();
    let mut recent: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for (line_index, line) in source.text.lines().enumerate() {
        let mut is_said = false;
        for next in words(line) {
            recent.push(next);
            recent.drain(..recent.len().saturating_sub(n_words));
            is_said |= recent.join(" ") == word;
        }
        if is_said {
            lines.push(line_index);
        }
    }
    lines
}

/// The words of a line in lower case, names taken apart. The plural is the same word. Addresses of
/// pages and fixed names are left out.
fn words(line: &str) -> Vec<String> {
    let is_address = |word: &&str| word.contains("://");
    let line = line.split(' ').filter(|word| !is_address(word)).collect::<Vec<_>>().join(" ");
    let line = FIXED.iter().fold(line, |line, name| line.replace(name, ""));
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous = ' ';
    for sign in line.chars().chain(std::iter::once(' ')) {
        let begins = sign.is_ascii_uppercase() && previous.is_ascii_lowercase();
        if (begins || !sign.is_ascii_alphanumeric()) && !word.is_empty() {
            let singular = word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s'));
            words.push(singular.unwrap_or(&word).to_owned());
            word.clear();
        }
        if sign.is_ascii_alphanumeric() {
            word.push(sign.to_ascii_lowercase());
        }
        previous = sign;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: Term = Term { say: "tier", not: &["cold store"] };

    fn of(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text), &STORE)
    }

    #[test]
    fn words_are_found_in_prose_names_and_over_the_end_of_a_line() {
        for text in
            ["/// The cold stores.\n", "let cold_store = 1;\n", "struct ColdStores;\n", "const COLD_STORE: u8 = 1;\n"]
        {
            assert_eq!(of("a.rs", text), ["a.rs:1: `cold store`: say tier"], "{text}");
        }
        assert_eq!(of("a.md", "It is cold\nstore it.\n"), ["a.md:2: `cold store`: say tier"]);
        assert!(of("a.rs", "let scold_store = cold.stored();\n").is_empty());
    }

    #[test]
    fn the_glossary_notebooks_and_pages_have_rules_of_their_own() {
        let word = THINGS[0].not[0];
        let n_found = |path: &str, text: &str| complaints(&[Source::new(path, text)]).len();
        assert_eq!(
            ["a.md", "a.rs", "a.svg", GLOSSARY, "docs/lab/a.md"].map(|path| n_found(path, word)),
            [1, 1, 0, 0, 0]
        );
        assert_eq!(["a.md", "a.rs"].map(|path| n_found(path, PAGES[0].not[0])), [1, 0]);
        assert_eq!(n_found("a.md", "A page, a chunk, a flush of a staging buffer; host, device, snapshot.\n"), 0);
    }

    #[test]
    fn addresses_and_fixed_names_are_allowed() {
        assert!(of("a.md", "See https://example.org/cold-store/cold/store now.\n").is_empty());
        assert_eq!(words(concat!("bl", "ob-000003")), ["000003"]);
        assert_eq!(words(concat!("bl", "obs, bl", "ob 3")), [concat!("bl", "ob"), concat!("bl", "ob"), "3"]);
    }

    #[test]
    fn every_word_of_the_lists_can_be_found() {
        for word in THINGS.iter().chain(&ENGLISH).chain(&PAGES).flat_map(|term| term.not) {
            assert_eq!(said_in(&Source::new("a.md", word), word), [0], "{word}");
        }
    }
}
