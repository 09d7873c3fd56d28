//! `let` statements that pack unrelated names into a tuple: one line each is easier to read, to
//! change and to compare.

use super::Source;
use super::code::without_comments;

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(of_file).collect()
}

fn of_file(source: &Source) -> Vec<String> {
    let code = without_comments(&source.text);
    let statements = code.match_indices("let (").filter(|(position, statement)| {
        let is_word = !code[..*position].ends_with(|sign: char| sign.is_alphanumeric() || sign == '_');
        is_word && packs(&code[position + statement.len() - 1..])
    });
    let lines = statements.map(|(position, _)| code[..position].matches('\n').count());
    lines.map(|line_index| source.complaint(line_index, "`let` packs unrelated names: one `let` for each")).collect()
}

/// Returns whether a pattern in parentheses gets its value from a tuple that is written out.
fn packs(from_pattern: &str) -> bool {
    let value = || {
        let after = &from_pattern[closing(from_pattern)?..];
        let begin = after.find('=')?;
        let is_type = after[..begin].trim_start().starts_with(':');
        let value = after[begin + 1..].trim_start();
        let end = closing(value)?;
        ((is_type || after[..begin].trim().is_empty()) && value.starts_with('(')).then(|| &value[end..])
    };
    value().is_some_and(|after| after.trim_start().starts_with(';'))
}

/// Returns the position after the bracket that closes the first one of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (position, sign) in text.char_indices() {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(position + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        of_file(&Source::new("a.rs", text))
    }

    #[test]
    fn tuples_that_are_taken_apart_at_once_are_found() {
        for text in [
            "    let (a, mut b) = (f(1), g[2]);\n",
            "let (a, (b, c)) = (\n    1,\n    (2, 3),\n);\n",
            "let (a, b): (u8, Vec<u8>) = (x < y, z);\n",
        ] {
            assert_eq!(of(text), ["a.rs:1: `let` packs unrelated names: one `let` for each"], "{text}");
        }
    }

    #[test]
    fn tuples_that_belong_together_are_allowed() {
        for text in [
            "let (a, b) = pair();",
            "let (a, b) = (f)(x);",
            "let (a, b) = (f, g).swap();",
            "let (Some(a), Some(b)) = (x, y) else { return };",
            "let (a, b) = if x { (1, 2) } else { (3, 4) };",
            "if let (Some(a), b) = (x, y) { f(a, b) }",
            "outlet (a, b) = (1, 2);",
            "// let (a, b) = (1, 2);",
        ] {
            assert_eq!(of(text), [""; 0], "{text}");
        }
    }
}
