//! Is every file that was changed at random read as it was written, passed over for an older one,
//! or refused?
//!
//! Kinds: files of versions in a directory, parts of versions in memory, versioned memories, states
//! of a tape. The suite of the codecs changes frames under their checksums, and the tests of the
//! program and of the VELOC interface change files under whole processes.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use recoup::Builder;
use recoup::comm::Solo;
use recoup::compress::Qb;
use recoup::core::{Bound, CodecId, Plan, Scheme, Values, ValuesMut};
use recoup::io::{Access, Hdf5Store};
use recoup::memory::{MediumKind, Memory, MemoryOptions, MemoryReader, VersionedArray};
use recoup::model::Rng;
use recoup::pipeline::Session;
use recoup::tape::{Tape, TapeBuilder};
use recoup_testkit::doubles;
use recoup_testkit::mutation::MutatedFolder;

use crate::support::{Problem, fixed, plan, steps};

const SEED: u64 = 48;
/// Names the variable with another number of cases for the long test.
const CASES: &str = "RECOUP_MUTATED_FILES";
/// Time of a case, at most, in the long test.
const LIMIT: Duration = Duration::from_secs(60);

/// Files of one kind that are whole, and the check of what is read from changed ones.
trait MutatedKind {
    /// The folder that holds them.
    fn folder(&self) -> PathBuf;

    /// Reads all that changed files give out.
    ///
    /// # Panics
    /// When values come back that were never there.
    fn check(&self);
}

/// Changes a file of a kind in each case, and puts all of them back after it.
fn mutate(kind: &dyn MutatedKind, name: &str, cases: u64, done: &AtomicU64) {
    let files = MutatedFolder::of(&kind.folder());
    for case in 0..cases {
        let mut rng = Rng::new(SEED ^ (case << 8));
        let path = files.mutate(|| rng.next_u64());
        if catch_unwind(AssertUnwindSafe(|| kind.check())).is_err() {
            panic!("{name}, case {case} of seed {SEED}: {} was changed", path.display());
        }
        files.put_back();
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// A folder in memory where there is some: order and content are tested here, not durability.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Versions 5 and 10 of a small solve, in a directory or in memory tiers.
struct SavedVersions {
    problem: Problem,
    folder: tempfile::TempDir,
    plan: Plan,
    tiers: Option<&'static str>,
    /// The manifests are in parts.
    in_parts: bool,
    /// The values that a sound restore gives back, by version.
    restored: BTreeMap<u64, Vec<u64>>,
}

impl SavedVersions {
    fn new(plan: Plan, tiers: Option<&'static str>, in_parts: bool) -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join("memory")).unwrap();
        let mut saved = Self { problem: Problem::poisson(4), folder, plan, tiers, in_parts, restored: BTreeMap::new() };
        let mut restored = BTreeMap::new();
        for last in [5, 10] {
            let mut session = saved.open();
            let mut solver = saved.problem.solver("jacobi").unwrap();
            steps(solver.as_mut(), &mut session, last);
            drop((session, solver));
            restored.insert(last, saved.restore().unwrap().1);
        }
        saved.restored = restored;
        saved
    }

    fn builder(&self) -> Builder {
        let builder = self.problem.builder(&self.folder.path().join("versions"), self.plan, 5).synchronous(true);
        let Some(tiers) = self.tiers else { return builder };
        let list: recoup::cache::TierList = tiers.parse().unwrap();
        let memory_dir = self.folder.path().join("memory");
        builder.tier_options(recoup::TierOptions { memory_dir, ..recoup::TierOptions::from(list) })
    }

    fn open(&self) -> Session {
        if !self.in_parts {
            return self.builder().build().unwrap();
        }
        let store = Hdf5Store::open(self.folder.path().join("versions"), "solve", Access::Write).unwrap();
        let store = store.with_ranks_per_file(2).with_parts_from(1);
        self.builder().build_with(Arc::new(store), &Solo).unwrap()
    }

    fn restore(&self) -> Option<(u64, Vec<u64>)> {
        let mut session = self.open();
        let mut solver = self.problem.solver("jacobi").unwrap();
        let version = session.restore(solver.as_mut()).unwrap()?.version;
        let values = doubles(solver.variables()[0].values);
        Some((version, values.into_iter().map(f64::to_bits).collect()))
    }
}

impl MutatedKind for SavedVersions {
    fn folder(&self) -> PathBuf {
        // The directory holds the lock of the run as well, and memory marks of its process.
        self.folder.path().join(if self.tiers.is_some() { "memory" } else { "versions/solve" })
    }

    fn check(&self) {
        let Some((version, values)) = self.restore() else { return };
        assert!(self.restored.get(&version) == Some(&values), "version {version} has other values");
    }
}

/// A file of a versioned memory with three kept versions of five.
struct SavedMemory {
    folder: tempfile::TempDir,
    /// The values of all five.
    committed: BTreeMap<u64, Vec<u64>>,
}

const MEMORY: MemoryOptions = MemoryOptions { keep: 3, block_bytes: 512, medium: MediumKind::File };

impl SavedMemory {
    fn new() -> Self {
        let folder = folder();
        let mut memory = Memory::open(&folder.path().join("x.memory"), MEMORY).unwrap();
        let mut field = VersionedArray::new("field", (0..300_u64).collect());
        let mut committed = BTreeMap::new();
        for step in 1..=5 {
            field.write(40 * step..40 * step + 30).fill(step as u64);
            committed.insert(memory.commit(step as u64, &mut [&mut field]).unwrap(), field.to_vec());
        }
        Self { folder, committed }
    }
}

impl MutatedKind for SavedMemory {
    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn check(&self) {
        let path = self.folder.path().join("x.memory");
        let versions = MemoryReader::open(&path).and_then(|reader| Ok((reader.versions()?.0, reader)));
        if let Ok((versions, reader)) = versions {
            for number in versions.iter().map(|version| version.number) {
                let values = reader.view(number).and_then(|view| view.values::<u64>("field"));
                assert!(values.is_err() || self.committed.get(&number) == values.as_ref().ok(), "version {number}");
            }
        }
        // A writer continues from what is whole, and what it commits is there.
        let Ok(mut memory) = Memory::open(&path, MEMORY) else { return };
        let mut field = VersionedArray::<u64>::zeros("field", 0);
        if let Ok(Some(version)) = memory.restore_newest(&mut [&mut field]) {
            assert!(self.committed.get(&version.number).is_some_and(|values| *values == field[..]), "{version:?}");
        }
        let mut other = VersionedArray::new("field", vec![7_u64; 100]);
        if let Ok(number) = memory.commit(u64::MAX, &mut [&mut other]) {
            assert_eq!(memory.view(number).unwrap().values::<u64>("field").unwrap(), other[..]);
        }
    }
}

/// States of a tape in its spill folder, coded in chains.
struct SavedTape {
    folder: tempfile::TempDir,
    states: Vec<Vec<f64>>,
}

impl SavedTape {
    fn new() -> Self {
        let folder = folder();
        let values = |step: u64| (0..200).map(|i| (f64::from(i) * 0.1 + step as f64 * 0.01).sin()).collect();
        let mut tape = Self::builder(folder.path()).build().unwrap();
        let states: Vec<Vec<f64>> = (0..6).map(values).collect();
        (0..).zip(&states).for_each(|(step, state)| tape.push(step, Values::F64(state)).unwrap());
        tape.save().unwrap();
        Self { folder, states }
    }

    fn builder(folder: &Path) -> TapeBuilder {
        Tape::builder().spill(folder).codec(Arc::new(Qb::default()), Bound::Lossless).key_every(3).threads(1)
    }
}

impl MutatedKind for SavedTape {
    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn check(&self) {
        let Ok(mut tape) = Self::builder(self.folder.path()).reopen().build() else { return };
        for step in tape.steps().unwrap() {
            let mut state = vec![0.0; 200];
            if tape.peek(step, ValuesMut::F64(&mut state)).is_ok() {
                assert!(self.states.get(step as usize) == Some(&state), "step {step} has other values");
            }
        }
    }
}

/// Changes this number of files of all kinds together.
fn mutate_all_kinds(cases: u64, done: &AtomicU64) {
    let saved = |plan, tiers| Box::new(SavedVersions::new(plan, tiers, false)) as Box<dyn MutatedKind>;
    let mut kinds: Vec<(String, Box<dyn MutatedKind>)> = vec![
        ("exact versions".to_owned(), saved(plan(Scheme::Exact), None)),
        ("manifests in parts".to_owned(), Box::new(SavedVersions::new(plan(Scheme::Exact), None, true))),
        ("versions in memory".to_owned(), saved(plan(Scheme::Exact), Some("memory"))),
        ("versions in memory and behind it".to_owned(), saved(plan(Scheme::Lossless), Some("memory,pfs"))),
        ("versioned memory".to_owned(), Box::new(SavedMemory::new())),
        ("tape".to_owned(), Box::new(SavedTape::new())),
    ];
    for codec in [CodecId::Qb, CodecId::Pco, CodecId::Zfp] {
        kinds.push((format!("versions coded by {}", codec.name()), saved(fixed(codec, 1e-9), None)));
    }
    let share = cases.div_ceil(kinds.len() as u64);
    for (name, kind) in kinds {
        mutate(kind.as_ref(), &name, share, done);
        println!("{share} files changed at random: {name}");
    }
}

#[test]
fn files_changed_at_random_give_true_values_or_none() {
    mutate_all_kinds(400, &AtomicU64::new(0));
}

#[test]
#[ignore = "minutes: 100,000 changed files"]
fn a_hundred_thousand_files_changed_at_random_give_true_values_or_none() {
    let done = Arc::new(AtomicU64::new(0));
    let has_ended = Arc::new(AtomicBool::new(false));
    let watcher = std::thread::spawn({
        let done = done.clone();
        let has_ended = has_ended.clone();
        move || abort_if_stuck(&done, &has_ended)
    });
    let wanted = std::env::var(CASES).map_or(100_000, |cases| cases.parse().unwrap());
    let outcome = catch_unwind(AssertUnwindSafe(|| mutate_all_kinds(wanted, &done)));
    has_ended.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    assert!(outcome.is_ok());
    assert!(done.load(Ordering::Relaxed) >= wanted);
}

/// Ends the process when a case takes too long: a wait in it would never end.
fn abort_if_stuck(done: &AtomicU64, has_ended: &AtomicBool) {
    let mut seen = (0, Duration::ZERO);
    while !has_ended.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(200));
        let now = done.load(Ordering::Relaxed);
        seen = if now == seen.0 { (now, seen.1 + Duration::from_millis(200)) } else { (now, Duration::ZERO) };
        if seen.1 > LIMIT {
            eprintln!("case {now} of all hangs, seed {SEED}");
            std::process::abort();
        }
    }
}
