//! Does a full disk cost a version, and nothing else?

use std::path::Path;
use std::process::Command;

use recoup::core::{Scheme, Store};
use recoup::io::{Access, Hdf5Store};
use recoup::model::failures::Never;

use crate::support::{Problem, plan};

/// A small file system of its own, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, with a word on stderr, where mounting is not allowed.
    fn mount(kib: usize) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(dir)),
            _ => {
                eprintln!("SKIPPED: mounting a tmpfs needs root");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|s| s.success()), "{} stays mounted", self.0.path().display());
    }
}

/// ENOSPC in the middle of a draft: the solve continues to its end, the last version stays whole,
/// the failed ones are named, and nothing of them is left over.
#[test]
fn a_full_disk_leaves_the_last_version_whole_and_the_solve_running() {
    let problem = Problem::poisson(16);
    // x, p, r of 4096 doubles each: two versions fit at most, the third does not while two are
    // kept.
    let Some(disk) = SmallDisk::mount(300) else { return };
    let session = problem.builder(disk.path(), plan(Scheme::Traditional), 5).keep(8).build().unwrap();
    let run = problem.run("cg", Some(session), Never);
    assert!(run.progress.is_converged());
    assert!(!run.saved.is_empty() && !run.failed.is_empty(), "{} saved, {:?}", run.saved.len(), run.failed);
    assert!(run.failed.iter().all(|(_, why)| why.contains("no space left")), "{:?}", run.failed);
    let store = Hdf5Store::open(disk.path(), "solve", Access::Read).unwrap();
    let versions = store.versions().unwrap();
    assert_eq!(versions, run.saved.iter().map(|s| s.version).collect::<Vec<_>>());
    for version in versions {
        assert_eq!(store.inspect_damage(version).unwrap(), [], "version {version}");
    }
    let names = std::fs::read_dir(disk.path().join("solve")).unwrap().map(|e| e.unwrap().file_name());
    assert!(names.into_iter().all(|n| !n.to_string_lossy().starts_with("draft")));
}
