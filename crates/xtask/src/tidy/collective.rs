//! Errors of collective functions: where versions are stored, they are errors of all ranks.
//!
//! A `?` on the result of one rank alone, before a call that the others make, leaves them waiting.
//! It does not compile in a function that returns `CommonError`, or the error of the communicator.

use super::Source;
use super::code::without_tests;
use super::signatures::{Signature, signatures};

/// The sources whose functions are looked at.
const PLACES: [&str; 7] = [
    "crates/cache/src/",
    "crates/core/src/collective.rs",
    "crates/core/src/decorator.rs",
    "crates/core/src/store.rs",
    "crates/recoup/src/tiers.rs",
    "crates/doors/veloc/src/",
    "io/src/",
];

/// Errors that all ranks have.
const COMMON: [&str; 2] = ["CommonError", "CommError"];

pub(super) fn complaints(sources: &[Source]) -> Vec<String> {
    let is_looked_at = |source: &&Source| source.is_rust() && PLACES.iter().any(|place| source.path.starts_with(place));
    sources.iter().filter(is_looked_at).flat_map(of_file).collect()
}

fn of_file(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let is_wrong = |function: &Signature<'_>| {
        let has = |word: &str| function.result.iter().any(|token| token.text == word);
        has("Result") && !COMMON.into_iter().any(has) && is_collective(function, &lines)
    };
    let complaint = |Signature { line_index, name, .. }: Signature<'_>| {
        let what = format!("{name} is called on all ranks together: it returns a CommonError, or a CommError");
        source.complaint(line_index, what)
    };
    signatures(without_tests(source.tokens())).filter(is_wrong).map(complaint).collect()
}

/// Returns whether a function is given a communicator, or says that it is collective.
fn is_collective(function: &Signature<'_>, lines: &[&str]) -> bool {
    let above = lines[..function.line_index].iter().rev().map(|line| line.trim_start());
    let mut above = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
    let mut given = function.parameters.windows(3);
    given.any(|three| three.iter().map(|token| token.text.as_str()).eq(["&", "dyn", "Comm"]))
        || above.any(|line| line.contains("Collective"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        complaints(&[Source::new("crates/cache/src/a.rs", text)])
    }

    #[test]
    fn functions_of_all_ranks_with_errors_of_one_are_found() {
        let given = "fn a(\n    comm: &dyn Comm,\n) -> Result<(), StoreError> {\n}\n";
        let says = "/// Opens it. Collective.\n#[must_use]\nfn b(&self) -> Result<u8, Error> {\n}\n";
        for (text, at) in [(given, "1: a"), (says, "3: b")] {
            let expected = format!(
                "crates/cache/src/a.rs:{at} is called on all ranks together: it returns a CommonError, or a CommError"
            );
            assert_eq!(of(text), [expected], "{text}");
        }
    }

    #[test]
    fn errors_of_all_ranks_local_functions_and_other_crates_are_allowed() {
        for allowed in [
            "fn a(comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {\n}\n",
            "/// Asks. Collective.\nfn b(&self) -> Result<u8, CommError>;\n",
            "fn c(comm: &dyn Comm) -> bool {\n}\nfn d(rank: usize) -> Result<(), StoreError> {\n}\n",
            "struct A;\n#[cfg(test)]\nmod tests {\n    fn e(comm: &dyn Comm) -> Result<(), StoreError> {}\n}\n",
        ] {
            assert_eq!(of(allowed), [""; 0], "{allowed}");
        }
        let text = "fn a(comm: &dyn Comm) -> Result<(), StoreError> {}\n";
        assert_eq!(complaints(&[Source::new("crates/doors/cli/src/a.rs", text)]), [""; 0]);
    }
}
