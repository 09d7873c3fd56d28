//! Tests: the command prints what the page of the documentation shows, and the bytes that it counts
//! are those of the files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use recoup::VirtualClock;
use recoup::core::Clock as _;
use tempfile::TempDir;

use crate::keeper::{Keeper, Storage};
use crate::programs::{Kind, Sizes};
use crate::settings::Settings;
use crate::shared::SharedRate;
use crate::unloaded::UnloadedClock;
use crate::{Asked, Failed, SHEETS, report};

const PAGE: &str = include_str!("../../docs/nv-checkpoint/all.txt");

/// A folder in memory, if there is one: the tests time nothing, and syncs of a disk take long.
fn folder() -> Result<TempDir, Failed> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.exists() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? })
}

fn settings(root: &Path) -> Settings {
    Settings { runs: 1, rate: 1e9, sizes: Sizes::Small, memory: root.into(), disk: root.into() }
}

/// The words of a text, without all numbers and what stands next to them.
fn words(text: &str) -> Vec<String> {
    let is_word =
        |word: &&str| word.chars().any(char::is_alphabetic) && !word.chars().any(|sign| sign.is_ascii_digit());
    let units = ["s", "ms", "us", "MB", "P", "--size", "small;", "--runs", "--rate", "--"];
    let words = text.split_whitespace().filter(is_word).filter(|word| !units.contains(word));
    words.map(str::to_owned).collect()
}

#[test]
fn the_command_prints_the_words_of_its_page_at_any_size() -> Result<(), Failed> {
    let folder = folder()?;
    let out = folder.path().join("report");
    let text = report(&Asked { names: vec!["all".to_owned()], out: out.clone() }, &settings(folder.path()))?;
    let [printed, shown] = [words(&text), words(PAGE)];
    if let Some(first) = printed.iter().zip(&shown).position(|(printed, shown)| printed != shown) {
        let near = first.saturating_sub(5)..(first + 5).min(printed.len()).min(shown.len());
        panic!("printed is {:?}, the page has {:?}", &printed[near.clone()], &shown[near]);
    }
    assert_eq!(printed.len(), shown.len());
    assert_eq!(std::fs::read_to_string(out.join("all.txt"))?, text);
    for (name, _) in SHEETS.iter().filter(|(name, _)| name.starts_with("fig")) {
        let is_drawn = std::fs::read_dir(&out)?.flatten().any(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            file.starts_with(name) && file.ends_with(".svg")
        });
        assert!(is_drawn, "{name}");
    }
    Ok(())
}

/// The counted bytes are those of values and tables. A file has them in blocks, and its head and
/// list of versions.
#[test]
fn counted_bytes_are_those_of_the_files() -> Result<(), Failed> {
    const BLOCK: u64 = 64 << 10;
    let folder = folder()?;
    let settings = settings(folder.path());
    for kind in Kind::ALL {
        for storage in Storage::ALL {
            let mut keeper = Keeper::new(storage, &settings)?;
            let mut state = settings.sizes.problem(kind, 2).versioned();
            let counted = keeper.save(1, &mut *state)?;
            let files = keeper.file_bytes();
            assert_eq!(files.len(), 1, "{kind:?} {storage:?}");
            // At most six arrays and their tables end within a block. There is a list, and a head.
            let most = counted + 2 * 6 * BLOCK + 3 * BLOCK;
            assert!((counted..=most).contains(&files[0]), "{kind:?} {storage:?}: {counted} of {files:?}");
        }
    }
    Ok(())
}

/// The second checkpoint leaves the first as it is, until it is whole.
#[test]
fn checkpoints_take_turns_and_the_newer_one_is_restored() -> Result<(), Failed> {
    let folder = folder()?;
    let settings = settings(folder.path());
    let problem = settings.sizes.problem(Kind::Crack, 0);
    let mut keeper = Keeper::new(Storage::WholeShared, &settings)?;
    let mut state = problem.versioned();
    for step in 1..=3 {
        state.advance();
        keeper.save(step, &mut *state)?;
    }
    assert_eq!(keeper.file_bytes().len(), 2);
    let mut restored = problem.versioned();
    keeper.restore(&mut *restored)?;
    assert_eq!((restored.bits(), restored.version_step()), (state.bits(), Some(3)));
    Ok(())
}

#[test]
fn shared_bytes_take_the_time_of_their_rate_to_the_last_one() {
    let clock = Arc::new(VirtualClock::new());
    let rate = SharedRate::new(100e6, clock.clone());
    (0..4001).for_each(|_| rate.pass(1000));
    rate.pass_all();
    // Slices are whole nanoseconds each: at most one is lost for each of the four.
    assert!(clock.now().abs_diff(Duration::from_micros(40_010)) <= Duration::from_nanos(4));
}

#[test]
fn the_clock_goes_on_while_the_thread_computes_or_sleeps_and_never_back() {
    let clock = UnloadedClock::new();
    let times: Vec<_> = (0..1000).map(|_| clock.now()).collect();
    assert!(times.is_sorted() && times[999] > times[0]);
    let until = clock.now() + Duration::from_millis(2);
    clock.sleep_until(until);
    assert!(clock.now() >= until);
}
