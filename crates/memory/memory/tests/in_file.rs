//! Arrays that stay in the file: values, damage, restarts, and sizes beyond the memory.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recoup_memory::{
    FileArray, Memory, MemoryError, MemoryFinding, MemoryOptions, MemoryReader, Versioned, VersionedArray,
};
use recoup_model::Rng;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Folders on a disk and, where there is one, in memory.
pub(crate) fn folders() -> Vec<tempfile::TempDir> {
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    [Some(disk), tempfile::tempdir_in("/dev/shm").ok()].into_iter().flatten().collect()
}

fn open(path: &Path, block_bytes: usize) -> Memory {
    Memory::open(path, MemoryOptions { keep: 3, block_bytes, ..MemoryOptions::default() }).unwrap()
}

/// Draws a range of an array.
fn draw(len: usize, most: u64, rng: &mut Rng) -> std::ops::Range<usize> {
    let start = (rng.next_u64() % (len as u64 + 1)) as usize;
    start..(start + (rng.next_u64() % most) as usize).min(len)
}

/// Changes an array and a plain copy of it in the same way.
fn change(table: &mut FileArray<u32>, plain: &mut Vec<u32>, rng: &mut Rng) {
    if rng.next_u64().is_multiple_of(3) {
        let len = (rng.next_u64() % 120_000) as usize;
        table.resize(len).unwrap();
        plain.resize(len, 0);
        return;
    }
    let range = draw(plain.len(), if rng.next_u64().is_multiple_of(4) { 60_000 } else { 40 }, rng);
    plain[range.clone()].fill_with(|| rng.next_u64() as u32);
    table.write(range.start, &plain[range]).unwrap();
}

fn compare(table: &FileArray<u32>, plain: &[u32], rng: &mut Rng, what: &str) {
    assert_eq!(table.len(), plain.len(), "{what}");
    assert!(table.get(0..plain.len()).unwrap()[..] == *plain, "{what}");
    for _ in 0..5 {
        let range = draw(plain.len(), 30_000, rng);
        assert!(table.get(range.clone()).unwrap()[..] == plain[range.clone()], "{what}: {range:?}");
        let mut read = vec![7; range.len()];
        table.read(range.start, &mut read).unwrap();
        assert!(read == plain[range.clone()], "{what}: {range:?}");
    }
}

/// Writes, resizes, commits, steps back and opens again, next to a plain array.
fn live(path: &Path, block_bytes: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    let what = format!("seed {seed}, blocks of {block_bytes} bytes in {}", path.display());
    println!("{what}");
    let mut memory = open(path, block_bytes);
    let mut table = FileArray::<u32>::zeros("table", 50_001);
    let mut plain = vec![0; 50_001];
    let mut history: Vec<Vec<u32>> = Vec::new();
    for step in 1..=60 {
        for _ in 0..rng.next_u64() % 4 {
            change(&mut table, &mut plain, &mut rng);
        }
        compare(&table, &plain, &mut rng, &what);
        if rng.next_u64().is_multiple_of(4) {
            table.set_hot(draw(120_000, 40_000, &mut rng));
        }
        match rng.next_u64() % 6 {
            0 => {}
            1 if !history.is_empty() => {
                let version = *memory.versions().first().map(|version| &version.number).unwrap();
                memory.restore(version, &mut [&mut Named(&mut table)]).unwrap();
                plain.clone_from(&history[version as usize - 1]);
            }
            2 if !history.is_empty() => {
                drop((memory, table));
                memory = open(path, 4096);
                table = FileArray::default();
                table.set_hot(draw(120_000, 40_000, &mut rng));
                memory.restore_newest(&mut [&mut Named(&mut table)]).unwrap();
                plain.clone_from(history.last().unwrap());
            }
            _ => {
                let number = memory.commit(step, &mut [&mut Named(&mut table)]).unwrap();
                history.push(plain.clone());
                assert_eq!(number as usize, history.len());
            }
        }
        compare(&table, &plain, &mut rng, &what);
    }
    let newest = MemoryReader::open(path).unwrap().newest().unwrap().unwrap();
    assert!(newest.values::<u32>("table").unwrap() == *history.last().unwrap(), "{what}");
    assert_eq!(newest.verify().unwrap(), [], "{what}");
}

/// A state of one array, which has its name from here.
struct Named<'a>(&'a mut FileArray<u32>);

impl Versioned for Named<'_> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut recoup_memory::ArrayList<'a>) {
        arrays.field("table", self.0);
    }
}

#[test]
fn an_array_in_the_file_has_the_values_of_a_plain_one() {
    for folder in folders() {
        // A block is less than a piece of the array, as much, and more.
        for (block_bytes, seed) in [(512, 1), (4096, 2), (64 << 10, 3), (256 << 10, 4)] {
            live(&folder.path().join(format!("{block_bytes}.memory")), block_bytes, seed);
        }
    }
}

/// Fills a table of 40 blocks, whose values are their numbers, and returns it with its file.
fn numbered(folder: &Path) -> (PathBuf, Memory, FileArray<u64>) {
    let path = folder.join("numbered.memory");
    let mut memory = open(&path, 4096);
    let mut table = FileArray::<u64>::zeros("table", 40 * 512);
    table.write(0, &(0..40 * 512).collect::<Vec<u64>>()).unwrap();
    memory.commit(1, &mut [&mut table]).unwrap();
    (path, memory, table)
}

/// Flips a bit of a value.
fn flip(path: &Path, value: u64) {
    let content = std::fs::read(path).unwrap();
    let at = content.chunks_exact(8).position(|chunk| chunk == value.to_le_bytes()).unwrap() * 8;
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[content[at] ^ 1], at as u64).unwrap();
}

fn assert_damaged<T: std::fmt::Debug>(result: Result<T, MemoryError>, block: usize) {
    let error = result.unwrap_err();
    let is_named = matches!(&error, MemoryError::Damaged(MemoryFinding::Block { number: 1, name, block: found, .. })
                            if name == "table" && *found == block);
    assert!(is_named, "block {block}: {error}");
}

#[test]
fn each_flipped_bit_is_named_where_it_is_read_and_all_other_values_are_there() {
    for folder in folders() {
        let (path, memory, table) = numbered(folder.path());
        drop((memory, table));
        for block in [0, 17, 39] {
            flip(&path, block as u64 * 512 + 100);
        }
        let mut memory = open(&path, 4096);
        let mut table = FileArray::<u64>::zeros("table", 0);
        memory.restore_newest(&mut [&mut table]).unwrap();
        for block in 0..40 {
            let range = block * 512 + 20..block * 512 + 30;
            let read = table.get(range.clone());
            match block {
                0 | 17 | 39 => assert_damaged(read, block),
                _ => assert_eq!(read.unwrap()[..], range.map(|value| value as u64).collect::<Vec<u64>>()),
            }
        }
        assert_damaged(table.get(16 * 512..18 * 512), 17);
        assert_damaged(table.read(17 * 512, &mut [0; 1]), 17);
        assert_eq!(memory.view(1).unwrap().verify().unwrap().len(), 3);
        // A piece has 16 blocks, and none of it may be written as long as its values are not known.
        assert_damaged(table.write(18 * 512, &[1]), 17);
        assert_eq!(memory.commit(2, &mut [&mut table]).unwrap(), 2);
        // What is overwritten as a whole is whole again.
        table.write(16 * 512, &vec![5; 16 * 512]).unwrap();
        memory.commit(3, &mut [&mut table]).unwrap();
        assert_eq!(table.get(17 * 512..17 * 512 + 1).unwrap()[..], [5]);
        assert_eq!(memory.view(3).unwrap().verify().unwrap().len(), 2);
    }
}

#[test]
fn a_damaged_hot_range_makes_a_restore_fall_back() {
    for folder in folders() {
        let (path, mut memory, mut table) = numbered(folder.path());
        table.write(3, &[1 << 40]).unwrap();
        memory.commit(2, &mut [&mut table]).unwrap();
        drop((memory, table));
        flip(&path, 1 << 40);
        let mut memory = open(&path, 4096);
        let mut table = FileArray::<u64>::zeros("table", 0);
        table.set_hot(0..10);
        let restored = memory.restore_newest(&mut [&mut table]).unwrap().unwrap();
        assert_eq!((restored.number, memory.findings().len()), (1, 1));
        assert_eq!(table.get(3..5).unwrap()[..], [3, 4]);
        assert!(matches!(table.get(3..5).unwrap(), Cow::Borrowed(_)), "hot values are lent");
        assert_eq!(table.bytes_in_memory(), 64 << 10);
        table.set_hot(0..0);
        memory.commit(3, &mut [&mut table]).unwrap();
        assert_eq!(table.bytes_in_memory(), 0);
    }
}

#[test]
fn values_in_memory_are_lent_from_the_file_and_stay_those_of_their_version() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let (path, mut memory, mut table) = numbered(folder.path());
    assert!(matches!(table.get(1000..20_000).unwrap(), Cow::Borrowed(_)), "values one after the other are copied");
    assert_eq!(table.bytes_in_memory(), 0);
    // Commits of another array use the places that they find, and none of the table.
    let mut other = VersionedArray::<u64>::zeros("other", 512);
    {
        let lent = table.get(0..40 * 512).unwrap();
        for step in 2..20 {
            other.write(0..512).fill(step);
            memory.commit(step, &mut [&mut other]).unwrap();
        }
        assert!(memory.view(1).is_err(), "version 1 is retired");
        assert!(lent.iter().copied().eq(0..40 * 512));
    }
    table.write(0, &[9]).unwrap();
    memory.commit(20, &mut [&mut table, &mut other]).unwrap();
    assert!(matches!(table.get(1000..20_000).unwrap(), Cow::Borrowed(_)), "these blocks did not move");
    assert!(matches!(table.get(0..20_000).unwrap(), Cow::Owned(_)), "the first block did");
    drop(memory);
    assert!(matches!(Memory::open(&path, MemoryOptions::default()), Err(MemoryError::Locked)), "the table holds it");
    assert_eq!(table.get(0..2).unwrap()[..], [9, 1]);
}

#[test]
fn a_reader_is_told_that_the_version_of_its_array_was_retired() {
    for folder in folders() {
        let (path, mut memory, mut table) = numbered(folder.path());
        let mut seen = FileArray::<u64>::zeros("table", 0);
        MemoryReader::open(&path).unwrap().view(1).unwrap().fill(&mut [&mut seen]).unwrap();
        assert_eq!(seen.get(511..514).unwrap()[..], [511, 512, 513]);
        for step in 2..9 {
            table.write(0, &vec![step; 40 * 512]).unwrap();
            memory.commit(step, &mut [&mut table]).unwrap();
        }
        assert!(matches!(seen.get(511..514), Err(MemoryError::Retired { number: 1 })));
    }
}

/// The state of a program with a table in the file.
#[derive(Versioned)]
#[versioned(crate = recoup_memory, block = "4KiB")]
struct Model {
    #[versioned(counter)]
    step: u64,
    #[versioned(hot = 0..self.n_hot)]
    table: FileArray<f64>,
    #[versioned(constant)]
    n_hot: usize,
}

#[test]
fn a_field_stays_in_the_file_and_its_hot_range_in_memory() {
    for folder in folders() {
        let path = folder.path().join("model.memory");
        let mut model = Model { step: 1, table: FileArray::zeros("", 100_000), n_hot: 10_000 };
        let mut memory = Memory::resume(&path, &mut model).unwrap();
        model.table.write(9_999, &[0.25, 0.5]).unwrap();
        memory.commit_state(&mut model).unwrap();
        model.step = 2;
        model.table.write(50_000, &[4.0]).unwrap();
        memory.commit_state(&mut model).unwrap();
        let older = memory.view(1).unwrap().of::<Model>();
        let mut values = [7.0];
        older.table.read(50_000, &mut values).unwrap();
        assert_eq!((values, older.table.n_values().unwrap()), ([0.0], 100_000));
        assert_eq!(older.table.load().unwrap().get(9_999..10_001).unwrap()[..], [0.25, 0.5]);
        drop((memory, older, model));
        let mut again = Model { step: 0, table: FileArray::default(), n_hot: 10_000 };
        let memory = Memory::resume(&path, &mut again).unwrap();
        assert_eq!((memory.versions().len(), again.step, again.table.len()), (2, 2, 100_000));
        // 80,000 bytes are in two pieces.
        assert_eq!(again.table.bytes_in_memory(), 2 * (64 << 10));
        assert_eq!(again.table.get(9_999..10_001).unwrap()[..], [0.25, 0.5]);
        assert_eq!(again.table.get(50_000..50_001).unwrap()[..], [4.0]);
    }
}

/// The file of a child; without it the child's test does nothing.
const FILE: &str = "RECOUP_IN_FILE";
/// Set for a child that takes the values into memory.
const LOADED: &str = "RECOUP_IN_FILE_LOADED";
/// Bytes that a child may have: heap, stacks and private maps.
const LIMIT_BYTES: u64 = 96 << 20;
/// Values of 256 MiB.
const LARGE_LEN: usize = 32 << 20;
/// Values that are written or read at once, 1 MiB.
const PART_LEN: usize = 128 << 10;

/// The values of a part at first: numbers from `first` on.
fn part(first: usize) -> Vec<u64> {
    (first as u64..(first + PART_LEN) as u64).collect()
}

/// Fills the table on the first start, changes a value on each, and reads all values.
#[test]
fn child() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let maximum = getrlimit(Resource::Data).maximum;
    setrlimit(Resource::Data, Rlimit { current: Some(LIMIT_BYTES), maximum }).unwrap();
    let mut memory = Memory::open(Path::new(&file), MemoryOptions::default()).unwrap();
    if std::env::var_os(LOADED).is_some() {
        memory.restore_newest(&mut [&mut VersionedArray::<u64>::zeros("table", 0)]).unwrap();
        return;
    }
    let mut table = FileArray::<u64>::zeros("table", 0);
    let mut step = memory.restore_newest(&mut [&mut table]).unwrap().map_or(0, |version| version.step);
    for first in (table.len()..LARGE_LEN).step_by(PART_LEN) {
        table.resize(first + PART_LEN).unwrap();
        table.write(first, &part(first)).unwrap();
        if table.bytes_in_memory() >= 16 << 20 {
            step += 1;
            memory.commit(step, &mut [&mut table]).unwrap();
        }
    }
    let run = 1 + table.get(0..1).unwrap()[0];
    table.write(0, &[run]).unwrap();
    table.write(LARGE_LEN - 1, &[run]).unwrap();
    memory.commit(step + 1, &mut [&mut table]).unwrap();
    for first in (0..LARGE_LEN).step_by(PART_LEN) {
        let mut expected = part(first);
        if first == 0 {
            expected[0] = run;
        }
        if first + PART_LEN == LARGE_LEN {
            expected[PART_LEN - 1] = run;
        }
        assert!(table.get(first..first + PART_LEN).unwrap()[..] == expected, "values from {first} on");
    }
    println!("\nrun {run} has read {LARGE_LEN} values");
}

fn run_child(path: &Path, is_loaded: bool) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_file::child", "--nocapture"]).env(FILE, path);
    if is_loaded {
        command.env(LOADED, "1");
    }
    command.output().unwrap()
}

#[test]
fn an_array_larger_than_the_memory_of_the_process_is_filled_changed_and_read() {
    for folder in folders() {
        let path = folder.path().join("large.memory");
        for run in 1..=2 {
            let output = run_child(&path, false);
            let text = String::from_utf8_lossy(&output.stdout);
            let is_done = output.status.success() && text.contains(&format!("run {run} has read {LARGE_LEN} values"));
            assert!(is_done, "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        // The limit is one: values that are taken into memory are more than it allows.
        let output = run_child(&path, true);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("memory allocation of 268435456 bytes failed"), "{text}");
    }
}
