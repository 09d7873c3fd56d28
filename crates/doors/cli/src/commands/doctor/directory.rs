//! The file system of a directory, and its speed.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use recoup::SystemClock;
use recoup::core::{Clock as _, mix};
use recoup::io::nameless_file;
use serde::Serialize;

use super::check::{PartCheck, PartState};
use crate::output::{bytes, seconds};

/// Bytes of one write.
const BLOCK_BYTES: usize = 1 << 20;
/// Blocks of the first measurement, and of the second where the first says that it takes seconds
/// at most.
const FEW_BLOCKS: u64 = 4;
const ALL_BLOCKS: u64 = 60;
const SLOW_BYTES_PER_SECOND: f64 = 16e6;
/// Bytes of a small write, and how many are synced.
const SMALL_BYTES: usize = 4096;
const SMALL_WRITES: usize = 9;
/// A sync that takes longer is felt in every version.
const SYNC_SLOW_SECONDS: f64 = 0.1;
/// File systems of several machines.
const SHARED: [&str; 10] =
    ["nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "fuse.glusterfs", "fuse.sshfs"];

/// The space of a file system.
pub(super) struct FileSystemSpace {
    pub(super) file_system: Option<String>,
    pub(super) free_bytes: u64,
    pub(super) total_bytes: u64,
}

impl FileSystemSpace {
    /// Reads the space around a directory; `None` where there is no such directory.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let directory = directory.canonicalize().ok().filter(|path| path.is_dir())?;
        let found = rustix::fs::statvfs(&directory).ok()?;
        let [free_bytes, total_bytes] =
            [found.f_bavail, found.f_blocks].map(|blocks| blocks.saturating_mul(found.f_frsize));
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Some(Self { file_system: file_system(&mounts, &directory), free_bytes, total_bytes })
    }
}

/// The directory that was asked about.
#[derive(Serialize)]
pub(super) struct DirectoryReport {
    path: String,
    /// Name of the file system, as the system mounts it.
    file_system: Option<String>,
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
    /// Bytes written and synced per second.
    write_bytes_per_second: Option<f64>,
    /// Median time of a small write that is synced.
    sync_seconds: Option<f64>,
    /// The reason why it cannot be written.
    pub(super) unwritable: Option<String>,
}

/// The speed of a directory.
struct Speed {
    write_bytes_per_second: f64,
    sync_seconds: f64,
}

impl DirectoryReport {
    /// Writes to a directory and syncs.
    pub(super) fn measure(directory: &Path) -> Self {
        let space = FileSystemSpace::of(directory);
        let free_bytes = space.as_ref().map(|space| space.free_bytes);
        let speed = match () {
            () if !directory.exists() => Err("there is no such directory".to_owned()),
            () if !directory.is_dir() => Err("a directory expected, a file found".to_owned()),
            () => speed(directory, free_bytes.unwrap_or(0)).map_err(|error| error.to_string()),
        };
        Self {
            path: directory.display().to_string(),
            free_bytes,
            total_bytes: space.as_ref().map(|space| space.total_bytes),
            file_system: space.and_then(|space| space.file_system),
            write_bytes_per_second: speed.as_ref().ok().map(|speed| speed.write_bytes_per_second),
            sync_seconds: speed.as_ref().ok().map(|speed| speed.sync_seconds),
            unwritable: speed.err(),
        }
    }

    pub(super) fn checks(&self) -> Vec<PartCheck> {
        if let Some(why) = &self.unwritable {
            let remedy = "name a directory of yours, or make it; recoup run makes the one that --dir names";
            let check = PartCheck::yes("directory", format!("{}: {why}", self.path));
            return vec![check.lacking(PartState::No, "no version can be saved there", remedy)];
        }
        let size = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), |size| bytes(size as f64));
        let kind = self.file_system.as_deref().unwrap_or("unknown file system");
        let space = format!("{}, {kind}, {} free of {}", self.path, size(self.free_bytes), size(self.total_bytes));
        vec![lifetime(PartCheck::yes("directory", space), kind), self.speed_check()]
    }

    fn speed_check(&self) -> PartCheck {
        let rate = self.write_bytes_per_second.unwrap_or(f64::NAN);
        let sync = self.sync_seconds.unwrap_or(f64::NAN);
        let found = format!("{}/s written and synced, {} for a sync of 4 KiB", bytes(rate), seconds(sync));
        let check = PartCheck::yes("speed", found);
        if sync <= SYNC_SLOW_SECONDS {
            return check;
        }
        check.lacking(
            PartState::Low,
            "a version waits for several syncs before it counts; the solver computes meanwhile",
            "with many ranks take --files node or one; --tiers memory,pfs makes a version count in memory first",
        )
    }
}

/// Adds what the kind of a file system means for versions.
fn lifetime(check: PartCheck, kind: &str) -> PartCheck {
    match kind {
        "tmpfs" | "ramfs" => check.lacking(
            PartState::Low,
            "versions are lost with the power of this machine, and take its memory",
            "name a directory on a disk; memory as a tier is --tiers memory,pfs",
        ),
        "overlay" => check.lacking(
            PartState::Low,
            "versions may be lost with the container",
            "mount a volume of the host, and name a directory there",
        ),
        kind if SHARED.contains(&kind) => check.lacking(
            PartState::Low,
            "files of retired versions are removed and not reused, as other machines may read them",
            "nothing; with many ranks --files node or one spares the metadata server",
        ),
        _ => check,
    }
}

/// Returns the type of the file system that a path is on, by the list of mounts: the last of the
/// longest that the path is below.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let (place, source) = line.split_once(" - ")?;
        // Blanks in names are written as octal numbers.
        let point = place.split(' ').nth(4)?.replace("\\040", " ");
        path.starts_with(&point).then(|| (point.len(), source.split(' ').next().unwrap_or_default().to_owned()))
    });
    mounted.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// Writes a file without a name, in large pieces and then in small ones.
fn speed(directory: &Path, free_bytes: u64) -> io::Result<Speed> {
    let clock = SystemClock::new();
    let mut file = nameless_file(directory)?;
    // Neither zeros nor repetitions: file systems that compress would be praised for it.
    let words = (0..BLOCK_BYTES as u64 / 8).flat_map(|index| mix(index).to_le_bytes());
    let block: Vec<u8> = words.collect();
    let mut rate_of = |blocks: u64| -> io::Result<f64> {
        let start = clock.now();
        (0..blocks).try_for_each(|_| file.write_all(&block))?;
        file.sync_all()?;
        Ok((blocks * BLOCK_BYTES as u64) as f64 / (clock.now() - start).as_secs_f64())
    };
    let mut write_bytes_per_second = rate_of(FEW_BLOCKS)?;
    let blocks = ALL_BLOCKS.min(free_bytes / 4 / BLOCK_BYTES as u64);
    if write_bytes_per_second > SLOW_BYTES_PER_SECOND && blocks > FEW_BLOCKS {
        write_bytes_per_second = rate_of(blocks)?;
    }
    let mut sync_time = || {
        let start = clock.now();
        file.write_all(&block[..SMALL_BYTES])?;
        file.sync_all()?;
        Ok(clock.now() - start)
    };
    let mut sync_times: Vec<Duration> = (0..SMALL_WRITES).map(|_| sync_time()).collect::<io::Result<_>>()?;
    sync_times.sort_unstable();
    Ok(Speed { write_bytes_per_second, sync_seconds: sync_times[SMALL_WRITES / 2].as_secs_f64() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_is_that_of_the_longest_mount_above_the_path() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      30 22 0:25 / /scratch rw,noatime shared:5 - lustre mds:/s rw\n\
                      31 22 0:26 / /scratch rw - nfs4 server:/s rw\n\
                      32 22 0:27 / /my\\040disk rw - xfs /dev/vdb rw\n";
        for (path, kind) in [("/var/a", "ext4"), ("/scratch", "nfs4"), ("/scratchy", "ext4"), ("/my disk/d", "xfs")] {
            assert_eq!(file_system(mounts, Path::new(path)).as_deref(), Some(kind), "{path}");
        }
        assert_eq!(file_system("", Path::new("/")), None);
    }
}
