//! Every change to the disk: files made, bytes put, synced, and the one rename that makes a version
//! count.
//!
//! Promises: a full device is [`StoreError::Full`] whatever step met it; `publish` renames only
//! what is synced. Under test each step can be watched and made to fail. Must not know what the
//! bytes mean.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use recoup_core::StoreError;

use crate::direct::{DirectFile, WholeFile};
use crate::sys::HeldSizeSignal;
use crate::{regular, reuse};

/// The steps that change the disk, as a test sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    CreateDirectory,
    CreateFile,
    OpenFile,
    Write,
    SyncFile,
    SyncDirectory,
    Rename,
    Remove,
}

impl Step {
    fn action(self) -> &'static str {
        match self {
            Self::CreateDirectory | Self::CreateFile => "create",
            Self::OpenFile => "open",
            Self::Write => "write",
            Self::SyncFile | Self::SyncDirectory => "sync",
            Self::Rename => "rename",
            Self::Remove => "remove",
        }
    }
}

fn step<T>(step: Step, path: &Path, run: impl FnOnce() -> io::Result<T>) -> Result<T, StoreError> {
    #[cfg(test)]
    let run = || watch::before(step, path).and_then(|()| run());
    let _held = HeldSizeSignal::begin();
    run().map_err(|source| StoreError::of_io(step.action(), path, source))
}

/// Returns whether the error says that a file or directory is not there.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// Makes a directory and those above it; one that is there is fine.
pub(crate) fn create_directory(path: &Path) -> Result<(), StoreError> {
    step(Step::CreateDirectory, path, || fs::create_dir_all(path))
}

/// Makes a directory by `make`, and those above it that are missing, durable in the directories
/// that hold them: a version is there after a loss of power only if the way to it is. POSIX
/// promises a name to those alone who sync its directory.
pub(crate) fn make_lasting(path: &Path, make: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
    let missing = path.ancestors().take_while(|above| !above.exists()).count();
    make()?;
    // A process may have been killed after it had made two, and before it synced.
    for (at, made) in path.ancestors().take(missing.max(2)).enumerate() {
        match sync_directory(parent(made)) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) if at < missing.max(1) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes a file of a draft. Returns whether it reuses the file of a retired version: see
/// [`take_file`].
pub(crate) fn make_file(path: &Path, may_reuse: bool) -> Result<(File, bool), StoreError> {
    if may_reuse { take_file(path) } else { create_file(path).map(|file| (file, false)) }
}

/// Makes a file that was not there.
pub(crate) fn create_file(path: &Path) -> Result<File, StoreError> {
    step(Step::CreateFile, path, || File::create_new(path))
}

/// Reuses the file left by a retired version if no other process can be reading it; otherwise
/// creates a new one. Returns whether it was reused.
fn take_file(path: &Path) -> Result<(File, bool), StoreError> {
    match step(Step::OpenFile, path, || regular::open_without_links(File::options().read(true).write(true), path)) {
        Ok(file) if reuse::is_ours_alone(&file) => return Ok((file, true)),
        Err(error) if is_missing(&error) => {}
        // Another process reads it, or it is read-only.
        _ => remove_file(path)?,
    }
    let created = create_file(path).or_else(|error| match error {
        // Rank 0 has just put the retired version here, after this rank had looked.
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            remove_file(path).and_then(|()| create_file(path))
        }
        error => Err(error),
    });
    created.map(|file| (file, false))
}

/// Opens a file of a draft that another rank has made.
pub(crate) fn open_file(path: &Path) -> Result<File, StoreError> {
    step(Step::OpenFile, path, || regular::open_without_links(File::options().write(true), path))
}

/// Writes all bytes at `offset`.
pub(crate) fn write_at(file: &File, path: &Path, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
    step(Step::Write, path, || file.write_all_at(bytes, offset))
}

/// Writes all bytes at `offset`; large ones past the page cache.
pub(crate) fn write_large_at(file: &mut DirectFile, path: &Path, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
    step(Step::Write, path, || file.write_all_at(bytes, offset))
}

/// Writes all of a file with one large payload at once, past the page cache. Returns whether that
/// was possible.
pub(crate) fn write_whole(file: &mut DirectFile, path: &Path, whole: &WholeFile<'_>) -> Result<bool, StoreError> {
    step(Step::Write, path, || file.write_whole(whole))
}

/// Makes the bytes of [`write_large_at`] and [`write_whole`] durable.
pub(crate) fn sync_large(file: &DirectFile, path: &Path) -> Result<(), StoreError> {
    step(Step::SyncFile, path, || file.sync())
}

/// Makes a file's bytes durable, and what is needed to read them: not when they were written.
pub(crate) fn sync_file(file: &File, path: &Path) -> Result<(), StoreError> {
    step(Step::SyncFile, path, || file.sync_data())
}

/// Makes a directory's entries durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    step(Step::SyncDirectory, path, || File::open(path)?.sync_all())
}

/// Writes whole files, reusing those of a retired version where allowed, and makes them durable:
/// all are written before the first is synced, so that one commit of the file system carries them.
pub(crate) fn write_files(files: &[(&Path, &[u8])], may_reuse: bool) -> Result<(), StoreError> {
    let write = |(path, bytes): &(&Path, &[u8])| {
        let (file, is_reused) = make_file(path, may_reuse)?;
        write_at(&file, path, bytes, 0)?;
        if is_reused {
            step(Step::Write, path, || reuse::cut(&file, bytes.len() as u64))?;
        }
        Ok(file)
    };
    let made = files.iter().map(write).collect::<Result<Vec<File>, StoreError>>()?;
    made.iter().zip(files).try_for_each(|(file, (path, _))| sync_file(file, path))
}

/// Puts a small file in the place of the one of that name, by one rename: whoever reads it meets
/// the old one or the new one, whole. It is not made durable, as it only matters while its writer
/// lives.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`].
pub fn put_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let draft = Path::new(&name);
    let made = make_draft(draft, 0o666)?;
    write_at(&made, draft, bytes, 0)?;
    rename_to_remove(draft, path)
}

/// Puts a file of these parts, one after the other, in the place of the one of that name, by one
/// rename: whoever reads it meets the old one or the new one, whole. Large parts go past the page
/// cache. It outlives the process at once, and a loss of power after [`make_durable`].
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`]; then no piece of the new file is left.
pub fn put_parts(path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
    let draft = path.with_file_name(format!("{}.new", file_name(path)));
    let mut file = DirectFile::new(make_draft(&draft, OWN_MODE)?, false);
    let mut offset = 0;
    let mut write = |part: &&[u8]| {
        let start = offset;
        offset += part.len() as u64;
        write_large_at(&mut file, &draft, part, start)
    };
    let written = parts.iter().try_for_each(&mut write).and_then(|()| rename_to_remove(&draft, path));
    written.inspect_err(|_| {
        remove_file(&draft).ok();
    })
}

/// Makes a file of that name, whole and durable, unless one is there: whoever opens it finds all of
/// its bytes. Returns whether it was made.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`]; then no piece of the new file is left.
pub fn put_new(path: &Path, bytes: &[u8]) -> Result<bool, StoreError> {
    let draft = NamelessDraft::beside(path, OWN_MODE)?;
    write_at(&draft.file, path, bytes, 0).and_then(|()| sync_file(&draft.file, path))?;
    // A second name, unlike a rename, never takes the place of a file.
    match step(Step::Rename, path, || draft.link(path)) {
        Ok(()) => sync_directory(parent(path)).map(|()| true),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Mode of files that are read again by this user alone: with any mask of the process, users
/// outside the group cannot write to them.
const OWN_MODE: u32 = 0o664;

/// Makes a draft next to its place. A file, link or pipe of that name, which an earlier process or
/// another user has left, is replaced and not written to.
fn make_draft(draft: &Path, mode: u32) -> Result<File, StoreError> {
    let make = || File::options().write(true).create_new(true).mode(mode).open(draft);
    step(Step::CreateFile, draft, || match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(draft).and_then(|()| make()),
        made => made,
    })
}

/// A file that gets its name once it is whole. Until then it has none where the file system allows
/// that, and a process that is killed leaves nothing.
struct NamelessDraft {
    file: File,
    /// Its name until then, for file systems where every file has one.
    name: PathBuf,
    has_name: bool,
}

impl NamelessDraft {
    fn beside(path: &Path, mode: u32) -> Result<Self, StoreError> {
        let name = path.with_file_name(format!(".{}.{}.new", file_name(path), std::process::id()));
        match step(Step::CreateFile, &name, || Ok(nameless(parent(path), mode)))? {
            Some(file) => Ok(Self { file, name, has_name: false }),
            None => Ok(Self { file: make_draft(&name, mode)?, name, has_name: true }),
        }
    }

    /// Gives the file a name that is not taken.
    fn link(&self, path: &Path) -> io::Result<()> {
        if self.has_name { fs::hard_link(&self.name, path) } else { link_nameless(&self.file, path) }
    }

    /// Puts the file in the place of one of that name.
    fn rename(mut self, path: &Path) -> Result<(), StoreError> {
        if !self.has_name {
            remove_file(&self.name)?;
            step(Step::Rename, &self.name, || link_nameless(&self.file, &self.name))?;
            self.has_name = true;
        }
        rename_to_remove(&self.name, path)?;
        self.has_name = false;
        Ok(())
    }
}

impl Drop for NamelessDraft {
    fn drop(&mut self) {
        if self.has_name {
            remove_file(&self.name).ok();
        }
    }
}

/// Directory of the names that open files without one can be reached by.
#[cfg(target_os = "linux")]
const OPEN_FILES: &str = "/proc/self/fd";

#[cfg(target_os = "linux")]
fn nameless(directory: &Path, mode: u32) -> Option<File> {
    let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
    let made = || File::options().write(true).mode(mode).custom_flags(flags).open(directory).ok();
    Path::new(OPEN_FILES).exists().then(made).flatten()
}

#[cfg(target_os = "linux")]
fn link_nameless(file: &File, path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{AtFlags, CWD, linkat};
    let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path, _: u32) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link_nameless(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes files of a directory durable, and their entries.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`].
pub fn make_durable(directory: &Path, files: &[PathBuf]) -> Result<(), StoreError> {
    for path in files {
        let file = step(Step::OpenFile, path, || regular::open(path))?;
        step(Step::SyncFile, path, || file.sync_all())?;
    }
    sync_directory(directory)
}

/// Opens a new file without a name in a directory: nothing of it is left, whenever its process
/// dies.
///
/// # Errors
/// Those of the operating system.
pub fn nameless_file(directory: &Path) -> io::Result<File> {
    if let Some(file) = nameless(directory, 0o600) {
        return Ok(file);
    }
    // Not every file system has such files.
    let path = directory.join(format!(".nameless-{}", std::process::id()));
    let file = File::create_new(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Writes a result whole: beside its place, durable, then put there by one rename, so that a full
/// disk costs neither the file that was there nor leaves a piece of the new one. What is no regular
/// file, and a file in a directory in which none may be made, is written in place.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`].
pub fn put_result(path: &Path, fill: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<(), StoreError> {
    // A link stays one: what it names is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let filled = |file: &File| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        fill(&mut out)?;
        out.flush()
    };
    let is_special = fs::metadata(&place).is_ok_and(|found| !found.is_file());
    let drafted = if is_special { None } else { NamelessDraft::beside(&place, 0o666).ok() };
    let Some(draft) = drafted else {
        let file = step(Step::OpenFile, path, || File::create(&place))?;
        return step(Step::Write, path, || filled(&file));
    };
    step(Step::Write, path, || filled(&draft.file)).and_then(|()| sync_file(&draft.file, path))?;
    draft.rename(&place)
}

/// Removes a file; one that is gone is fine.
pub(crate) fn remove_file(path: &Path) -> Result<(), StoreError> {
    step(Step::Remove, path, || match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    })
}

/// Removes a directory and all in it; one that is gone is fine.
pub(crate) fn remove_directory(path: &Path) -> Result<(), StoreError> {
    step(Step::Remove, path, || match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    })
}

/// Removes a file of a draft, and with it the draft's directory if that is empty. Best effort: what
/// stays is a draft, which never counts and is cleared by the next one.
pub(crate) fn discard_file(path: &Path, with_directory: bool) {
    step(Step::Remove, path, || fs::remove_file(path)).ok();
    if with_directory {
        fs::remove_dir(parent(path)).ok();
    }
}

/// Renames a directory that is removed next. Nothing waits for the disk: the next version's rename
/// makes it durable, and should the power go before, what comes back is an old version, whole or
/// named as damaged.
pub(crate) fn rename_to_remove(source: &Path, target: &Path) -> Result<(), StoreError> {
    #[expect(clippy::disallowed_methods, reason = "the renames of this file are the only ones")]
    step(Step::Rename, target, || fs::rename(source, target))
}

/// Renames a directory and makes it durable in both parents.
pub(crate) fn rename(source: &Path, target: &Path) -> Result<(), StoreError> {
    rename_to_remove(source, target)?;
    let from = parent(source);
    let to = parent(target);
    sync_directory(to)?;
    if from == to { Ok(()) } else { sync_directory(from) }
}

/// Makes a draft whose files are all synced a version: its entries are synced, then one rename.
///
/// # Errors
/// The version does not count then: a rename that could not be made durable is taken back.
pub(crate) fn publish(draft: &Path, version: &Path) -> Result<(), StoreError> {
    sync_directory(draft)?;
    rename(draft, version).inspect_err(|_| {
        // Best effort: where even this fails, the caller reports the first error and the next start
        // decides.
        if version.exists() {
            rename(version, draft).ok();
        }
    })
}

/// Makes a draft whose files are all synced the version in place of the one that is there, which
/// becomes the draft: an exchange in one step. Says `false`, with nothing done, where the file
/// system has no such step.
///
/// # Errors
/// The old version counts still.
pub(crate) fn replace(draft: &Path, version: &Path) -> Result<bool, StoreError> {
    sync_directory(draft)?;
    match step(Step::Rename, version, || exchange(draft, version)) {
        Ok(()) => {}
        Err(StoreError::Io { source, .. }) if cannot_exchange(&source) => return Ok(false),
        Err(error) => return Err(error),
    }
    sync_directory(parent(version)).inspect_err(|_| {
        exchange(draft, version).ok();
    })?;
    Ok(true)
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Kernels say that a file system lacks the step in several ways.
fn cannot_exchange(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Lets a test see each step before it is taken, and refuse it.
#[cfg(test)]
pub(crate) mod watch {
    use std::cell::RefCell;
    use std::io;
    use std::path::Path;

    use super::Step;

    type Watcher = Box<dyn FnMut(Step, &Path) -> io::Result<()>>;

    thread_local! {
        static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    }

    /// Calls `watcher` before every step this thread takes while `run` runs.
    pub(crate) fn watched<T>(
        watcher: impl FnMut(Step, &Path) -> io::Result<()> + 'static,
        run: impl FnOnce() -> T,
    ) -> T {
        WATCHER.with(|w| *w.borrow_mut() = Some(Box::new(watcher)));
        let result = run();
        WATCHER.with(|w| *w.borrow_mut() = None);
        result
    }

    pub(super) fn before(step: Step, path: &Path) -> io::Result<()> {
        WATCHER.with(|w| w.borrow_mut().as_mut().map_or(Ok(()), |watcher| watcher(step, path)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use recoup_core::{NextCall, Store};
    use recoup_testkit::stack::files_on_stack;
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;
    use crate::publish::watch::watched;

    /// Each step of a file of parts fails once: the file is the old one, whole, and no other is
    /// left.
    #[test]
    fn a_file_of_parts_is_the_old_one_or_the_new_one_whichever_step_fails() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let parts = [&[1; 10][..], &vec![2; 3 << 20], &[3; 7]];
        put_parts(&path, &[b"old"]).unwrap();
        for failing in 1.. {
            let mut steps = 0;
            let refuse = move |_, _: &Path| {
                steps += 1;
                if steps == failing { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
            };
            let put = watched(refuse, || put_parts(&path, &parts));
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
            if put.is_ok() {
                assert!(failing > 4, "creation, three parts and a rename");
                assert_eq!(fs::read(&path).unwrap(), parts.concat());
                return;
            }
            assert!(matches!(put, Err(StoreError::Full { .. })));
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }
    }
    use crate::{Access, Hdf5Store};

    /// A process that was killed early left `.x.memory.PID.new` there.
    #[test]
    fn a_new_file_has_no_name_before_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        if nameless(dir.path(), OWN_MODE).is_none() {
            eprintln!("SKIPPED: every file has a name in this file system");
            return;
        }
        let result = dir.path().join("result");
        let memory = dir.path().join("memory");
        let n_files = |dir: &Path| fs::read_dir(dir).unwrap().count();
        let folder = dir.path().to_owned();
        let is_nameless = move |step, _: &Path| {
            assert!(step != Step::Write || n_files(&folder) == 0);
            Ok(())
        };
        watched(is_nameless, || put_result(&result, |out| out.write_all(b"values")).unwrap());
        assert_eq!(fs::read(&result).unwrap(), b"values");
        put_result(&result, |out| out.write_all(b"others")).unwrap();
        assert_eq!(fs::read(&result).unwrap(), b"others");
        assert!(put_new(&memory, b"values").unwrap() && !put_new(&memory, b"others").unwrap());
        assert_eq!(fs::read(&memory).unwrap(), b"values");
        assert_eq!(n_files(dir.path()), 2);
    }

    /// A pipe that another user had put there was waited for, and a second name of a file of ours
    /// had it overwritten.
    #[test]
    fn a_draft_never_writes_to_what_has_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("precious"), "values").unwrap();
        fs::hard_link(at("precious"), at("whole.new")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("parts.new"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        put_whole(&at("whole"), b"status").unwrap();
        put_parts(&at("parts"), &[b"state"]).unwrap();
        assert_eq!(fs::read(at("precious")).unwrap(), b"values");
        assert_eq!(["whole", "parts"].map(|name| fs::read(at(name)).unwrap()), [b"status".to_vec(), b"state".to_vec()]);
    }

    /// What the solver's side adds is counted by
    /// `one_value_passes_six_files_down_to_the_store_and_none_twice` of the pipeline. The throttle
    /// and a question about gaps once made it four files, and one of them twice.
    #[test]
    fn payload_passes_each_file_of_the_store_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut part = SampleVersion::new(1, 1).parts.pop().unwrap();
        for frame in &mut part.frames {
            frame.payload = vec![7; 2 << 20].into();
        }
        let store = Hdf5Store::open(dir.path(), "run", Access::Write).unwrap();
        let mut draft = store.begin(1, 0).unwrap();
        let stacks = Rc::new(RefCell::new(Vec::new()));
        let met = stacks.clone();
        let watcher = move |step, _: &Path| {
            if step == Step::Write {
                met.borrow_mut().push(files_on_stack());
            }
            Ok(())
        };
        watched(watcher, || draft.write(&part.record, &mut part.frames, NextCall::Write)).unwrap();
        // The first is where this test stands; `direct.rs` is what `publish.rs` calls next.
        let expected = ["io/src/publish.rs", "io/src/hdf5/rank_file.rs", "io/src/publish.rs"];
        assert_eq!(stacks.take(), vec![expected; part.frames.len()]);
    }
}
