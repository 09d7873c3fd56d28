//! Does a version that holds only what changed come back bit for bit, and cost only what changed?

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::comm::Threads;
use recoup::core::{
    CodecId, Comm, Distribution, ElementType, IncrementMode, Manifest, Plan, Registered, Role, Scheme, Store, Values,
    ValuesMut, Variable, VariableMut, Zones,
};
use recoup::io::{Access, Hdf5Store, MemoryStore};
use recoup::pipeline::{ChainReader, Codecs, Outcome, PipelineError, Session, Variables, WriteTable};
use recoup_testkit::crashing_store::{Crash, CrashingStore};
use recoup_testkit::{Random, progress};

use crate::support::plan;

/// Doubles of a zone of 64 KiB.
const ZONE: usize = 8192;

/// A program that writes a few values here and there, and may announce what it writes.
struct SparseWriter {
    doubles: Vec<f64>,
    integers: Vec<i64>,
    bytes: Vec<u8>,
    /// Tables of announced writes, one for each variable.
    tables: Option<[WriteTable; 3]>,
}

impl SparseWriter {
    /// Doubles of two frames, the last of them padded; integers and bytes of a few zones.
    fn new(announces: bool) -> Self {
        let doubles = (0..(1 << 20) + 12_345).map(|i| f64::from(i).sqrt()).collect::<Vec<f64>>();
        let integers = (0..40_000).collect::<Vec<i64>>();
        let bytes = vec![7; 300_001];
        let table = |len, element| WriteTable::new(len, element);
        let tables = announces.then(|| {
            [
                table(doubles.len(), ElementType::F64),
                table(integers.len(), ElementType::I64),
                table(bytes.len(), ElementType::Bytes),
            ]
        });
        Self { doubles, integers, bytes, tables }
    }

    fn touch(&self, variable: usize, range: Range<usize>) {
        self.tables.iter().for_each(|tables| tables[variable].touch(range.clone()));
    }

    /// Writes up to a dozen runs, some of them with the values that are there.
    fn write(&mut self, random: &mut Random) {
        for _ in 0..random.below(12) {
            let start = random.below(self.doubles.len());
            let end = (start + 1 + random.below(20_000)).min(self.doubles.len());
            if random.below(4) > 0 {
                self.doubles[start..end].iter_mut().for_each(|value| *value = f64::from_bits(random.bits()));
            }
            self.touch(0, start..end);
        }
        if random.below(3) == 0 {
            let at = random.below(self.integers.len());
            self.integers[at] = random.bits() as i64;
            self.touch(1, at..at + 1);
        }
        if random.below(3) == 0 {
            let last = self.bytes.len() - 1;
            self.bytes[last] = random.bits() as u8;
            self.touch(2, last..last + 1);
        }
    }

    fn bits(&self) -> (Vec<u64>, Vec<i64>, Vec<u8>) {
        (self.doubles.iter().map(|value| value.to_bits()).collect(), self.integers.clone(), self.bytes.clone())
    }
}

impl Registered for SparseWriter {
    fn variables(&self) -> Vec<Variable<'_>> {
        let lent = [
            ("doubles", Values::F64(&self.doubles)),
            ("integers", Values::I64(&self.integers)),
            ("bytes", Values::Bytes(&self.bytes)),
        ];
        let variable = |(at, (name, values))| {
            let zones = self.tables.as_ref().map(|tables| &tables[at] as &dyn Zones);
            Variable { zones, ..Variable::new(name, Role::Dynamic, values, Distribution::RankLocal) }
        };
        lent.into_iter().enumerate().map(variable).collect()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![
            VariableMut::new("doubles", ValuesMut::F64(&mut self.doubles)),
            VariableMut::new("integers", ValuesMut::I64(&mut self.integers)),
            VariableMut::new("bytes", ValuesMut::Bytes(&mut self.bytes)),
        ]
    }
}

fn plan_of(codec: CodecId) -> Plan {
    Plan { codec, ..plan(Scheme::Exact) }
}

fn session(dir: &Path, codec: CodecId, mode: IncrementMode, key_every: usize) -> Session {
    recoup::open(dir).plan(plan_of(codec)).increments(mode).key_every(key_every).keep(100).build().unwrap()
}

fn save(session: &mut Session, codec: CodecId, version: u64, owner: &dyn Registered) {
    session.checkpoint(plan_of(codec), progress(version), &[owner]).unwrap();
}

fn reading(dir: &Path) -> Hdf5Store {
    Hdf5Store::open(dir, "solve", Access::Read).unwrap()
}

fn version_dir(dir: &Path, version: u64) -> PathBuf {
    dir.join("solve").join(format!("v{version:012}"))
}

/// Frames of a version that are increments, and all its frames.
fn increments(manifest: &Manifest) -> (usize, usize) {
    let increments = manifest.frames.iter().filter(|frame| frame.codec == CodecId::Increment).count();
    (increments, manifest.frames.len())
}

/// Twenty versions of a program that writes here and there, each of which a fresh process restores.
#[test]
fn every_version_of_a_sparse_writer_comes_back_bit_for_bit() {
    let ways = [
        (IncrementMode::Off, false),
        (IncrementMode::Hash, false),
        (IncrementMode::Hash, true),
        (IncrementMode::Auto, false),
        (IncrementMode::Auto, true),
    ];
    for (mode, announces) in ways {
        for (codec, seed) in [(CodecId::Raw, 1), (CodecId::Zstd, 2)] {
            let at = format!("increments {mode}, announced: {announces}, codec {codec}, seed {seed}");
            println!("{at}");
            let dir = tempfile::tempdir().unwrap();
            let mut random = Random(seed);
            let mut writer = SparseWriter::new(announces);
            let mut states = BTreeMap::new();
            let mut saving = session(dir.path(), codec, mode, 8);
            for version in 1..=20 {
                writer.write(&mut random);
                save(&mut saving, codec, version, &writer);
                states.insert(version, writer.bits());
            }
            saving.wait().unwrap();
            assert!(saving.take_outcomes().iter().all(|outcome| matches!(outcome, Outcome::Saved(_))), "{at}");
            drop(saving);
            let store = reading(dir.path());
            for version in 1..=20 {
                let is_key = mode == IncrementMode::Off || version % 8 == 1;
                let (increments, frames) = increments(&store.manifest(version).unwrap());
                // Whether hashes pay is measured.
                if mode != IncrementMode::Auto || announces {
                    assert_eq!(increments, if is_key { 0 } else { frames }, "{at}, version {version}");
                }
            }
            for version in (1..=20).rev().step_by(3) {
                let mut restored = SparseWriter::new(false);
                let found = session(dir.path(), codec, mode, 8).restore_with(&mut [&mut restored]).unwrap().unwrap();
                assert_eq!(found.version, version, "{at}");
                assert!(restored.bits() == states[&version], "{at}, version {version}");
                for newest in (version.saturating_sub(2).max(1)..=version).rev() {
                    fs::remove_dir_all(version_dir(dir.path(), newest)).unwrap();
                }
            }
        }
    }
}

/// One per cent of the zones of a vector changes: the next version takes at most a twentieth of the
/// bytes. That is 1 % of the values, and a record and a header for each of eight frames.
#[test]
fn a_version_with_one_zone_in_a_hundred_dirty_takes_a_twentieth_of_the_bytes() {
    const ZONES: usize = 1024;
    for (mode, announces) in [(IncrementMode::Hash, false), (IncrementMode::Auto, true)] {
        let mut x: Vec<f64> = (0..ZONES * ZONE).map(|i| (i as f64).sqrt()).collect();
        let table = WriteTable::new(x.len(), ElementType::F64);
        let store = Arc::new(MemoryStore::new());
        let builder = recoup::open("unused").plan(plan_of(CodecId::Raw)).increments(mode).keep(9);
        let mut session = builder.build_with(store.clone(), &recoup::comm::Solo).unwrap();
        for version in 1..=3 {
            for zone in (version as usize..ZONES).step_by(100) {
                x[zone * ZONE + 5] += 1.0;
                table.touch(zone * ZONE + 5..zone * ZONE + 6);
            }
            let zones = announces.then_some(&table);
            save(&mut session, CodecId::Raw, version, &OneVector { x: &mut x, zones });
        }
        session.wait().unwrap();
        let bytes = |version| {
            let manifest = store.manifest(version).unwrap();
            manifest.payload_bytes() + serde_json::to_vec(&manifest).unwrap().len() as u64
        };
        let whole = bytes(1);
        for version in 2..=3 {
            let share = bytes(version) as f64 / whole as f64;
            println!("announced: {announces}, version {version}: {:.3} % of the bytes", 100.0 * share);
            assert!(share <= 0.05, "announced: {announces}, version {version}: {share}");
        }
    }
}

/// One vector.
struct OneVector<'a> {
    x: &'a mut [f64],
    zones: Option<&'a WriteTable>,
}

impl Registered for OneVector<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        let zones = self.zones.map(|table| table as &dyn Zones);
        let x = Variable::new("x", Role::Dynamic, Values::F64(self.x), Distribution::RankLocal);
        vec![Variable { zones, ..x }]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("x", ValuesMut::F64(self.x))]
    }
}

/// The values of a vector of three zones after `version` steps, each of which writes one value.
fn state(version: u64) -> Vec<f64> {
    let mut x: Vec<f64> = (0..3 * ZONE).map(|i| (i as f64).sqrt()).collect();
    (1..=version as usize).for_each(|step| x[step % 3 * ZONE + step] = step as f64);
    x
}

/// A session whose versions are increments, with a key every four versions.
fn increments_on(store: Arc<dyn Store>, keep: usize) -> Result<Session, recoup::Error> {
    let builder = recoup::open("unused").plan(plan_of(CodecId::Raw)).increments(IncrementMode::Hash);
    builder.key_every(4).keep(keep).build_with(store, &recoup::comm::Solo)
}

/// Saves versions of [`state`], waiting for each.
fn save_states(session: &mut Session, versions: impl IntoIterator<Item = u64>) -> Vec<Outcome> {
    for version in versions {
        let mut x = state(version);
        save(session, CodecId::Raw, version, &OneVector { x: &mut x, zones: None });
        session.wait().unwrap();
    }
    session.take_outcomes()
}

/// Every version that is there decodes to its state, bit for bit.
fn assert_whole(store: &dyn Store, what: &str) -> Vec<u64> {
    let mut reader = ChainReader::new(store, Codecs::shared(recoup::compress::codec, 1));
    for version in store.versions().unwrap() {
        let manifest = store.manifest(version).unwrap();
        assert_eq!(store.inspect_damage(version).unwrap(), [], "{what}");
        let mut x = vec![0.0; 3 * ZONE];
        let read = reader.frame(version, &manifest.variables[0], &manifest.frames[0], ValuesMut::F64(&mut x));
        read.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(x == state(version), "{what}: version {version}");
    }
    store.versions().unwrap()
}

/// A process continues from what it finds and saves up to version 7. Returns the operations its
/// store was asked for.
fn live(dir: &Path, crash: Crash) -> u64 {
    let store = Arc::new(CrashingStore::new(writing(dir), crash));
    if let Ok(mut session) = increments_on(store.clone(), 2) {
        let mut x = vec![0.0; 3 * ZONE];
        let Ok(restored) = session.restore_with(&mut [&mut OneVector { x: &mut x, zones: None }]) else {
            return store.operations();
        };
        let version = restored.map_or(0, |restored| restored.version);
        assert!(version == 0 || x == state(version), "{crash:?}: version {version}");
        save_states(&mut session, version + 1..=7);
    }
    store.operations()
}

fn writing(dir: &Path) -> Hdf5Store {
    Hdf5Store::open(dir, "solve", Access::Write).unwrap()
}

#[test]
fn increments_survive_a_store_that_fails_at_any_operation() {
    let begin = || {
        let dir = tempfile::tempdir().unwrap();
        save_states(&mut increments_on(Arc::new(writing(dir.path())), 2).unwrap(), 1..=3);
        dir
    };
    let operations = live(begin().path(), Crash::Never);
    assert!(operations > 20, "{operations} operations: too few for four versions");
    for n in 0..operations {
        for crash in [Crash::From(n), Crash::At(n), Crash::FullFrom(n)] {
            let dir = begin();
            live(dir.path(), crash);
            let left = assert_whole(&reading(dir.path()), &format!("{crash:?}"));
            assert!(left.last() >= Some(&3), "{crash:?}: {left:?}");
            live(dir.path(), Crash::Never);
            let left = assert_whole(&reading(dir.path()), &format!("after {crash:?}"));
            assert_eq!(left.last(), Some(&7), "{crash:?}");
        }
    }
}

/// Announced writes are asked for since the versions that may become the parent: one that failed is
/// none, and what it would have held is in the next one.
#[test]
fn writes_of_a_version_that_failed_are_in_the_next_one() {
    let count = |crash| {
        let store = Arc::new(CrashingStore::new(MemoryStore::new(), crash));
        let mut x = state(0);
        let table = WriteTable::new(x.len(), ElementType::F64);
        let mut session = increments_on(store.clone(), 100).unwrap();
        for version in 1..=4 {
            let at = version as usize % 3 * ZONE + version as usize;
            x[at] = version as f64;
            table.touch(at..at + 1);
            save(&mut session, CodecId::Raw, version, &OneVector { x: &mut x, zones: Some(&table) });
            session.wait().unwrap();
        }
        drop(session);
        let operations = store.operations();
        assert_whole(store.as_ref(), &format!("{crash:?}"));
        operations
    };
    let operations = count(Crash::Never);
    // Operation 0 opens the session.
    for n in 1..operations {
        count(Crash::At(n));
    }
}

#[test]
fn damage_in_a_parent_costs_the_versions_that_depend_on_it_by_name() {
    for damaged in 1..=4 {
        let dir = tempfile::tempdir().unwrap();
        save_states(&mut increments_on(Arc::new(writing(dir.path())), 100).unwrap(), 1..=4);
        let manifest = reading(dir.path()).manifest(damaged).unwrap();
        let place = manifest.frames[0].place.clone().unwrap();
        let file = version_dir(dir.path(), damaged).join(place.file);
        let mut bytes = fs::read(&file).unwrap();
        bytes[place.offset as usize + 3] ^= 4;
        fs::write(&file, bytes).unwrap();
        let mut x = vec![0.0; 3 * ZONE];
        let mut session = increments_on(Arc::new(writing(dir.path())), 100).unwrap();
        let restored = session.restore_with(&mut [&mut OneVector { x: &mut x, zones: None }]);
        let skipped = match restored {
            Ok(restored) => {
                let restored = restored.unwrap();
                assert_eq!(restored.version, damaged - 1);
                assert!(x == state(damaged - 1));
                restored.skipped
            }
            Err(PipelineError::NoUsable { versions }) if damaged == 1 => versions,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(skipped.len() as u64, 5 - damaged);
        let blamed: Vec<String> = skipped.into_iter().flat_map(|skipped| skipped.damage).collect();
        assert!(blamed.iter().all(|line| line.contains(&format!("version {damaged}"))), "{blamed:?}");
    }
}

/// Two ranks save increments; three ranks restore them by their global rows, and continue with a
/// version that stands alone.
#[test]
fn increments_come_back_on_another_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let part = |comm: &dyn Comm| {
        let rows = |rank: usize| rank * 3 * ZONE / comm.size();
        rows(comm.rank())..rows(comm.rank() + 1)
    };
    let step = |comm: &dyn Comm, version: u64, session: &mut Session| {
        let mut x = state(version)[part(comm)].to_vec();
        let rows = Distribution::Rows { first: part(comm).start as u64, global: 3 * ZONE as u64 };
        let owner = Variables::new().with("x", Role::Dynamic, ValuesMut::F64(&mut x), rows);
        session.checkpoint(plan_of(CodecId::Raw), progress(version), &[&owner]).unwrap();
        session.wait().unwrap();
    };
    let builder = || recoup::open(dir.path()).plan(plan_of(CodecId::Raw)).increments(IncrementMode::Hash).keep(100);
    Threads::launch(2, |comm| {
        let mut session = builder().build_on(&comm).unwrap();
        (1..=3).for_each(|version| step(&comm, version, &mut session));
    });
    assert_eq!(increments(&reading(dir.path()).manifest(3).unwrap()), (2, 2));
    Threads::launch(3, |comm| {
        let mut session = builder().build_on(&comm).unwrap();
        let mut x = vec![0.0; part(&comm).len()];
        let rows = Distribution::Rows { first: part(&comm).start as u64, global: 3 * ZONE as u64 };
        let mut owner = Variables::new().with("x", Role::Dynamic, ValuesMut::F64(&mut x), rows);
        assert_eq!(session.restore_with(&mut [&mut owner]).unwrap().unwrap().version, 3);
        drop(owner);
        assert!(x == state(3)[part(&comm)]);
        step(&comm, 4, &mut session);
        step(&comm, 5, &mut session);
    });
    assert_eq!(increments(&reading(dir.path()).manifest(4).unwrap()), (0, 3));
    // A part is one zone, and one of the parts changed.
    assert_eq!(increments(&reading(dir.path()).manifest(5).unwrap()), (2, 3));
}

/// Increments in node memory and behind it: both give the newest version back.
#[test]
fn increments_come_back_from_memory_and_from_the_directory_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let memory_dir = folder.path().join("memory");
    fs::create_dir(&memory_dir).unwrap();
    let dir = folder.path().join("ckpt");
    let builder = |tiers: &str| {
        let builder = recoup::open(&dir).plan(plan_of(CodecId::Raw)).increments(IncrementMode::Hash).keep(3);
        let options = recoup::TierOptions {
            memory_dir: memory_dir.clone(),
            pfs_every: recoup::PfsEvery::Given(1),
            drain: Some(recoup::Drain::Wait),
            ..recoup::TierOptions::from(tiers.parse::<recoup::cache::TierList>().unwrap())
        };
        builder.tier_options(options)
    };
    let mut session = builder("memory,pfs").build().unwrap();
    save_states(&mut session, 1..=6);
    session.finish().unwrap();
    drop(session);
    assert_eq!(increments(&reading(&dir).manifest(6).unwrap()), (1, 1));
    for without_memory in [false, true] {
        if without_memory {
            builder("memory,pfs").forget_memory(&recoup::comm::Solo).unwrap();
        }
        let mut x = vec![0.0; 3 * ZONE];
        let mut session = builder("memory,pfs").build().unwrap();
        let restored = session.restore_with(&mut [&mut OneVector { x: &mut x, zones: None }]).unwrap().unwrap();
        assert_eq!(restored.version, 6);
        assert!(x == state(6), "without memory: {without_memory}");
    }
}
