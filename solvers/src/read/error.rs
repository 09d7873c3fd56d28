//! Errors of files with matrices and vectors.

use std::io;

use crate::CsrError;

/// The reason why a file is not a matrix or a right-hand side.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixMarketError {
    /// The file cannot be opened or read; a cut gzip stream ends here too.
    #[error("{path}{}: {source}", after(*.line))]
    Read {
        /// The file.
        path: String,
        /// Lines read before.
        line: usize,
        /// The error of the operating system, or of the gzip stream.
        source: io::Error,
    },
    /// The file is packed or coded in a way that is not read.
    #[error("{path}: {expected} expected, {found} found")]
    Form {
        /// The file.
        path: String,
        /// The forms that are read.
        expected: String,
        /// The form found.
        found: String,
    },
    /// A part of a line is not what the format has there.
    #[error("{path}, line {line}: {what}: {expected} expected, {found} found")]
    Unexpected {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// Part of the line.
        what: &'static str,
        /// Text expected there.
        expected: String,
        /// Text found there.
        found: String,
    },
    /// The file ends before everything it announces.
    #[error("{path}: ends after line {line} with {found} of {expected} {what}")]
    Truncated {
        /// The file.
        path: String,
        /// The last line.
        line: usize,
        /// Name of what is counted.
        what: &'static str,
        /// Announced.
        expected: usize,
        /// Read.
        found: usize,
    },
    /// The entries do not make a matrix.
    #[error("{path}: {source}")]
    Matrix {
        /// The file.
        path: String,
        /// The reason.
        source: CsrError,
    },
}

/// Place where reading stopped; a file that cannot be opened has no lines.
fn after(line: usize) -> String {
    if line == 0 { String::new() } else { format!(", after line {line}") }
}
