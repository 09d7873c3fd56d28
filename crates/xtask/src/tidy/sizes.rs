//! Sizes of pages: what a reader meets first stays short.

use super::Source;

/// The most lines of the page a reader sees first.
const README: (&str, usize) = ("README.md", 80);
/// The most words of a page, or of each page of a folder.
const WORDS: [(&str, usize); 3] = [("BENCHMARKS.md", 900), ("CHANGELOG.md", 300), ("docs/decisions/", 300)];
/// The list of decisions, which is no decision.
const DECISIONS: &str = "docs/decisions/README.md";
/// The page whose code blocks are tested, and shown by the first page too.
const DOORS: &str = "docs/embed.md";
/// Languages of those blocks. Rust is tested where it stands.
const LANGUAGES: [&str; 2] = ["```c\n", "```python\n"];

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    let mut found: Vec<String> = sources.iter().flat_map(long_pages).collect();
    let page = |path: &str| sources.iter().find(|source| source.path == path);
    if let (Some(readme), Some(doors)) = (page(README.0), page(DOORS)) {
        let lost = blocks(&readme.text).filter(|block| !doors.text.contains(block));
        found.extend(lost.map(|block| readme.complaint(0, format!("{DOORS} does not have this code:\n{block}"))));
    }
    found
}

fn long_pages(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let n_lines = source.text.lines().count();
    if source.path == README.0 && n_lines > README.1 {
        found.push(source.complaint(0, format!("{n_lines} lines, at most {}", README.1)));
    }
    let limit =
        WORDS.iter().find(|(path, _)| source.path == *path || path.ends_with('/') && source.path.starts_with(path));
    // From the first release on, the page of changes has a section for each.
    let is_open = source.path == DECISIONS || source.text.lines().any(|line| line.starts_with("## 0."));
    let n_words = source.text.split_whitespace().count();
    let most = limit.filter(|(_, most)| !is_open && n_words > *most);
    found.extend(most.map(|(_, most)| source.complaint(0, format!("{n_words} words, at most {most}"))));
    found
}

/// The code blocks of the languages, as they stand.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    let of = |language| page.split(language).skip(1).filter_map(|rest| rest.split("```").next());
    LANGUAGES.into_iter().flat_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pages: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source::new(path, text);
        complaints(&pages.iter().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn pages_over_their_limits_are_found() {
        let words = |n: usize| "word ".repeat(n);
        assert_eq!(of(&[("README.md", &"a\n".repeat(81))]), ["README.md:1: 81 lines, at most 80"]);
        assert_eq!(of(&[("docs/decisions/a.md", &words(301))]), ["docs/decisions/a.md:1: 301 words, at most 300"]);
        assert_eq!(of(&[("docs/run.md", &words(901)), ("docs/decisions/README.md", &words(400))]), [""; 0]);
        assert_eq!(of(&[("CHANGELOG.md", &format!("## 0.1.0 (2026-12-01)\n{}", words(400)))]), [""; 0]);
    }

    #[test]
    fn code_of_the_first_page_that_no_test_runs_is_found() {
        let readme = ("README.md", "```python\nimport a\n```\n");
        assert_eq!(of(&[readme, ("docs/embed.md", "x\n```python\nimport a\n```\n")]), [""; 0]);
        assert_eq!(of(&[readme, ("docs/embed.md", "```python\nimport b\n```\n")]).len(), 1);
    }
}
