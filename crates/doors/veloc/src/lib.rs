//! The C and C++ interface of VELOC 1.8 over recoup: a program that includes `veloc.h` or
//! `veloc.hpp` and links `-lveloc-client` compiles unchanged against ours.
//!
//! Promises: a restart returns verified values only, whole and of one attempt on all ranks. A
//! collective call that fails on one rank fails on all ranks. A version counts when it is whole,
//! whatever kills the process. Must not know MPI: `VELOC_Init` is a few lines of C that lend a
//! communicator of callbacks. Must not know C++: `veloc.hpp` is all header, over `veloc.h`.
//!
//! Written from the interface's published facts; `include/veloc.h` says what each call does.
//!
#![doc = include_str!("../docs/veloc.md")]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![expect(unsafe_code, reason = "the C interface takes pointers to the program's memory")]

mod abi;
mod agree;
mod client;
mod coding;
mod config;
mod copies;
mod device;
mod draft;
mod drain;
mod error;
mod places;
mod regions;
mod restart;

pub use abi::*;
pub use client::Client;
pub use config::{Config, Parsed};
pub use error::Error;
pub use regions::{MemoryRegion, Selection};

/// Writes a line to standard error, if there is one.
fn say(rank: Option<usize>, message: &str) {
    use std::io::Write;
    let message = printable(message);
    let rank = rank.map(|rank| format!("rank {rank}: ")).unwrap_or_default();
    // A program that closed it wants to hear nothing.
    writeln!(std::io::stderr(), "veloc: {rank}{message}").ok();
}

/// Writes signs that would steer a terminal as escapes: names and messages come from files, too.
fn printable(message: &str) -> String {
    let escaped = |sign: char| if sign.is_control() { sign.escape_default().to_string() } else { sign.to_string() };
    message.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_from_files_do_not_steer_the_terminal() {
        assert_eq!(super::printable("the files a\u{1b}[2J\nb"), "the files a\\u{1b}[2J\\nb");
        assert_eq!(super::printable("gr\u{f6}sse"), "gr\u{f6}sse");
    }
}
