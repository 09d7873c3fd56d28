//! The words and signs of a text of PTX.

/// A word or a sign, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// Line of the text, from 1.
    pub(super) line: usize,
    /// The characters: a word with its dots, a number, a text in quotes, or one sign.
    pub(super) text: &'a str,
}

impl Token<'_> {
    /// Returns whether it is a name: of a directive, an opcode, a register, a variable, a label.
    pub(super) fn is_word(self) -> bool {
        self.text.starts_with(|sign: char| sign.is_ascii_alphabetic() || "._%$".contains(sign))
    }
}

/// Splits a text; comments and white space are left out.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = length(rest, first);
        let part = &rest[..length];
        if !first.is_whitespace() && !part.starts_with("//") && !part.starts_with("/*") {
            found.push(Token { line, text: part });
        }
        line += part.matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// Bytes of the token, the comment or the white space that `rest` begins with.
fn length(rest: &str, first: char) -> usize {
    let until = |end: Option<usize>| end.unwrap_or(rest.len());
    if first.is_whitespace() {
        return until(rest.find(|sign: char| !sign.is_whitespace()));
    }
    if rest.starts_with("//") {
        return until(rest.find('\n'));
    }
    if rest.starts_with("/*") {
        return until(rest.find("*/").map(|end| end + 2));
    }
    if first == '"' {
        return until(rest[1..].find('"').map(|end| end + 2));
    }
    if is_of_word(first) { word_length(rest) } else { first.len_utf8() }
}

fn is_of_word(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "._%$".contains(sign)
}

/// A word continues through two colons, and ends before one.
fn word_length(rest: &str) -> usize {
    let end = rest.find(|sign: char| !is_of_word(sign)).unwrap_or(rest.len());
    match rest[end..].strip_prefix("::") {
        Some(after) if after.starts_with(is_of_word) => end + 2 + word_length(after),
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn a_statement_falls_into_words_and_signs() {
        assert_eq!(
            texts("@!%p1 ld.u32 %r1,[%rd2+-8];"),
            ["@", "!", "%p1", "ld.u32", "%r1", ",", "[", "%rd2", "+", "-", "8", "]", ";"]
        );
        assert_eq!(
            texts("$L__BB0_2: st.shared::cta.u8 {%rs<3>}"),
            ["$L__BB0_2", ":", "st.shared::cta.u8", "{", "%rs", "<", "3", ">", "}"]
        );
    }

    #[test]
    fn comments_and_texts_keep_the_count_of_lines() {
        let found = tokens("// a\n/* b\nc */ .pragma \"no unroll\";\nret;");
        let lines: Vec<(usize, &str)> = found.iter().map(|token| (token.line, token.text)).collect();
        assert_eq!(lines, [(3, ".pragma"), (3, "\"no unroll\""), (3, ";"), (4, "ret"), (4, ";")]);
    }

    #[test]
    fn what_never_ends_ends_with_the_text() {
        assert_eq!(texts("/* open"), Vec::<&str>::new());
        assert_eq!(texts("\"open"), ["\"open"]);
    }
}
