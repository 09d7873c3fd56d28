//! Words of the glossary: one word for each thing, in names, documentation and messages.

use super::Source;

/// The page that explains the words.
const GLOSSARY: &str = "CONTRIBUTING.md";

/// A word that is not said, and the word of the glossary.
struct Forbidden {
    word: &'static str,
    instead: &'static str,
}

/// Each is spelled in two parts, so that this file is not found.
const FORBIDDEN: [Forbidden; 18] = [
    Forbidden { word: concat!("sync po", "int"), instead: "safe point" },
    Forbidden { word: concat!("snap", "shot"), instead: "checkpoint, or version" },
    Forbidden { word: concat!("mt", "tf"), instead: "MTTI" },
    Forbidden { word: concat!("fre", "quency"), instead: "interval" },
    Forbidden { word: concat!("bud", "dy"), instead: "partner" },
    Forbidden { word: concat!("mir", "ror"), instead: "partner copy" },
    Forbidden { word: concat!("bl", "ob"), instead: "frame" },
    Forbidden { word: concat!("fl", "ush"), instead: "drain" },
    Forbidden { word: concat!("compr", "essor"), instead: "codec" },
    Forbidden { word: concat!("pen", "alty"), instead: "overhead" },
    Forbidden { word: concat!("lazy ca", "che"), instead: "incremental cache" },
    Forbidden { word: concat!("seed pa", "per"), instead: "Tao et al. 2018" },
    Forbidden { word: concat!("an", "ew"), instead: "again, or a verb of its own" },
    Forbidden { word: concat!("no", "body"), instead: "none, or name who" },
    Forbidden { word: concat!("so ma", "ny"), instead: "the number" },
    Forbidden { word: concat!("for e", "ver"), instead: "always, or without end" },
    Forbidden { word: concat!("hear o", "f"), instead: "is told" },
    Forbidden { word: concat!("to be h", "ad"), instead: "available" },
];

/// Methods that the standard library has named, the files of payloads in a node's memory, and the
/// title of a publication: their names do not change.
const FIXED: [&str; 6] = [
    concat!(".fl", "ush()"),
    concat!("fn fl", "ush("),
    concat!("bl", "ob-"),
    concat!("GPU Snap", "shot"),
    concat!("gpu-snap", "shot"),
    concat!("gpu_snap", "shot"),
];

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    FORBIDDEN.iter().flat_map(|forbidden| check(sources, forbidden)).collect()
}

fn check(sources: &[Source], forbidden: &Forbidden) -> Vec<String> {
    let is_ours = |source: &&Source| (source.is_rust() || source.path.ends_with(".md")) && source.path != GLOSSARY;
    let what = format!("`{}`: say {}", forbidden.word, forbidden.instead);
    let said =
        |source| said_in(source, forbidden.word).into_iter().map(|line_index| source.complaint(line_index, &what));
    sources.iter().filter(is_ours).flat_map(said).collect()
}

/// Lines that say the word, alone or as a part of a name. It may begin on the line before.
fn said_in(source: &Source, word: &str) -> Vec<usize> {
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

    const STORE: Forbidden = Forbidden { word: "cold store", instead: "tier" };

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn of(path: &str, text: &str) -> Vec<String> {
        check(&[source(path, text)], &STORE)
    }

    #[test]
    fn words_are_found_in_prose_names_and_over_the_end_of_a_line() {
        for text in
            ["/// The cold stores.\n", "let cold_store = 1;\n", "struct ColdStores;\n", "const COLD_STORE: u8 = 1;\n"]
        {
            assert_eq!(of("a.rs", text), ["a.rs:1: `cold store`: say tier"], "{text}");
        }
        assert_eq!(of("a.md", "It is cold\nstore it.\n"), ["a.md:2: `cold store`: say tier"]);
    }

    #[test]
    fn other_words_and_the_glossary_are_allowed() {
        assert!(of("a.rs", "let scold_store = cold.stored();\n").is_empty());
        assert!(of(GLOSSARY, "| tier | cold store |\n").is_empty());
        assert!(of("a.svg", "cold store").is_empty());
    }

    #[test]
    fn addresses_and_fixed_names_are_allowed() {
        assert!(of("a.md", "See https://example.org/cold-store/cold/store now.\n").is_empty());
        let line = concat!("out.fl", "ush()?; fn fl", "ush(&mut self)");
        assert!(words(line).iter().all(|word| word != concat!("fl", "ush")));
        assert_eq!(words(concat!("bl", "ob-000003")), ["000003"]);
        assert_eq!(words(concat!("bl", "obs, bl", "ob 3")), [concat!("bl", "ob"), concat!("bl", "ob"), "3"]);
    }

    #[test]
    fn every_word_of_the_list_can_be_found() {
        for forbidden in &FORBIDDEN {
            let lines = said_in(&source("a.md", forbidden.word), forbidden.word);
            assert_eq!(lines, [0], "{}", forbidden.word);
        }
    }
}
