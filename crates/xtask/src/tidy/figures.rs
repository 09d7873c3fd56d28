//! Checks of docs/figures: a table says when and how its figures were taken.

use super::Source;
use crate::figures::FOLDER;

/// Beginnings of commands, in a code block or between backticks.
const COMMANDS: [&str; 6] = ["cargo ", "make ", "mpirun ", "[mpirun ", "recoup ", "scripts/"];

pub(super) fn complaints(source: &Source) -> Vec<String> {
    if !source.path.starts_with(FOLDER) {
        return Vec::new();
    }
    let with_tables = sections(&source.text).into_iter().filter(|section| section.has_table());
    with_tables
        .flat_map(|section| {
            let missing = [("date", section.has_date()), ("command", section.has_command())];
            let complaint = |what| source.complaint(section.line_index, format!("a table without a {what}"));
            missing.into_iter().filter(|(_, found)| !found).map(|(what, _)| complaint(what)).collect::<Vec<_>>()
        })
        .collect()
}

/// The lines from one heading, of any level, to the next.
struct Section<'a> {
    line_index: usize,
    lines: Vec<&'a str>,
}

impl Section<'_> {
    fn has_table(&self) -> bool {
        self.lines.iter().any(|line| line.trim_start().starts_with('|'))
    }

    fn has_date(&self) -> bool {
        self.lines.iter().any(|line| line.as_bytes().windows(10).any(is_date))
    }

    fn has_command(&self) -> bool {
        let is_command = |text: &str| COMMANDS.iter().any(|start| text.starts_with(start));
        self.lines.iter().any(|line| {
            let mut quoted = line.split('`').skip(1).step_by(2);
            is_command(line) || quoted.any(is_command)
        })
    }
}

fn sections(page: &str) -> Vec<Section<'_>> {
    let mut found = vec![Section { line_index: 0, lines: Vec::new() }];
    for (line_index, line) in page.lines().enumerate() {
        if line.starts_with('#') {
            found.push(Section { line_index, lines: Vec::new() });
        }
        found.last_mut().into_iter().for_each(|section| section.lines.push(line));
    }
    found
}

/// Returns whether ten bytes are a date, as 2026-11-21.
fn is_date(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(i, byte)| if matches!(i, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        complaints(&Source::new(path, text))
    }

    #[test]
    fn tables_of_figures_have_a_date_and_a_command() {
        let table = "| a | b |\n|---|---|\n| 1 | 2 |\n";
        let bare = format!("# Page\n\n## First\n\n2026-11-21: `cargo bench`\n\n## Second\n\n{table}");
        let found = of("docs/figures/a.md", &bare);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|line| line.starts_with("docs/figures/a.md:7: a table without a ")), "{found:?}");
        assert_eq!(of("docs/figures/a.md", &format!("## A\n\n2026-11-21\n\n{table}")).len(), 1);
        for command in ["```text\nrecoup solve\n```", "`make demo`", "in `s`, `cargo bench`"] {
            assert!(of("docs/figures/a.md", &format!("## A\n\n2026-11-21\n\n{command}\n\n{table}")).is_empty());
        }
        assert!(of("docs/run.md", &bare).is_empty());
    }
}
