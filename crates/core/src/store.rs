//! Where versions rest: a parallel file system, memory, and later partners and erasure sets.

use std::fmt;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Comm, CommError, FileRecord, Frame, FrameRecord, Manifest, VariableRecord};

/// A place that keeps versions.
///
/// A version is there when [`Store::publish`] has returned, and only then; before that it is a
/// draft, and a draft never counts, whatever happens to the process that wrote it.
///
/// Of some stores all ranks see the same versions, as on a parallel file system; of others each
/// rank holds a part, as in memory. [`Store::publish`] and [`Store::settle`] are collective for
/// both. What only looks is local: after a settle each rank finds what it wants to read. The rest
/// is said by [`Store::is_shared`].
pub trait Store: Send + Sync {
    /// Whether all ranks see the same versions: then rank 0 alone calls what changes them
    /// ([`Store::discard_drafts`], [`Store::set_aside_newer`], [`Store::remove`]). Otherwise every
    /// rank does.
    fn is_shared(&self) -> bool {
        true
    }

    /// Whether all ranks may begin a version as they come once the one before it was published; the
    /// same on all ranks.
    fn begins_in_any_order(&self) -> bool {
        false
    }

    /// Starts this rank's part of a version. Rank 0 calls it first, the others after a barrier, but
    /// for [`Store::begins_in_any_order`].
    ///
    /// # Errors
    /// [`StoreError::Exists`] for a version that is there already, [`StoreError::Io`] otherwise.
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError>;

    /// Makes the sealed drafts of all ranks a version, in one visible step. Collective, after every
    /// rank has sealed; the verdict is the same on all ranks.
    ///
    /// # Errors
    /// [`StoreError`]; the version does not count then, and older ones are untouched.
    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<(), StoreError>;

    /// Brings versions back to where they are read, before a restore: the ranks agree who holds
    /// what, parts go back to the ranks that want them, and versions that cannot be made whole are
    /// dropped. `reads` says the ranks of a version whose frames this rank will read. Collective.
    ///
    /// # Errors
    /// [`StoreError`], on all ranks.
    fn settle(&self, _comm: &dyn Comm, _reads: &Reads<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether `version`, which is being written, may be coded against `parent`: every place it
    /// goes to holds that too, and guards it no less.
    fn can_follow(&self, _version: u64, _parent: u64) -> bool {
        true
    }

    /// The stores behind this one, fastest first; none when it is one itself. Each keeps versions
    /// of its own.
    fn tiers(&self) -> &[Tier] {
        &[]
    }

    /// The tier at this position takes every so many versions now.
    fn every(&self, tier: usize) -> u64 {
        self.tiers().get(tier).map_or(1, |tier| tier.every)
    }

    /// The next version goes to every tier, whatever their intervals: no later one may follow. To
    /// be said on all ranks, once nothing is on its way ([`Store::finish`]).
    fn next_everywhere(&self) {}

    /// Returns when what [`Store::publish`] left to be written behind it has come to its end, well
    /// or not: every rank calls it, and it is not collective. What failed is among the notes.
    fn finish(&self) {}

    /// As [`Store::finish`], for memory that is lost or to be restored: what is on its way is given
    /// up where it is not done yet, on all ranks alike.
    fn give_up(&self) {}

    /// What this rank had to repair or to pass over since the last call.
    fn take_notes(&self) -> Vec<Note> {
        Vec::new()
    }

    /// Throws away all drafts: of a version that will not be published, and of a killed process.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn discard_drafts(&self) -> Result<(), StoreError>;

    /// The versions that are there, ascending.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn versions(&self) -> Result<Vec<u64>, StoreError>;

    /// The manifest of a version, its own checksum verified.
    ///
    /// # Errors
    /// [`StoreError::Manifest`] when it is damaged, [`StoreError::Missing`] when there is none.
    fn manifest(&self, version: u64) -> Result<Manifest, StoreError>;

    /// Reads a frame's payload into `payload`, its checksum verified.
    ///
    /// # Errors
    /// [`StoreError::Frame`] when it is damaged or cut short.
    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError>;

    /// Everything of a version that is not as it was written: frames, files, manifest. Reads all
    /// of it, decodes nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the version cannot be read at all.
    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError>;

    /// Puts versions newer than `version` (all, when `None`) out of the way, so that they can be
    /// written again; they are kept for inspection.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError>;

    /// Removes a version.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn remove(&self, version: u64) -> Result<(), StoreError>;
}

/// One rank's part of a version being written. Dropped unsealed, it is gone.
pub trait Draft: Send {
    /// Says that the next variable is the last: some stores then write it and what goes with it in
    /// one piece.
    fn next_is_last(&mut self) {}

    /// Writes all frames of one variable, in run order. Sets each record's place.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the device is full, [`StoreError::Io`] otherwise.
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame]) -> Result<(), StoreError>;

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the device is full, [`StoreError::Io`] otherwise.
    fn seal(self: Box<Self>) -> Result<Sealed, StoreError>;
}

/// Says the ranks of a version whose frames a rank will read.
pub type Reads<'a> = dyn Fn(&Manifest) -> Vec<usize> + 'a;

/// One store of several.
#[derive(Clone)]
pub struct Tier {
    /// Its name, in reports.
    pub name: String,
    /// Where its versions rest.
    pub store: Arc<dyn Store>,
    /// It takes the first version and every so many after it; at least 1.
    pub every: u64,
    /// Versions it keeps; those they are coded against come on top.
    pub keep: usize,
    /// It keeps fewer where they take more bytes than this, and the newest, with those it is coded
    /// against, always.
    pub max_bytes: Option<u64>,
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (every {}, keeps {})", self.name, self.every, self.keep)
    }
}

/// What a store did so that a version could be read, or why it could not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
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
        /// What is wrong there.
        what: String,
    },
    /// A version was not written to a tier that was due to have it; the tier is due again.
    Unwritten {
        /// The version.
        version: u64,
        /// The tier's name.
        tier: String,
        /// Why not.
        what: String,
    },
    /// A rank's part was lost and brought back.
    Repaired {
        /// The version.
        version: u64,
        /// The rank that wrote the part.
        rank: usize,
        /// Where it came from.
        source: String,
    },
    /// A version could not be made whole.
    Dropped {
        /// The version.
        version: u64,
        /// What is missing.
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
            Self::Unwritten { version, tier, what } => write!(f, "version {version} not written to {tier}: {what}"),
            Self::Repaired { version, rank, source } => {
                write!(f, "version {version}: part of rank {rank} from {source}")
            }
            Self::Dropped { version, what } => write!(f, "version {version} dropped: {what}"),
        }
    }
}

/// What a sealed draft contributes to the manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sealed {
    /// The files written.
    pub files: Vec<FileRecord>,
}

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Damage {
    /// A frame: its values cannot be restored.
    Frame {
        /// What the manifest says of it.
        frame: Box<FrameRecord>,
        /// What is wrong.
        what: String,
    },
    /// Bytes of a file outside every frame: restore does not need them, other readers do.
    File {
        /// File name inside the version's directory.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// The manifest: nothing of the version can be restored.
    Manifest {
        /// What is wrong.
        what: String,
    },
}

impl Damage {
    /// Values are lost, so the version cannot be restored.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::File { .. })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame { frame, what } => {
                write!(f, "frame {}/{} of rank {}: {what}", frame.variable, frame.run, frame.rank)
            }
            Self::File { file, what } => write!(f, "file {file}: {what}"),
            Self::Manifest { what } => write!(f, "manifest: {what}"),
        }
    }
}

/// What a store reports.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// It was given up on purpose: the memory it came from is lost, or a restore would not wait for
    /// it.
    #[error("given up on the way")]
    GivenUp,
    /// The device is full; the last version is untouched.
    #[error("{path}: no space left on device")]
    Full {
        /// Where.
        path: String,
    },
    /// The communicator failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A rank could not do its part; every rank knows.
    #[error("rank {rank}: {message}")]
    Rank {
        /// The rank.
        rank: usize,
        /// Its own words.
        message: String,
    },
    /// The ranks are too few, or too close together, for what is asked.
    #[error("{what}: {needed} needed, {found} found")]
    Ranks {
        /// What is asked.
        what: String,
        /// Ranks or nodes it takes.
        needed: usize,
        /// Ranks or nodes there are.
        found: usize,
    },
    /// HDF5 refused.
    #[error("{action} {path}: HDF5: {message}")]
    Hdf5 {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: String,
        /// The library's own words.
        message: String,
    },
    /// The directory holds something else.
    #[error("{path} is not a recoup directory: {what}")]
    NotOurs {
        /// Where.
        path: String,
        /// What is there.
        what: String,
    },
    /// Other users may reach what only this one should: a link, a foreign owner, or a mode that
    /// lets them in.
    #[error("{path} {what}")]
    NotPrivate {
        /// Where.
        path: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// Another process writes here.
    #[error("{path} is in use by another process")]
    Busy {
        /// Where.
        path: String,
    },
    /// The version is there already.
    #[error("version {version} is there already")]
    Exists {
        /// Its number.
        version: u64,
    },
    /// There is no such version.
    #[error("version {version} is not there")]
    Missing {
        /// Its number.
        version: u64,
    },
    /// The manifest cannot be trusted.
    #[error("manifest of version {version}: {what}")]
    Manifest {
        /// The version.
        version: u64,
        /// What does not fit.
        what: String,
    },
    /// A frame cannot be trusted.
    #[error("frame {variable}/{run} of rank {rank}, version {version}: {what}")]
    Frame {
        /// The version.
        version: u64,
        /// The variable.
        variable: String,
        /// The rank.
        rank: usize,
        /// Position among the variable's frames.
        run: usize,
        /// What does not fit.
        what: String,
    },
}
