//! Is a version refused by name whose checksums hold and whose words do not?
#![expect(clippy::unwrap_used, reason = "tests panic")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use recoup_core::{Manifest, Store};
use recoup_io::{Access, Hdf5Store, manifest};
use recoup_testkit::store_suite::SampleVersion;

/// A published version of two ranks, and its directory.
struct Published {
    dir: tempfile::TempDir,
    version: PathBuf,
}

impl Published {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Hdf5Store::open(dir.path(), "solve", Access::Write).unwrap();
        SampleVersion::new(7, 2).publish(&store).unwrap();
        let version = store.version_path(7);
        Self { dir, version }
    }

    /// Changes the manifest and seals it under the checksum that is right for it.
    fn tell(&self, lie: impl FnOnce(&mut Manifest)) {
        let path = self.version.join("manifest.json");
        let mut told = manifest::open(&fs::read(&path).unwrap()).unwrap();
        lie(&mut told);
        fs::write(path, manifest::seal(&told).unwrap()).unwrap();
    }

    fn open(&self, run: &str) -> Hdf5Store {
        Hdf5Store::open(self.dir.path(), run, Access::Read).unwrap()
    }

    /// What the store says when it is asked for the manifest, and what an inspection says.
    fn refusal(&self, run: &str) -> String {
        let store = self.open(run);
        let damage = store.inspect_damage(7).unwrap();
        assert!(damage.iter().any(|damage| damage.is_fatal()), "{damage:?}");
        store.manifest(7).unwrap_err().to_string()
    }
}

/// One rank's variables beside a number of ranks that no loop would come to the end of.
#[test]
fn ranks_without_variables_are_refused_by_name() {
    let published = Published::new();
    published.tell(|manifest| manifest.ranks = 1_000_000_000);
    assert!(published.refusal("solve").contains("1000000000 ranks, but only 2"), "{}", published.refusal("solve"));
}

#[test]
fn manifest_of_another_run_is_refused_by_name() {
    let published = Published::new();
    published.tell(|manifest| manifest.name = "other".to_owned());
    let refusal = published.refusal("solve");
    assert!(refusal.contains("run solve expected, other found"), "{refusal}");
}

/// A directory under another name holds another run's manifests.
#[test]
fn run_under_another_name_is_refused_until_it_has_its_own_again() {
    let published = Published::new();
    let own = published.dir.path().join("solve");
    let other = published.dir.path().join("other");
    #[expect(clippy::disallowed_methods, reason = "what a user may do to a directory")]
    fs::rename(&own, &other).unwrap();
    let refusal = published.refusal("other");
    assert!(refusal.contains("run other expected, solve found"), "{refusal}");
    #[expect(clippy::disallowed_methods, reason = "what a user may do to a directory")]
    fs::rename(&other, &own).unwrap();
    assert_eq!(published.open("solve").manifest(7).unwrap().name, "solve");
}

#[test]
fn manifest_of_another_run_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let store = Hdf5Store::open(dir.path(), "other", Access::Write).unwrap();
    let error = SampleVersion::new(7, 2).publish(&store).unwrap_err().to_string();
    assert!(error.contains("run other expected, solve found"), "{error}");
    assert!(store.versions().unwrap().is_empty());
}

/// The link leads to the very bytes that were there.
#[test]
fn file_of_a_rank_that_is_a_link_is_refused_by_name() {
    let published = Published::new();
    let path = published.version.join("rank-000001.h5");
    let moved = published.dir.path().join("elsewhere");
    fs::copy(&path, &moved).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&moved, &path).unwrap();
    let store = published.open("solve");
    let manifest = store.manifest(7).unwrap();
    for frame in &manifest.frames {
        let read = store.read(7, frame, &mut Vec::new());
        assert_eq!(read.is_err(), frame.rank == 1, "{read:?}");
        if let Err(error) = read {
            let error = error.to_string();
            assert!(error.contains("rank-000001.h5") && error.contains("symbolic link"), "{error}");
        }
    }
    let damage: Vec<String> = store.inspect_damage(7).unwrap().iter().map(ToString::to_string).collect();
    assert!(damage.iter().all(|line| line.contains("symbolic link")) && damage.len() > 1, "{damage:?}");
}

#[test]
fn manifest_that_is_a_link_is_refused_by_name() {
    let published = Published::new();
    let path = published.version.join("manifest.json");
    let moved = published.dir.path().join("elsewhere");
    fs::copy(&path, &moved).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&moved, &path).unwrap();
    assert!(published.refusal("solve").contains("symbolic link"), "{}", published.refusal("solve"));
}
