//! Notes of a store of several places: what it did to make a version readable.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;

/// A note of a store: how it made a version readable, or why it could not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Note {
    /// Frames of a version were read from a tier.
    Read {
        /// The version.
        version: u64,
        /// The tier's name.
        tier: String,
    },
    /// A tier could not give something of a version that it should hold.
    Passed {
        /// The version.
        version: u64,
        /// The tier's name.
        tier: String,
        /// The damage there.
        what: String,
    },
    /// A version was not written to a tier that was due to have it; the tier is due again.
    Unwritten {
        /// The version.
        version: u64,
        /// The tier's name.
        tier: String,
        /// The reason.
        what: String,
        /// The kind of the error that is the reason.
        kind: ErrorKind,
    },
    /// A rank's part was lost and brought back.
    Repaired {
        /// The version.
        version: u64,
        /// The rank that wrote the part.
        rank: usize,
        /// The source.
        source: String,
    },
    /// A version could not be made whole.
    Dropped {
        /// The version.
        version: u64,
        /// The missing part.
        what: String,
    },
}

impl Note {
    /// The version it is about.
    #[must_use]
    pub fn version(&self) -> u64 {
        match self {
            Self::Read { version, .. }
            | Self::Passed { version, .. }
            | Self::Unwritten { version, .. }
            | Self::Repaired { version, .. }
            | Self::Dropped { version, .. } => *version,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { version, tier } => write!(f, "version {version} read from {tier}"),
            Self::Passed { version, tier, what } => write!(f, "version {version} in {tier}: {what}"),
            Self::Unwritten { version, tier, what, .. } => write!(f, "version {version} not written to {tier}: {what}"),
            Self::Repaired { version, rank, source } => {
                write!(f, "version {version}: part of rank {rank} from {source}")
            }
            Self::Dropped { version, what } => write!(f, "version {version} dropped: {what}"),
        }
    }
}
