//! Opens the files of a version for reading: files, never links, pipes or devices.
//!
//! A writer never puts a link into a version. One found there leads to bytes the version does not
//! own, and opening a pipe would wait forever.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading.
///
/// # Errors
/// Those of the operating system; for a symbolic link or anything but a file, an error that says
/// so.
pub fn open(path: &Path) -> io::Result<File> {
    // Without blocking, a pipe without a writer opens at once. It changes nothing for a file.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(code) if code == libc::ELOOP => io::Error::other("a file expected, a symbolic link found"),
        _ => error,
    })?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("a file expected, a directory, pipe or device found"))
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
        }
        assert_eq!(open(&at("nothing")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
