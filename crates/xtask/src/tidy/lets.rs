//! `let` statements that pack unrelated names into a tuple: one line each is easier to read, to
//! change and to compare.

use super::Source;

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(of_file).collect()
}

/// Finds patterns in parentheses that get their values from a tuple that is written out.
fn of_file(source: &Source) -> Vec<String> {
    let tokens = source.tokens();
    let is = |at: usize, sign: &str| tokens.get(at).is_some_and(|token| token.text == sign);
    let packs = |at: &usize| {
        if !is(*at, "let") || !is(at + 1, "(") {
            return false;
        }
        let mut value = tokens[at + 1].end + 1;
        while value < tokens.len() && !is(value, "=") && !is(value, ";") {
            value = tokens[value].end + 1;
        }
        is(value, "=") && is(value + 1, "(") && is(tokens[value + 1].end + 1, ";")
    };
    let lines = (0..tokens.len()).filter(packs).map(|at| tokens[at].line_index);
    lines.map(|line_index| source.complaint(line_index, "`let` packs unrelated names: one `let` for each")).collect()
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
