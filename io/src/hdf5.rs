//! Versions as directories of HDF5 files, which any HDF5 reader opens and restore never needs a
//! reader for.
//!
//! Promises: a version appears by one rename after every byte in it is durable; `read` is one
//! positioned read and a checksum; a full device costs the draft and nothing else. The layout is
//! stated in FORMAT.md. Must not know what a payload means.
//!
//! The directory is the user's own choice, and its modes are those of his umask: a group may share
//! it on a parallel file system. Whoever may write there is trusted with the versions, which he
//! could as well exchange, but not with the rest of the user's files: no file is opened for writing
//! through a link.

mod blocks;
mod damage;
mod drafts;
mod encode;
mod entries;
mod files_by_rank;
mod index_part;
mod lookup3;
mod part;
mod plain;
mod rank_file;
mod read_back;
mod shared_file;
mod stored_bytes;
mod version_file;
mod version_index;

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use recoup_core::{
    Comm, CommonError, Damage, Draft, FrameRecord, Manifest, NextBegin, PARTS_FORMAT_VERSION, RowRange, Store,
    StoreError, VersionFiles, from_rank_0,
};

use self::entries::entries;
use crate::check::{check, check_files, check_part, is_plain_name};
use crate::envelope::{self, MANIFEST_BYTES_MAX};
use crate::lock::FileLock;
use crate::publish;
use crate::regular;
use crate::throttle::Throttle;

use drafts::Drafts;
pub(crate) use plain::plain_file;
use rank_file::RankFile;
use read_back::written_files;
use shared_file::{HeldParts, SharedFiles, Written};
use stored_bytes::StoredBytes;
use version_index::VersionIndex;

/// Name of the manifest in the directory of a version: written last in every version.
const MANIFEST: &str = "manifest.json";
/// A file in which the program that writes a run may say how the run stands; no store reads it.
pub const STATUS: &str = "status.json";
/// A file to which that program may append what happened in the run; no store reads it.
pub const HISTORY: &str = "history.log";
/// A folder in which the ranks of a run may say that they wait for others; no store reads it.
pub const ROLL_CALL: &str = "roll-call";
/// Name of a [`STATUS`] that is not whole yet.
const STATUS_DRAFT: &str = "status.json.new";
const VERSION_FILE: &str = "version.h5";
const LOCK: &str = "lock";
const SET_ASIDE: &str = "damaged";
/// Ranks of a job from which on files that they share have the manifest in parts.
const PARTS_RANKS: usize = 256;
/// Looks at a version that others change meanwhile, at most.
const LOOKS_MAX: u32 = 8;
const STATUS_BYTES_MAX: u64 = 1 << 20;

/// The purpose a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only; takes no lock and changes nothing.
    Read,
    /// Writing, alone: the lock is held until the store is dropped or its process dies.
    Write,
    /// Writing as a rank other than 0, in a process of its own; rank 0's process holds the lock.
    Join,
}

/// Versions under `<dir>/<name>/`.
#[derive(Debug)]
pub struct Hdf5Store {
    root: PathBuf,
    access: Access,
    throttle: Option<Throttle>,
    replaces: bool,
    /// Ranks in a row that share a file.
    ranks_per_file: usize,
    /// Ranks from which on the manifest is in parts, where they share files.
    parts_ranks: usize,
    parts: HeldParts,
    drafts: Drafts,
    /// The newest version whose name is known to outlast a loss of power: older ones may go. 0 if
    /// none is known.
    durable: AtomicU64,
    /// Held, never read: the operating system releases it with the process.
    _lock: Option<FileLock>,
}

impl Hdf5Store {
    /// Opens the versions of run `name` in `dir`; to write, the directories are made when missing.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another process writes there, [`StoreError::NotOurs`] when
    /// something else lies there or `name` is not a name (letters, digits, `_`, `.` and `-`),
    /// [`StoreError::Io`] when the directory cannot be read or written.
    pub fn open(dir: impl AsRef<Path>, name: &str, access: Access) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        if !is_plain_name(name) {
            let what = format!("run name {name:?} is not letters, digits, _, . and -");
            return Err(StoreError::NotOurs { path: dir.display().to_string(), what });
        }
        let root = dir.join(name);
        [dir, &root].into_iter().try_for_each(refuse_file)?;
        if access == Access::Write {
            publish::make_lasting(&root, || publish::create_directory(&root))?;
        }
        refuse_foreign(&root)?;
        let lock = if access == Access::Write { Some(lock(&root)?) } else { None };
        if lock.is_some() {
            // A process that was killed in its first instant leaves nothing else.
            publish::remove_file(&root.join(STATUS_DRAFT)).ok();
        }
        let replaces = false;
        let ranks_per_file = 1;
        let parts_ranks = PARTS_RANKS;
        let parts = HeldParts::default();
        let drafts = Drafts::new(&root);
        let durable = AtomicU64::new(0);
        let throttle = None;
        Ok(Self { root, access, throttle, replaces, ranks_per_file, parts_ranks, parts, drafts, durable, _lock: lock })
    }

    /// Puts a bandwidth limit on payloads, both ways.
    #[must_use]
    pub fn with_throttle(self, throttle: Throttle) -> Self {
        Self { throttle: Some(throttle), ..self }
    }

    /// Allows a program to write a version again: the new one takes the place of the
    /// old one, which counts until then, in one step where the file system can exchange two
    /// directories. Where it cannot, the old one is set aside a moment before.
    #[must_use]
    pub fn with_replacement(self) -> Self {
        Self { replaces: true, ..self }
    }

    /// Lets each `ranks` ranks in a row share a file, which they write at the same time;
    /// `usize::MAX` for one file in all. Frames are kept in memory until all ranks have sealed. All
    /// ranks give the same number.
    ///
    /// # Panics
    /// For no ranks.
    #[must_use]
    pub fn with_ranks_per_file(self, ranks: usize) -> Self {
        assert!(ranks > 0, "a file has at least one rank");
        Self { ranks_per_file: ranks, ..self }
    }

    /// Writes the manifest in parts, one in each file, where at least `ranks` ranks share files;
    /// 256 if this is not called. Rank 0 then knows the files alone. All ranks give the same
    /// number.
    #[must_use]
    pub fn with_parts_from(self, ranks: usize) -> Self {
        Self { parts_ranks: ranks, ..self }
    }

    /// Returns the runs that have versions, drafts or a lock in `dir`, in alphabetical order.
    ///
    /// # Errors
    /// [`StoreError::Io`] when `dir` cannot be read.
    pub fn names(dir: impl AsRef<Path>) -> Result<Vec<String>, StoreError> {
        let dir = dir.as_ref();
        let holds_ours = |name: &String| entries(&dir.join(name)).is_ok_and(|e| e.iter().any(|e| is_ours(e)));
        Ok(entries(dir)?.into_iter().filter(|name| is_plain_name(name) && holds_ours(name)).collect())
    }

    /// Returns the directory and the name of the run that `folder` belongs to, where a directory of
    /// runs is asked for.
    #[must_use]
    pub fn run_in(folder: &Path) -> Option<(PathBuf, String)> {
        let folder = folder.canonicalize().ok()?;
        let dir = folder.parent()?;
        let name = folder.file_name()?.to_str()?;
        let is_run = Self::names(dir).ok()?.iter().any(|run| run == name);
        is_run.then(|| (dir.to_path_buf(), name.to_owned()))
    }

    /// Reads the [`STATUS`] of the run in `folder`.
    ///
    /// # Errors
    /// Those of the operating system; for anything but a file of at most a mebibyte, an error that
    /// says so.
    pub fn read_status(folder: &Path) -> io::Result<Vec<u8>> {
        regular::read(&folder.join(STATUS), STATUS_BYTES_MAX)
    }

    /// Returns the directory of a version, whether or not it exists.
    #[must_use]
    pub fn version_path(&self, version: u64) -> PathBuf {
        self.root.join(version_name(version))
    }

    /// A version is written once, and each rank writes a file of its own.
    fn is_plain(&self) -> bool {
        !self.replaces && self.ranks_per_file == 1
    }

    /// Checks that a manifest is one of this run.
    fn require_own(&self, manifest: &Manifest) -> Result<(), String> {
        let run = self.root.file_name().unwrap_or_default();
        let found = &manifest.name;
        if run == found.as_str() {
            return Ok(());
        }
        let run = run.to_string_lossy();
        Err(format!("run {run} expected, {found} found: a run's directory keeps the run's name"))
    }

    fn require_write(&self) -> Result<(), StoreError> {
        match self.access {
            Access::Write | Access::Join => Ok(()),
            Access::Read => Err(StoreError::of_io("write", &self.root, io::ErrorKind::ReadOnlyFilesystem.into())),
        }
    }

    /// Reads something of a version, whose directory `read` gets. What cannot be read, or is
    /// damaged, of a version that goes meanwhile is missing; another version that came in its place
    /// is read instead.
    fn read_version<T>(
        &self,
        version: u64,
        mut read: impl FnMut(&Path) -> Result<T, StoreError>,
        is_whole: impl Fn(&T) -> bool,
    ) -> Result<T, StoreError> {
        for looks in 1.. {
            let path = self.version_path(version);
            let before = identity(&path).ok_or(StoreError::Missing { version })?;
            let found = read(&path);
            let is_settled = found.as_ref().is_ok_and(&is_whole) || identity(&path) == Some(before);
            if is_settled || looks == LOOKS_MAX {
                return found;
            }
        }
        unreachable!("the last look returns")
    }

    /// Reads the manifest of a version: its top alone, unless it is to be whole.
    fn read_manifest(&self, version: u64, is_whole: impl Fn(&Manifest) -> bool) -> Result<Manifest, StoreError> {
        let read = |path: &Path| {
            let lie = |what| StoreError::Manifest { version, what };
            let text = regular::read(&path.join(MANIFEST), MANIFEST_BYTES_MAX);
            let text = text.map_err(|source| lie(format!("{MANIFEST}: {source}")))?;
            let mut found = envelope::open(&text).map_err(lie)?;
            if !is_whole(&found) {
                part::check_top(&found, version).and(self.require_own(&found)).map_err(lie)?;
                return Ok(found);
            }
            if found.format == PARTS_FORMAT_VERSION {
                found = part::joined(path, &found, |_| true).map_err(lie)?;
            }
            check(&found, version).and(self.require_own(&found)).map(|()| found).map_err(lie)
        };
        self.read_version(version, read, |_| true)
    }

    /// Sees to it that a version which goes leaves a newer one behind even if the power goes, too:
    /// another thread or process may have renamed that, and not have come to its sync.
    fn secure_newer_than(&self, version: u64) -> Result<(), StoreError> {
        if self.durable.load(Ordering::Acquire) > version {
            return Ok(());
        }
        let newest = self.versions()?.into_iter().rfind(|&other| other != version);
        publish::sync_directory(&self.root)?;
        self.durable.store(newest.unwrap_or(0), Ordering::Release);
        Ok(())
    }

    /// Makes the sealed draft a version, and prepares the next draft if ranks may begin it in any
    /// order. Returns whether they may.
    fn publish_sealed(
        &self,
        index: Result<VersionIndex, StoreError>,
        draft: &Path,
        ranks: usize,
    ) -> Result<bool, StoreError> {
        self.require_write()?;
        let publish = |index: VersionIndex| {
            let version = index.manifest.version;
            self.publish_draft(index, draft).map(|()| version)
        };
        let version = index.and_then(publish).inspect_err(|_| abandon(draft))?;
        self.durable.fetch_max(version, Ordering::AcqRel);
        Ok(self.is_plain() && (ranks == 1 || self.drafts.prepare_after(version)))
    }

    /// Everything of `publish` that comes after the files were read back.
    fn publish_draft(&self, index: VersionIndex, draft: &Path) -> Result<(), StoreError> {
        let version = index.manifest.version;
        let lie = |what| StoreError::Manifest { version, what };
        let (bytes, record) = version_file::version_file(&index);
        let manifest = index.with_file(record).map_err(lie)?;
        self.require_own(&manifest).map_err(lie)?;
        let text = envelope::seal(&manifest).map_err(lie)?;
        let index = draft.join(VERSION_FILE);
        let text_file = draft.join(MANIFEST);
        publish::write_files(&[(&index, &bytes), (&text_file, text.as_bytes())], self.drafts.is_agreed())?;
        let path = self.version_path(version);
        if !self.replaces || !path.exists() {
            return publish::publish(draft, &path).map_err(|error| match error {
                StoreError::Io { source, .. } if is_there(&source) => StoreError::Exists { version },
                error => error,
            });
        }
        if !publish::replace(draft, &path)? {
            let aside = self.root.join(SET_ASIDE);
            publish::create_directory(&aside)?;
            put_aside(&path, &aside)?;
            return publish::publish(draft, &path);
        }
        // What was the version is a draft now; one that stays is cleared by the next.
        publish::remove_directory(draft).ok();
        Ok(())
    }
}

/// Removes a draft that failed. The first error is the one to report; the next draft tries again to
/// clear the place.
fn abandon(draft: &Path) {
    publish::remove_directory(draft).ok();
}

/// Returns whether a rename failed because the version is there.
fn is_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

/// Renames a version's directory into `aside`, under a name that is free there.
fn put_aside(path: &Path, aside: &Path) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = std::iter::once(name.clone()).chain((1..).map(|k| format!("{name}-{k}")));
    let target = names.map(|name| aside.join(name)).find(|path| !path.exists());
    publish::rename(path, &target.expect("an endless list holds a free name"))
}

impl Hdf5Store {
    /// Writes the files that ranks share, and has every file read back by another rank than wrote
    /// it. Returns what rank 0 is to know of the version, or why it does not. Collective.
    fn complete(
        &self,
        part: &Manifest,
        draft: &Path,
        comm: &dyn Comm,
    ) -> Result<Option<Result<VersionIndex, StoreError>>, CommonError<StoreError>> {
        if self.ranks_per_file == 1 {
            read_back::check(draft, part.version, &written_files(part), comm)?;
            return VersionIndex::of_ranks(part, comm);
        }
        let in_parts = part.ranks >= self.parts_ranks;
        let target = SharedFiles { draft, per_file: self.ranks_per_file, in_parts, throttle: self.throttle.as_ref() };
        let Written { placed, files, parts } = shared_file::write(&target, &self.parts, part, comm)?;
        read_back::check(draft, part.version, &files, comm)?;
        if in_parts { VersionIndex::of_files(&placed, &parts, comm) } else { VersionIndex::of_ranks(&placed, comm) }
    }
}

impl Store for Hdf5Store {
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.require_write()?;
        let draft = self.drafts.place(version);
        if rank == 0 {
            if !self.replaces && self.version_path(version).exists() {
                return Err(StoreError::Exists { version });
            }
            self.drafts.begin(&draft)?;
        }
        if self.ranks_per_file > 1 {
            return if draft.is_dir() {
                Ok(self.parts.draft(version, rank))
            } else {
                Err(StoreError::Missing { version })
            };
        }
        let is_agreed = self.drafts.is_agreed();
        match RankFile::create(&draft, version, rank, self.throttle.clone(), is_agreed) {
            // Where the place is agreed on, rank 0 has made it: this host does not see it.
            Err(error) if publish::is_missing(&error) && !is_agreed => Err(StoreError::Missing { version }),
            created => Ok(Box::new(created?)),
        }
    }

    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        let draft = self.drafts.place(manifest.version);
        let index = self.complete(manifest, &draft, comm).inspect_err(|_| {
            if comm.rank() == 0 {
                abandon(&draft);
            }
        })?;
        let is_ready = from_rank_0(comm, || match index {
            Some(index) => self.publish_sealed(index, &draft, comm.size()),
            None => Ok(false),
        })?;
        if !self.is_plain() {
            // One that was replaced is a draft now, and may have stayed.
            self.drafts.ended(self.replaces);
            return Ok(NextBegin::RankZeroFirst);
        }
        let is_prepared = is_ready && comm.size() > 1 && self.access == Access::Write;
        self.drafts.published(manifest.version, manifest.ranks, is_prepared);
        Ok(if is_ready { NextBegin::AnyOrder } else { NextBegin::RankZeroFirst })
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.require_write()?;
        self.parts.clear();
        self.drafts.discard()
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        let mut versions: Vec<u64> = entries(&self.root)?.iter().filter_map(|name| version_number(name)).collect();
        versions.sort_unstable();
        Ok(versions)
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        self.read_manifest(version, |_| true)
    }

    fn top(&self, version: u64) -> Result<Manifest, StoreError> {
        self.read_manifest(version, |top| !top.is_top())
    }

    fn parts(&self, top: &Manifest, ranks: &BTreeSet<usize>, rows: &[RowRange]) -> Result<Manifest, StoreError> {
        let version = top.version;
        let wanted = part::wanted(top, ranks, rows);
        let read = |path: &Path| {
            let found = part::joined(path, top, |position| wanted[position]);
            let is_sound = |found: &Manifest| check_part(found, version).and_then(|()| check_files(found));
            let checked = found.and_then(|found| is_sound(&found).map(|()| found));
            checked.map_err(|what| StoreError::Manifest { version, what })
        };
        self.read_version(version, read, |_| true)
    }

    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        let read = |path: &Path| {
            let stored = StoredBytes::of_frame(frame);
            stored.and_then(|stored| stored.read(path, self.throttle.as_ref(), payload)).map_err(|what| {
                payload.clear();
                StoreError::frame(version, frame, what)
            })
        };
        self.read_version(version, read, |()| true)
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        let read = |path: &Path| match self.manifest(version) {
            Ok(manifest) => Ok(damage::inspect(path, &manifest)),
            Err(StoreError::Manifest { what, .. }) => Ok(vec![Damage::Manifest { what }]),
            Err(other) => Err(other),
        };
        self.read_version(version, read, Vec::is_empty)
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        self.require_write()?;
        let newer: Vec<u64> = self.versions()?.into_iter().filter(|&v| version.is_none_or(|kept| v > kept)).collect();
        if newer.is_empty() {
            return Ok(newer);
        }
        self.durable.store(0, Ordering::Release);
        let aside = self.root.join(SET_ASIDE);
        publish::create_directory(&aside)?;
        // Newest first: killed in between, no version is without one it is coded against.
        for &version in newer.iter().rev() {
            put_aside(&self.version_path(version), &aside)?;
        }
        Ok(newer)
    }

    fn remove(&self, version: u64) -> Result<(), StoreError> {
        self.require_write()?;
        self.secure_newer_than(version)?;
        let path = self.version_path(version);
        if self.drafts.take(version, &path) { Ok(()) } else { self.drafts.remove(version, &path) }
    }

    fn as_files(&self) -> Option<&dyn VersionFiles> {
        Some(self)
    }
}

impl VersionFiles for Hdf5Store {
    /// Returns when the manifest was written: the directory may be a retired version's, as old as
    /// that.
    fn published_at(&self, version: u64) -> Option<SystemTime> {
        let files = self.top(version).ok()?.files;
        let folder = self.version_path(version);
        let is_whole = |name: &str, bytes: u64| fs::metadata(folder.join(name)).is_ok_and(|found| found.len() == bytes);
        let are_whole = files.iter().all(|file| is_whole(&file.name, file.bytes));
        fs::metadata(folder.join(MANIFEST)).ok().filter(|_| are_whole)?.modified().ok()
    }

    fn set_aside(&self) -> Result<Vec<String>, StoreError> {
        match entries(&self.root.join(SET_ASIDE)) {
            Err(error) if publish::is_missing(&error) => Ok(Vec::new()),
            found => found,
        }
    }

    fn remove_set_aside(&self) -> Result<(), StoreError> {
        self.require_write()?;
        publish::remove_directory(&self.root.join(SET_ASIDE))
    }
}

/// Returns what tells the directory of a version from the next one of its name; a rename changes
/// the times.
fn identity(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
}

fn version_name(version: u64) -> String {
    format!("v{version:012}")
}

fn version_number(name: &str) -> Option<u64> {
    let version = name.strip_prefix('v')?.parse().ok()?;
    (version_name(version) == name).then_some(version)
}

fn is_ours(name: &str) -> bool {
    [LOCK, SET_ASIDE, STATUS, STATUS_DRAFT, HISTORY, ROLL_CALL].contains(&name)
        || name.starts_with("draft-")
        || version_number(name).is_some()
}

fn refuse_file(path: &Path) -> Result<(), StoreError> {
    if path.exists() && !path.is_dir() {
        return Err(StoreError::NotOurs { path: path.display().to_string(), what: "a file".to_owned() });
    }
    Ok(())
}

fn refuse_foreign(root: &Path) -> Result<(), StoreError> {
    let entries = entries(root)?;
    match entries.first() {
        Some(first) if !entries.iter().any(|name| is_ours(name)) => {
            let what = format!("it holds {first} and no version");
            Err(StoreError::NotOurs { path: root.display().to_string(), what })
        }
        _ => Ok(()),
    }
}

/// Locks a run's directory for its writer.
fn lock(root: &Path) -> Result<FileLock, StoreError> {
    let path = root.join(LOCK);
    let open = regular::open_without_links(File::options().create(true).truncate(false).write(true), &path);
    let file = open.map_err(|source| StoreError::of_io("open", &path, source))?;
    FileLock::take(file).map_err(|error| match error {
        TryLockError::WouldBlock => StoreError::Busy { path: root.display().to_string() },
        TryLockError::Error(source) => StoreError::of_io("lock", &path, source),
    })
}

#[cfg(test)]
mod tests;
