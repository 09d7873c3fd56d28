//! Figures 3 to 6.

use recoup::tape::simulated::{
    Approach, Blocking, MachineScenario, NodeRates, PinningTurns, SimulatedCodec, UNIFORM_BYTES,
};
use recoup::tape::{PlaceError, TouchMode};

use crate::Failed;
use crate::draw::{self, Axes, Series};
use crate::sheet::{NamedSheet, Sheet, percent};

/// Sizes of the checkpoints of a seismic run; see tests/data/README.md.
const TRACE: &str = include_str!("../../crates/adjoint/tape/tests/data/rtm-sizes.csv");
/// Repetitions of the trace. It has 30 checkpoints; the published shots have 20 to 24 GB.
const TRACE_REPEATS: usize = 6;
/// Numbers of processes.
const PROCESSES: [usize; 4] = [1, 2, 4, 8];
/// Computation between two states, in milliseconds.
const INTERVALS_MS: [f64; 8] = [5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 80.0, 120.0];
/// Factors of the bands of rates that are not stated.
const BAND: [f64; 2] = [0.5, 1.5];

type Made = Result<Sheet, Failed>;

/// One of the rates.
type RateOf = fn(&mut NodeRates) -> &mut f64;

/// Every figure, in the order of the paper, and what the paper does not do.
pub(crate) const SHEETS: [NamedSheet<NodeRates>; 8] = [
    ("fig3", fig3),
    ("fig4", fig4),
    ("fig5", fig5),
    ("fig5c", fig5c),
    ("fig6", fig6),
    ("fig6c", fig6c),
    ("bands", bands),
    ("beyond", beyond),
];

/// A figure with a table.
fn table(title: &str, head: &[&str], rows: &[Vec<String>]) -> Sheet {
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    sheet.table(head, rows);
    sheet
}

/// A ratio.
fn times(ratio: f64) -> String {
    format!("{ratio:.1}x")
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

/// The same runs by each approach.
struct Compared {
    direct: Blocking,
    memset: Blocking,
    published: Blocking,
    chunked: Blocking,
}

impl Compared {
    fn of(scenario: &MachineScenario) -> Result<Self, PlaceError> {
        Ok(Self {
            direct: scenario.run(Approach::Direct)?,
            memset: scenario.run(Approach::MEMSET)?,
            published: scenario.run(Approach::PUBLISHED)?,
            chunked: scenario.run(Approach::Chunked)?,
        })
    }

    /// Gains over direct registration: of pushes and of all calls, for three approaches.
    fn gains(&self) -> [[f64; 2]; 3] {
        [self.memset, self.published, self.chunked]
            .map(|one| [self.direct.push_seconds / one.push_seconds, self.direct.total_seconds() / one.total_seconds()])
    }

    fn row(&self, label: String) -> Vec<String> {
        let mut row = vec![label, seconds(self.direct.push_seconds), seconds(self.published.push_seconds)];
        row.extend(self.gains().iter().flatten().map(|&gain| times(gain)));
        row
    }
}

const GAINS_HEAD: [&str; 9] =
    ["", "direct", "published", "memset", "with pops", "published", "with pops", "chunks", "with pops"];

/// A table of gains and a drawing of those of pushes.
fn gains(title: &str, file: &str, x: &str, labels: &[f64], all: &[Compared]) -> Sheet {
    let rows: Vec<_> = labels.iter().zip(all).map(|(label, one)| one.row(format!("{label} {x}"))).collect();
    let line = |which: usize, name: &str| Series {
        name: name.to_owned(),
        points: labels.iter().zip(all).map(|(&label, one)| (label, one.gains()[which][0])).collect(),
        colour: which,
        dashed: false,
    };
    let names = ["small pages (memset)", "published approach", "registration by chunks"];
    let drawn = names.iter().enumerate().map(|(which, name)| line(which, name)).collect();
    let axes = Axes { title, x, y: "pushes: less waiting than direct, times", log_x: false, log_y: true };
    let mut sheet = table(title, &GAINS_HEAD, &rows);
    sheet.figures.push((file.to_owned(), draw::lines(axes, drawn)));
    sheet
}

fn most(all: &[Compared], which: usize) -> f64 {
    all.iter().map(|one| one.gains()[1][which]).fold(0.0, f64::max)
}

fn trace_states() -> Vec<Vec<u64>> {
    let columns = TRACE.lines().next().map_or(0, |line| line.split(',').count());
    let size = |line: &str, column: usize| line.split(',').nth(column).and_then(|cell| cell.trim().parse().ok());
    let one = |column: usize| TRACE.lines().filter_map(|line| size(line, column)).collect::<Vec<u64>>();
    (0..columns).map(|column| one(column).repeat(TRACE_REPEATS)).collect()
}

fn by_interval(scenario: impl Fn(f64) -> MachineScenario) -> Result<Vec<Compared>, PlaceError> {
    INTERVALS_MS.iter().map(|ms| Compared::of(&scenario(ms * 1e-3))).collect()
}

fn fig3(rates: &NodeRates) -> Made {
    let scenario = |interval| {
        let base = MachineScenario::large_host(rates.clone(), 8, interval);
        MachineScenario { states: trace_states(), ..base }
    };
    let all = by_interval(scenario)?;
    let mut sheet = gains("Figures 3b, 3c: sizes of a seismic run, 8 processes", "fig3", "ms", &INTERVALS_MS, &all);
    sheet.say("Published: up to 16.7x (pushes) and 9.3x (with pops) over direct registration.");
    sheet.say(format!("The public trace has 30 states for each process; it is repeated {TRACE_REPEATS} times."));
    Ok(sheet)
}

fn fig4(rates: &NodeRates) -> Made {
    let mut rows = Vec::new();
    let mut least = [1.0, 1.0];
    for n in PROCESSES {
        let scenario = MachineScenario::large_device(rates.clone(), n, 0.02);
        let direct = scenario.run(Approach::Direct)?;
        let grown = scenario.run(Approach::PUBLISHED)?;
        let left = [grown.push_seconds / direct.push_seconds, grown.total_seconds() / direct.total_seconds()];
        least = [left[0].min(least[0]), left[1].min(least[1])];
        let rate = rates.map_process.min(rates.map_node / n as f64);
        rows.push(vec![
            format!("{n} processes"),
            format!("{:.0} GB/s", rate / 1e9),
            format!("{:.3} s", direct.push_seconds),
            format!("{:.3} s", grown.push_seconds),
            percent(1.0 - left[0]),
            percent(1.0 - left[1]),
        ]);
    }
    let head = ["", "mapping (4a)", "direct", "by chunks", "less (4b)", "with pops (4c)"];
    let mut sheet = table("Figure 4: states fit the device", &head, &rows);
    sheet.say("Published: 1.2 TB/s for one process and 160 GB/s for each of eight (4a, an input here);");
    sheet.say(format!("up to 76 % less for pushes (4b), here {};", percent(1.0 - least[0])));
    sheet.say(format!("up to 63 % less with pops (4c), here {}.", percent(1.0 - least[1])));
    Ok(sheet)
}

fn fig5(rates: &NodeRates) -> Made {
    let all = by_interval(|interval| MachineScenario::large_host(rates.clone(), 8, interval))?;
    let mut sheet = gains("Figures 5a, 5b: uniform states, 8 processes", "fig5", "ms", &INTERVALS_MS, &all);
    sheet.say(format!(
        "Published: up to 12.5x and 7.8x. Here up to {} and {}: no copy stalls at long intervals.",
        times(most(&all, 0)),
        times(most(&all, 1))
    ));
    sheet.say("Figure 6a has 27.8x at 20 ms, more than the most of Figure 5a; the text does not say why.");
    sheet.say("UVM is left out: no rate of its faults and evictions is stated.");
    Ok(sheet)
}

fn fig5c(rates: &NodeRates) -> Made {
    let whole = |touching, turns| Approach::Whole { touching: Some(touching), turns };
    let mut rows = Vec::new();
    let mut crossing = None;
    for ms in INTERVALS_MS {
        let scenario = MachineScenario::large_host(rates.clone(), 8, ms * 1e-3);
        let run = |touching, turns| scenario.run(whole(touching, turns)).map(|one| one.push_seconds);
        let sequential = run(TouchMode::Sequential, PinningTurns::Serial)?;
        let concurrent = run(TouchMode::Concurrent, PinningTurns::Serial)?;
        let parallel = run(TouchMode::Concurrent, PinningTurns::Parallel)?;
        let chosen = scenario.run(Approach::PUBLISHED)?.push_seconds;
        if sequential < concurrent && crossing.is_none() {
            crossing = Some(ms);
        }
        let mut row = vec![format!("{ms} ms")];
        row.extend([sequential, concurrent, chosen, parallel].map(seconds));
        row.push(times(concurrent / sequential));
        row.push(times(parallel / concurrent));
        rows.push(row);
    }
    let from = crossing.map_or("at no interval".to_owned(), |ms| format!("from {ms} ms on"));
    let head = ["", "sequential", "concurrent", "chosen", "all at once", "conc. / seq.", "at once / turns"];
    let mut sheet = table("Figure 5c: touching and registration", &head, &rows);
    let published = "Published: at all intervals but 5 ms, 43 % on average.";
    sheet.say(format!("Touching between copies waits less {from}. {published}"));
    sheet.say("Published for turns: 6.4x on average, 8x at most, over registration by all at once.");
    Ok(sheet)
}

fn fig6(rates: &NodeRates) -> Made {
    let of = |n: &usize| Compared::of(&MachineScenario::large_host(rates.clone(), *n, 0.02));
    let all = PROCESSES.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let labels = PROCESSES.map(|n| n as f64);
    let mut sheet = gains("Figures 6a, 6b: 1 to 8 processes, 20 ms", "fig6", "processes", &labels, &all);
    let mut slow = rates.clone();
    slow.link_unregistered /= rates.devices_per_link as f64;
    slow.devices_per_link = 1;
    let one = Compared::of(&MachineScenario::large_host(slow, 1, 0.02))?.gains()[1];
    sheet.say("Published: 7.6x and 4.7x for one process; 27.8x and 13.6x for eight.");
    sheet.say("Two rates are fitted to the 27.8x; see docs/hipc22/README.md.");
    sheet.say(format!(
        "One process has its link alone here. At the rate of a shared link it would gain {} and {}.",
        times(one[0]),
        times(one[1])
    ));
    Ok(sheet)
}

fn fig6c(rates: &NodeRates) -> Made {
    const SIZES_GIB: [f64; 4] = [8.0, 16.0, 32.0, 64.0];
    let of = |gib: &f64| {
        let host_bytes = (*gib as u64) << 30;
        let states = vec![vec![UNIFORM_BYTES; (host_bytes / UNIFORM_BYTES) as usize]; 8];
        let base = MachineScenario::large_host(rates.clone(), 8, 0.02);
        Compared::of(&MachineScenario { host_bytes, states, ..base })
    };
    let all = SIZES_GIB.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    let title = "Figure 6c: memory of the host for each of 8 processes, 20 ms";
    let mut sheet = gains(title, "fig6c", "GiB", &SIZES_GIB, &all);
    sheet.say("Published: 4.8x to 12.4x with pops. The number of states is not stated.");
    sheet.say("Here states fill the memory, and the gain falls where the published one rises.");
    Ok(sheet)
}

/// Figure 6a for eight processes, with each rate that is not stated halved and raised by half.
fn bands(rates: &NodeRates) -> Made {
    let vary: [(&str, RateOf); 3] = [
        ("touching, 8 GB/s", |rates| &mut rates.touch),
        ("touching and a copy at once keep 0.55", |rates| &mut rates.together),
        ("registration of touched pages, 36 GB/s", |rates| &mut rates.pin),
    ];
    let mut rows = Vec::new();
    for (name, field) in vary {
        let mut row = vec![name.to_owned()];
        for factor in BAND {
            let mut varied = rates.clone();
            *field(&mut varied) *= factor;
            let one = Compared::of(&MachineScenario::large_host(varied, 8, 0.02))?;
            row.extend(one.gains()[1].map(times));
        }
        rows.push(row);
    }
    let title = "Rates that the text does not state: gain of the published approach, 8 processes, 20 ms";
    Ok(table(title, &["", "halved", "with pops", "raised by half", "with pops"], &rows))
}

/// Registration by chunks, and devices that encode states before they leave, from one process to
/// eight.
fn beyond(rates: &NodeRates) -> Made {
    const CODECS: [SimulatedCodec; 2] =
        [SimulatedCodec { ratio: 2.0, rate: 50e9 }, SimulatedCodec { ratio: 10.0, rate: 50e9 }];
    let mut rows = Vec::new();
    for n in PROCESSES {
        let scenario = MachineScenario::large_host(rates.clone(), n, 0.02);
        let wait = |scenario: &MachineScenario, approach| scenario.run(approach).map(|one| one.total_seconds());
        let direct = wait(&scenario, Approach::Direct)?;
        let mut waits = vec![wait(&scenario, Approach::PUBLISHED)?, wait(&scenario, Approach::Chunked)?];
        for codec in CODECS {
            let coded = MachineScenario { rates: rates.coded(codec), ..scenario.clone() };
            waits.push(wait(&coded, Approach::Chunked)?);
        }
        let mut row = vec![format!("{n} processes")];
        row.extend(waits.iter().map(|&wait| seconds(wait)));
        row.extend(waits.iter().map(|wait| times(direct / wait)));
        rows.push(row);
    }
    let head = ["", "published", "chunks", "ratio 2", "ratio 10", "published", "chunks", "ratio 2", "ratio 10"];
    let mut sheet = table("Beyond the paper: 20 ms", &head, &rows);
    sheet.say("Time that a process waits in pushes and pops: the published approach, registration by chunks, and the");
    sheet.say("same with a codec of 50 GB/s on each device, by its ratio. Then gains over direct registration.");
    sheet.say("Ratio and rate of the codec are parameters: no device was timed. Copies within the device take 0.14 s.");
    Ok(sheet)
}
