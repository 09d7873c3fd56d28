//! A column of Table 1 as a system of three tiers, and its efficiency.
//!
//! A version is all memory of all GPUs, and none of the CPUs. The host's memory answers for GPUs
//! and CPUs, the disk for nodes, the parallel file system for the system; programs wait for each,
//! and a recovery takes as long as a version. The publication states none of this.

use recoup::model::multilevel::{CheckpointLevel, LevelPlan};
use recoup::model::simulate::MultilevelSimulation;
use recoup::model::system::{CheckpointedSystem, ComponentRates, StorageTier, SystemMachine};

use crate::published::{SYSTEM_FAILURES, SystemColumn, node};

/// Failures of a simulated run, about.
const SIMULATED_FAILURES: f64 = 1e5;
/// Its length at most, in mean times between the rarest failures.
const SIMULATED_MTTIS: f64 = 20.0;

/// Describes a column of Table 1.
pub(crate) fn system(column: &SystemColumn) -> CheckpointedSystem {
    let [gpu, cpu, node] = column.failures;
    let tier = |name: &str, bytes_per_second, failures_per_second| StorageTier {
        name: name.to_owned(),
        bytes_per_second,
        failures_per_second,
        waited_share: 1.0,
        written_share: 1.0,
    };
    let of_system = |rate| ComponentRates { system: Some(rate), ..ComponentRates::default() };
    let of_chips = ComponentRates { gpu: Some(gpu / column.gpus), cpu: Some(cpu / column.cpus), ..Default::default() };
    let of_nodes = ComponentRates { node: Some(node / column.nodes), ..Default::default() };
    CheckpointedSystem {
        name: format!("{} exaflops, {} GPUs for each CPU", column.exaflops, column.gpus_per_cpu),
        machine: SystemMachine {
            nodes: column.nodes,
            cpus_per_node: node::CPUS,
            gpus_per_cpu: column.gpus_per_cpu,
            saved_bytes_per_gpu: node::GPU_BYTES,
        },
        tiers: vec![
            tier("host memory", of_system(column.pcie * 1e9), of_chips),
            tier("local disk", of_system(column.local * 1e9), of_nodes),
            tier("parallel file system", of_system(column.pfs * 1e9), of_system(SYSTEM_FAILURES)),
        ],
    }
}

/// A checkpoint of a GPU's memory, relative to a full blocking one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceCheckpoint {
    /// Time that the program is delayed, over the time of the full one.
    pub(crate) delay: f64,
    /// Time from the end of the delay until the version is in the host's memory, over the same.
    pub(crate) drain: f64,
    /// Share of the memory that is written, there and to the tiers behind.
    pub(crate) written: f64,
}

/// The levels of a system.
#[derive(Clone, Debug)]
pub(crate) struct SystemLevels(Vec<CheckpointLevel>);

/// A part of the system that costs no time at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreePart {
    /// From GPUs to the memory of the host.
    Link = 0,
    /// To the local disk.
    Disk = 1,
}

impl SystemLevels {
    /// Full blocking checkpoints.
    pub(crate) fn of(system: &CheckpointedSystem) -> Self {
        Self(system.levels())
    }

    /// Other checkpoints of the GPUs' memory; recoveries still read all.
    pub(crate) fn with(mut self, checkpoint: DeviceCheckpoint) -> Self {
        let full_seconds = self.0[0].recovery_seconds;
        for level in &mut self.0 {
            level.checkpoint_seconds *= checkpoint.written;
        }
        self.0[0].checkpoint_seconds = checkpoint.delay * full_seconds;
        self.0[0].drain_seconds = checkpoint.drain * full_seconds;
        self
    }

    /// A part without any time.
    pub(crate) fn without(mut self, part: FreePart) -> Self {
        let level = &mut self.0[part as usize];
        *level = CheckpointLevel { checkpoint_seconds: 0.0, recovery_seconds: 0.0, drain_seconds: 0.0, ..*level };
        self
    }

    /// Recoveries that take no time.
    pub(crate) fn with_free_recoveries(mut self) -> Self {
        self.0.iter_mut().for_each(|level| level.recovery_seconds = 0.0);
        self
    }

    /// Memories that are filled to this share.
    pub(crate) fn filled(mut self, share: f64) -> Self {
        for level in &mut self.0 {
            level.checkpoint_seconds *= share;
            level.recovery_seconds *= share;
            level.drain_seconds *= share;
        }
        self
    }

    /// Productive time over all time, in percent, at the best intervals.
    pub(crate) fn efficiency(&self) -> f64 {
        100.0 * self.plan().efficiency()
    }

    /// The same if no recovery ever failed: each then costs R, in place of `(exp(l R) - 1) / l`.
    /// The best intervals stay.
    pub(crate) fn efficiency_of_safe_recoveries(&self) -> f64 {
        let gain = |level: &CheckpointLevel| {
            let failures = level.recovery_seconds / level.mtti_seconds;
            failures.exp() / (1.0 + failures)
        };
        self.efficiency() * self.0.iter().map(gain).product::<f64>()
    }

    /// The same to first order: `1 / (1 + sum(sqrt(2 C l) + l R))`.
    pub(crate) fn efficiency_to_first_order(&self) -> f64 {
        let overhead = |level: &CheckpointLevel| {
            let lost = 2.0 * level.checkpoint_seconds / level.mtti_seconds;
            lost.sqrt() + level.recovery_seconds / level.mtti_seconds
        };
        100.0 / (1.0 + self.0.iter().map(overhead).sum::<f64>())
    }

    /// The same under random failures; `None` where a level costs nothing.
    pub(crate) fn simulated_efficiency(&self, trials: u32, seed: u64) -> Option<f64> {
        let plan = self.plan();
        let pattern = plan.renewal_pattern()?;
        let mttis = || self.0.iter().map(|level| level.mtti_seconds);
        let longest = mttis().fold(0.0, f64::max);
        let shortest = mttis().fold(f64::INFINITY, f64::min);
        let work_seconds = (SIMULATED_MTTIS * longest).min(SIMULATED_FAILURES * shortest);
        let found = MultilevelSimulation { plan, pattern, work_seconds, trials, seed }.run();
        Some(100.0 / (1.0 + found.mean))
    }

    fn plan(&self) -> LevelPlan {
        LevelPlan::of_all(&self.0)
    }
}
