//! The code of a Rust file without its comments, texts and unit tests.

/// Replaces comments, texts and characters by spaces. Lines keep their numbers.
pub(super) fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_in_word = code.ends_with(|sign: char| sign.is_alphanumeric() || sign == '_');
        match skipped(rest, is_in_word) {
            Some(length) => {
                code.extend(rest[..length].chars().map(|sign| if sign == '\n' { '\n' } else { ' ' }));
                rest = &rest[length..];
            }
            None => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    code
}

/// The bytes of the comment, text or character that `rest` begins with.
fn skipped(rest: &str, is_in_word: bool) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    if let Some(body) = rest.strip_prefix('"') {
        return Some(1 + closing(body, '"'));
    }
    if let Some(raw) = rest.strip_prefix('r').filter(|_| !is_in_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let body = raw[hashes..].strip_prefix('"')?;
        return Some(2 + hashes + body.find(&end).map_or(body.len(), |position| position + end.len()));
    }
    // A quote that no other one closes belongs to a lifetime.
    let mut signs = rest.strip_prefix('\'')?.chars();
    let is_character = signs.next()? == '\\' || signs.next() == Some('\'');
    is_character.then(|| 1 + closing(&rest[1..], '\''))
}

/// Returns the bytes up to the end of the text, its closing quote included.
fn closing(body: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (position, sign) in body.char_indices() {
        if sign == quote && !is_escaped {
            return position + 1;
        }
        is_escaped = sign == '\\' && !is_escaped;
    }
    body.len()
}

/// The code before the module of unit tests that ends a file.
pub(super) fn without_tests(code: &str) -> &str {
    let tests = code.match_indices("\n#[cfg(test)]\nmod ").find(|(position, start)| {
        let declaration = code[position + start.len()..].lines().next().unwrap_or_default();
        declaration.trim_end().ends_with('{')
    });
    tests.map_or(code, |(position, _)| &code[..position])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_characters_become_spaces() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b\n */ c", "a     \n    c"),
            ("f(\"(\\\"\", x)", "f(     , x)"),
            ("f(r#\"\"(\"#, x)", "f(       , x)"),
            ("for x in ['(', '\\'', '\\\\'] {}", "for x in [   ,     ,     ] {}"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("bar\"x\"", "bar   "),
        ] {
            assert_eq!(without_comments(text), code, "{text}");
        }
    }

    #[test]
    fn unit_tests_are_left_out_and_declared_modules_are_not() {
        assert_eq!(without_tests("struct A;\n#[cfg(test)]\nmod tests {\n    struct B;\n}\n"), "struct A;");
        let declared = "mod a;\n#[cfg(test)]\nmod tests;\nstruct A;\n";
        assert_eq!(without_tests(declared), declared);
    }
}
