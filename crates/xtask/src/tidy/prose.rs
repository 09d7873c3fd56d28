//! Checks of pages written in plain English: how long their sentences are.

use super::Source;

/// Words of a sentence: the median, and nine of ten.
const MEDIAN_MAX: usize = 18;
const NINE_OF_TEN_MAX: usize = 32;

pub(super) fn complaints(source: &Source) -> Vec<String> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let mut words: Vec<usize> = sentences(&source.text).iter().map(|text| text.split_whitespace().count()).collect();
    words.sort_unstable();
    let at = |part: usize| words.get(part * words.len() / 10).copied().unwrap_or(0);
    let limits = [("the median", at(5), MEDIAN_MAX), ("nine of ten", at(9), NINE_OF_TEN_MAX)];
    let long = limits.into_iter().filter(|(_, found, most)| found > most);
    long.map(|(which, found, most)| {
        source.complaint(0, format!("sentences of {found} words ({which}), at most {most}"))
    })
    .collect()
}

/// The sentences of a page without its tables, code and headings.
fn sentences(page: &str) -> Vec<String> {
    let mut is_code = false;
    let mut text = String::new();
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let is_prose = !is_code && !line.starts_with(['|', '#', '`']);
        let starts_item = line.trim_start().starts_with(['-', '!']) || line.starts_with(|c: char| c.is_ascii_digit());
        if !is_prose || line.trim().is_empty() || starts_item {
            text.push('\n');
        }
        if is_prose {
            text.push_str(line.trim());
            text.push(' ');
        }
    }
    let ends = |text: &str| text.replace(". ", ".\n").replace(".** ", ".**\n").replace(": ", ":\n");
    text.lines()
        .flat_map(|line| ends(line).lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|s| !s.trim().is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        complaints(&Source::new(path, text))
    }

    #[test]
    fn long_sentences_are_found_on_every_page() {
        let long = format!("{}end.\n", "word ".repeat(40));
        assert_eq!(of("docs/run.md", &long).len(), 2);
        assert_eq!(of("docs/decisions/bounds.md", &long).len(), 2);
        assert!(of("Makefile", &long).is_empty());
        assert!(of("docs/run.md", &format!("Short. Shorter.\n\n```sh\n{long}```\n| {long}")).is_empty());
    }
}
