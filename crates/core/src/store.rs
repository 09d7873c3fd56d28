//! A store: the place where versions are stored, and a rank's draft of one.
//!
//! Nine methods make a store. A store of several places, such as memory with copies on other nodes
//! or a row of tiers, also implements [`Tiered`] and returns it from [`Store::as_tiered`]. A store
//! that wraps another implements [`StoreDecorator`](crate::StoreDecorator) and changes only the
//! calls it must.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::{
    Comm, CommonError, Damage, FileRecord, Frame, FrameRecord, Manifest, Note, RowRange, StoreError, VariableRecord,
};

/// A place that keeps versions.
///
/// A version is there when [`Store::publish`] has returned, and only then; before that it is a
/// draft, and a draft never counts, whatever happens to the process that wrote it.
///
/// All ranks see the same versions in a plain store, as on a parallel file system, and rank 0 alone
/// makes the calls that change them: [`Store::discard_drafts`], [`Store::set_aside_newer`] and
/// [`Store::remove`]. In a [`Tiered`] store each rank holds a part, and every rank makes these
/// calls. [`Store::publish`] is collective for both; every other call is local.
pub trait Store: Send + Sync {
    /// Starts this rank's part of a version. Rank 0 calls it first and the others after a barrier,
    /// unless the last [`Store::publish`] allowed [`NextBegin::AnyOrder`].
    ///
    /// # Errors
    /// [`StoreError::Exists`] for a version that is there already, [`StoreError::Io`] otherwise.
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError>;

    /// Makes the sealed drafts of all ranks a version, in one visible step, and returns how the
    /// next version may begin. The `manifest` of a rank lists the variables, frames and files that
    /// this rank has sealed; the version is made of those of all ranks. Collective, after every
    /// rank has sealed; the result is the same on all ranks.
    ///
    /// # Errors
    /// [`StoreError`]; the version does not count then, and older ones are untouched.
    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>>;

    /// Removes all drafts: those of a version that will not be published, and those of a killed
    /// process.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn discard_drafts(&self) -> Result<(), StoreError>;

    /// Returns the versions that are there, ascending.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn versions(&self) -> Result<Vec<u64>, StoreError>;

    /// Returns whether a version is there, without a look at the others where the store can.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn holds(&self, version: u64) -> Result<bool, StoreError> {
        Ok(self.versions()?.contains(&version))
    }

    /// Returns the manifest of a version, its own checksum verified.
    ///
    /// Where ranks keep a part of it each, this is the part of those whose frames this rank has:
    /// the head is that of the whole, the lists are not. Rank 0 gets the whole of the versions that
    /// the last [`Tiered::prepare_restore`] brought back, until the next is published.
    ///
    /// # Errors
    /// [`StoreError::Manifest`] when it is damaged, [`StoreError::Missing`] when there is none.
    fn manifest(&self, version: u64) -> Result<Manifest, StoreError>;

    /// Returns the top of the manifest of a version, where it is in parts and its top says what is
    /// in each ([`Manifest::is_top`]); elsewhere the manifest. No part is read.
    ///
    /// # Errors
    /// As [`Store::manifest`].
    fn top(&self, version: u64) -> Result<Manifest, StoreError> {
        self.manifest(version)
    }

    /// Returns the parts below a top that have one of these ranks or rows, with the files they are
    /// in: checked as a manifest is, as far as they can be without the others. Of parts that name
    /// other variables than these, the first is among them: it says what they are.
    ///
    /// # Errors
    /// As [`Store::manifest`], for the parts that are read.
    fn parts(&self, top: &Manifest, _ranks: &BTreeSet<usize>, _rows: &[RowRange]) -> Result<Manifest, StoreError> {
        Err(StoreError::Missing { version: top.version })
    }

    /// Returns what every rank knows of a whole version, whoever keeps its manifest.
    ///
    /// # Errors
    /// As [`Store::top`].
    fn links(&self, version: u64) -> Result<VersionLinks, StoreError> {
        self.top(version).map(|top| VersionLinks::of(&top))
    }

    /// Reads a frame's payload into `payload`, its checksum verified.
    ///
    /// # Errors
    /// [`StoreError::Frame`] when it is damaged or cut short.
    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError>;

    /// Lists everything of a version that is not as it was written: frames, files, manifest. Reads
    /// all of it, decodes nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the version cannot be read at all.
    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError>;

    /// Puts versions newer than `version` (all, when `None`) out of the way, so that they can be
    /// written again; they are kept for inspection where the store can. Returns which.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError>;

    /// Removes a version.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn remove(&self, version: u64) -> Result<(), StoreError>;

    /// Returns what a store of several places can do beyond a plain one; `None` for a plain store.
    fn as_tiered(&self) -> Option<&dyn Tiered> {
        None
    }

    /// Returns what a store that keeps its versions in files knows of them; `None` for other
    /// stores.
    fn as_files(&self) -> Option<&dyn VersionFiles> {
        None
    }
}

impl dyn Store + '_ {
    /// Returns whether all ranks see the same versions, so that rank 0 alone changes them.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.as_tiered().is_none()
    }
}

/// The order in which ranks may begin the version after a published one; the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextBegin {
    /// Rank 0 calls [`Store::begin`] first, the others after a barrier.
    RankZeroFirst,
    /// Ranks call [`Store::begin`] in any order, without a barrier.
    AnyOrder,
}

/// The extra calls of a store that keeps versions in several places. Each rank holds a part of
/// every version, so each rank makes the calls that change them.
pub trait Tiered {
    /// Brings versions back to where they are read, before a restore: the ranks agree who holds
    /// what, parts return to the ranks that want them, and versions that cannot be made whole are
    /// dropped. `reads` gives the parts that each rank will read. Collective.
    ///
    /// # Errors
    /// [`StoreError`].
    fn prepare_restore(&self, comm: &dyn Comm, reads: &Reads<'_>) -> Result<(), CommonError<StoreError>>;

    /// Returns whether `version`, which is being written, may be coded against `parent`: every
    /// place it goes to holds that too, and guards it no less.
    fn can_follow(&self, version: u64, parent: u64) -> bool;

    /// Returns the stores behind this one as they are scheduled now, fastest first; none for a
    /// store that keeps its versions in one place. Each keeps versions of its own.
    fn tiers(&self) -> Vec<Tier>;

    /// Sends the next version to every tier, whatever their intervals: no later one may follow.
    /// Called on all ranks after [`Tiered::finish`].
    fn next_everywhere(&self);

    /// Waits until every drain in progress has ended, well or not; failures are among the notes.
    /// Every rank calls it, and it is not collective.
    fn finish(&self);

    /// Abandons drains in progress, on all ranks alike: the memory they read from is lost or about
    /// to be restored. Otherwise as [`Tiered::finish`].
    fn give_up(&self);

    /// Takes what this rank had to repair or to pass over since the last call.
    fn take_notes(&self) -> Vec<Note>;
}

/// Inspection of the files that versions are stored in, for people who look after them. Local
/// calls.
pub trait VersionFiles {
    /// Returns when `version` was published, if its manifest and its files are there in full
    /// length. Payloads are not read.
    fn published_at(&self, version: u64) -> Option<SystemTime>;

    /// Lists what [`Store::set_aside_newer`] has kept for inspection, by name; nothing in a store
    /// that keeps none of it.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn set_aside(&self) -> Result<Vec<String>, StoreError>;

    /// Removes what was set aside.
    ///
    /// # Errors
    /// [`StoreError::Io`], also for a store that was opened to read.
    fn remove_set_aside(&self) -> Result<(), StoreError>;
}

/// Gives the ranks of a version whose frames each rank of this job will read, in rank order. Rank 0
/// alone asks.
pub type Reads<'a> = dyn Fn(&Manifest) -> Vec<Vec<usize>> + 'a;

/// Bytes of a manifest's checksum, next to its text.
const ENVELOPE_BYTES: u64 = 48;

/// Facts of a whole version that decide how long it stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionLinks {
    /// The versions that some frame is coded against.
    pub parents: BTreeSet<u64>,
    /// Bytes that it takes: of its files and its manifest, without guards.
    pub bytes: u64,
}

impl VersionLinks {
    /// Returns the links of the version that a manifest lists.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Self {
        let files: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        let is_in_parts = manifest.files.iter().any(|file| file.part.is_some());
        // Parts are in the files.
        let listed = is_in_parts.then(|| Manifest { files: manifest.files.clone(), ..manifest.head() });
        let text = serde_json::to_vec(listed.as_ref().unwrap_or(manifest)).map_or(0, |text| text.len() as u64);
        Self { parents: manifest.parents(), bytes: files.max(manifest.payload_bytes()) + text + ENVELOPE_BYTES }
    }
}

/// One store of several.
#[derive(Clone)]
pub struct Tier {
    /// Name of the tier, in reports.
    pub name: String,
    /// The store of its versions.
    pub store: Arc<dyn Store>,
    /// Versions from one that the tier takes to the next, from the first version on; at least 1.
    pub every: u64,
    /// Versions it keeps; those they are coded against come on top.
    pub keep: usize,
    /// Limit on the bytes of the versions. The tier keeps fewer versions to stay within it, but
    /// always the newest, with those it is coded against.
    pub max_bytes: Option<u64>,
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (every {}, keeps {})", self.name, self.every, self.keep)
    }
}

/// One rank's part of a version being written. Dropped unsealed, it is gone.
pub trait Draft: Send {
    /// Writes frames of one variable, in run order, and sets each record's place: all of them, or
    /// those that are there, where `next` is [`NextCall::Frames`]. Knowing that `next` is the seal,
    /// a store can write a variable and its own structure in one piece.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the device is full, [`StoreError::Io`] otherwise.
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame], next: NextCall) -> Result<(), StoreError>;

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the device is full, [`StoreError::Io`] otherwise.
    fn seal(self: Box<Self>) -> Result<Sealed, StoreError>;
}

/// The call of a draft that follows a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCall {
    /// More frames of the same variable are written.
    Frames,
    /// Another variable is written.
    Write,
    /// The draft is sealed: this variable was its last.
    Seal,
}

impl NextCall {
    /// Returns the call after the last write of the variable at `position` of `count`.
    #[must_use]
    pub fn after(position: usize, count: usize) -> Self {
        if position + 1 == count { Self::Seal } else { Self::Write }
    }
}

/// The contribution of a sealed draft to the manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sealed {
    /// The files written.
    pub files: Vec<FileRecord>,
}
