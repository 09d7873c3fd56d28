//! Ways to keep states on this machine: which of them can be measured, and rounds of all.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use recoup::core::Bound;
use recoup::tape::PageSize;
use serde::Serialize;

use super::rounds::{RunPlan, StateWave, WayFigures};
use super::sizes::{ProcessCounts, StateSizes, UniformStates};
use super::ways::{KeeperPlan, KeepingWay, locked};
use super::{Args, PagesChoice};
use crate::execute::stop_on_signals;
use crate::exit::{Exit, message};
use crate::free_memory::free_bytes;
use crate::observe::steps::StepBar;
use crate::output::{TextTable, bytes, seconds};

/// States by default.
pub(super) const STATES: UniformStates = UniformStates { n_states: 64, state_bytes: 16 << 20 };
/// Rounds by default.
const ROUNDS: u16 = 5;
/// A directory in memory, where the system has one.
const SHARED_MEMORY: &str = "/dev/shm";

/// The printed report.
#[derive(Debug, Serialize)]
pub(super) struct HostBench {
    on: String,
    /// Option that states the sizes.
    states: String,
    n_states: usize,
    state_bytes_greatest: u64,
    interval_s: f64,
    rounds: u16,
    /// Memory of a tape that spills.
    host_bytes: u64,
    /// Name of the device.
    device: Option<String>,
    /// Memory of the device for each process.
    device_bytes: Option<u64>,
    ways: Vec<MeasuredWay>,
}

/// A way with a number of processes.
#[derive(Debug, Serialize)]
struct MeasuredWay {
    processes: usize,
    way: &'static str,
    /// Reason why it was not measured.
    skipped: Option<String>,
    #[serde(flatten)]
    figures: Option<WayFigures>,
}

/// A way, or the reason why it cannot be measured.
pub(super) struct PlannedWay {
    pub(super) way: KeepingWay,
    pub(super) skipped: Option<String>,
}

/// Ways to measure, and their states.
pub(super) struct BenchPlan {
    pub(super) counts: ProcessCounts,
    pub(super) sizes: StateSizes,
    pub(super) keeper: KeeperPlan,
    pub(super) ways: Vec<PlannedWay>,
    /// Difference that a codec may leave.
    pub(super) error_bound: f64,
}

/// Measures all ways in turns.
///
/// # Errors
/// Exit 2 for more than this machine has, and a codec without its bound; errors of a way.
pub(super) fn measure(args: &Args) -> Result<HostBench> {
    let counts = args.processes.clone().unwrap_or(ProcessCounts(vec![1]));
    let sizes = args.sizes(STATES, counts.most())?;
    let codec_bound = codec_bound(args)?;
    check_memory(&sizes, counts.most())?;
    let keeper = keeper(args, &sizes, codec_bound)?;
    let ways = planned(args, &keeper, &sizes, counts.most())?;
    BenchPlan { counts, sizes, keeper, ways, error_bound: codec_bound.map_or(0.0, Bound::value) }.measure(args)
}

impl BenchPlan {
    /// Measures all ways in turns.
    pub(super) fn measure(self, args: &Args) -> Result<HostBench> {
        let Self { counts, sizes, keeper, ways, error_bound } = self;
        let stop = stop_on_signals()?;
        let rounds = args.rounds.unwrap_or(ROUNDS);
        let host_bytes = keeper.part_bytes;
        let (device, device_bytes) = keeper.device().unzip();
        let interval = Duration::from_secs_f64(args.interval);
        let plan = RunPlan { wave: &StateWave::new(&sizes), keeper, interval, error_bound, stop: &stop };
        let n_runs = ways.iter().filter(|way| way.skipped.is_none()).count();
        let mut bar = StepBar::new("measuring", n_runs * counts.0.len() * usize::from(rounds));
        let mut measured = Vec::new();
        for &processes in &counts.0 {
            let figures = in_turns(&plan, &ways, processes, rounds, &mut bar)?;
            measured.extend(ways.iter().zip(figures).map(|(planned, figures)| MeasuredWay {
                processes,
                way: planned.way.name(),
                skipped: planned.skipped.clone(),
                figures: (!figures.is_empty()).then(|| WayFigures::medians(&figures)),
            }));
        }
        Ok(HostBench {
            on: args.machine(),
            n_states: sizes.n_states(),
            state_bytes_greatest: sizes.greatest_bytes(),
            states: sizes.source,
            interval_s: args.interval,
            rounds,
            host_bytes,
            device,
            device_bytes,
            ways: measured,
        })
    }
}

/// Measures each way once a round. Another way begins each round.
fn in_turns(
    plan: &RunPlan<'_>,
    ways: &[PlannedWay],
    n_processes: usize,
    rounds: u16,
    bar: &mut StepBar,
) -> Result<Vec<Vec<WayFigures>>> {
    let mut figures = vec![Vec::new(); ways.len()];
    for round in 0..usize::from(rounds) {
        for index in (0..ways.len()).map(|turn| (turn + round) % ways.len()) {
            let PlannedWay { way, skipped } = &ways[index];
            if skipped.is_none() {
                bar.show(&format!("round {}: {}, {n_processes} processes", round + 1, way.name()));
                figures[index].push(plan.run(way, n_processes)?);
            }
        }
    }
    Ok(figures)
}

/// Returns the bound that the options ask for.
pub(super) fn codec_bound(args: &Args) -> Result<Option<Bound>> {
    match (args.codec, args.error_bound) {
        (None, _) => Ok(None),
        (Some(codec), None) if codec.needs_bound() => {
            Err(Exit::Usage.because(format!("--codec {codec} needs --error-bound E: states are waves of height 1")))
        }
        (Some(codec), error_bound) => {
            let bound = error_bound.map_or(Bound::Lossless, Bound::Absolute);
            codec.check_bound(bound).map_err(|error| Exit::Usage.because(format!("--error-bound: --{error}")))?;
            Ok(Some(bound))
        }
    }
}

/// Sizes the memory of the ways.
pub(super) fn keeper(args: &Args, sizes: &StateSizes, bound: Option<Bound>) -> Result<KeeperPlan> {
    let codec = args.codec.map(recoup::compress::codec).transpose();
    let codec = codec.map_err(|error| Exit::NotAvailable.because(format!("--codec: {error}")))?;
    let room = |states: &Vec<u64>| KeeperPlan::memory_bytes(states.len(), states.iter().sum());
    let whole_bytes = sizes.of_process.iter().map(room).max().unwrap_or(0);
    let two_states = 2 * KeeperPlan::memory_bytes(1, sizes.greatest_bytes());
    let part_bytes = args.host.unwrap_or((whole_bytes / 4).max(two_states));
    let pages = if args.pages == Some(PagesChoice::Small) { PageSize::Small } else { PageSize::Huge };
    Ok(KeeperPlan {
        pages,
        whole_bytes,
        part_bytes,
        codec: codec.zip(bound),
        #[cfg(feature = "cuda")]
        device: None,
    })
}

/// Returns the ways that the options ask for.
fn planned(args: &Args, keeper: &KeeperPlan, sizes: &StateSizes, n_processes: usize) -> Result<Vec<PlannedWay>> {
    let plan = |way: KeepingWay| PlannedWay { way, skipped: None };
    let lock = locked(keeper.whole_bytes.saturating_mul(n_processes as u64), keeper.pages);
    let mut ways = vec![plan(KeepingWay::Vec)];
    ways.push(PlannedWay { way: KeepingWay::Direct, skipped: lock.err().map(|error| message(&error)) });
    let pages = args.pages.unwrap_or(PagesChoice::Both);
    if pages != PagesChoice::Huge {
        ways.push(plan(KeepingWay::SmallPages));
    }
    if pages != PagesChoice::Small {
        ways.push(plan(KeepingWay::HugePages));
    }
    ways.push(plan(KeepingWay::Untouched));
    let spilled_bytes = sizes.total_bytes(n_processes);
    if let Some(directory) = &args.spill {
        check_spill(directory, spilled_bytes)?;
        ways.push(plan(KeepingWay::Spill(directory.clone())));
    }
    let shared = PathBuf::from(SHARED_MEMORY);
    let skipped = unusable(&shared, spilled_bytes).map(|finding| format!("{SHARED_MEMORY}: {finding}"));
    ways.push(PlannedWay { way: KeepingWay::Tmpfs(shared), skipped });
    if keeper.codec.is_some() {
        ways.push(plan(KeepingWay::Coded));
    }
    Ok(ways)
}

/// Refuses a directory that cannot take this many bytes.
pub(super) fn check_spill(directory: &Path, needed: u64) -> Result<()> {
    let refused = |finding| Exit::Usage.because(format!("--spill {}: {finding}", directory.display()));
    unusable(directory, needed).map_or(Ok(()), |finding| Err(refused(finding)))
}

/// Returns why a directory cannot take this many bytes.
fn unusable(directory: &Path, needed: u64) -> Option<String> {
    if !directory.is_dir() {
        return Some("there is no such directory".to_owned());
    }
    if let Err(error) = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK) {
        return Some(format!("not allowed to write there: {error}"));
    }
    let free = rustix::fs::statvfs(directory).map(|found| found.f_bavail.saturating_mul(found.f_frsize)).ok()?;
    let [needed_text, free_text] = [needed, free].map(|count| bytes(count as f64));
    (free < needed).then(|| format!("{needed_text} of states, {free_text} are free"))
}

/// Refuses more states than fit the memory that is free.
pub(super) fn check_memory(sizes: &StateSizes, n_processes: usize) -> Result<()> {
    let states = sizes.total_bytes(n_processes);
    let buffers = sizes.greatest_bytes().saturating_mul(2 * n_processes as u64 + 1);
    // A quarter more, for tapes whose directory is memory as well.
    let needed = states.saturating_add(states / 4).saturating_add(buffers);
    let Some(free) = free_bytes().filter(|free| *free < needed) else { return Ok(()) };
    let [states, needed, free] = [states, needed, free].map(|count| bytes(count as f64));
    Err(Exit::Usage.because(format!(
        "{}: {states} of states in {n_processes} processes need {needed} of memory, {free} are free; name fewer or \
         smaller states, or fewer processes",
        sizes.source
    )))
}

/// Draws the report for people.
pub(super) fn table(report: &HostBench) -> TextTable {
    let heads = ["before", "push 1", "push 10", "median", "most", "GB/s", "pop", "most", "GB/s", "all"];
    let has_counts = report.ways.iter().any(|way| way.processes != report.ways[0].processes);
    let mut table = TextTable::new(&[&["way"], &heads[..]].concat());
    let ms = |value: f64| format!("{:.2}", value * 1e3);
    let rate = |value: f64| format!("{:.2}", value / 1e9);
    for row in &report.ways {
        let name = if has_counts { format!("{} x {}", row.processes, row.way) } else { row.way.to_owned() };
        let cells = match &row.figures {
            Some(of) => vec![
                ms(of.before_s),
                ms(of.push_first_s),
                ms(of.push_tenth_s),
                ms(of.push_median_s),
                ms(of.push_greatest_s),
                rate(of.push_bytes_per_second),
                ms(of.pop_median_s),
                ms(of.pop_greatest_s),
                rate(of.pop_bytes_per_second),
                ms(of.waited_s),
            ],
            None => vec!["-".to_owned(); heads.len()],
        };
        table.row(std::iter::once(name).chain(cells));
    }
    table.note(format!(
        "times in ms; medians of {} rounds; {} states of at most {}, {} apart",
        report.rounds,
        report.n_states,
        bytes(report.state_bytes_greatest as f64),
        seconds(report.interval_s)
    ));
    if let Some(device) = &report.device {
        let memory = bytes(report.device_bytes.unwrap_or(0) as f64);
        table.note(format!("states are stored on {device}; {memory} of its memory for each process"));
    }
    table.note("before: preparation; all: with preparation, all calls, and giving memory up at the end");
    for row in &report.ways {
        if let Some(reason) = &row.skipped {
            table.note(format!("{} was left out: {reason}", row.way));
        }
        if let Some(ratio) = row.figures.and_then(|of| of.ratio).filter(|_| row.way == KeepingWay::Coded.name()) {
            table.note(format!("{}: a ratio of {ratio:.1}", row.way));
        }
    }
    table
}
