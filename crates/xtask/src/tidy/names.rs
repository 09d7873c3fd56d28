//! Type names of the workspace: no two modules declare a type of the same name.
//!
//! Associated types, generics and tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::code::{CodeToken, without_tests};

/// Names that mean the same thing wherever they stand: the arguments of each command of a program,
/// and the error of a crate.
const COMMON: [&str; 2] = ["Args", "Error"];

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    let mut places = BTreeMap::<&str, BTreeSet<&str>>::new();
    for source in sources.iter().filter(|source| source.is_rust() && !is_test(source)) {
        for name in declared(without_tests(source.tokens())) {
            places.entry(name).or_default().insert(&source.path);
        }
    }
    let double = places.iter().filter(|(name, files)| files.len() > 1 && !COMMON.contains(name));
    let what = |(name, files): (&&str, &BTreeSet<&str>)| {
        let files: Vec<&str> = files.iter().copied().collect();
        let others = files[1..].join(", ");
        format!("{}:1: type {name} is declared in {others} as well: name each by what it is", files[0])
    };
    double.map(what).collect()
}

/// Tests, benchmarks and examples are programs of their own.
fn is_test(source: &Source) -> bool {
    !source.path.contains("/src/") || source.path.contains("/tests/") || source.file_name() == "tests.rs"
}

/// Types that the code declares. Only an alias that stands in no block is one; in a block it is an
/// associated type.
fn declared(tokens: &[CodeToken]) -> impl Iterator<Item = &str> {
    let mut top = 0;
    let named = tokens.windows(2).enumerate().filter(move |(at, pair)| {
        let is_at_top = *at >= top;
        top = if is_at_top { pair[0].end } else { top };
        let is_type = match pair[0].text.as_str() {
            "struct" | "enum" | "union" | "trait" => true,
            "type" => is_at_top,
            _ => false,
        };
        is_type && pair[1].is_word()
    });
    named.map(|(_, pair)| pair[1].text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_declared_in_two_modules_are_found() {
        let sources = [
            Source::new("a/src/one.rs", "pub(crate) struct State<'a> {\n    x: &'a u8,\n}\n"),
            Source::new("b/src/two.rs", "mod inner {\n    pub(super) enum State {\n        A,\n    }\n}\n"),
            Source::new("b/src/three.rs", "type Row = u8;\npub unsafe trait State: Sized {}\n"),
        ];
        let expected =
            "a/src/one.rs:1: type State is declared in b/src/three.rs, b/src/two.rs as well: name each by what it is";
        assert_eq!(complaints(&sources), [expected]);
    }

    #[test]
    fn associated_types_generics_tests_and_common_names_do_not_count() {
        let sources = [
            Source::new("a/src/one.rs", "struct Row;\nstruct Args;\nfn f<State>(x: State) {}\n// struct State;\n"),
            Source::new(
                "b/src/two.rs",
                "impl T for X {\n    type Row = u8;\n}\nstruct Args;\n#[cfg(test)]\nmod tests {\n    struct Row;\n}\n",
            ),
            Source::new("b/src/two/tests.rs", "struct Row;\n"),
            Source::new("b/tests/main.rs", "struct Row;\n"),
        ];
        assert_eq!(complaints(&sources), [""; 0]);
    }
}
