//! Tuple patterns as parameters of functions: a tuple names nothing where the function is called.

use super::Source;
use super::code::without_comments;

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(of_file).collect()
}

/// A function's line, counted from 0, its name, its parameters, and the type it returns.
pub(super) struct Signature<'a> {
    pub(super) line_index: usize,
    pub(super) name: &'a str,
    pub(super) parameters: &'a str,
    pub(super) result: &'a str,
}

fn of_file(source: &Source) -> Vec<String> {
    let code = without_comments(&source.text);
    let takes_tuple = |function: &Signature<'_>| {
        split(function.parameters).iter().any(|parameter| parameter.trim_start().starts_with('('))
    };
    let with_tuples = signatures(&code).filter(takes_tuple);
    let complaint = |Signature { line_index, name, .. }| {
        source.complaint(line_index, format!("{name} takes a tuple: name its parts, or a struct"))
    };
    with_tuples.map(complaint).collect()
}

/// Returns the functions of code without comments.
pub(super) fn signatures(code: &str) -> impl Iterator<Item = Signature<'_>> {
    let functions = code
        .match_indices("fn ")
        .filter(|(position, _)| !code[..*position].ends_with(|sign: char| sign.is_alphanumeric() || sign == '_'));
    functions.filter_map(|(position, word)| {
        signature(&code[position + word.len()..], code[..position].matches('\n').count())
    })
}

/// Reads a function from its name on. Types of functions have no name.
fn signature(rest: &str, line_index: usize) -> Option<Signature<'_>> {
    let name = &rest[..rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_')?];
    let after = &rest[name.len()..];
    let generics = if after.starts_with('<') { group(after)?.len() + 2 } else { 0 };
    let list = after[generics..].trim_start();
    let parameters = group(list)?;
    let result = list[parameters.len() + 2..].split('{').next()?.split(";\n").next()?;
    (!name.is_empty() && list.starts_with('(')).then_some(Signature { line_index, name, parameters, result })
}

/// The text between the bracket that `text` begins with and the one that closes it. The `>` of an
/// arrow closes nothing.
fn group(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut previous = ' ';
    for (position, sign) in text.char_indices() {
        match sign {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if previous == '-' || previous == '=' => {}
            ')' | ']' | '}' | '>' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return text.get(1..position);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
        previous = sign;
    }
    None
}

/// The parts between the commas that stand in no bracket.
fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_i32;
    let mut start = 0;
    let mut previous = ' ';
    for (position, sign) in list.char_indices() {
        match sign {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if previous == '-' || previous == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..position]);
                start = position + 1;
            }
            _ => {}
        }
        previous = sign;
    }
    parts.push(&list[start..]);
    parts
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
