//! Checks of any text: characters, length, words that do not belong.

use super::Source;

/// Lines a source file may have.
const FILE_LINES_MAX: usize = 600;

/// Columns of a comment, and of a line of prose in Markdown.
const COMMENT_COLUMNS_MAX: usize = 100;
const PROSE_COLUMNS_MAX: usize = 120;

/// Marks of unfinished work. Split, so that this file does not find itself.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("to", "do!("),
    concat!("db", "g!("),
    concat!("unimple", "mented!("),
];

/// Beginnings of absolute paths that exist on one machine only.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

pub(super) fn complaints(source: &Source) -> Vec<String> {
    let lines = source.text.lines().enumerate();
    let mut complaints: Vec<String> = lines.flat_map(|(index, line)| line_complaints(source, index, line)).collect();
    complaints.extend(wide_lines(source));
    let n_lines = source.text.lines().count();
    if source.is_rust() && n_lines > FILE_LINES_MAX {
        complaints.push(source.complaint(0, format!("{n_lines} lines, at most {FILE_LINES_MAX}")));
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        complaints.push(source.complaint(n_lines.saturating_sub(1), "no newline at the end"));
    }
    complaints
}

/// Comments and prose that are too wide. Tables, and words that cannot be broken, are not counted.
fn wide_lines(source: &Source) -> Vec<String> {
    let is_markdown = source.path.ends_with(".md");
    let most = if is_markdown { PROSE_COLUMNS_MAX } else { COMMENT_COLUMNS_MAX };
    let mut is_code = false;
    let mut found = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']).trim_start());
        let text = if is_markdown { Some(line) } else { comment.filter(|_| source.is_rust()) };
        let Some(text) = text else { continue };
        is_code ^= is_markdown && text.starts_with("```");
        let columns = line.chars().count();
        if !is_code && columns > most && !text.trim_start().starts_with(['|', '#']) && text.contains(' ') {
            found.push(source.complaint(index, format!("{columns} columns, at most {most}")));
        }
    }
    found
}

fn line_complaints(source: &Source, index: usize, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(character) = line.chars().find(|c| !c.is_ascii()) {
        found.push(source.complaint(index, format!("{character:?} is not ASCII")));
    }
    if line.ends_with([' ', '\t']) {
        found.push(source.complaint(index, "white space at the end of the line"));
    }
    let unfinished = UNFINISHED.iter().find(|mark| line.contains(**mark));
    found.extend(unfinished.map(|mark| source.complaint(index, format!("{mark}: finish it or leave it out"))));
    let path = MACHINE_PATHS.iter().find(|path| line.contains(**path));
    found.extend(path.map(|path| source.complaint(index, format!("{path} is a path of one machine"))));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        complaints(&Source::new("a/b.rs", text))
    }

    #[test]
    fn letters_outside_ascii_are_found() {
        assert_eq!(of("//! residual\n//! \u{3b8}\n"), ["a/b.rs:2: '\u{3b8}' is not ASCII"]);
    }

    #[test]
    fn files_over_the_limit_are_found() {
        assert!(of(&"x\n".repeat(FILE_LINES_MAX)).is_empty());
        assert_eq!(of(&"x\n".repeat(FILE_LINES_MAX + 1)).len(), 1);
    }

    #[test]
    fn unfinished_work_is_found() {
        for mark in UNFINISHED {
            assert_eq!(of(&format!("{mark}x\n")).len(), 1, "{mark}");
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for path in MACHINE_PATHS {
            assert_eq!(of(&format!("see {path}x\n")).len(), 1, "{path}");
        }
    }

    #[test]
    fn wide_comments_and_prose_are_found_and_tables_are_not() {
        let words = |columns: usize| "word ".repeat(columns / 5 + 1);
        let wide = words(COMMENT_COLUMNS_MAX);
        assert_eq!(of(&format!("/// {}\n", wide.trim_end())).len(), 1);
        assert_eq!(of(&format!("/// | {}|\nlet text = \"{}\";\n", wide, wide.trim_end())), [""; 0]);
        let page = |text: &str| complaints(&Source::new("a.md", text)).len();
        let prose = words(PROSE_COLUMNS_MAX);
        assert_eq!(page(&format!("{}\n", prose.trim_end())), 1);
        assert_eq!(page(&format!("| {}|\n```text\n{}\n```\n", prose, prose.trim_end())), 0);
    }

    #[test]
    fn trailing_space_and_missing_newline_are_found() {
        assert_eq!(of("a \nb").len(), 2);
    }
}
