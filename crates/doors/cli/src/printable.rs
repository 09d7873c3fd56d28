//! Text of files, as a terminal may see it.

/// Returns a text with its control characters spelled out, but for the ends of lines: names and
/// messages come from files that anybody may have written, and a terminal obeys such characters.
pub(crate) fn printable(text: &str) -> String {
    let is_obeyed = |c: char| c.is_control() && c != '\n';
    text.chars().fold(String::with_capacity(text.len()), |mut printed, c| {
        if is_obeyed(c) {
            printed.extend(c.escape_default())
        } else {
            printed.push(c)
        }
        printed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a run or an array could clear the screen, or write to the title of the window.
    #[test]
    fn text_of_files_gives_the_terminal_no_orders() {
        let text = "\u{1b}[2Jheat\u{9b}31m\r\u{7}\u{7f}\n";
        assert_eq!(printable(text), "\\u{1b}[2Jheat\\u{9b}31m\\r\\u{7}\\u{7f}\n");
        assert_eq!(printable("\u{e4}, \u{3b8} and \u{2264}\n"), "\u{e4}, \u{3b8} and \u{2264}\n");
    }
}
