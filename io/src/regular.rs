//! Opens regular files, never pipes or devices: opening a pipe would wait for its other end.
//!
//! A writer never puts a link into a version. One found there leads to bytes the version does not
//! own, so links are refused there. In a directory that a group shares, everybody in the group can
//! guess the name of the next file, and a link of that name would have another file of this user's
//! overwritten. A path that the user gives may be a link.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

/// Tries to open a file that a writer has for itself for a moment, and the time between two.
const TRIES_MAX: u32 = 100;
const MOMENT: Duration = Duration::from_millis(1);

/// Opens a regular file of a version for reading.
///
/// # Errors
/// Those of the operating system; for a symbolic link or anything but a file, an error that says
/// so.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_without_links(File::options().read(true), path)
}

/// Opens a regular file, or makes one, as the options say. A symbolic link is refused.
///
/// # Errors
/// Those of the operating system; for a link or anything but a file, an error that says so.
pub fn open_without_links(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_flagged(options, OFlags::NOFOLLOW, path)
}

/// Opens a regular file that the user names for reading. Links are followed.
///
/// # Errors
/// Those of the operating system; for anything but a file, an error that says so.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_with(File::options().read(true), path)
}

/// Opens a regular file that the user names, or makes one, as the options say. Links are followed.
///
/// # Errors
/// As for [`open_regular`].
pub fn open_regular_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_flagged(options, OFlags::empty(), path)
}

fn open_flagged(options: &mut OpenOptions, flags: OFlags, path: &Path) -> io::Result<File> {
    // Without blocking, a pipe whose other end is not open opens at once, or is refused at once. It
    // changes nothing for a file.
    let flags = flags | OFlags::NONBLOCK;
    let other = || io::Error::other("a file expected, a directory, pipe or device found");
    options.custom_flags(flags.bits() as i32);
    let mut file = options.open(path);
    for _ in 1..TRIES_MAX {
        match &file {
            // A writer asks for this moment whether the file is open elsewhere: see `reuse.rs`.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(MOMENT),
            _ => break,
        }
        file = options.open(path);
    }
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) if flags.contains(OFlags::NOFOLLOW) => {
            io::Error::other("a file expected, a symbolic link found")
        }
        Some(libc::ENXIO) => other(),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// Reads a regular file of at most this many bytes.
///
/// # Errors
/// As [`open`], and [`io::ErrorKind::FileTooLarge`].
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more tells a longer file from one of just this length, which may grow meanwhile.
    open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_pipes_and_directories_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "bytes").unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("nothing"), at("broken")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(open(&at("file")).is_ok());
        for (name, what) in [("link", "link"), ("broken", "link"), ("pipe", "pipe"), ("directory", "directory")] {
            let error = open(&at(name)).unwrap_err().to_string();
            assert!(error.contains("a file expected") && error.contains(what), "{name}: {error}");
            let error =
                open_without_links(File::options().write(true).create(true), &at(name)).unwrap_err().to_string();
            assert!(error.contains("a file expected") || error.contains("directory"), "{name}: {error}");
        }
        assert_eq!(read(&at("file"), 5).unwrap(), b"bytes");
        assert_eq!(read(&at("file"), 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(open(&at("nothing")).unwrap_err().kind(), io::ErrorKind::NotFound);
        for options in [File::options().read(true), File::options().append(true).create(true)] {
            for name in ["file", "link"] {
                assert!(open_regular_with(options, &at(name)).is_ok(), "{name}");
            }
            for name in ["pipe", "directory"] {
                assert!(open_regular_with(options, &at(name)).is_err(), "{name}");
            }
        }
    }
}
