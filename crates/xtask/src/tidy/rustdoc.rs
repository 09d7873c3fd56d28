//! The first words of documentation: a verb in the third person or a noun phrase.

use super::Source;

/// Words with which no such phrase begins.
const REFUSED: [&str; 14] =
    ["What", "Whether", "Those", "That", "It", "As", "How", "Where", "So", "Which", "Who", "Why", "When", "Of"];

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(of_file).collect()
}

/// Tests may begin with the story of what broke.
fn of_file(source: &Source) -> Vec<String> {
    if !source.path.contains("/src/") || source.path.contains("/tests/") || source.file_name() == "tests.rs" {
        return Vec::new();
    }
    let code = source.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut previous = None;
    for (line_index, line) in code.lines().enumerate() {
        let mark = ["///", "//!"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        if let Some(text) = mark.filter(|_| mark != previous).and_then(|mark| line.trim_start().strip_prefix(mark)) {
            let word = text.split_whitespace().next().unwrap_or_default().trim_end_matches([',', ':']);
            if REFUSED.contains(&word) {
                let what = format!("documentation begins with `{word}`: begin with a verb or a noun phrase");
                found.push(source.complaint(line_index, what));
            }
        }
        previous = mark;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        of_file(&Source::new(path, text))
    }

    #[test]
    fn documentation_that_begins_with_neither_verb_nor_noun_is_found() {
        let text =
            "//! How it is done.\n\n/// Whether all is well.\nfn f() {}\n    /// Of each rank,\n    /// so to say.\n";
        let found = of("a/src/b.rs", text);
        let what = |line: usize, word: &str| {
            format!("a/src/b.rs:{line}: documentation begins with `{word}`: begin with a verb or a noun phrase")
        };
        assert_eq!(found, [what(1, "How"), what(3, "Whether"), what(5, "Of")]);
    }

    #[test]
    fn verbs_nouns_later_lines_comments_and_tests_are_allowed() {
        let text =
            "/// Returns whether all is well.\n/// What follows is more.\n// It is so.\nfn f() {}\n/// The rank.\n";
        assert_eq!(of("a/src/b.rs", text), [""; 0]);
        let story = "/// It broke.\nfn test() {}\n";
        assert_eq!(of("a/tests/b.rs", story), [""; 0]);
        assert_eq!(of("a/src/b.rs", &format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{story}}}\n")), [""; 0]);
    }
}
