//! Directories and files that other users cannot change, so that what is read there can be trusted.
//!
//! Everybody may write to `/dev/shm` and `/tmp`. Another user can make our directory there before
//! we do, or a link to one of his, and then read, replace or remove what a restore will trust. So a
//! directory is opened without following a link, and then judged by its descriptor: it must belong
//! to us and be closed to everybody else (mode 0700). Everything in it is reached through that
//! descriptor and never by a path again, which leaves no moment between the check and the use.
//! Files must be regular, belong to us and have one name, because a hard link would be a second way
//! to them.
//!
//! A place that the user has chosen, such as a spill directory or the file of a versioned memory,
//! may be read by others and shared with a group. It must belong to us or to root, and users
//! outside the group must not write to it: [`PrivateDir::make_shared`] and [`open_own_file`].
//!
//! Promises: what fails a check is refused by name and left as it is. Only root and this user, and
//! the group of a shared place, can replace or remove what is in a [`PrivateDir`]. Must not know
//! what the files hold.

use std::ffi::CString;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use recoup_core::StoreError;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::lock::FileLock;
use crate::{publish, regular};

/// Right of users outside the group to write.
const WRITE_BY_OTHERS: u32 = 0o002;

/// The flags directories are opened with: never through a link.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The flags files are opened with: never through a link, and without waiting for the other end of
/// a pipe.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// The flags files are made with: never one that is there.
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Users who may reach a directory besides this one and root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DirectoryReach {
    /// None.
    Closed,
    /// Everybody may read, and the group may write.
    Shared,
}

/// A directory of this user's that others cannot change; held open. Unless it is shared, it is no
/// link, and closed to everybody else.
#[derive(Debug)]
pub struct PrivateDir {
    fd: OwnedFd,
    reach: DirectoryReach,
    /// Path of the directory, for messages.
    path: PathBuf,
}

impl PrivateDir {
    /// Opens the directory at `path`; `None` if there is none. Links above it are followed: the way
    /// there is the caller's choice.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] for a link, a file, another user's directory or one that is open
    /// to others; [`StoreError::Io`] otherwise.
    pub fn open(path: impl AsRef<Path>) -> Result<Option<Self>, StoreError> {
        let path = plain(path.as_ref());
        enter(CWD, &path.clone(), path, DirectoryReach::Closed)
    }

    /// Opens the directory at `path`, and makes it first, with those above it, if there is none.
    ///
    /// # Errors
    /// As [`PrivateDir::open`].
    pub fn make(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = plain(path.as_ref());
        make_parent(&path)?;
        make_at(CWD, &path.clone(), path, DirectoryReach::Closed)
    }

    /// Opens the directory at `path`, and makes it first, with those above it, if there is none.
    /// Others may read it, and a group may share it. Links are followed.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] for a directory of another user and for one that users outside
    /// its group may write to; [`StoreError::Io`] otherwise.
    pub fn make_shared(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        // Whatever the mask of the process is, it must not make a directory that is refused.
        let make = || DirBuilder::new().recursive(true).mode(0o777 & !WRITE_BY_OTHERS).create(path);
        publish::make_lasting(path, || make().map_err(|source| StoreError::of_io("create", path, source)))?;
        let place = path.canonicalize().map_err(|source| StoreError::of_io("open", path, source))?;
        let entered = enter(CWD, &place, path.to_owned(), DirectoryReach::Shared)?;
        entered.ok_or_else(|| StoreError::of_io("open", path, io::ErrorKind::NotFound.into()))
    }

    /// Makes the directory at `path`, which must not be there.
    ///
    /// # Errors
    /// [`StoreError::Io`] if anything is there.
    pub fn make_new(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = plain(path.as_ref());
        mkdirat(CWD, &path, Mode::RWXU).map_err(|errno| StoreError::of_io("create", &path, errno.into()))?;
        enter_made(CWD, &path.clone(), path, DirectoryReach::Closed)
    }

    /// Opens a directory in this one; `None` if there is none.
    ///
    /// # Errors
    /// As [`PrivateDir::open`].
    pub fn open_dir(&self, name: &str) -> Result<Option<Self>, StoreError> {
        enter(self.fd.as_fd(), Path::new(name), self.path.join(name), self.reach)
    }

    /// Opens a directory in this one, and makes it first if there is none.
    ///
    /// # Errors
    /// As [`PrivateDir::open`].
    pub fn make_dir(&self, name: &str) -> Result<Self, StoreError> {
        make_at(self.fd.as_fd(), Path::new(name), self.path.join(name), self.reach)
    }

    /// Opens a file in this directory to read it.
    ///
    /// # Errors
    /// [`StoreError::NotPrivate`] for a link, for anything but a regular file, for another user's
    /// file, for one with several names and, in a shared directory, for one that others may write
    /// to; [`StoreError::Io`] otherwise.
    pub fn open_file(&self, name: &str) -> Result<File, StoreError> {
        self.open_checked(name, FILE)
    }

    /// Opens a file in this directory to read and to change it.
    ///
    /// # Errors
    /// As [`PrivateDir::open_file`].
    pub fn change_file(&self, name: &str) -> Result<File, StoreError> {
        self.open_checked(name, FILE.union(OFlags::RDWR))
    }

    fn open_checked(&self, name: &str, flags: OFlags) -> Result<File, StoreError> {
        let path = self.path.join(name);
        let fd = openat(&self.fd, name, flags, Mode::empty());
        let fault = |found: &Stat| file_fault(found, self.reach);
        let fd = fd.map_err(|errno| why_not(self.fd.as_fd(), Path::new(name), &path, errno, fault))?;
        let found = fstat(&fd).map_err(|errno| StoreError::of_io("open", &path, errno.into()))?;
        match fault(&found) {
            Some(what) => Err(not_private(&path, what)),
            None => Ok(fd.into()),
        }
    }

    /// Makes a file in this directory, in place of any that is there.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Io`].
    pub fn create_file(&self, name: &str) -> Result<File, StoreError> {
        let failed = |errno: Errno| StoreError::of_io("create", &self.path.join(name), errno.into());
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        openat(&self.fd, name, NEW_FILE, Mode::RUSR | Mode::WUSR).map(File::from).map_err(failed)
    }

    /// The names in this directory, sorted; those that are not Unicode are left out.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let names = entries(self.fd.as_fd()).map_err(|errno| StoreError::of_io("read", &self.path, errno.into()))?;
        let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a file, a link, or a directory with everything in it; nothing there is fine. No link
    /// is followed.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        let failed = |errno: Errno| StoreError::of_io("remove", &self.path.join(name), errno.into());
        let name = CString::new(name).map_err(|_| failed(Errno::INVAL))?;
        remove_at(self.fd.as_fd(), &name).map_err(failed)
    }

    /// Moves a file or a directory of this directory to another one, in place of a file of that
    /// name. Returns whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn move_to(&self, name: &str, target: &Self, new_name: &str) -> Result<bool, StoreError> {
        match renameat(&self.fd, name, &target.fd, new_name) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(StoreError::of_io("rename", &self.path.join(name), errno.into())),
        }
    }

    /// Locks the directory, without a wait.
    ///
    /// # Errors
    /// As for [`FileLock::take`].
    pub fn lock(&self) -> Result<FileLock, TryLockError> {
        let fd = self.fd.try_clone().map_err(TryLockError::Error)?;
        FileLock::take(fd.into())
    }

    /// Returns the path of this directory when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens a regular file that the user has chosen, to read and to write, if only this user, root and
/// a group can have written to it. Links are followed.
///
/// # Errors
/// Those of the operating system; for another user's file, for one that users outside its group
/// may write to, and for anything but a file, an error that says so.
pub fn open_own_file(path: &Path) -> io::Result<File> {
    let file = regular::open_regular_with(File::options().read(true).write(true), path)?;
    match shared_fault(&fstat(&file)?) {
        Some(what) => Err(io::Error::other(what)),
        None => Ok(file),
    }
}

/// The path without a slash at its end, which would have a link followed.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

fn make_parent(path: &Path) -> Result<(), StoreError> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|source| StoreError::of_io("create", parent, source))
        }
        None => Ok(()),
    }
}

fn make_at(base: BorrowedFd<'_>, name: &Path, path: PathBuf, reach: DirectoryReach) -> Result<PrivateDir, StoreError> {
    match mkdirat(base, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(StoreError::of_io("create", &path, errno.into())),
    }
    enter_made(base, name, path, reach)
}

fn enter_made(
    base: BorrowedFd<'_>,
    name: &Path,
    path: PathBuf,
    reach: DirectoryReach,
) -> Result<PrivateDir, StoreError> {
    let gone = StoreError::of_io("open", &path, io::ErrorKind::NotFound.into());
    enter(base, name, path, reach)?.ok_or(gone)
}

fn enter(
    base: BorrowedFd<'_>,
    name: &Path,
    path: PathBuf,
    reach: DirectoryReach,
) -> Result<Option<PrivateDir>, StoreError> {
    let fault = |found: &Stat| directory_fault(found, reach);
    let fd = match openat(base, name, DIRECTORY, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(why_not(base, name, &path, errno, fault)),
    };
    let found = fstat(&fd).map_err(|errno| StoreError::of_io("open", &path, errno.into()))?;
    match fault(&found) {
        Some(what) => Err(not_private(&path, what)),
        None => Ok(Some(PrivateDir { fd, reach, path })),
    }
}

/// The reason why something could not be opened: a fault of it, or else the system's.
fn why_not(
    base: BorrowedFd<'_>,
    name: &Path,
    path: &Path,
    errno: Errno,
    fault: impl Fn(&Stat) -> Option<String>,
) -> StoreError {
    let found = statat(base, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    match found.as_ref().and_then(fault) {
        Some(what) => not_private(path, what),
        None => StoreError::of_io("open", path, errno.into()),
    }
}

fn not_private(path: &Path, what: String) -> StoreError {
    StoreError::NotPrivate { path: path.display().to_string(), what }
}

fn directory_fault(found: &Stat, reach: DirectoryReach) -> Option<String> {
    let mode = found.st_mode & 0o7777;
    let open = || format!("is open to other users (mode {mode:04o}, expected 0700): remove it, or take another place");
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory if reach == DirectoryReach::Shared => shared_fault(found),
        FileType::Directory => owner_fault(found).or_else(|| (mode & 0o077 != 0).then(open)),
        FileType::Symlink => Some("is a link, expected a directory: remove it, or take another place".to_owned()),
        _ => Some("is not a directory: remove it, or take another place".to_owned()),
    }
}

fn file_fault(found: &Stat, reach: DirectoryReach) -> Option<String> {
    let names = found.st_nlink;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile if reach == DirectoryReach::Shared => shared_fault(found),
        FileType::RegularFile if names == 1 => owner_fault(found),
        FileType::RegularFile => Some(format!("has {names} names, expected 1: remove it")),
        FileType::Symlink => Some("is a link, expected a file: remove it".to_owned()),
        _ => Some("is not a regular file: remove it".to_owned()),
    }
}

/// Returns how users other than root and the group could have put something here.
fn shared_fault(found: &Stat) -> Option<String> {
    let mode = found.st_mode & 0o7777;
    let open =
        || format!("users outside its group may write to it (mode {mode:04o}): chmod o-w, or take another place");
    let is_roots = found.st_uid == 0;
    let owner = if is_roots { None } else { owner_fault(found) };
    owner.or_else(|| (mode & WRITE_BY_OTHERS != 0).then(open))
}

fn owner_fault(found: &Stat) -> Option<String> {
    let owner = found.st_uid;
    let user = rustix::process::geteuid().as_raw();
    let words = || format!("belongs to user {owner}, expected user {user}: have it removed, or take another place");
    (owner != user).then(words)
}

/// The names in a directory, but for itself and the one above.
fn entries(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<CString>> {
    let names = Dir::read_from(directory)?.map(|entry| Ok(entry?.file_name().to_owned()));
    let is_inside = |name: &rustix::io::Result<CString>| !matches!(name, Ok(name) if [c".", c".."].contains(&&**name));
    names.filter(is_inside).collect()
}

fn remove_at(base: BorrowedFd<'_>, name: &CString) -> rustix::io::Result<()> {
    let refusal = match unlinkat(base, name, AtFlags::empty()) {
        // Systems say in two ways that it is a directory.
        Err(errno @ (Errno::ISDIR | Errno::PERM)) => errno,
        Err(Errno::NOENT) => return Ok(()),
        done => return done,
    };
    let directory = match openat(base, name, DIRECTORY, Mode::empty()) {
        // It is none: an immutable file.
        Err(Errno::NOTDIR) => return Err(refusal),
        opened => opened?,
    };
    entries(directory.as_fd())?.iter().try_for_each(|name| remove_at(directory.as_fd(), name))?;
    match unlinkat(base, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    /// A user who is neither root nor us.
    const SOMEBODY: u32 = 65_533;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Gives something to another user; `false`, with a word, where only root may.
    fn give_away(path: &Path) -> bool {
        let is_given = chown(path, Some(SOMEBODY), None).is_ok();
        if !is_given {
            eprintln!("SKIPPED: giving a file to another user needs root");
        }
        is_given
    }

    /// What `open`, `make` and the same two from above say of a directory; they all say the same.
    fn refusal(path: &Path) -> String {
        let above = PrivateDir::open(path.parent().unwrap()).unwrap().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let slash = PathBuf::from(format!("{}/", path.display()));
        let refusals = [
            PrivateDir::open(path).unwrap_err(),
            PrivateDir::make(path).unwrap_err(),
            PrivateDir::make(slash).unwrap_err(),
            above.open_dir(name).unwrap_err(),
            above.make_dir(name).unwrap_err(),
        ];
        assert!(refusals.iter().all(|r| matches!(r, StoreError::NotPrivate { .. })), "{refusals:?}");
        let words = refusals.map(|refusal| refusal.to_string());
        assert!(words.iter().all(|other| *other == words[0] && other.starts_with(path.to_str().unwrap())), "{words:?}");
        words[0].clone()
    }

    #[test]
    fn directories_and_files_are_made_for_this_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let user = rustix::process::geteuid().as_raw();
        let made = PrivateDir::make(&path).unwrap();
        made.make_dir("c").unwrap().create_file("d").unwrap();
        PrivateDir::make_new(path.join("e")).unwrap();
        let modes = ["", "c", "c/d", "e"].map(|below| mode(&path.join(below)));
        assert_eq!(modes, [0o700, 0o700, 0o600, 0o700]);
        assert_eq!(fs::metadata(path.join("c/d")).unwrap().uid(), user);
        assert_eq!(made.names().unwrap(), ["c", "e"]);
        assert!(PrivateDir::make_new(path.join("e")).is_err(), "it is there");
        assert!(made.open_dir("f").unwrap().is_none() && PrivateDir::open(path.join("f")).unwrap().is_none());
    }

    /// Another user can make any of these where everybody may write.
    #[test]
    fn what_may_be_somebody_elses_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let above = PrivateDir::make(dir.path().join("above")).unwrap();
        let path = above.path().join("memory");
        let ours = dir.path().join("ours");
        PrivateDir::make(&ours).unwrap();
        for target in [ours.as_path(), Path::new("nowhere")] {
            symlink(target, &path).unwrap();
            assert!(refusal(&path).contains("is a link"), "{}", target.display());
            fs::remove_file(&path).unwrap();
        }
        fs::write(&path, "values").unwrap();
        assert!(refusal(&path).contains("is not a directory"));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for open in [0o755, 0o770, 0o701, 0o1777] {
            set_mode(&path, open);
            assert!(refusal(&path).contains(&format!("mode {open:04o}")));
        }
        set_mode(&path, 0o700);
        PrivateDir::open(&path).unwrap().unwrap();
        if give_away(&path) {
            assert!(refusal(&path).contains(&format!("belongs to user {SOMEBODY}")));
        }
    }

    #[test]
    fn a_file_that_others_may_reach_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let place = PrivateDir::make(dir.path().join("place")).unwrap();
        let file = place.path().join("file");
        let other = dir.path().join("other");
        let refusal = |what: &str| {
            let words = place.open_file("file").unwrap_err().to_string();
            assert!(words.starts_with(file.to_str().unwrap()) && words.contains(what), "{words}");
        };
        place.create_file("file").unwrap();
        place.open_file("file").unwrap();
        fs::hard_link(&file, &other).unwrap();
        refusal("has 2 names");
        place.remove("file").unwrap();
        symlink(&other, &file).unwrap();
        refusal("is a link");
        place.remove("file").unwrap();
        place.make_dir("file").unwrap();
        refusal("is not a regular file");
        place.remove("file").unwrap();
        rustix::fs::mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        refusal("is not a regular file");
        place.create_file("file").unwrap();
        if give_away(&file) {
            refusal(&format!("belongs to user {SOMEBODY}"));
        }
    }

    /// A link in the place of a file must not have what it leads to overwritten or removed.
    #[test]
    fn links_are_replaced_and_removed_but_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let place = PrivateDir::make(dir.path().join("place")).unwrap();
        let precious = dir.path().join("precious");
        let folder = dir.path().join("folder");
        fs::write(&precious, "values").unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), "values").unwrap();
        symlink(&precious, place.path().join("file")).unwrap();
        place.create_file("file").unwrap();
        assert_eq!(fs::symlink_metadata(place.path().join("file")).unwrap().len(), 0);
        place.make_dir("deep").unwrap().make_dir("down").unwrap();
        symlink(&folder, place.path().join("deep/down/link")).unwrap();
        symlink(&folder, place.path().join("link")).unwrap();
        ["file", "deep", "link", "nothing"].into_iter().for_each(|name| place.remove(name).unwrap());
        assert_eq!(place.names().unwrap(), [""; 0]);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "values");
        assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "values");
    }

    /// A directory that was judged is the one used, whatever its path leads to by then.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the renames are another user's")]
    fn a_directory_exchanged_after_the_check_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("place");
        let away = dir.path().join("away");
        let place = PrivateDir::make(&path).unwrap();
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        place.make_dir("shelf").unwrap().create_file("file").unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        assert!(away.join("shelf/file").is_file());
    }
}
