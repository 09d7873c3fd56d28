//! The directives of a source. clang drops pragmas that it does not know, so they are found in the
//! text.

use crate::error::Refusal;

/// A directive, and the bytes of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) order: DirectiveOrder,
}

/// The order of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DirectiveOrder {
    /// `memory("options")`: the string, with its quotes.
    Memory(String),
    /// `versioned(name)` or `versioned(name, count)`.
    Versioned { name: String, count: Option<String> },
    /// `loop(name)`, and the functions of `calls(..)`.
    Loop { name: String, calls: Vec<String> },
    /// A pragma of another tool.
    Foreign,
}

/// Finds the pragmas of a source, and refuses directives that are none.
pub(crate) fn directives(source: &str) -> Result<Vec<Directive>, Refusal> {
    let mut found = Vec::new();
    for (start, line) in code_lines(source) {
        let Some(pragma) = line.trim_start().strip_prefix('#').map(str::trim_start) else { continue };
        let Some(words) = pragma.strip_prefix("pragma") else { continue };
        let end = start + line.len();
        let order = match words.trim_start().strip_prefix("recoup").filter(|rest| rest.starts_with([' ', '\t'])) {
            Some(text) => {
                order(text.trim()).map_err(|what| Refusal { line: line_of(source, start), what: what.to_owned() })?
            }
            None => DirectiveOrder::Foreign,
        };
        found.push(Directive { start, end, order });
    }
    Ok(found)
}

/// Returns the line of a byte, from 1.
pub(crate) fn line_of(source: &str, at: usize) -> usize {
    1 + source.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

fn order(text: &str) -> Result<DirectiveOrder, &'static str> {
    const EXPECTED: &str = "expected memory(\"options\"), versioned(name), versioned(name, count) or loop(name)";
    let (word, rest) = text.split_once('(').ok_or(EXPECTED)?;
    let (inside, behind) = closed(rest).ok_or("a parenthesis is not closed")?;
    let inside = inside.trim();
    match (word.trim(), behind.trim()) {
        ("memory", "") if inside.len() > 2 && inside.starts_with('"') && inside.ends_with('"') => {
            Ok(DirectiveOrder::Memory(inside.to_owned()))
        }
        ("versioned", "") => {
            let (name, count) = inside.split_once(',').map_or((inside, None), |(name, count)| (name, Some(count)));
            let count = count.map(|count| count.trim().to_owned());
            Ok(DirectiveOrder::Versioned { name: identifier(name).ok_or(EXPECTED)?, count })
        }
        ("loop", behind) => {
            let name = identifier(inside).ok_or(EXPECTED)?;
            Ok(DirectiveOrder::Loop { name, calls: calls(behind).ok_or("expected calls(name, ..) after loop(name)")? })
        }
        _ => Err(EXPECTED),
    }
}

/// Returns the text of a string literal of C. `None` for several literals in a row, and for escapes
/// other than those of quotes and backslashes: what they mean is found when the program runs.
pub(crate) fn literal(quoted: &str) -> Option<String> {
    let inside = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut rest = inside.chars();
    while let Some(c) = rest.next() {
        text.push(match c {
            '"' => return None,
            '\\' => rest.next().filter(|escaped| matches!(escaped, '"' | '\\'))?,
            other => other,
        });
    }
    Some(text)
}

/// Reads `calls(f, g)`, or nothing.
fn calls(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let (inside, behind) = closed(text.strip_prefix("calls")?.trim_start().strip_prefix('(')?)?;
    let names: Option<Vec<String>> = inside.split(',').map(identifier).collect();
    names.filter(|_| behind.trim().is_empty())
}

fn identifier(text: &str) -> Option<String> {
    let text = text.trim();
    let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_word && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')).then(|| text.to_owned())
}

/// Splits a text at the parenthesis that closes one before it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
    }
    None
}

/// The lines that begin outside of comments, and where. A comment that a line begins is cut off.
fn code_lines(source: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut is_comment = false;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let code_end = code_end(line, &mut is_comment);
        if let Some(end) = code_end {
            lines.push((start, line[..end].trim_end()));
        }
        start += line.len();
    }
    lines
}

/// Returns where the code of a line ends, if the line begins with code. Notes whether the next line
/// begins in a comment.
fn code_end(line: &str, is_comment: &mut bool) -> Option<usize> {
    let begins_with_code = !*is_comment;
    let mut first_comment = None;
    let mut quote = None;
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at..at + 2).unwrap_or_default();
        match (bytes[at], quote) {
            _ if *is_comment => {
                *is_comment = pair != b"*/";
                at += usize::from(!*is_comment);
            }
            (b'\\', Some(_)) => at += 1,
            (byte, Some(open)) => quote = Some(open).filter(|open| *open != byte),
            (byte @ (b'"' | b'\''), None) => quote = Some(byte),
            _ if pair == b"/*" => {
                *is_comment = true;
                first_comment = first_comment.or(Some(at));
                at += 1;
            }
            _ if pair == b"//" => {
                first_comment = first_comment.or(Some(at));
                break;
            }
            _ => {}
        }
        at += 1;
    }
    begins_with_code.then(|| first_comment.unwrap_or(line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(source: &str) -> Vec<DirectiveOrder> {
        directives(source).unwrap().into_iter().map(|directive| directive.order).collect()
    }

    #[test]
    fn one_literal_is_read() {
        assert_eq!(literal(r#""file=\"a b\" keep=2""#).as_deref(), Some(r#"file="a b" keep=2"#));
        assert_eq!(literal(r#""file=a\\b""#).as_deref(), Some(r"file=a\b"));
        for other in [r#""file=a " "keep=2""#, r#""file=\x61""#, r#""\""#, "FILE"] {
            assert_eq!(literal(other), None, "{other}");
        }
    }

    #[test]
    fn directives_are_found_outside_of_comments_and_strings() {
        let source = "/* #pragma recoup loop(k)\n#pragma recoup loop(k)\n*/ int x; // \"\n\
                      char *s = \"/*\";\n  # pragma  recoup memory(\"file=a b.memory keep=2\") /* here */\n\
                      #pragma recoup versioned(a, (n + 1) * m)\n#pragma recoup loop(k) calls(f, g)\n#pragma omp for\n";
        let expected = [
            DirectiveOrder::Memory("\"file=a b.memory keep=2\"".to_owned()),
            DirectiveOrder::Versioned { name: "a".to_owned(), count: Some("(n + 1) * m".to_owned()) },
            DirectiveOrder::Loop { name: "k".to_owned(), calls: vec!["f".to_owned(), "g".to_owned()] },
            DirectiveOrder::Foreign,
        ];
        assert_eq!(orders(source), expected);
        let first = &directives(source).unwrap()[0];
        assert_eq!(&source[first.start..first.end], "  # pragma  recoup memory(\"file=a b.memory keep=2\")");
        assert_eq!(line_of(source, first.start), 5);
    }

    #[test]
    fn unknown_directives_are_refused_with_their_line() {
        for (text, what) in [
            ("save(a)", "expected memory"),
            ("memory(file)", "expected memory"),
            ("loop(k", "not closed"),
            ("loop(3)", "expected memory"),
            ("loop(k) pure(f)", "expected calls"),
            ("versioned(a[3])", "expected memory"),
        ] {
            let refusal = directives(&format!("int x;\n#pragma recoup {text}\n")).unwrap_err();
            assert!(refusal.line == 2 && refusal.what.contains(what), "{text}: {refusal:?}");
        }
    }
}
