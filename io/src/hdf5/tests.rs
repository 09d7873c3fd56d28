//! The store on a real directory: its suite, libhdf5 as the oracle, every flipped bit, every step
//! of a commit.

use std::cell::RefCell;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::rc::Rc;

use recoup_core::{Distribution, Frame, StoreDecorator, VariableRecord};
use recoup_testkit::folders::copy_tree;
use recoup_testkit::store_suite::{SampleVersion, store_suite};

use super::*;
use crate::publish::Step;
use crate::publish::watch::watched;

mod parts;
mod ranks;
mod replacement;

const RUN: &str = "solve";

/// A store in a directory that goes with it.
struct Rooted {
    store: Hdf5Store,
    dir: tempfile::TempDir,
}

/// A directory in memory where there is one: these tests sync thousands of times.
fn quick_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Rooted {
    fn new() -> Self {
        Self::of(OWN_FILES)
    }

    fn of(layout: Layout) -> Self {
        let dir = quick_directory();
        let store = layout.of(Hdf5Store::open(dir.path(), RUN, Access::Write).unwrap());
        Self { store, dir }
    }
}

/// How the versions of a store are laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    ranks_per_file: usize,
    in_parts: bool,
}

impl Layout {
    fn of(self, store: Hdf5Store) -> Hdf5Store {
        let store = store.with_ranks_per_file(self.ranks_per_file);
        if self.in_parts { store.with_parts_from(1) } else { store }
    }
}

const OWN_FILES: Layout = Layout { ranks_per_file: 1, in_parts: false };
/// A part of the manifest in the file of two ranks.
const PARTS: Layout = Layout { ranks_per_file: 2, in_parts: true };
const ONE_PART: Layout = Layout { ranks_per_file: usize::MAX, in_parts: true };

/// A file for each rank, for two, and for all, with and without parts of the manifest.
const LAYOUTS: [Layout; 5] = [
    OWN_FILES,
    Layout { ranks_per_file: 2, in_parts: false },
    PARTS,
    Layout { ranks_per_file: usize::MAX, in_parts: false },
    ONE_PART,
];

impl StoreDecorator for Rooted {
    fn inner(&self) -> &dyn Store {
        &self.store
    }
}

#[test]
fn hdf5_store_passes_its_suite() {
    for layout in LAYOUTS {
        store_suite(|| Rooted::of(layout));
    }
}

#[test]
fn libhdf5_reads_every_dataset_and_the_whole_variables() {
    LAYOUTS.into_iter().for_each(assert_libhdf5_reads);
}

fn assert_libhdf5_reads(layout: Layout) {
    let rooted = Rooted::of(layout);
    let mut sample = SampleVersion::new(12, 3);
    sample.publish(&rooted).unwrap();
    let version = rooted.store.version_path(12);
    let manifest = rooted.manifest(12).unwrap();
    assert_eq!(manifest.files.len(), 3_usize.div_ceil(layout.ranks_per_file) + 1);
    let open =
        |rank| hdf5_metno::File::open(version.join(files_by_rank::FilesByRank::of(&manifest).name(rank))).unwrap();
    for part in sample.parts.iter().filter(|p| !p.values.is_empty() && p.record.name != "opaque") {
        let dataset =
            open(part.record.rank).dataset(&format!("ranks/{}/{}", part.record.rank, part.record.name)).unwrap();
        assert_eq!(dataset.read_raw::<f64>().unwrap(), part.values, "{}", part.record.name);
        assert_eq!(dataset.attr("iteration").unwrap().read_scalar::<u64>().unwrap(), 12);
    }
    let whole = |name: &str| {
        let parts = sample.parts.iter().filter(|p| p.record.name == name);
        parts.flat_map(|p| p.values.clone()).collect::<Vec<f64>>()
    };
    let file = hdf5_metno::File::open(version.join(VERSION_FILE)).unwrap();
    assert_eq!(file.group("variables").unwrap().member_names().unwrap(), ["grid", "rho", "x"]);
    for (name, shape) in [("x", vec![60]), ("grid", vec![15, 3, 4])] {
        let dataset = file.dataset(&format!("variables/{name}")).unwrap();
        assert_eq!(dataset.shape(), shape);
        assert_eq!(dataset.read_raw::<f64>().unwrap(), whole(name), "{name}");
    }
    assert_eq!(file.dataset("variables/rho").unwrap().read_raw::<f64>().unwrap(), whole("rho")[..1]);
    // A name for each rank, or for each file with a part of the manifest.
    let last = |rank: usize| (rank - rank % layout.ranks_per_file).saturating_add(layout.ranks_per_file).min(3) - 1;
    let ranks = |rank: usize| match layout.in_parts {
        true => format!("ranks/{}-{}/{rank}", rank - rank % layout.ranks_per_file, last(rank)),
        false => format!("ranks/{rank}"),
    };
    let note = file.dataset(&format!("{}/note", ranks(2))).unwrap().read_raw::<u8>().unwrap();
    assert_eq!(note, sample.parts[12].frames[0].payload.as_ref());
    assert_eq!(file.dataset(&format!("{}/empty", ranks(1))).unwrap().shape(), [0]);
    assert_eq!(file.attr("residual_norm").unwrap().read_scalar::<f64>().unwrap(), 0.1);
    let bytes = open(1).dataset("encoded/1/opaque").unwrap().read_raw::<u8>().unwrap();
    let opaque = sample.parts.iter().find(|p| p.record.name == "opaque" && p.record.rank == 1).unwrap();
    assert_eq!(bytes, opaque.frames.iter().flat_map(|f| f.payload.to_vec()).collect::<Vec<u8>>());
}

/// A version of one rank whose `grid` is large, in `n_frames` frames; and the memory they are in.
fn large_sample(n_frames: usize) -> (SampleVersion, &'static [u8]) {
    let mut sample = SampleVersion::new(1, 1);
    let part = sample.parts.iter_mut().find(|part| part.record.name == "grid").unwrap();
    part.values = (0..64 * 64 * 64).map(f64::from).collect();
    let bytes: &'static [u8] = part.values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>().leak();
    let dims = [64; 3];
    let len = part.values.len() as u64 / n_frames as u64;
    let distribution = Distribution::Rows { first: 0, global: part.values.len() as u64 };
    let frame_dims = [64, 64, 64 / n_frames];
    let all = part.values.len() as u64;
    part.record = VariableRecord { dims, frame_dims, len: all, distribution, ..part.record.clone() };
    let frames = bytes.chunks(bytes.len() / n_frames).enumerate().map(|(run, payload)| {
        let start = run as u64 * len;
        let payload_bytes = payload.len() as u64;
        let record = part.frames[0].record.clone();
        let crc32c = crc32c::crc32c(payload);
        let record = FrameRecord { run, start, len, payload_bytes, crc32c, ..record };
        Frame { record, payload: payload.into(), filters: part.frames[0].filters.clone() }
    });
    part.frames = frames.collect();
    (sample, bytes)
}

/// What is before and behind the payload goes with it where the file system lets it; libhdf5 reads
/// it like any other file.
#[test]
fn file_of_one_large_payload_is_whole_to_its_last_byte() {
    for dir in [tempfile::tempdir().unwrap(), quick_directory()] {
        let store = Hdf5Store::open(dir.path(), RUN, Access::Write).unwrap();
        let (mut sample, _) = large_sample(1);
        sample.parts.retain(|part| part.record.name == "grid");
        sample.publish(&store).unwrap();
        sample.assert_whole(&store);
        let path = store.version_path(1).join(rank_file::file_name(0));
        let dataset = hdf5_metno::File::open(&path).unwrap().dataset("ranks/0/grid").unwrap();
        assert!(dataset.read_raw::<f64>().unwrap() == sample.parts[0].values);
        let end = fs::metadata(&path).unwrap().len();
        fs::File::options().write(true).open(&path).unwrap().write_all_at(&[1], end - 1).unwrap();
        assert!(!store.inspect_damage(1).unwrap().is_empty(), "zeros at the end are covered, too");
    }
}

#[test]
fn large_payloads_stand_where_their_memory_does_in_a_page() {
    let rooted = Rooted::new();
    let (mut sample, bytes) = large_sample(2);
    let values = sample.parts.iter().find(|part| part.record.name == "grid").unwrap().values.clone();
    sample.publish(&rooted).unwrap();

    let manifest = rooted.manifest(1).unwrap();
    let frames: Vec<&FrameRecord> = manifest.frames.iter().filter(|frame| frame.variable == "grid").collect();
    let mut payload = Vec::new();
    let mut read = Vec::new();
    for (frame, bytes) in frames.iter().zip(bytes.chunks(bytes.len() / 2)) {
        let offset = frame.place.as_ref().unwrap().offset;
        assert_eq!(offset % 4096, bytes.as_ptr().addr() as u64 % 4096);
        rooted.read(1, frame, &mut payload).unwrap();
        read.extend_from_slice(&payload);
    }
    assert!(read == bytes && rooted.inspect_damage(1).unwrap().is_empty());
    let path = rooted.store.version_path(1).join(rank_file::file_name(0));
    let dataset = hdf5_metno::File::open(&path).unwrap().dataset("ranks/0/grid").unwrap();
    assert!(dataset.read_raw::<f64>().unwrap() == values);

    // What is left out before them is covered by the checksum of the file's structure.
    let before = frames[0].place.as_ref().unwrap().offset - 1;
    fs::File::options().write(true).open(&path).unwrap().write_all_at(&[1], before).unwrap();
    assert!(!rooted.inspect_damage(1).unwrap().is_empty());
}

#[test]
fn missing_rank_is_nan_to_other_readers() {
    let rooted = Rooted::new();
    SampleVersion::new(1, 2).publish(&rooted).unwrap();
    let version = rooted.store.version_path(1);
    fs::remove_file(version.join(rank_file::file_name(1))).unwrap();
    let file = hdf5_metno::File::open(version.join(VERSION_FILE)).unwrap();
    let x = file.dataset("variables/x").unwrap().read_raw::<f64>().unwrap();
    assert!(x[..20].iter().all(|v| !v.is_nan()) && x[20..].iter().all(|v| v.is_nan()));
    let damage = rooted.inspect_damage(1).unwrap();
    assert!(matches!(&damage[0], Damage::File { file, .. } if file == "rank-000001.h5"));
    assert!(damage[1..].iter().all(|d| matches!(d, Damage::Frame { frame, .. } if frame.rank == 1)));
}

/// The manifest's own bits are all flipped where its text is opened.
#[test]
fn every_flipped_bit_of_every_file_is_named_and_never_read() {
    let rooted = Rooted::new();
    SampleVersion::new(9, 1).publish(&rooted).unwrap();
    let whole = rooted.manifest(9).unwrap();
    let version = rooted.store.version_path(9);
    let mut payload = Vec::new();
    for record in &whole.files {
        let manifest = Manifest { files: vec![record.clone()], ..whole.clone() };
        let path = version.join(&record.name);
        let bytes = fs::read(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let at = (bit / 8) as u64;
            file.write_all_at(&[bytes[bit / 8] ^ (1 << (bit % 8))], at).unwrap();
            let found = damage::inspect(&version, &manifest);
            assert_eq!(found.len(), 1, "{} bit {bit}: {found:?}", record.name);
            let hit = whole.frames.iter().find(|f| {
                let place = f.place.as_ref().unwrap();
                place.file == record.name && (place.offset..place.offset + f.payload_bytes).contains(&at)
            });
            match (&found[0], hit) {
                (Damage::Frame { frame, .. }, Some(hit)) => {
                    assert_eq!(**frame, *hit);
                    assert!(rooted.read(9, hit, &mut payload).is_err() && payload.is_empty());
                }
                (Damage::File { file, .. }, None) => assert_eq!(file, &record.name),
                other => panic!("{} bit {bit}: {other:?}", record.name),
            }
            file.write_all_at(&bytes[bit / 8..=bit / 8], at).unwrap();
        }
    }
    assert_eq!(rooted.inspect_damage(9).unwrap(), []);
}

#[test]
fn every_truncation_of_every_file_is_named_and_lost_frames_are_not_read() {
    let rooted = Rooted::new();
    SampleVersion::new(9, 1).publish(&rooted).unwrap();
    let manifest = rooted.manifest(9).unwrap();
    let mut payload = Vec::new();
    for name in manifest.files.iter().map(|f| f.name.as_str()).chain([MANIFEST]) {
        let path = rooted.store.version_path(9).join(name);
        let bytes = fs::read(&path).unwrap();
        for len in (0..bytes.len()).rev() {
            File::options().write(true).open(&path).unwrap().set_len(len as u64).unwrap();
            let damage = rooted.inspect_damage(9).unwrap();
            assert!(!damage.is_empty(), "{name} of {len} bytes");
            let lost =
                |f: &FrameRecord| damage.iter().any(|d| matches!(d, Damage::Frame { frame, .. } if **frame == *f));
            if len % 16 == 0 && name != MANIFEST {
                for frame in &manifest.frames {
                    assert_eq!(rooted.read(9, frame, &mut payload).is_err(), lost(frame), "{name} of {len} bytes");
                }
            }
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(rooted.inspect_damage(9).unwrap(), []);
}

#[test]
fn lost_manifest_is_named() {
    let rooted = Rooted::new();
    SampleVersion::new(9, 1).publish(&rooted).unwrap();
    fs::remove_file(rooted.store.version_path(9).join(MANIFEST)).unwrap();
    assert_eq!(rooted.versions().unwrap(), [9]);
    assert!(matches!(rooted.manifest(9), Err(StoreError::Manifest { version: 9, .. })));
    assert!(matches!(rooted.inspect_damage(9).unwrap()[..], [Damage::Manifest { .. }]));
}

/// Overwriting a run of versions: publish 2, set it aside, publish it again, remove 1, publish 3
/// where 1 was.
fn busy_life(store: &dyn Store) -> Result<(), StoreError> {
    SampleVersion::new(2, 2).publish(store)?;
    store.set_aside_newer(Some(1))?;
    SampleVersion::new(2, 2).publish(store)?;
    store.remove(1)?;
    SampleVersion::new(3, 2).publish(store).map(drop)
}

#[test]
fn killed_before_any_step_only_whole_versions_and_at_most_one_draft_are_left() {
    LAYOUTS[..3].iter().for_each(|&layout| assert_kills_cost_no_version(layout));
}

fn assert_kills_cost_no_version(layout: Layout) {
    let rooted = Rooted::of(layout);
    SampleVersion::new(1, 2).publish(&rooted).unwrap();
    let copies = quick_directory();
    let source = rooted.dir.path().to_owned();
    let target = copies.path().to_owned();
    let steps = Rc::new(RefCell::new(0));
    let count = Rc::clone(&steps);
    let copy = move |_: Step, _: &Path| {
        copy_tree(&source, &target.join(count.borrow().to_string()));
        *count.borrow_mut() += 1;
        Ok(())
    };
    watched(copy, || busy_life(&rooted)).unwrap();
    let steps = *steps.borrow();
    assert!(steps > 60, "{steps} steps seen");
    for step in 0..steps {
        let store = Hdf5Store::open(copies.path().join(step.to_string()), RUN, Access::Write).unwrap();
        let versions = store.versions().unwrap();
        assert!(!versions.is_empty(), "before step {step}");
        versions.iter().for_each(|&version| SampleVersion::new(version, 2).assert_whole(&store));
        let left = entries(&store.root).unwrap();
        assert!(left.iter().all(|name| is_ours(name)), "before step {step}: {left:?}");
        assert!(left.iter().filter(|name| name.starts_with("draft-")).count() <= 1, "before step {step}: {left:?}");
        store.discard_drafts().unwrap();
        SampleVersion::new(7, 2).publish(&store).unwrap();
    }
}

#[test]
fn failed_step_leaves_whole_versions_and_a_store_that_goes_on() {
    LAYOUTS[..3].iter().for_each(|&layout| assert_failures_cost_no_version(layout));
}

fn assert_failures_cost_no_version(layout: Layout) {
    for failing in 0.. {
        let rooted = Rooted::of(layout);
        SampleVersion::new(1, 2).publish(&rooted).unwrap();
        let steps = Rc::new(RefCell::new(0));
        let count = Rc::clone(&steps);
        let fail = move |_: Step, _: &Path| {
            *count.borrow_mut() += 1;
            if *count.borrow() == failing + 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        };
        let result = watched(fail, || busy_life(&rooted));
        let has_failed = *steps.borrow() > failing;
        let versions = rooted.versions().unwrap();
        assert!(!versions.is_empty());
        versions.iter().for_each(|&version| SampleVersion::new(version, 2).assert_whole(&rooted));
        let mut next = SampleVersion::new(8, 2);
        next.publish(&rooted).unwrap();
        next.assert_whole(&rooted);
        match result {
            Err(StoreError::Full { .. }) => {}
            // Some steps have another way.
            Ok(()) if versions == [2, 3] && has_failed => {}
            Ok(()) if versions == [2, 3] => return assert!(failing > 60, "{failing} steps failed"),
            other => panic!("step {failing}: {other:?}, versions {versions:?}"),
        }
    }
}

#[test]
fn version_has_a_date_while_its_files_have_their_lengths() {
    let rooted = Rooted::new();
    SampleVersion::new(3, 1).publish(&rooted).unwrap();
    let published_at = |version| rooted.as_files().unwrap().published_at(version);
    assert!(published_at(3).is_some_and(|at| at.elapsed().unwrap_or_default().as_secs() < 3600));
    assert_eq!(published_at(4), None);
    let first = rooted.store.version_path(3).join(&rooted.manifest(3).unwrap().files[0].name);
    File::options().write(true).open(first).unwrap().set_len(1).unwrap();
    assert_eq!(published_at(3), None);
}

/// A run that was killed while it wrote its first status was refused from then on.
#[test]
fn folder_with_nothing_but_a_status_or_its_draft_is_a_run() {
    for name in [STATUS, "status.json.new", HISTORY] {
        let dir = quick_directory();
        fs::create_dir(dir.path().join(RUN)).unwrap();
        fs::write(dir.path().join(RUN).join(name), "{}").unwrap();
        assert_eq!(Hdf5Store::names(dir.path()).unwrap(), [RUN]);
        Hdf5Store::open(dir.path(), RUN, Access::Write).unwrap();
        assert_eq!(dir.path().join(RUN).join(name).exists(), name != "status.json.new");
    }
}

/// `recoup verify` next to a run called 37 of 3,186 versions damaged that the run had retired.
#[test]
fn a_version_that_goes_while_it_is_read_is_missing_and_not_damaged() {
    let rooted = Rooted::new();
    let publish = |version| SampleVersion::new(version, 1).publish(&rooted).unwrap();
    let gone = |error| matches!(error, Err(StoreError::Missing { version: 1 }));
    publish(1);
    let damaged = || vec![Damage::Manifest { what: "torn".to_owned() }];
    let going = |_: &Path| {
        rooted.store.remove(1).unwrap();
        Ok(damaged())
    };
    assert!(gone(rooted.store.read_version(1, going, Vec::is_empty)));
    // Another one of its number is read instead, and damage that stays is damage.
    publish(1);
    let mut looks = 0;
    let coming = |_: &Path| {
        looks += 1;
        if looks == 1 {
            rooted.store.remove(1).unwrap();
            publish(1);
        }
        Ok(if looks == 1 { damaged() } else { Vec::new() })
    };
    assert_eq!(rooted.store.read_version(1, coming, Vec::is_empty).unwrap(), []);
    assert_eq!(rooted.store.read_version(1, |_| Ok(damaged()), Vec::is_empty).unwrap(), damaged());
}

/// A pipe in the place of the lock held up whoever opened the directory.
#[test]
fn a_pipe_as_lock_or_status_is_refused_at_once() {
    let dir = quick_directory();
    let folder = dir.path().join(RUN);
    fs::create_dir(&folder).unwrap();
    for name in ["lock", STATUS] {
        rustix::fs::mknodat(rustix::fs::CWD, folder.join(name), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }
    let said = Hdf5Store::open(dir.path(), RUN, Access::Write).unwrap_err().to_string();
    assert!(said.contains("a file expected"), "{said}");
    assert!(Hdf5Store::read_status(&folder).unwrap_err().to_string().contains("a file expected"));
}

#[test]
fn every_byte_is_synced_before_the_rename_and_the_rename_after_it() {
    [OWN_FILES, PARTS].into_iter().for_each(assert_synced);
}

fn assert_synced(layout: Layout) {
    let rooted = Rooted::of(layout);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    let watch = move |step: Step, path: &Path| {
        log.borrow_mut().push((step, path.to_owned()));
        Ok(())
    };
    watched(watch, || SampleVersion::new(1, 2).publish(&rooted)).unwrap();
    let seen = seen.borrow();
    let last = |wanted: Step, path: &Path| seen.iter().rposition(|(step, p)| *step == wanted && p == path);
    let draft = rooted.store.drafts.place_of(1);
    let version = rooted.store.version_path(1);
    let rename = last(Step::Rename, &version).unwrap();
    let written: Vec<&PathBuf> = seen.iter().filter(|(step, _)| *step == Step::Write).map(|(_, p)| p).collect();
    assert!(written.iter().all(|path| {
        let write = last(Step::Write, path).unwrap();
        let sync = last(Step::SyncFile, path).unwrap();
        write < sync && sync < last(Step::SyncDirectory, &draft).unwrap()
    }));
    assert!(last(Step::SyncDirectory, &draft).unwrap() < rename);
    assert!(last(Step::SyncDirectory, &rooted.store.root).unwrap() > rename);
    let manifest = last(Step::CreateFile, &draft.join(MANIFEST)).unwrap();
    let others = seen.iter().enumerate().filter(|(_, (step, _))| *step == Step::CreateFile).map(|(i, _)| i);
    assert!(others.max() == Some(manifest), "the manifest is written last");
}

/// A mounted file system of 2 MiB, or none where this process may not mount.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(dir.path());
        mount.output().is_ok_and(|done| done.status.success()).then(|| Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(self.0.path()).status().ok();
    }
}

#[test]
fn full_device_costs_the_draft_and_nothing_else() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("SKIPPED: a small file system can be mounted by root only");
        return;
    };
    let store = Hdf5Store::open(disk.0.path(), RUN, Access::Write).unwrap();
    let mut kept = SampleVersion::new(1, 2);
    kept.publish(&store).unwrap();
    let ballast = disk.0.path().join("ballast");
    // Leave room for less and less, so that the device fills in payload, structure, version file
    // and manifest.
    for free in (0..20).map(|pages| pages * 4096) {
        let file = File::create(&ballast).unwrap();
        let used: u64 = (0_u64..).map_while(|i| file.write_at(&[1; 4096], i * 4096).ok()).map(|n| n as u64).sum();
        file.set_len(used - free).unwrap();
        let result = SampleVersion::new(2, 2).publish(&store);
        match result {
            Ok(_) => store.remove(2).unwrap(),
            Err(StoreError::Full { .. }) => {}
            Err(other) => panic!("{free} bytes free: {other}"),
        }
        assert_eq!(store.versions().unwrap(), [1]);
        kept.assert_whole(&store);
        store.discard_drafts().unwrap();
        fs::remove_file(&ballast).unwrap();
    }
    let mut next = SampleVersion::new(2, 2);
    next.publish(&store).unwrap();
    next.assert_whole(&store);
}

#[test]
fn second_writer_is_refused_and_readers_are_not() {
    let rooted = Rooted::new();
    let mut sample = SampleVersion::new(1, 1);
    sample.publish(&rooted).unwrap();
    let open = |access| Hdf5Store::open(rooted.dir.path(), RUN, access);
    assert!(matches!(open(Access::Write), Err(StoreError::Busy { .. })));
    let reader = open(Access::Read).unwrap();
    sample.assert_whole(&reader);
    assert!(matches!(reader.begin(2, 0).err(), Some(StoreError::Io { .. })));
    assert!(matches!(reader.remove(1), Err(StoreError::Io { .. })));
    let Rooted { store, dir } = rooted;
    drop(store);
    let store = Hdf5Store::open(dir.path(), RUN, Access::Write).unwrap();
    sample.assert_whole(&store);
}

#[test]
fn a_lock_that_is_a_link_is_refused_and_what_it_leads_to_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    fs::create_dir(dir.path().join(RUN)).unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join(RUN).join(LOCK)).unwrap();
    let refusal = Hdf5Store::open(dir.path(), RUN, Access::Write).unwrap_err();
    assert!(refusal.to_string().contains("lock"), "{refusal}");
    assert!(!target.exists());
}

#[test]
fn directory_of_something_else_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str, access| Hdf5Store::open(dir.path(), name, access);
    fs::create_dir(dir.path().join("photos")).unwrap();
    fs::write(dir.path().join("photos/cat.jpg"), "meow").unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(matches!(open("photos", Access::Write), Err(StoreError::NotOurs { .. })));
    assert!(matches!(open("file", Access::Write), Err(StoreError::NotOurs { .. })));
    assert!(matches!(open("../up", Access::Write), Err(StoreError::NotOurs { .. })));
    assert!(matches!(open("none", Access::Read), Err(StoreError::Io { .. })));
    assert!(dir.path().join("photos/cat.jpg").exists());
    drop(open("solve", Access::Write).unwrap());
    assert_eq!(Hdf5Store::names(dir.path()).unwrap(), ["solve"]);
}

#[test]
fn versions_set_aside_are_listed_and_removed() {
    let rooted = Rooted::new();
    for _ in 0..2 {
        SampleVersion::new(4, 1).publish(&rooted).unwrap();
        rooted.set_aside_newer(None).unwrap();
    }
    assert_eq!(rooted.store.set_aside().unwrap(), ["v000000000004", "v000000000004-1"]);
    rooted.store.remove_set_aside().unwrap();
    assert_eq!(rooted.store.set_aside().unwrap(), [] as [&str; 0]);
}
