//! A program that is killed for real, again and again, goes on from its last promised version.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use recoup_memory::{MediumKind, Memory, MemoryOptions, MemoryReader, MvArray};
use recoup_model::Rng;

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

fn advance(field: &mut MvArray<f64>, counts: &mut MvArray<u64>, step: u64) {
    let (first, value) = change(step);
    let length = 3000 - (step % 7) as usize * 400;
    field.write(first..first + length).iter_mut().enumerate().for_each(|(i, x)| *x = value + i as f64);
    // The counts grow with the steps: tables and blocks move.
    counts.resize(step as usize % 2000 + 1, 0);
    counts.write(0..1)[0] = step;
}

fn first_state() -> (MvArray<f64>, MvArray<u64>) {
    (MvArray::zeros("field", VALUES), MvArray::zeros("counts", 1))
}

/// Goes on from the newest version, and says each step that was promised.
#[test]
fn child() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let medium = if std::env::var(MEDIUM).unwrap() == "Map" { MediumKind::Map } else { MediumKind::File };
    let options = MemoryOptions { keep: 2, block_bytes: 4096, medium };
    let mut memory = Memory::open(Path::new(&file), options).unwrap();
    let (mut field, mut counts) = first_state();
    let newest = memory.restore_newest(&mut [&mut field, &mut counts]).unwrap();
    let mut out = std::io::stdout();
    for step in newest.map_or(0, |version| version.step) + 1.. {
        advance(&mut field, &mut counts, step);
        memory.commit(step, &mut [&mut field, &mut counts]).unwrap();
        writeln!(out, "\npromised {step}").unwrap();
        out.flush().unwrap();
    }
}

/// Runs a child, and kills it some time after its first commit. Returns the last step it promised.
fn run_and_kill(path: &Path, medium: MediumKind, wait: Duration) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(FILE, path).env(MEDIUM, format!("{medium:?}"));
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
    let (mut field, mut counts) = first_state();
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
            (reached + 1..=version.step).for_each(|step| advance(&mut field, &mut counts, step));
            if version.step < reached {
                // It was compared after the kill before.
                assert_eq!(view.verify().unwrap(), []);
                continue;
            }
            reached = version.step;
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
            assert!(bits(&view.values("field").unwrap()) == bits(&field), "kill {kill}, step {reached}");
            assert_eq!(view.values::<u64>("counts").unwrap(), counts[..], "kill {kill}, step {reached}");
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
