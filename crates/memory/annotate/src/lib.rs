//! Annotated programs: C sources whose directives say which arrays have versions, and after which
//! loop, become programs that keep them by the calls of recoup.h.
//!
//! Promises: every write of the loop to what outlives an iteration is announced, or the source is
//! refused with the line. Must not know how versions are kept. For users: `docs/annotate.md`.
//!
//! clang reads the source; the text is the source with insertions. The idea that a compiler makes
//! the persistent versions of a program's structures is that of Coy et al., ICS 2020, doi
//! 10.1145/3392717.3392755. The reasons for this way are in `docs/decisions/annotate.md`.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod callee;
mod clang;
mod directive;
mod effect;
mod element;
mod emit;
mod error;
mod known;
mod nest;
mod node;
mod program;
mod span_text;
mod touch;

use std::path::Path;

pub use error::{AnnotateError, Refusal};

/// Returns the annotated program of a source. `flags` are clang's, as for its compilation.
/// `check_options` says what is wrong with the words of `memory("..")`, which mean nothing here.
///
/// # Errors
/// [`AnnotateError::Source`], [`AnnotateError::NoClang`], [`AnnotateError::Clang`] for a source
/// that does not compile, [`AnnotateError::Tree`], and [`AnnotateError::Refused`] with all lines
/// that cannot be annotated.
pub fn annotate(
    source: &Path,
    flags: &[String],
    check_options: &dyn Fn(&str) -> Result<(), String>,
) -> Result<String, AnnotateError> {
    let file = source.display().to_string();
    let unread = |error| AnnotateError::Source { file: file.clone(), source: error };
    // Another process may have made a pipe of this name, which is a wait without an end.
    let is_file = std::fs::metadata(source).map(|found| found.is_file());
    let text = is_file.and_then(|is_file| match is_file {
        true => std::fs::read_to_string(source),
        false => Err(std::io::Error::other("a file expected, a directory, pipe or device found")),
    });
    let text = text.map_err(unread)?;
    let refused = |refusals| AnnotateError::Refused { file: file.clone(), refusals };
    let directives = directive::directives(&text).map_err(|refusal| refused(vec![refusal]))?;
    let tree = clang::tree(source, flags)?;
    let program = program::Program::new(&text, &tree, &directives).map_err(|refusal| refused(vec![refusal]))?;
    if let Some(words) = directive::literal(program.memory.options) {
        let refusal = |what| program.refusal(program.memory.directive.start, format!("memory: {what}"));
        check_options(&words).map_err(|what| refused(vec![refusal(what)]))?;
    }
    let touches = touch::touches(&program, &directives).map_err(refused)?;
    Ok(emit::emit(&program, &touches, &file))
}
