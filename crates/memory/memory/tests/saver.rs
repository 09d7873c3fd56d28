//! When a saver commits: the work it foresees, the cost it learns, and the time between versions.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use recoup_core::Clock;
use recoup_io::VirtualClock;
use recoup_memory::{
    ByteSource, CommitWork, FileMedium, Medium, Memory, SavePolicy, Saver, Versioned, VersionedArray, first_bytes,
};
use recoup_model::Rng;

const BLOCK: usize = 4096;
/// Values of a block.
const VALUES: usize = BLOCK / 8;
/// Virtual time of a fence and of a stored byte.
const FENCE: Duration = Duration::from_micros(500);
const BYTE: Duration = Duration::from_nanos(2);

/// A file whose stores and fences take virtual time.
struct TimedMedium {
    file: FileMedium,
    clock: Arc<VirtualClock>,
}

impl Medium for TimedMedium {
    fn prefers_runs(&self) -> bool {
        self.file.prefers_runs()
    }

    fn source(&self) -> Arc<dyn ByteSource> {
        self.file.source()
    }

    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        self.file.grow(bytes)
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> io::Result<u32> {
        self.clock.advance(BYTE * bytes.len() as u32);
        self.file.store(at, bytes)
    }

    fn write_back(&mut self, range: Range<u64>) -> io::Result<()> {
        self.file.write_back(range)
    }

    fn fence(&mut self) -> io::Result<()> {
        self.clock.advance(FENCE);
        self.file.fence()
    }
}

fn timed_memory(folder: &tempfile::TempDir) -> (Memory, Arc<VirtualClock>) {
    let path = folder.path().join("timed.memory");
    std::fs::write(&path, first_bytes(BLOCK).unwrap()).unwrap();
    let clock = Arc::new(VirtualClock::new());
    let file = FileMedium::new(File::options().read(true).write(true).open(path).unwrap()).unwrap();
    let medium = TimedMedium { file, clock: Arc::clone(&clock) };
    (Memory::on(Box::new(medium), 2).unwrap(), clock)
}

fn pending(memory: &Memory, state: &mut [&mut dyn Versioned]) -> CommitWork {
    memory.pending_work(state)
}

#[test]
fn work_that_marks_foretell_is_the_work_of_the_commit() {
    let seed = 4;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let (mut memory, _) = timed_memory(&folder);
    let mut floats = VersionedArray::<f64>::zeros("floats", 5 * VALUES);
    let mut bytes = VersionedArray::new("bytes", vec![0_u8; 100]);
    for step in 0..200 {
        if rng.next_u64().is_multiple_of(4) {
            floats.resize(rng.next_u64() as usize % (12 * VALUES), 1.0);
        }
        for _ in 0..rng.next_u64() % 4 {
            let start = rng.next_u64() as usize % (floats.len() + 1);
            let end = (start + rng.next_u64() as usize % VALUES).min(floats.len());
            floats.touch(start..end);
        }
        if step % 3 == 0 {
            bytes.touch(0..1);
        }
        let expected = pending(&memory, &mut [&mut floats, &mut bytes]);
        memory.commit(step, &mut [&mut floats, &mut bytes]).unwrap();
        assert_eq!(memory.committed_work(), expected, "step {step}");
        if step % 50 == 49 {
            // A restored array shares the blocks of an older version.
            let oldest = memory.versions()[0].number;
            memory.restore(oldest, &mut [&mut floats, &mut bytes]).unwrap();
        }
    }
    let nothing = pending(&memory, &mut [&mut floats, &mut bytes]);
    memory.commit(200, &mut [&mut floats, &mut bytes]).unwrap();
    assert_eq!(pending(&memory, &mut [&mut floats, &mut bytes]), CommitWork::default());
    assert_eq!((nothing.bytes, nothing.table_bytes), (0, 0), "{nothing:?}");
}

#[test]
fn array_without_marks_is_expected_to_change_as_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let (mut memory, _) = timed_memory(&folder);
    let mut array = VersionedArray::<f64>::zeros("array", 10 * VALUES).compared();
    memory.commit(0, &mut [&mut array]).unwrap();
    for step in 1..4 {
        array.values_mut()[3 * VALUES..5 * VALUES].fill(step as f64);
        memory.commit(step, &mut [&mut array]).unwrap();
        let work = CommitWork {
            bytes: 2 * BLOCK as u64,
            runs: 1,
            blocks: 2,
            table_bytes: 160,
            compared_bytes: 10 * BLOCK as u64,
        };
        assert_eq!((memory.committed_work(), pending(&memory, &mut [&mut array])), (work, work));
    }
}

/// Runs steps of 10 ms, each of which writes some blocks. Returns the times between versions, with
/// what commits took.
fn run(policy: SavePolicy, steps: u64) -> Vec<(f64, f64)> {
    let folder = tempfile::tempdir().unwrap();
    let (mut memory, clock) = timed_memory(&folder);
    let mut heat = VersionedArray::<f64>::zeros("heat", 1000 * VALUES);
    let mut saver = Saver::with_clock(policy, Arc::clone(&clock) as Arc<dyn Clock>);
    let mut saved = clock.now();
    let mut intervals = Vec::new();
    for step in 0..steps {
        clock.advance(Duration::from_millis(10));
        let first = (step as usize * 7 % 990) * VALUES;
        heat.write(first..first + 5 * VALUES).fill(step as f64);
        let start = clock.now();
        let number = saver.commit_if_due(&mut memory, step, &mut [&mut heat]).unwrap();
        let end = clock.now();
        assert_eq!(number.is_some(), saver.decision().unwrap().is_due());
        if number.is_some() {
            intervals.push(((start - saved).as_secs_f64(), (end - start).as_secs_f64()));
            saved = end;
        } else {
            assert_eq!(start, end);
        }
    }
    assert_eq!(saver.cost().n_learned(), intervals.len() as u64);
    intervals
}

#[test]
fn versions_come_at_the_interval_of_their_measured_cost() {
    for name in ["auto", "young", "daly"] {
        let policy = name.parse::<SavePolicy>().unwrap().with_mtti(600.0);
        let intervals = run(policy, 3000);
        assert!(intervals.len() > 8, "{name}: {intervals:?}");
        // The clock is exact, so ten commits fix the cost to a few percent, of which an interval
        // takes the root. The step is 10 ms.
        for (interval, cost) in &intervals[intervals.len() - 3..] {
            let expected = policy.interval_seconds(*cost);
            assert!((interval - expected).abs() <= 0.011 + 0.05 * expected, "{name}: {interval} {cost} {expected}");
        }
    }
}

#[test]
fn greedy_computes_for_as_long_as_a_commit_takes() {
    let intervals = run(SavePolicy::Greedy, 300);
    // A commit takes less than a step here, once the first one has stored the whole state.
    assert!(intervals.len() > 290, "{}", intervals.len());
    let long = run(SavePolicy::Every { interval_seconds: 0.5 }, 300);
    assert!(long[1..].iter().all(|(interval, _)| (0.5..0.511).contains(interval)), "{long:?}");
}
