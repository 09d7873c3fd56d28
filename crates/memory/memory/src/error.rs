//! Errors, and damage that was found.

use std::io;
use std::path::PathBuf;

use recoup_core::{ErrorKind, KindedError};

/// One damaged part of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryFinding {
    /// A root does not hold: a commit was cut off there, or the file was damaged.
    #[error("root {slot}: {what}; version {expected} belongs there")]
    Root {
        /// 0 or 1.
        slot: usize,
        /// The version that belongs there.
        expected: u64,
        /// A finding in words.
        what: &'static str,
    },
    /// The list of the versions of a root is not what was written.
    #[error("list of versions of root {number}: {what}")]
    Catalogue {
        /// The newest version in the list.
        number: u64,
        /// A finding in words.
        what: &'static str,
    },
    /// The block table of a structure is not what was written.
    #[error("version {number}, {name}: {what}")]
    Table {
        /// The version.
        number: u64,
        /// The structure.
        name: String,
        /// A finding in words.
        what: &'static str,
    },
    /// A block is not what was written.
    #[error("version {number}, {name}, block {block}: checksum {expected:08x} expected, {found:08x} found")]
    Block {
        /// The version.
        number: u64,
        /// The structure.
        name: String,
        /// Its block, from 0.
        block: usize,
        /// The CRC-32C of the table.
        expected: u32,
        /// The CRC-32C of the bytes.
        found: u32,
    },
}

/// The reason why a call did nothing.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The system refused a call.
    #[error("{action}: {source}")]
    Io {
        /// A verb and its object.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The file begins with something else.
    #[error("it is no versioned memory: {what}")]
    NotMemory {
        /// A finding in words.
        what: &'static str,
    },
    /// Another recoup wrote the file.
    #[error("format {found} of versioned memory: this recoup reads {expected}")]
    Format {
        /// The format that is read.
        expected: u8,
        /// The format of the file.
        found: u8,
    },
    /// No root can be used.
    #[error("no root holds: {}", joined(.findings))]
    NoRoot {
        /// The faults of each.
        findings: Vec<MemoryFinding>,
    },
    /// Another process, or another part of this one, writes the file.
    #[error("another writer has the file open; any number may read it")]
    Locked,
    /// A process that was forked has the memory of its parent.
    #[error("process {opener} opened this memory, process {here} was forked from it: a file has one writer")]
    Forked {
        /// The process that opened it.
        opener: u32,
        /// The process that called.
        here: u32,
    },
    /// The file is no longer where it was opened.
    #[error("{}: the file was removed or replaced since it was opened: no program would find a version there", .path.display())]
    Gone {
        /// The place where it was.
        path: PathBuf,
    },
    /// Something is damaged, and is not given out.
    #[error("{0}")]
    Damaged(MemoryFinding),
    /// There is no such version, or no longer.
    #[error("version {number} is not kept")]
    NoVersion {
        /// The number that was asked for.
        number: u64,
    },
    /// The version was retired while it was read.
    #[error("version {number} was retired while it was read")]
    Retired {
        /// The version.
        number: u64,
    },
    /// The version has no structure of that name.
    #[error("version {number} has no structure {name}")]
    NoStructure {
        /// The version.
        number: u64,
        /// The name that was asked for.
        name: String,
    },
    /// The structure holds values of another type.
    #[error("structure {name}: values of type {expected} expected, {found} found")]
    Kind {
        /// The structure.
        name: String,
        /// Type that was asked for.
        expected: &'static str,
        /// Type in the file.
        found: &'static str,
    },
    /// The array that is to be filled cannot have as many values.
    #[error("structure {name}: {expected} values expected, {found} found")]
    Length {
        /// The structure.
        name: String,
        /// Number of values that the array can have.
        expected: usize,
        /// Number of values in the file.
        found: usize,
    },
    /// The range does not lie in the structure.
    #[error("structure {name}: values {start} to {end} of {len}")]
    Range {
        /// The structure.
        name: String,
        /// First value that was asked for.
        start: usize,
        /// First value behind.
        end: usize,
        /// Number of values.
        len: usize,
    },
    /// Two structures of one commit have one name.
    #[error("two structures are called {name}")]
    TwoOfOneName {
        /// Their name.
        name: String,
    },
    /// A name is empty or too long.
    #[error("a name has 1 to {most} bytes, {found} found")]
    Name {
        /// Bytes a name may have.
        most: usize,
        /// Bytes it has.
        found: usize,
    },
    /// The size of a block cannot be used.
    #[error("blocks of {found} bytes: a power of two from {least} to {most} expected")]
    BlockBytes {
        /// Fewest bytes.
        least: usize,
        /// Most bytes.
        most: usize,
        /// Bytes that were asked for.
        found: usize,
    },
    /// The file would need more blocks than a place can count.
    #[error("the file would have more than 2^32 blocks")]
    TooManyBlocks,
    /// A version was being made to count when the system refused a call: whether it counts is known
    /// when the file is opened again.
    #[error("an earlier commit failed in its last step: open the file again to see whether it counts")]
    Undecided,
}

impl MemoryError {
    /// Returns an error of an array that does not know the name it has in a version, with the name.
    pub(crate) fn of_structure(self, name: &str) -> Self {
        match self {
            Self::Length { expected, found, .. } => Self::Length { name: name.to_owned(), expected, found },
            other => other,
        }
    }
}

impl KindedError for MemoryError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => ErrorKind::of_io(source),
            Self::Locked => ErrorKind::InUse,
            Self::NoRoot { .. } | Self::Damaged(_) => ErrorKind::Damaged,
            Self::Gone { .. } | Self::Undecided => ErrorKind::Io,
            _ => ErrorKind::Refused,
        }
    }
}

fn joined(findings: &[MemoryFinding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<String>>().join("; ")
}

/// Gives an error of the system its action.
pub(crate) fn refused(action: &'static str) -> impl Fn(io::Error) -> MemoryError {
    move |source| MemoryError::Io { action, source }
}
