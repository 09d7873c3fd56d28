//! The faults that make other checkpoint libraries return wrong values, disagree among ranks or
//! give up: each ends in the right values or in a named refusal, with the same verdict on every
//! rank.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::cache::{NodeStore, Partners, Protection, Tiers, WhenBusy};
use recoup::comm::Threads;
use recoup::core::{CodecId, Comm, Distribution, Note, Role, Store, StoreError, Tier, ValuesMut};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{PipelineError, Session, Variables};
use recoup_testkit::crashing_store::{Crash, CrashingStore};
use recoup_testkit::progress;

use crate::support::fixed;

const E: f64 = 1e-9;
const ROWS: usize = 3003;

/// The first of this rank's rows, and how many it has.
fn rows(comm: &dyn Comm) -> (usize, usize) {
    let start = |rank: usize| ROWS * rank / comm.size();
    (start(comm.rank()), start(comm.rank() + 1) - start(comm.rank()))
}

/// This rank's part of the global vector of an iteration.
fn values(comm: &dyn Comm, iteration: u64) -> Vec<f64> {
    let (first, len) = rows(comm);
    (first..first + len).map(|row| (row as f64 * 0.01 + iteration as f64).sin()).collect()
}

fn owner<'a>(comm: &dyn Comm, x: &'a mut [f64], counter: &'a mut [i64]) -> Variables<'a> {
    let spread = Distribution::Rows { first: rows(comm).0 as u64, global: ROWS as u64 };
    let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(x), spread);
    owner.with("counter", Role::Dynamic, ValuesMut::I64(counter), Distribution::Replicated)
}

/// A machine of one rank to a node, and the file system behind it.
struct Machine {
    dir: tempfile::TempDir,
    guards: Vec<Protection>,
    /// Versions from one that goes to the file system to the next.
    pfs_every: u64,
    /// Behind the worker.
    is_behind: bool,
    /// Ranks that share a file there.
    ranks_per_file: usize,
    /// Ranks from which on such a file has their part of the manifest.
    parts_from: usize,
}

impl Machine {
    fn new(guards: &[Protection], pfs_every: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let guards = guards.to_vec();
        Self { dir, guards, pfs_every, is_behind: false, ranks_per_file: 1, parts_from: usize::MAX }
    }

    fn behind(self) -> Self {
        Self { is_behind: true, ..self }
    }

    fn sharing_files(self, ranks_per_file: usize) -> Self {
        Self { ranks_per_file, ..self }
    }

    fn in_parts(self) -> Self {
        Self { parts_from: 2, ..self }
    }

    fn node(&self, node: usize) -> PathBuf {
        self.dir.path().join(format!("node-{node}"))
    }

    fn lose_nodes(&self, nodes: &[usize]) {
        nodes.iter().for_each(|&node| fs::remove_dir_all(self.node(node)).unwrap());
    }

    fn pfs_file(&self, version: u64, file: &str) -> PathBuf {
        self.dir.path().join(format!("pfs/solve/v{version:012}/{file}"))
    }

    /// Flips a bit of a rank's values of x.
    fn flip_on_file_system(&self, version: u64, rank: usize) {
        let store = Hdf5Store::open(self.dir.path().join("pfs"), "solve", Access::Read).unwrap();
        let frames = store.manifest(version).unwrap().frames;
        let place = frames.iter().find(|f| f.rank == rank && f.variable == "x").and_then(|f| f.place.clone()).unwrap();
        flip(&self.pfs_file(version, &place.file), place.offset as usize + 40);
    }

    /// The file of the rank's own frames, which is the one that is named after the rank.
    fn frames_file(&self, rank: usize, version: u64) -> PathBuf {
        let folder = self.node(rank).join(format!("rank-{rank:06}/v{version:012}"));
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_named_after_rank = |file: &PathBuf| file.to_string_lossy().ends_with(&format!("-{rank:06}"));
        files.into_iter().find(is_named_after_rank).unwrap()
    }

    /// Memory and file system, as one rank sees them.
    fn tiers(&self, comm: &dyn Comm, crash: Crash) -> Result<Arc<dyn Store>, StoreError> {
        let memory = NodeStore::new(self.node(comm.rank()), comm.rank());
        let memory = self.guards.iter().fold(memory, |store, guard| store.guarded(guard.clone(), 1));
        let open = |access| {
            let store = Hdf5Store::open(self.dir.path().join("pfs"), "solve", access)?;
            Ok::<_, StoreError>(store.with_ranks_per_file(self.ranks_per_file).with_parts_from(self.parts_from))
        };
        let first = (comm.rank() == 0).then(|| open(Access::Write));
        comm.barrier()?;
        let pfs = CrashingStore::new(first.unwrap_or_else(|| open(Access::Join))?, crash);
        let tier = |name: &str, store, every| Tier { name: name.to_owned(), store, every, keep: 3, max_bytes: None };
        let row = vec![tier("memory", Arc::new(memory), 1), tier("pfs", Arc::new(pfs), self.pfs_every)];
        let tiers = Tiers::new(row, comm.rank());
        Ok(Arc::new(if self.is_behind { tiers.behind(WhenBusy::Wait) } else { tiers }))
    }

    fn session(&self, comm: &dyn Comm, crash: Crash) -> Session {
        let builder = recoup::open("unused").plan(fixed(CodecId::Pco, E)).every(5);
        builder.build_with(self.tiers(comm, crash).unwrap(), comm).unwrap()
    }

    /// Saves these versions.
    fn save(&self, ranks: usize, versions: &[u64]) {
        self.save_with(ranks, versions, |_| Crash::Never);
    }

    fn save_with(&self, ranks: usize, versions: &[u64], crash: impl Fn(usize) -> Crash + Sync) {
        Threads::launch(ranks, |comm| {
            let mut session = self.session(&comm, crash(comm.rank()));
            for &version in versions {
                let mut x = values(&comm, version);
                let mut counter = [version as i64];
                let owner = owner(&comm, &mut x, &mut counter);
                session.checkpoint(fixed(CodecId::Pco, E), progress(version), &[&owner]).unwrap();
            }
            session.wait().unwrap();
        });
    }

    /// What all ranks restore, checked value by value: the version, the ranks that wrote it, and
    /// the notes.
    fn restore(&self, ranks: usize) -> Result<(u64, usize, Vec<Note>), String> {
        let verdicts = Threads::launch(ranks, |comm| {
            let mut session = self.session(&comm, Crash::Never);
            let mut x = vec![0.0; rows(&comm).1];
            let mut counter = [0];
            let restored = session.restore_with(&mut [&mut owner(&comm, &mut x, &mut counter)]);
            let restored = match restored {
                Ok(restored) => restored.expect("there are versions"),
                Err(error) => {
                    assert!(x.iter().all(|&x| x == 0.0) && counter == [0], "a refusal overwrites nothing");
                    return Err(error.to_string());
                }
            };
            assert_eq!(counter, [restored.version as i64]);
            let expected = values(&comm, restored.version);
            assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() <= E), "wrong values on rank {}", comm.rank());
            Ok((restored.version, restored.ranks, restored.notes))
        });
        assert!(verdicts.iter().all(|verdict| verdict == &verdicts[0]), "ranks disagree: {verdicts:?}");
        verdicts[0].clone()
    }

    fn restored(&self, ranks: usize) -> (u64, usize) {
        let (version, written_by, _) = self.restore(ranks).unwrap();
        (version, written_by)
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn cut(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn ring() -> Protection {
    Protection::Partner(Partners::Ring(1))
}

fn sums() -> Protection {
    Protection::Erasure { data: 3, parity: 1 }
}

/// Reads of a version, by tier.
fn read_from(notes: &[Note], of: u64) -> String {
    let tier = |note: &Note| match note {
        Note::Read { version, tier } if *version == of => Some(tier.clone()),
        _ => None,
    };
    notes.iter().filter_map(tier).collect::<Vec<String>>().join(", ")
}

/// Fault 1. VELOC restores the flipped bit with return code 0.
#[test]
fn a_flipped_bit_never_comes_back_as_a_value() {
    // In memory: from a copy, from the sums, or from the file system; in the file system alone: the
    // version before.
    for (guards, every) in [(vec![ring()], 9), (vec![sums()], 9), (vec![], 1)] {
        let machine = Machine::new(&guards, every);
        machine.save(4, &[5, 10]);
        flip(&machine.frames_file(2, 10), 40);
        assert_eq!(machine.restored(4), (10, 4));
    }
    let machine = Machine::new(&[], 1);
    machine.save(4, &[5, 10]);
    machine.lose_nodes(&[0, 1, 2, 3]);
    machine.flip_on_file_system(10, 2);
    assert_eq!(machine.restored(4), (5, 4));
}

/// Fault 2. VELOC gives rank 1 an error and rank 0 success, and leaves the whole copy on the file
/// system untried.
#[test]
fn a_truncated_copy_in_memory_is_made_good_by_the_file_system() {
    let machine = Machine::new(&[], 1);
    machine.save(3, &[5, 10]);
    cut(&machine.frames_file(1, 10));
    let (version, _, notes) = machine.restore(3).unwrap();
    assert_eq!((version, read_from(&notes, 10)), (10, "pfs".to_owned()));
    let passed = |note: &Note| matches!(note, Note::Passed { version: 10, tier, .. } if tier == "memory");
    assert!(notes.iter().any(passed), "what was passed over is named with its tier: {notes:?}");
}

/// Fault 3. VELOC takes the greatest version any rank has, and then fails to restore it.
#[test]
fn a_version_on_one_rank_only_is_no_version() {
    let machine = Machine::new(&[], 9);
    machine.save(3, &[5, 10]);
    for rank in [1, 2] {
        fs::remove_dir_all(machine.frames_file(rank, 10).parent().unwrap()).unwrap();
    }
    assert_eq!(machine.restored(3), (5, 3));
}

/// Fault 4. VELOC finds the torn version newest and aborts, although an older one is whole.
#[test]
fn killed_in_a_blocking_drain_with_memory_lost_the_older_version_comes_back() {
    assert_torn_drains_cost_nothing_older(&|| Machine::new(&[], 1));
}

#[test]
fn killed_in_the_drain_with_memory_lost_the_older_version_comes_back() {
    assert_torn_drains_cost_nothing_older(&|| Machine::new(&[], 1).behind());
    assert_torn_drains_cost_nothing_older(&|| Machine::new(&[], 1).behind().sharing_files(2));
}

fn assert_torn_drains_cost_nothing_older(make: &dyn Fn() -> Machine) {
    for rank in 0..3 {
        // After the first version's operations, each in turn is the last that reaches the file
        // system.
        for last in 4..9 {
            let machine = make();
            machine.save(3, &[5]);
            machine.save_with(3, &[10], |r| if r == rank { Crash::From(last) } else { Crash::Never });
            machine.lose_nodes(&[0, 1, 2]);
            let (version, ..) = machine.restore(3).unwrap();
            assert!(version == 5 || version == 10);
        }
    }
    // While memory lives the newest is there, whatever became of the drain.
    let machine = make();
    machine.save(3, &[5]);
    machine.save_with(3, &[10], |rank| if rank == 1 { Crash::From(2) } else { Crash::Never });
    assert_eq!(machine.restored(3), (10, 3));
    machine.lose_nodes(&[0, 1, 2]);
    assert_eq!(machine.restored(3), (5, 3));
}

/// Faults 5 and 6. VELOC and FTI continue with half the problem and return code 0.
#[test]
fn fewer_and_more_ranks_get_all_rows() {
    for (saved, restored) in [(4, 2), (2, 4), (4, 3), (8, 1)] {
        let machine = Machine::new(&[], 1);
        machine.save(saved, &[5, 10]);
        assert_eq!(machine.restored(restored), (10, saved), "{saved} to {restored}");
    }
}

#[test]
fn fewer_and_more_ranks_get_all_rows_from_files_that_ranks_shared() {
    for (saved, restored) in [(4, 2), (2, 4), (4, 3), (8, 1), (3, 3)] {
        for ranks_per_file in [2, 3, usize::MAX] {
            for in_parts in [false, true] {
                let machine = Machine::new(&[], 1).behind().sharing_files(ranks_per_file);
                let machine = if in_parts { machine.in_parts() } else { machine };
                machine.save(saved, &[5, 10]);
                machine.lose_nodes(&(0..saved).collect::<Vec<_>>());
                assert_eq!(
                    machine.restored(restored),
                    (10, saved),
                    "{saved} to {restored}, {ranks_per_file} to a file"
                );
            }
        }
    }
}

#[test]
fn damage_to_a_file_of_one_rank_or_of_several_costs_its_version_and_no_other() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let keep_little = |path: &Path| fs::write(path, &fs::read(path).unwrap()[..60]).unwrap();
    for (ranks_per_file, file, harm) in [
        (1, "rank-000002.h5", &keep_little as &dyn Fn(&Path)),
        (1, "rank-000002.h5", &remove),
        (2, "ranks-000002-000003.h5", &cut),
        (2, "ranks-000002-000003.h5", &remove),
    ] {
        let machine = Machine::new(&[], 1).sharing_files(ranks_per_file);
        machine.save(4, &[5, 10, 15]);
        machine.lose_nodes(&[0, 1, 2, 3]);
        harm(&machine.pfs_file(15, file));
        machine.flip_on_file_system(10, 1);
        assert_eq!(machine.restored(4), (5, 4), "{file}");
    }
}

/// Ranks that read a damaged part and those that do not come to the same version.
#[test]
fn damage_to_a_part_of_the_manifest_costs_its_version_and_no_other() {
    for (restored, is_cut) in [(4, true), (4, false), (3, true), (1, false), (6, false)] {
        let machine = Machine::new(&[], 1).sharing_files(2).in_parts();
        machine.save(4, &[5, 10, 15]);
        machine.lose_nodes(&[0, 1, 2, 3]);
        let store = Hdf5Store::open(machine.dir.path().join("pfs"), "solve", Access::Read).unwrap();
        let record = store.top(15).unwrap().files[1].clone();
        let path = machine.pfs_file(15, &record.name);
        if is_cut {
            cut(&path);
        } else {
            flip(&path, record.part.unwrap().offset as usize + 40);
        }
        // The part of the version before, where it was.
        fs::copy(machine.pfs_file(5, &record.name), machine.pfs_file(10, &record.name)).unwrap();
        assert_eq!(machine.restored(restored), (5, 4), "on {restored} ranks");
    }
}

#[test]
fn a_lost_rank_comes_back_from_its_partner_without_the_file_system() {
    let machine = Machine::new(&[ring()], 9);
    machine.save(4, &[5, 10]);
    machine.lose_nodes(&[2]);
    let (version, _, notes) = machine.restore(4).unwrap();
    assert_eq!((version, read_from(&notes, 10)), (10, "memory".to_owned()));
    let repaired = Note::Repaired { version: 10, rank: 2, source: "a copy on rank 3".to_owned() };
    assert!(notes.contains(&repaired), "{notes:?}");
}

#[test]
fn a_rank_lost_with_its_only_partner_falls_back_to_the_sums_and_then_to_the_file_system() {
    let both = Machine::new(&[ring(), Protection::Erasure { data: 2, parity: 2 }], 9);
    both.save(4, &[5, 10]);
    both.lose_nodes(&[1, 2]);
    let (version, _, notes) = both.restore(4).unwrap();
    assert_eq!((version, read_from(&notes, 10)), (10, "memory".to_owned()));
    let copies = Machine::new(&[ring()], 2);
    copies.save(4, &[5, 10]);
    copies.lose_nodes(&[1, 2]);
    let (version, _, notes) = copies.restore(4).unwrap();
    assert_eq!((version, read_from(&notes, 5)), (5, "pfs".to_owned()), "10 was in memory alone");
}

#[test]
fn a_whole_job_killed_comes_back_from_shared_memory_and_without_it_from_the_file_system() {
    let machine = Machine::new(&[], 3);
    machine.save(3, &[5, 10, 15]);
    let (version, _, notes) = machine.restore(3).unwrap();
    assert_eq!((version, read_from(&notes, 15)), (15, "memory".to_owned()));
    machine.lose_nodes(&[0, 1, 2]);
    let (version, _, notes) = machine.restore(3).unwrap();
    assert_eq!((version, read_from(&notes, 5)), (5, "pfs".to_owned()));
}

#[test]
fn all_memory_and_the_file_system_damaged_is_one_refusal_everywhere() {
    let machine = Machine::new(&[], 1);
    machine.save(3, &[5]);
    machine.lose_nodes(&[0, 1, 2]);
    fs::write(machine.pfs_file(5, "rank-000001.h5"), b"gone").unwrap();
    let refusal = machine.restore(3).unwrap_err();
    let named = PipelineError::NoUsable { versions: Vec::new() }.to_string();
    assert!(refusal.starts_with(&named) && refusal.contains("rank 1"), "{refusal}");
}
