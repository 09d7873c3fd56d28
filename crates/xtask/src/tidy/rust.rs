//! Checks of Rust sources: length of functions, unsafe code, code in comments, errors that are
//! text alone.

use super::Source;
use super::code::CodeToken;
use super::signatures::signatures;

/// Lines a function may have, its signature and closing brace included.
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may lift the ban on unsafe code; the last counts allocations, which takes an
/// allocator.
const UNSAFE_FILES: [&str; 4] = ["sys.rs", "simd.rs", "cuda.rs", "allocation.rs"];

pub(super) fn complaints(source: &Source) -> Vec<String> {
    let mut found: Vec<String> = long_functions(source).chain(unsafe_code(source)).collect();
    if source.file_name() == "mod.rs" {
        found.push(source.complaint(0, "a module with a folder is a file next to it, named after it"));
    }
    for (index, line) in source.text.lines().enumerate() {
        let what = code_in_comment(line).or_else(|| text_alone(line));
        found.extend(what.map(|what| source.complaint(index, what)));
    }
    found
}

fn long_functions(source: &Source) -> impl Iterator<Item = String> {
    let lengths = signatures(source.tokens()).filter_map(|function| Some((function.line_index, function.n_lines?)));
    let long = lengths.filter(|(_, n_lines)| *n_lines > FUNCTION_LINES_MAX);
    long.map(|(index, n)| source.complaint(index, format!("function of {n} lines, at most {FUNCTION_LINES_MAX}")))
}

fn unsafe_code(source: &Source) -> Vec<String> {
    let may = UNSAFE_FILES.contains(&source.file_name())
        || ["/sys/", "/simd/"].iter().any(|folder| source.path.contains(folder))
        || ["crates/doors/capi/", "crates/doors/veloc/"].iter().any(|ffi| source.path.starts_with(ffi));
    let is_used = |pair: &&[CodeToken]| {
        !may && pair[0].text == "unsafe" && ["{", "fn", "impl", "extern"].contains(&pair[1].text.as_str())
    };
    let what = format!("unsafe code outside {}", UNSAFE_FILES.join(", "));
    source.tokens().windows(2).filter(is_used).map(|pair| source.complaint(pair[0].line_index, &what)).collect()
}

/// A plain comment that reads like a statement.
fn code_in_comment(line: &str) -> Option<String> {
    let comment = line.trim_start().strip_prefix("// ")?;
    let keywords = ["let ", "use ", "fn ", "pub ", "impl ", "return ", "assert", "println!", "mod ", "struct ", "#["];
    let ends = comment.trim_end().ends_with([';', '{', '}', ']']);
    (ends && keywords.iter().any(|word| comment.starts_with(word))).then(|| "code in a comment".to_owned())
}

/// A failure that is text alone: a program cannot tell a full disk from a codec's fault.
fn text_alone(line: &str) -> Option<String> {
    let (name, fields) = line.trim().split_once('(')?;
    let is_text = ["String),", "Vec<String>),"].contains(&fields);
    (is_text && ["Failed", "Error", "Other"].contains(&name)).then(|| format!("{name} is text alone: give it a kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        complaints(&Source::new(path, text))
    }

    fn function(signature: &str, body_lines: usize) -> String {
        format!("{signature} {{\n{}}}\n", "    call();\n".repeat(body_lines))
    }

    #[test]
    fn functions_over_the_limit_are_found() {
        assert!(of("a.rs", &function("pub(crate) fn f()", FUNCTION_LINES_MAX - 2)).is_empty());
        for signature in ["fn f()", "pub const fn f()", "extern \"C\" fn f()", "async fn f()"] {
            assert_eq!(of("a.rs", &function(signature, FUNCTION_LINES_MAX - 1)).len(), 1, "{signature}");
        }
    }

    #[test]
    fn failures_that_are_text_alone_are_found() {
        assert_eq!(of("a.rs", "enum E {\n    Failed(String),\n    Other(Vec<String>),\n}\n").len(), 2);
        assert!(of("a.rs", "enum E {\n    Failed(PipelineError),\n    Named(String),\n}\n").is_empty());
    }

    #[test]
    fn modules_named_mod_are_found() {
        assert_eq!(of("crates/x/src/parent/mod.rs", "mod child;\n").len(), 1);
    }

    #[test]
    fn declarations_without_a_body_have_no_length() {
        let declarations = format!("trait T {{\n    fn f(&self) -> usize;\n{}}}\n", "\n".repeat(100));
        assert!(of("a.rs", &declarations).is_empty());
    }

    #[test]
    fn unsafe_code_is_found_outside_its_files() {
        let block = "    unsafe { call() }\n";
        assert_eq!(of("io/src/hdf5.rs", block).len(), 1);
        assert!(of("io/src/sys.rs", block).is_empty());
        assert!(of("io/src/sys/group.rs", block).is_empty());
        assert!(of("compress/src/simd/avx2.rs", block).is_empty());
        assert!(of("io/src/hdf5.rs", &format!("// {block}")).is_empty());
    }

    #[test]
    fn code_in_comments_is_found_and_formulas_are_not() {
        assert_eq!(of("a.rs", concat!("    // l", "et x = 1;\n")).len(), 1);
        assert!(of("a.rs", "    // p = r + beta p\n").is_empty());
        assert!(of("a.rs", "    // let the drain finish first\n").is_empty());
    }
}
