//! Tuple patterns as parameters of functions: a tuple names nothing where the function is called.

use super::Source;
use super::code::CodeToken;

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(of_file).collect()
}

/// A function: its line, counted from 0, its name, and the tokens of what it takes and returns.
pub(super) struct Signature<'a> {
    pub(super) line_index: usize,
    pub(super) name: &'a str,
    pub(super) parameters: &'a [CodeToken],
    pub(super) result: &'a [CodeToken],
    /// Lines to the end of its body; `None` without one.
    pub(super) n_lines: Option<usize>,
    takes_tuple: bool,
}

fn of_file(source: &Source) -> Vec<String> {
    let complaint = |Signature { line_index, name, .. }: Signature<'_>| {
        source.complaint(line_index, format!("{name} takes a tuple: name its parts, or a struct"))
    };
    signatures(source.tokens()).filter(|function| function.takes_tuple).map(complaint).collect()
}

/// Returns the functions of a file.
pub(super) fn signatures(tokens: &[CodeToken]) -> impl Iterator<Item = Signature<'_>> {
    (0..tokens.len()).filter(|at| tokens[*at].text == "fn").filter_map(|at| signature(tokens, at))
}

/// Reads a function from its `fn` on. Types of functions have no name.
fn signature(tokens: &[CodeToken], at: usize) -> Option<Signature<'_>> {
    let name = tokens.get(at + 1).filter(|token| token.is_word())?;
    let open = at + 2 + in_angles(&tokens[at + 2..]);
    let list = tokens.get(open).filter(|token| token.text == "(")?;
    let after = list.end + 1;
    let mut body = after;
    while !["{", ";"].contains(&tokens.get(body)?.text.as_str()) {
        body = tokens[body].end + 1;
    }
    let last_line = (tokens[body].text == "{").then(|| tokens[tokens[body].end].line_index);
    let line_index = tokens[at].line_index;
    Some(Signature {
        line_index,
        name: &name.text,
        parameters: &tokens[open + 1..list.end],
        result: &tokens[after..body],
        n_lines: last_line.map(|last| last + 1 - line_index),
        takes_tuple: takes_tuple(tokens, open + 1, list.end),
    })
}

/// Returns the tokens of the generics that the list begins with.
fn in_angles(tokens: &[CodeToken]) -> usize {
    let mut depth = 0_i32;
    let after = tokens.iter().position(|token| {
        depth += i32::from(token.text == "<") - i32::from(token.text == ">");
        depth == 0
    });
    after.filter(|last| *last > 0).map_or(0, |last| last + 1)
}

/// Returns whether a parameter between two positions begins with a parenthesis.
fn takes_tuple(tokens: &[CodeToken], mut at: usize, end: usize) -> bool {
    let mut depth = 0_i32;
    let mut is_first = true;
    while at < end {
        let sign = tokens[at].text.as_str();
        if is_first && sign == "(" {
            return true;
        }
        depth += i32::from(sign == "<") - i32::from(sign == ">");
        is_first = sign == "," && depth == 0;
        at = tokens[at].end + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        of_file(&Source::new("a.rs", text))
    }

    #[test]
    fn tuple_patterns_are_found_with_the_function_that_takes_them() {
        let text =
            "\n    pub(crate) fn fill<'a, F: Fn(u8) -> u8>(\n        &self,\n        (a, b): (u8, &'a u8),\n    ) {}\n";
        assert_eq!(of(text), ["a.rs:2: fill takes a tuple: name its parts, or a struct"]);
        assert_eq!(of("fn first((a, _): (u8, u8)) {}\nfn second(x: u8, (): ()) {}\n").len(), 2);
    }

    #[test]
    fn tuple_types_closures_and_function_types_are_allowed() {
        for allowed in [
            "fn f(pair: (u8, u8), more: &[(u8, u8)]) -> (u8, u8) {}",
            "fn f(call: impl Fn(u8, (u8, u8)) -> u8, next: fn((u8, u8)) -> u8) {}",
            "fn f() { values.map(|(a, b)| a + b); }",
            "// fn f((a, b): (u8, u8))\nfn g(text: &str) { say(\"fn f((a, b): (u8, u8))\") }",
        ] {
            assert_eq!(of(allowed), [""; 0], "{allowed}");
        }
    }
}
