//! Files of retired versions, which the next version overwrites.
//!
//! Nothing is allocated then and nothing freed, no directory changes, and a sync brings little but
//! the bytes to the device. Promises: a file that another process reads, or that has another name,
//! is never overwritten. On file systems of several machines the readers are not known, so nothing
//! is overwritten there. Must not know what the bytes mean.

use std::fs::File;
use std::io;

use crate::sys;

/// Returns whether no other process can be reading this file, whose path no other process knows.
#[cfg(target_os = "linux")]
pub(crate) fn is_ours_alone(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    /// ext2 to ext4, XFS, tmpfs (statfs(2)).
    const OF_ONE_MACHINE: [u64; 3] = [0xef53, 0x5846_5342, 0x0102_1994];
    // Its type is another one on other processors.
    let kind = rustix::fs::fstatfs(file).ok().and_then(|fs| u64::try_from(fs.f_type).ok());
    let is_of_one_machine = kind.is_some_and(|kind| OF_ONE_MACHINE.contains(&kind));
    is_of_one_machine && file.metadata().is_ok_and(|meta| meta.nlink() == 1) && sys::is_open_once(file)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_ours_alone(file: &File) -> bool {
    sys::is_open_once(file)
}

/// Shortens a file to `bytes` bytes, if it is longer.
pub(crate) fn cut(file: &File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() > bytes { file.set_len(bytes) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// Opened for writing, as a draft does.
    fn is_free(path: &std::path::Path) -> bool {
        is_ours_alone(&File::options().read(true).write(true).open(path).unwrap())
    }

    #[test]
    fn a_file_that_is_open_or_has_another_name_is_not_ours_alone() {
        for dir in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            let path = dir.path().join("file");
            fs::write(&path, "values").unwrap();
            let is_free_at_all = is_free(&path);
            let reader = File::open(&path).unwrap();
            assert!(!is_free(&path), "it is open");
            drop(reader);
            assert_eq!(is_free(&path), is_free_at_all);
            let writer = File::options().append(true).open(&path).unwrap();
            assert!(!is_free(&path), "it is open for writing");
            drop(writer);
            let other = dir.path().join("other");
            fs::hard_link(&path, &other).unwrap();
            assert!(!is_free(&path), "it has two names");
            fs::remove_file(&other).unwrap();
            assert_eq!(is_free(&path), is_free_at_all);
        }
    }
}
