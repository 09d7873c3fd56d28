//! `recoup annotate`: a C program with directives becomes one that keeps versions of its arrays.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use recoup::io::put_result;
use recoup::memory_options::FileOptions;
use recoup_annotate::{AnnotateError, annotate};

use crate::exit::Exit;
use crate::target::require_writable;

/// Text of the help after the options.
const DIRECTIVES: &str = "Directives, in main, in this order:
  #pragma recoup memory(\"file=/dev/shm/lu.memory interval=10it\")
  #pragma recoup versioned(a, n * n)    a pointer to n * n values
  #pragma recoup versioned(sum)         an array or a value
  #pragma recoup loop(k)                before for (size_t k = 0; ..; ..)
  #pragma recoup loop(k) calls(f, g)    f and g keep no state and write to none

The written program needs recoup_annotate.h and librecoup. A line that cannot be
annotated is named, and nothing is written.

Exit codes: 0 written, 1 refused, 2 the target is the source or cannot be
written, 5 clang is not on this machine.";

/// Options of `recoup annotate`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = DIRECTIVES)]
pub(crate) struct Args {
    /// A C source with directives.
    file: PathBuf,

    /// Write the program to a file [default: stdout].
    #[arg(short, long, value_name = "OUT.c")]
    output: Option<PathBuf>,

    /// Flags for clang, as for the compilation of the source.
    #[arg(last = true)]
    flags: Vec<String>,
}

/// Writes the annotated program.
pub(crate) fn run(args: &Args) -> Result<Exit> {
    if let Some(file) = &args.output {
        require_writable(file, "--output")?;
    }
    let check = |words: &str| words.parse::<FileOptions>().map(drop).map_err(|error| error.to_string());
    let text = annotate(&args.file, &args.flags, &check).map_err(|error| match error {
        error @ AnnotateError::NoClang { .. } => Exit::NotAvailable.because(error.to_string()),
        error => error.into(),
    })?;
    match &args.output {
        Some(file) => put_result(file, |out| out.write_all(text.as_bytes()))?,
        None => std::io::stdout().write_all(text.as_bytes()).context("writing to stdout")?,
    }
    Ok(Exit::Done)
}
