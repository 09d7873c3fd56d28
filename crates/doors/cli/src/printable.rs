//! Text of files, as a terminal may see it.

use std::fmt::{self, Write as _};

/// Returns a text with its control characters spelled out.
pub(crate) fn printable(text: &str) -> String {
    Printable(text).to_string()
}

/// Returns a word as a shell takes it: in quotes where it has a blank, or what a shell obeys.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,:/+=".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// A text with its control characters spelled out, but for the ends of lines: names and messages
/// come from files that anybody may have written, and a terminal obeys such characters.
pub(crate) struct Printable<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Spelling(f), "{}", self.0)
    }
}

/// Spells out what is written to it.
struct Spelling<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Spelling<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.split_inclusive(|c: char| c.is_control() && c != '\n').try_for_each(|part| {
            let obeyed = part.chars().next_back().filter(|c| c.is_control() && *c != '\n');
            self.0.write_str(&part[..part.len() - obeyed.map_or(0, char::len_utf8)])?;
            obeyed.map_or(Ok(()), |c| write!(self.0, "{}", c.escape_default()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_obey_them() {
        assert_eq!(shell_word("/tmp/versions"), "/tmp/versions");
        assert_eq!(shell_word("my versions"), "'my versions'");
        assert_eq!(["it's", "", "$HOME"].map(shell_word), [r"'it'\''s'", "''", "'$HOME'"]);
    }

    /// The name of a run or an array could clear the screen, or write to the title of the window.
    #[test]
    fn text_of_files_gives_the_terminal_no_orders() {
        let text = "\u{1b}[2Jheat\u{9b}31m\r\u{7}\u{7f}\n";
        assert_eq!(printable(text), "\\u{1b}[2Jheat\\u{9b}31m\\r\\u{7}\\u{7f}\n");
        assert_eq!(printable("\u{e4}, \u{3b8} and \u{2264}\n"), "\u{e4}, \u{3b8} and \u{2264}\n");
    }
}
