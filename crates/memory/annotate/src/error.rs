//! Errors: what stands in the way of an annotated program.

use std::io;

/// One place of a source that cannot be annotated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// Line of the source, from 1.
    pub line: usize,
    /// The reason, in words.
    pub what: String,
}

/// The reason why no program was written.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// The source cannot be read.
    #[error("{file}: {source}")]
    Source {
        /// The source.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// There is no clang.
    #[error("clang cannot be started ({source}): install it, on Debian and Ubuntu with apt-get install clang")]
    NoClang {
        /// The system's error.
        source: io::Error,
    },
    /// The source does not compile.
    #[error("clang refuses {file}:\n{messages}")]
    Clang {
        /// The source.
        file: String,
        /// The words of clang.
        messages: String,
    },
    /// The tree of clang has another form than expected.
    #[error("{file}: the syntax tree of clang cannot be read: {source}")]
    Tree {
        /// The source.
        file: String,
        /// The fault of its text.
        source: serde_json::Error,
    },
    /// Places of the source that cannot be annotated.
    #[error("{}", listed(.file, .refusals))]
    Refused {
        /// The source.
        file: String,
        /// The places, in the order of their lines.
        refusals: Vec<Refusal>,
    },
}

fn listed(file: &str, refusals: &[Refusal]) -> String {
    let line = |refusal: &Refusal| format!("{file}:{}: {}", refusal.line, refusal.what);
    refusals.iter().map(line).collect::<Vec<String>>().join("\n")
}
