//! Does a full disk cost a version, and nothing else?

use std::path::Path;
use std::process::Command;

use recoup::comm::Threads;
use recoup::core::{Comm, Distribution, ErrorKind, KindedError, Role, Scheme, Store, ValuesMut};
use recoup::io::{Access, Hdf5Store};
use recoup::model::failures::Never;
use recoup::pipeline::{FailedVersion, Outcome, Variables};
use recoup_testkit::progress;

use crate::support::{Problem, plan};

/// A small file system of its own, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None`, with a word on stderr, where mounting is not allowed.
    fn mount(options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.path()).output();
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
    let Some(disk) = SmallDisk::mount("size=300k") else { return };
    let session = problem.builder(disk.path(), plan(Scheme::Traditional), 5).keep(8).build().unwrap();
    let run = problem.run("cg", Some(session), Never);
    assert!(run.progress.is_converged());
    assert!(!run.saved.is_empty() && !run.failed.is_empty(), "{} saved, {:?}", run.saved.len(), run.failed);
    let is_full =
        |failed: &FailedVersion| failed.kind == ErrorKind::DiskFull && failed.message.contains("no space left");
    assert!(run.failed.iter().all(is_full), "{:?}", run.failed);
    let store = Hdf5Store::open(disk.path(), "solve", Access::Read).unwrap();
    let versions = store.versions().unwrap();
    assert_eq!(versions, run.saved.iter().map(|s| s.version).collect::<Vec<_>>());
    for version in versions {
        assert_eq!(store.inspect_damage(version).unwrap(), [], "version {version}");
    }
    let names = std::fs::read_dir(disk.path().join("solve")).unwrap().map(|e| e.unwrap().file_name());
    assert!(names.into_iter().all(|n| !n.to_string_lossy().starts_with("draft")));
}

/// A program could tell a full disk, and one that is read-only since an error, by English alone.
#[test]
fn a_full_disk_and_one_that_is_read_only_have_their_kinds_on_all_ranks() {
    let Some(disk) = SmallDisk::mount("size=300k") else { return };
    let kinds = Threads::launch(2, |comm| {
        let mut session = recoup::open(disk.path()).scheme(Scheme::Traditional).keep(8).build_on(&comm).unwrap();
        let rows = Distribution::Rows { first: 8192 * comm.rank() as u64, global: 2 * 8192 };
        // Two versions of 64 KiB on each rank fit, the third does not.
        for iteration in 1..=3 {
            let mut x = vec![iteration as f64; 8192];
            let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows);
            session.checkpoint(plan(Scheme::Traditional), progress(iteration), &[&owner]).unwrap();
        }
        session.wait().unwrap();
        match session.take_outcomes().pop() {
            Some(Outcome::Failed { kind, .. }) => kind,
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(kinds, [ErrorKind::DiskFull; 2]);
    let Some(disk) = SmallDisk::mount("ro") else { return };
    let kinds = Threads::launch(2, |comm| recoup::open(disk.path()).build_on(&comm).err().unwrap().kind());
    assert_eq!(kinds, [ErrorKind::ReadOnly; 2]);
}
