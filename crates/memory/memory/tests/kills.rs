//! A program that is killed for real, again and again, continues from its last promised version.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use recoup_memory::{FileArray, MediumKind, Memory, MemoryOptions, MemoryReader, Versioned, VersionedArray};
use recoup_model::Rng;

use super::versions::bits;

/// The file of a child; without it the child's test does nothing.
const FILE: &str = "RECOUP_MEMORY_FILE";
/// The medium of a child.
const MEDIUM: &str = "RECOUP_MEMORY_MEDIUM";
/// Values of the field: 40 blocks.
const VALUES: usize = 40 * 512;

/// Values that a step writes: their first, and what they become.
fn change(step: u64) -> (usize, f64) {
    let mut rng = Rng::new(step);
    (rng.next_u64() as usize % (VALUES - 3000), rng.next_u64() as f64)
}

/// The state of a child.
#[derive(Versioned)]
#[versioned(crate = recoup_memory)]
struct State {
    field: VersionedArray<f64>,
    counts: VersionedArray<u64>,
    table: FileArray<f64>,
}

impl State {
    fn new() -> Self {
        let zeros = FileArray::zeros("", VALUES);
        Self { field: vec![0.0; VALUES].into(), counts: vec![0].into(), table: zeros }
    }

    fn advance(&mut self, step: u64) {
        let (first, value) = change(step);
        let length = 3000 - (step % 7) as usize * 400;
        self.field.write(first..first + length).iter_mut().enumerate().for_each(|(i, x)| *x = value + i as f64);
        self.table.write(first, &self.field[first..first + length / 2]).unwrap();
        // The counts grow with the steps: tables and blocks move.
        self.counts.resize(step as usize % 2000 + 1, 0);
        self.counts.write(0..1)[0] = step;
    }
}

/// Continues from the newest version, and says each step that was promised.
#[test]
fn child() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let medium = if std::env::var(MEDIUM).unwrap() == "Map" { MediumKind::Map } else { MediumKind::File };
    let options = MemoryOptions { keep: 2, block_bytes: 4096, medium };
    let mut memory = Memory::open(Path::new(&file), options).unwrap();
    let mut state = State::new();
    let newest = memory.restore_newest(&mut [&mut state]).unwrap();
    let mut out = std::io::stdout();
    for step in newest.map_or(0, |version| version.step) + 1.. {
        state.advance(step);
        memory.commit(step, &mut [&mut state]).unwrap();
        writeln!(out, "\npromised {step}").unwrap();
        out.flush().unwrap();
    }
}

/// Runs a child, and kills it some time after its first commit. Returns the last step it promised.
fn run_and_kill(path: &Path, medium: MediumKind, wait: Duration) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::child", "--nocapture"]).env(FILE, path).env(MEDIUM, format!("{medium:?}"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut promises = lines.by_ref().filter_map(|line| line.strip_prefix("promised ").map(|step| step.parse().ok()));
    let first: u64 = promises.next().unwrap().unwrap();
    // The pipe takes some thousand promises while nothing is read.
    std::thread::sleep(wait);
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it was killed");
    // A line that was cut off is no promise.
    promises.flatten().fold(first, u64::max)
}

fn kill_again_and_again(root: &Path, medium: MediumKind, kills: u32) {
    let folder = tempfile::tempdir_in(root).unwrap();
    let path = folder.path().join("killed.memory");
    let seed = 17;
    println!("seed {seed}, {medium:?} in {}", root.display());
    let mut rng = Rng::new(seed);
    let mut state = State::new();
    let mut reached = 0;
    let mut unpromised = 0;
    for kill in 0..kills {
        let promised = run_and_kill(&path, medium, Duration::from_micros(rng.next_u64() % 20_000));
        let reader = MemoryReader::open(&path).unwrap();
        let (versions, _) = reader.versions().unwrap();
        let newest = versions.last().unwrap();
        assert!(newest.step >= promised, "kill {kill}: step {} where {promised} was promised", newest.step);
        unpromised += u32::from(newest.step > promised);
        for version in &versions {
            let view = reader.view(version.number).unwrap();
            (reached + 1..=version.step).for_each(|step| state.advance(step));
            if version.step < reached {
                // It was compared after the kill before.
                assert_eq!(view.verify().unwrap(), []);
                continue;
            }
            reached = version.step;
            assert!(bits(&view.values("field").unwrap()) == bits(&state.field), "kill {kill}, step {reached}");
            let table = state.table.get(0..VALUES).unwrap();
            assert!(bits(&view.values("table").unwrap()) == bits(&table), "kill {kill}, step {reached}");
            assert_eq!(view.values::<u64>("counts").unwrap(), state.counts[..], "kill {kill}, step {reached}");
        }
    }
    println!("{kills} kills, step {reached}, {unpromised} kills between a root and its promise");
    assert!(reached > u64::from(kills), "nearly all kills were before the second commit");
}

/// Kills on the disk by positioned writes and by a map, and in memory by both.
fn kill_everywhere(kills: u32) {
    let disk = std::env::temp_dir();
    let memory = Path::new("/dev/shm");
    for root in [disk.as_path(), memory].into_iter().filter(|root| root.exists()) {
        for medium in [MediumKind::File, MediumKind::Map] {
            kill_again_and_again(root, medium, kills);
        }
    }
}

#[test]
fn a_killed_program_goes_on_from_its_last_promised_version() {
    kill_everywhere(10);
}

#[test]
#[ignore = "hundreds of kills: `make soak`"]
fn a_program_killed_200_times_on_each_medium_goes_on_from_its_last_promised_version() {
    kill_everywhere(200);
}
