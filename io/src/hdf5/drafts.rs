//! The directories versions are drafted in: where there is one, that of the version that went last.
//! Rank 0 alone makes them: where a host has lost the shared directory, a rank that made one would
//! write to the directory below the mount point.
//!
//! A version that goes is one rename, to the place of the next draft. Its files are that draft's
//! when it is begun: each rank writes over its own, or has it go ([`crate::reuse`]), at the same
//! time, with no directory made or removed, and before anything takes their room. Which place that
//! is follows from the version published last, so all ranks know it without asking. Promises: what
//! lies in a draft counts for nothing; a version that is read while it goes is missing, never torn.
//! See FORMAT.md.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use recoup_core::StoreError;

use super::entries::entries;
use crate::publish;

/// The drafts of one store.
#[derive(Debug)]
pub(super) struct Drafts {
    root: PathBuf,
    state: Mutex<DraftsState>,
}

#[derive(Debug)]
struct DraftsState {
    drafted: Drafted,
    line: Option<VersionRow>,
}

/// The contents of the directories of drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drafted {
    /// Possibly drafts to be removed: something failed, or the directory was not searched yet.
    Unknown,
    /// A draft of this store, begun and not ended: no other may touch its place.
    Begun,
    /// Nothing.
    Nothing,
    /// An empty directory at the place of the next draft. It stays there until that is begun:
    /// another rank may have begun already.
    Prepared,
    /// A retired version there, likewise.
    Retired,
}

/// Versions this store has published one after another, of as many ranks each: the same files are
/// in all.
#[derive(Clone, Copy, Debug)]
struct VersionRow {
    first: u64,
    last: u64,
    ranks: usize,
}

impl Drafts {
    pub(super) fn new(root: &Path) -> Self {
        let state = DraftsState { drafted: Drafted::Unknown, line: None };
        Self { root: root.to_owned(), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, DraftsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the directory in which a version is drafted.
    pub(super) fn place(&self, version: u64) -> PathBuf {
        self.lock().line.map_or_else(|| self.place_of(version), |line| self.place_after(line.last))
    }

    /// The place all ranks know, before they know the version that follows this one.
    fn place_after(&self, version: u64) -> PathBuf {
        self.root.join(format!("draft-after-{version:012}"))
    }

    /// The place that is a version's own.
    pub(super) fn place_of(&self, version: u64) -> PathBuf {
        self.root.join(format!("draft-{version:012}"))
    }

    /// Returns whether all ranks know the place of the next draft before they know its version.
    pub(super) fn is_agreed(&self) -> bool {
        self.lock().line.is_some()
    }

    /// Rank 0 begins the draft at `place`, and clears all others away where there may be some.
    pub(super) fn begin(&self, place: &Path) -> Result<(), StoreError> {
        let mut state = self.lock();
        let is_agreed = state.line.is_some();
        if matches!(state.drafted, Drafted::Unknown | Drafted::Begun) {
            // Another rank may have begun there, if it may begin first.
            self.clear(|path| is_agreed && path == place)?;
        }
        let is_prepared = matches!(state.drafted, Drafted::Prepared | Drafted::Retired);
        state.drafted = Drafted::Begun;
        if is_prepared { Ok(()) } else { publish::create_directory(place) }
    }

    /// Makes the directory of the draft after this version, which another rank may begin first.
    /// Returns whether it is there.
    pub(super) fn prepare_after(&self, version: u64) -> bool {
        publish::create_directory(&self.place_after(version)).is_ok()
    }

    /// A version was published, and the place of the next draft is prepared, or is not. All ranks
    /// say so, and those that share this store more than once.
    pub(super) fn published(&self, version: u64, ranks: usize, is_prepared: bool) {
        let mut state = self.lock();
        let line = match state.line {
            Some(line) if (line.ranks, line.last) == (ranks, version) => return,
            Some(line) if line.ranks == ranks && line.last < version => VersionRow { last: version, ..line },
            _ => VersionRow { first: version, last: version, ranks },
        };
        state.line = Some(line);
        state.drafted = if is_prepared { Drafted::Prepared } else { Drafted::Nothing };
    }

    /// The draft has become a version where no row is kept; one that took another's place may have
    /// left that behind.
    pub(super) fn ended(&self, has_replaced: bool) {
        self.lock().drafted = if has_replaced { Drafted::Unknown } else { Drafted::Nothing };
    }

    /// Takes the directory `path` of a version that goes as that of the next draft, where nothing
    /// is there; says whether that could be. A draft may be written at this moment by a thread that
    /// moves versions from one store to the next.
    pub(super) fn take(&self, version: u64, path: &Path) -> bool {
        let mut state = self.lock();
        let Some(line) = state.line.filter(|line| (line.first..line.last).contains(&version)) else { return false };
        let is_free = matches!(state.drafted, Drafted::Nothing | Drafted::Prepared);
        // The rename is refused where another rank has begun there.
        let is_taken = is_free && publish::rename_to_remove(path, &self.place_after(line.last)).is_ok();
        if is_taken {
            state.drafted = Drafted::Retired;
        }
        is_taken
    }

    /// Removes a version for good: it is a draft first, so a kill in between leaves no torn
    /// version.
    pub(super) fn remove(&self, version: u64, path: &Path) -> Result<(), StoreError> {
        let mut state = self.lock();
        let place = self.place_of(version);
        if matches!(state.drafted, Drafted::Unknown | Drafted::Begun) {
            publish::remove_directory(&place)?;
        }
        let renamed = publish::rename_to_remove(path, &place);
        renamed.and_then(|()| publish::remove_directory(&place)).map_err(|error| {
            if state.drafted != Drafted::Begun {
                state.drafted = Drafted::Unknown;
            }
            if publish::is_missing(&error) { StoreError::Missing { version } } else { error }
        })
    }

    /// Removes all drafts.
    pub(super) fn discard(&self) -> Result<(), StoreError> {
        let mut state = self.lock();
        self.clear(|_| false)?;
        state.drafted = Drafted::Nothing;
        Ok(())
    }

    /// Removes the drafts that are not to stay.
    fn clear(&self, stays: impl Fn(&Path) -> bool) -> Result<(), StoreError> {
        let names = entries(&self.root)?;
        let drafts = names.iter().filter(|name| name.starts_with("draft-")).map(|name| self.root.join(name));
        drafts.filter(|path| !stays(path)).try_for_each(|path| publish::remove_directory(&path))
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        let state = self.lock();
        if let (Drafted::Prepared | Drafted::Retired, Some(line)) = (state.drafted, state.line) {
            // What stays is a draft, which the next store to write here removes.
            publish::remove_directory(&self.place_after(line.last)).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, mpsc};
    use std::time::Duration;

    use recoup_core::Store;
    use recoup_testkit::store_suite::SampleVersion;

    use crate::hdf5::entries::entries;
    use crate::publish::Step;
    use crate::publish::watch::watched;
    use crate::{Access, Hdf5Store};
    use crate::{publish, reuse};

    /// A store of versions 1 and 2 of `ranks` ranks each.
    fn stored(dir: &tempfile::TempDir, ranks: usize) -> Hdf5Store {
        let store = Hdf5Store::open(dir.path(), "solve", Access::Write).unwrap();
        for version in 1..=2 {
            SampleVersion::new(version, ranks).publish(&store).unwrap();
        }
        store
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        entries(&dir.path().join("solve")).unwrap()
    }

    /// A worker removed version 1 between the rename and the sync of version 3, which a drain had
    /// just published; then the power went, and neither was there.
    #[test]
    fn a_version_goes_once_a_newer_one_outlasts_a_loss_of_power() {
        let dir = tempfile::tempdir().unwrap();
        drop(stored(&dir, 1));
        let store = Hdf5Store::open(dir.path(), "solve", Access::Write).unwrap();
        let syncs_at_removal = |version| {
            let steps = Arc::new(Mutex::new(Vec::new()));
            let noted = steps.clone();
            let note = move |step, _: &Path| {
                noted.lock().unwrap().push(step);
                Ok(())
            };
            watched(note, || store.remove(version)).unwrap();
            let steps = steps.lock().unwrap();
            steps.iter().take_while(|step| **step != Step::Rename).filter(|step| **step == Step::SyncDirectory).count()
        };
        assert_eq!(syncs_at_removal(1), 1, "who published version 2 is not known");
        SampleVersion::new(3, 1).publish(&store).unwrap();
        assert_eq!(syncs_at_removal(2), 0, "version 3 was synced here");
        assert_eq!(syncs_at_removal(3), 1, "no other version is newer");
    }

    #[test]
    fn a_version_is_drafted_where_the_last_one_went() {
        let dir = tempfile::tempdir().unwrap();
        let store = stored(&dir, 2);
        store.remove(1).unwrap();
        assert_eq!(names(&dir), ["draft-after-000000000002", "lock", "v000000000002"]);
        let mut next = SampleVersion::new(3, 2);
        next.publish(&store).unwrap();
        next.assert_whole(&store);
        assert_eq!(store.inspect_damage(3).unwrap(), []);
        assert_eq!(names(&dir), ["lock", "v000000000002", "v000000000003"]);
        store.remove(2).unwrap();
        drop(store);
        assert_eq!(names(&dir), ["lock", "v000000000003"], "nothing is left when the store is closed");
    }

    /// Files that grow and shrink, past the page cache and through it, each left to the version
    /// after the next.
    #[test]
    fn files_are_written_over_whatever_was_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let store = Hdf5Store::open(dir.path(), "solve", Access::Write).unwrap();
        let mut inodes = Vec::new();
        for (version, len) in (1..).zip([200_000, 150_000, 250_000, 150_001, 10, 20, 30, 300_000, 5, 140_000]) {
            let mut sample = SampleVersion::of_one_variable(version, 2, len);
            sample.publish(&store).unwrap();
            sample.assert_whole(&store);
            assert_eq!(store.inspect_damage(version).unwrap(), [], "{len} values");
            let path = store.version_path(version).join("rank-000001.h5");
            inodes.push(fs::metadata(&path).unwrap().ino());
            let can_be_left = reuse::is_ours_alone(&File::options().read(true).write(true).open(&path).unwrap());
            if let [.., went, _, this] = inodes[..] {
                assert!(!can_be_left || this == went, "{len} values: the file is another one");
            }
            if version > 1 {
                store.remove(version - 1).unwrap();
            }
        }
    }

    #[test]
    fn of_several_versions_that_go_one_directory_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = stored(&dir, 1);
        SampleVersion::new(3, 1).publish(&store).unwrap();
        store.remove(2).unwrap();
        store.remove(1).unwrap();
        assert_eq!(names(&dir), ["draft-after-000000000003", "lock", "v000000000003"]);
        store.discard_drafts().unwrap();
        SampleVersion::new(4, 1).publish(&store).unwrap();
        assert_eq!(names(&dir), ["lock", "v000000000003", "v000000000004"]);
    }

    #[test]
    fn files_of_ranks_there_are_no_more_do_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        let store = stored(&dir, 2);
        for version in 3..=6 {
            SampleVersion::new(version, 1).publish(&store).unwrap();
            store.remove(version - 2).unwrap();
        }
        let files = entries(&store.version_path(6)).unwrap();
        assert_eq!(files, ["manifest.json", "rank-000000.h5", "version.h5"]);
    }

    #[test]
    fn who_reads_a_version_that_goes_reads_it_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let store = stored(&dir, 1);
        let frame = store.manifest(1).unwrap().frames[0].clone();
        let path = store.version_path(1).join("rank-000000.h5");
        let expected = fs::read(&path).unwrap();
        let mut reader = File::open(&path).unwrap();
        store.remove(1).unwrap();
        SampleVersion::new(3, 1).publish(&store).unwrap();
        let mut found = Vec::new();
        reader.read_to_end(&mut found).unwrap();
        assert!(found == expected, "the file is the old one still");
        assert!(store.read(1, &frame, &mut found).is_err() && !store.versions().unwrap().contains(&1));
    }

    /// One thread writes and removes as fast as it can, the other reads the version that goes next,
    /// file by file.
    #[test]
    fn a_version_that_goes_is_read_whole_or_missing() {
        for dir in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            let store = stored(&dir, 1);
            let reader = Hdf5Store::open(dir.path(), "solve", Access::Read).unwrap();
            let is_over = AtomicBool::new(false);
            let found = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Acquire) {
                        let Some(&version) = reader.versions().unwrap().first() else { continue };
                        let Ok(manifest) = reader.manifest(version) else { continue };
                        let Ok(bytes) = fs::read(reader.version_path(version).join("rank-000000.h5")) else { continue };
                        for frame in &manifest.frames {
                            let start = frame.place.as_ref().unwrap().offset as usize;
                            let payload = &bytes[start..start + frame.payload_bytes as usize];
                            assert_eq!(crc32c::crc32c(payload), frame.crc32c, "version {version}: {}", frame.variable);
                        }
                        found.fetch_add(1, Ordering::Relaxed);
                    }
                });
                for version in 3..=200 {
                    let len = if version % 5 == 0 { 1000 } else { 140_000 };
                    let published = SampleVersion::of_one_variable(version, 1, len).publish(&store);
                    let removed = store.remove(version - 2);
                    if let Err(error) = published.and(removed) {
                        is_over.store(true, Ordering::Release);
                        panic!("version {version}: {error}");
                    }
                }
                is_over.store(true, Ordering::Release);
            });
            assert!(found.into_inner() > 0);
        }
    }

    #[test]
    fn files_that_may_not_be_written_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let store = stored(&dir, 1);
        let path = store.version_path(1).join("rank-000000.h5");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        store.remove(1).unwrap();
        let mut next = SampleVersion::new(3, 1);
        next.publish(&store).unwrap();
        next.assert_whole(&store);
    }

    /// A member of a group that shares the directory knows the names of the next draft, and made
    /// links of them. The file they led to was overwritten with the version.
    #[test]
    fn a_link_in_the_place_of_a_file_is_not_written_through() {
        for dir in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            let store = stored(&dir, 1);
            let precious = dir.path().join("precious");
            fs::write(&precious, "values").unwrap();
            store.remove(1).unwrap();
            for name in ["rank-000000.h5", "version.h5", "manifest.json"] {
                let path = dir.path().join("solve/draft-after-000000000002").join(name);
                fs::remove_file(&path).unwrap();
                symlink(&precious, &path).unwrap();
                assert!(publish::open_file(&path).is_err());
            }
            let mut next = SampleVersion::new(3, 1);
            next.publish(&store).unwrap();
            next.assert_whole(&store);
            assert_eq!(fs::read_to_string(&precious).unwrap(), "values", "{}", dir.path().display());
        }
    }

    /// A thread wrote a version to the file system while the run's worker retired another there.
    /// The retired one was put where the draft was being written, or was forgotten there: runs
    /// ended with 59 whole drafts next to 2 versions, and versions were lost with "File exists".
    #[test]
    fn a_version_may_be_retired_at_any_step_of_a_draft() {
        for ranks in [1, 2] {
            for at in 0.. {
                let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
                let store = Arc::new(stored(&dir, ranks));
                let retirement = Arc::new(Mutex::new(None));
                let theirs = store.clone();
                let started = retirement.clone();
                let mut steps = 0;
                let watcher = move |_, _: &Path| {
                    if steps == at {
                        let store = theirs.clone();
                        let (done, is_done) = mpsc::channel();
                        let retire = move || store.remove(1).inspect(|()| done.send(()).unwrap_or_default());
                        *started.lock().unwrap() = Some(std::thread::spawn(retire));
                        // It cannot end before this thread does where the names are locked.
                        is_done.recv_timeout(Duration::from_millis(20)).ok();
                    }
                    steps += 1;
                    Ok(())
                };
                let mut drained = SampleVersion::new(3, ranks);
                watched(watcher, || drained.publish(store.as_ref())).unwrap();
                let Some(retirement) = retirement.lock().unwrap().take() else {
                    assert!(at > 8, "two files, three syncs and a rename at least");
                    break;
                };
                retirement.join().unwrap().unwrap();
                drained.assert_whole(store.as_ref());
                SampleVersion::new(4, ranks).publish(store.as_ref()).unwrap();
                store.remove(2).unwrap();
                drop(store);
                assert_eq!(names(&dir), ["lock", "v000000000003", "v000000000004"], "retired at step {at}");
            }
        }
    }

    /// Two versions went at once while another rank, in a process of its own, had begun in the
    /// place of the first: its file was removed with that. One that went while the rank was about
    /// to make its file cost the draft: "File exists".
    #[test]
    fn what_another_rank_begins_stays_whenever_versions_go() {
        for at in 0.. {
            let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
            let rank_0 = Arc::new(stored(&dir, 2));
            SampleVersion::new(3, 2).publish(rank_0.as_ref()).unwrap();
            let rank_1 = Hdf5Store::open(dir.path(), "solve", Access::Join).unwrap();
            (1..=3).for_each(|version| rank_1.drafts.published(version, 2, false));
            assert!(rank_0.drafts.prepare_after(3));
            let theirs = rank_0.clone();
            let mut steps = 0;
            let watcher = move |_, _: &Path| {
                if steps == at {
                    let rank_0 = theirs.clone();
                    std::thread::spawn(move || rank_0.remove(2)).join().unwrap().unwrap();
                }
                steps += 1;
                Ok(())
            };
            let begun = watched(watcher, || rank_1.begin(4, 1).unwrap());
            let is_over = rank_0.versions().unwrap() == [1, 2, 3];
            if is_over {
                rank_0.remove(2).unwrap();
            }
            rank_0.remove(1).unwrap();
            let mut next = SampleVersion::new(4, 2);
            next.publish_drafts(rank_0.as_ref(), vec![rank_0.begin(4, 0).unwrap(), begun]).unwrap();
            next.assert_whole(rank_0.as_ref());
            assert_eq!(names(&dir), ["lock", "v000000000003", "v000000000004"], "gone at step {at}");
            if is_over {
                assert!(at > 1, "looked for and made");
                break;
            }
        }
    }

    /// Ranks in processes of their own, which begin as they come: the last before the first, and
    /// before the version that goes is gone.
    #[test]
    fn ranks_begin_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let rank_0 = stored(&dir, 2);
        let rank_1 = Hdf5Store::open(dir.path(), "solve", Access::Join).unwrap();
        let told = |version| {
            assert!(rank_0.drafts.prepare_after(version));
            rank_1.drafts.published(version, 2, false);
        };
        rank_1.drafts.published(1, 2, false);
        told(2);
        for (version, is_early) in [(3, false), (4, true), (5, false), (6, true)] {
            let go = || rank_0.remove(version - 2).unwrap();
            let early = is_early.then(|| rank_1.begin(version, 1).unwrap());
            go();
            let last = early.unwrap_or_else(|| rank_1.begin(version, 1).unwrap());
            let mut sample = SampleVersion::new(version, 2);
            sample.publish_drafts(&rank_0, vec![rank_0.begin(version, 0).unwrap(), last]).unwrap();
            told(version);
            sample.assert_whole(&rank_0);
            assert_eq!(rank_0.inspect_damage(version).unwrap(), []);
            let next = format!("draft-after-{version:012}");
            let kept = format!("v{:012}", version - 1);
            assert_eq!(names(&dir), [&next, "lock", &kept, &format!("v{version:012}")]);
        }
    }

    /// A host lost the shared directory. Its ranks made the draft's directory below the mount point
    /// and wrote there; files of retired versions were left in their places, and the versions that
    /// came of it took those of the whole ones.
    #[test]
    fn a_host_without_the_shared_directory_begins_no_draft() {
        let dir = tempfile::tempdir().unwrap();
        let rank_0 = stored(&dir, 2);
        let [mount, below] = ["mount", "below"].map(|name| dir.path().join(name));
        symlink(dir.path(), &mount).unwrap();
        let rank_1 = Hdf5Store::open(&mount, "solve", Access::Join).unwrap();
        assert!(rank_0.drafts.prepare_after(2));
        (1..=2).for_each(|version| rank_1.drafts.published(version, 2, false));
        fs::create_dir(&below).unwrap();
        fs::remove_file(&mount).unwrap();
        symlink(&below, &mount).unwrap();
        let refused = rank_1.begin(3, 1).map(drop).unwrap_err().to_string();
        assert!(refused.contains("mount/solve/draft-after-000000000002/rank-000001.h5: No such file"), "{refused}");
        assert_eq!(entries(&below).unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn before_any_version_the_first_rank_begins() {
        let dir = tempfile::tempdir().unwrap();
        let rank_0 = Hdf5Store::open(dir.path(), "solve", Access::Write).unwrap();
        let rank_1 = Hdf5Store::open(dir.path(), "solve", Access::Join).unwrap();
        let missing = rank_1.begin(1, 1).map(drop).unwrap_err();
        assert!(matches!(missing, super::StoreError::Missing { version: 1 }));
        rank_0.begin(1, 0).unwrap();
    }
}
