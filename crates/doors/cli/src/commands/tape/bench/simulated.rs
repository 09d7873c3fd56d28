//! Ways to keep states on a machine in virtual time.

use anyhow::{Context, Result};
use recoup::tape::PlaceError;
use recoup::tape::simulated::{
    Approach, Blocking, MachineScenario, NodeRates, SimulatedCodec, UNIFORM_BYTES, UNIFORM_STATES,
};
use serde::Serialize;

use super::Args;
use super::sizes::{ProcessCounts, StateSizes, UniformStates};
use crate::exit::Exit;
use crate::observe::steps::StepBar;
use crate::output::{TextTable, bytes, seconds};

/// Numbers of processes by default, as published.
const PROCESSES: [usize; 4] = [1, 2, 4, 8];
/// Memory of a device by default, as published.
const DEVICE_BYTES: u64 = 4 << 30;
/// Memory of the host for each process by default, as published.
const HOST_BYTES: u64 = 32 << 30;
/// Approaches without a codec. The first is what the others are compared with.
const APPROACHES: [(&str, Approach); 4] = [
    ("direct", Approach::Direct),
    ("memset", Approach::MEMSET),
    ("published", Approach::PUBLISHED),
    ("chunked", Approach::Chunked),
];

/// The printed report.
#[derive(Debug, Serialize)]
pub(super) struct SimulatedBench {
    on: String,
    /// Option that states the sizes.
    states: String,
    n_states: usize,
    state_bytes_greatest: u64,
    interval_s: f64,
    host_bytes: u64,
    device_bytes: u64,
    approaches: Vec<SimulatedApproach>,
}

/// An approach with a number of processes: means over these.
#[derive(Debug, Serialize)]
struct SimulatedApproach {
    processes: usize,
    approach: &'static str,
    push_s: f64,
    pop_s: f64,
    waited_s: f64,
    /// Times that direct allocation waits longer in pushes.
    push_gain: f64,
    /// Times that direct allocation waits longer in all.
    gain: f64,
}

/// Runs all approaches for each number of processes.
///
/// # Errors
/// Exit 2 for a codec without figures, and when states do not fit.
pub(super) fn measure(args: &Args) -> Result<SimulatedBench> {
    let codec = codec(args)?;
    let counts = args.processes.clone().unwrap_or(ProcessCounts(PROCESSES.to_vec()));
    let sizes = args.sizes(UniformStates { n_states: UNIFORM_STATES, state_bytes: UNIFORM_BYTES }, counts.most())?;
    let scenario = |n_processes: usize| MachineScenario {
        rates: NodeRates::a100(),
        interval_seconds: args.interval,
        device_bytes: args.device.unwrap_or(DEVICE_BYTES),
        host_bytes: args.host.unwrap_or(HOST_BYTES),
        states: sizes.of_process[..n_processes].to_vec(),
    };
    let n_approaches = APPROACHES.len() + usize::from(codec.is_some());
    let mut bar = StepBar::new("simulating", n_approaches * counts.0.len());
    let mut approaches = Vec::new();
    for &n_processes in &counts.0 {
        let scenario = scenario(n_processes);
        let mut runs = Vec::new();
        for (name, approach) in APPROACHES {
            bar.show(&format!("{name}, {n_processes} processes"));
            runs.push((name, scenario.run(approach)));
        }
        if let Some(codec) = codec {
            bar.show(&format!("coded, {n_processes} processes"));
            let coded = MachineScenario { rates: scenario.rates.coded(codec), ..scenario.clone() };
            runs.push(("coded", coded.run(Approach::Chunked)));
        }
        approaches.extend(compared(n_processes, runs).with_context(|| room(&scenario, &sizes))?);
    }
    let scenario = scenario(1);
    Ok(SimulatedBench {
        on: args.machine(),
        n_states: sizes.n_states(),
        state_bytes_greatest: sizes.greatest_bytes(),
        states: sizes.source,
        interval_s: args.interval,
        host_bytes: scenario.host_bytes,
        device_bytes: scenario.device_bytes,
        approaches,
    })
}

/// Returns the codec that the options describe.
fn codec(args: &Args) -> Result<Option<SimulatedCodec>> {
    let Some(id) = args.codec else { return Ok(None) };
    match args.ratio.filter(|ratio| ratio.is_finite()).zip(args.codec_rate) {
        Some((ratio, rate)) => Ok(Some(SimulatedCodec { ratio, rate })),
        None => Err(Exit::Usage.because(format!(
            "--codec {id} with --on simulated:a100: nothing is encoded; state what it reaches there with --ratio R and \
             --codec-rate BYTES/S"
        ))),
    }
}

/// Says which room the states do not fit.
fn room(scenario: &MachineScenario, sizes: &StateSizes) -> String {
    let [device, host, states] = [scenario.device_bytes, scenario.host_bytes, sizes.total_bytes(1)];
    let [device, host, states] = [device, host, states].map(|count| bytes(count as f64));
    format!("--device {device} and --host {host} for {states} of states: name more room, or fewer states")
}

/// Compares the runs of one number of processes with the first of them.
fn compared(
    processes: usize,
    runs: Vec<(&'static str, Result<Blocking, PlaceError>)>,
) -> Result<Vec<SimulatedApproach>, PlaceError> {
    let mut rows: Vec<SimulatedApproach> = Vec::new();
    for (approach, blocking) in runs {
        let blocking = blocking?;
        let row = SimulatedApproach {
            processes,
            approach,
            push_s: blocking.push_seconds,
            pop_s: blocking.pop_seconds,
            waited_s: blocking.total_seconds(),
            push_gain: 1.0,
            gain: 1.0,
        };
        let row = match rows.first() {
            Some(direct) => {
                SimulatedApproach { push_gain: direct.push_s / row.push_s, gain: direct.waited_s / row.waited_s, ..row }
            }
            None => row,
        };
        rows.push(row);
    }
    Ok(rows)
}

/// Draws the report for people.
pub(super) fn table(report: &SimulatedBench) -> TextTable {
    let mut table =
        TextTable::new(&["processes", "approach", "pushes", "pops", "all", "gain of pushes", "gain of all"]);
    for row in &report.approaches {
        table.row([
            row.processes.to_string(),
            row.approach.to_owned(),
            seconds(row.push_s),
            seconds(row.pop_s),
            seconds(row.waited_s),
            format!("{:.1}x", row.push_gain),
            format!("{:.1}x", row.gain),
        ]);
    }
    table.note(format!(
        "mean time that a process waits, in virtual time; {} states of at most {}, {} apart",
        report.n_states,
        bytes(report.state_bytes_greatest as f64),
        seconds(report.interval_s)
    ));
    table.note("gain: times that direct allocation waits longer");
    table
}
