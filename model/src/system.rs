//! Efficiency of a whole machine whose nodes are dense in accelerators, by its parts: rates of
//! storage and failures of each component.
//!
//! The state in the memory of all GPUs goes to tiers of storage. A tier writes as fast as its
//! slowest component, and answers for failures that the tiers before it do not survive. The
//! efficiency follows by [`crate::renewal`]. Source of the question: Lee, Sullivan, Hari, Tsai,
//! Keckler, Erez, ICS 2019, doi 10.1145/3330345.3330361, whose model is not stated.

use serde::{Deserialize, Serialize};

use crate::multilevel::{CheckpointLevel, LevelPlan};

/// A machine and the tiers it saves to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointedSystem {
    /// Name in tables.
    pub name: String,
    /// The machine.
    pub machine: SystemMachine,
    /// Its tiers, weakest first.
    #[serde(rename = "tier")]
    pub tiers: Vec<StorageTier>,
}

/// Numbers of components, and the bytes that are saved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemMachine {
    /// Nodes.
    pub nodes: f64,
    /// CPUs of a node.
    pub cpus_per_node: f64,
    /// GPUs for each CPU.
    pub gpus_per_cpu: f64,
    /// Bytes of a GPU that a version holds.
    pub saved_bytes_per_gpu: f64,
}

/// Storage that survives some failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageTier {
    /// Name in tables.
    pub name: String,
    /// Bytes per second to and from it: of one GPU, CPU or node, or of the system. The slowest
    /// counts.
    pub bytes_per_second: ComponentRates,
    /// Failures that this tier survives and no tier before it: of one GPU, CPU or node, or of the
    /// system.
    pub failures_per_second: ComponentRates,
    /// Share of a write for which programs wait; the rest drains while they compute.
    #[serde(default = "whole")]
    pub waited_share: f64,
    /// Share of the bytes that are written; a recovery reads all.
    #[serde(default = "whole")]
    pub written_share: f64,
}

fn whole() -> f64 {
    1.0
}

/// Rates by component, of each one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentRates {
    /// Rate of each GPU.
    pub gpu: Option<f64>,
    /// Rate of each CPU.
    pub cpu: Option<f64>,
    /// Rate of each node.
    pub node: Option<f64>,
    /// Rate of the whole system.
    pub system: Option<f64>,
}

/// Error of a description.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SystemError {
    /// A number of the machine makes no sense.
    #[error("machine.{key} is {found}: expected a number above 0")]
    Machine {
        /// Name in the description.
        key: &'static str,
        /// The number.
        found: f64,
    },
    /// No tier is described.
    #[error("no [[tier]] is described: expected at least one")]
    NoTier,
    /// A number of a tier makes no sense.
    #[error("tier {tier:?}: {key} is {found}: expected {expected}")]
    Tier {
        /// Position of the tier, from 0.
        index: usize,
        /// Name of the tier.
        tier: String,
        /// Name in the description.
        key: &'static str,
        /// The number.
        found: f64,
        /// Numbers that make sense.
        expected: &'static str,
    },
    /// The rate of a tier is not stated.
    #[error("tier {tier:?}: bytes_per_second states no rate: expected one of gpu, cpu, node and system")]
    NoRate {
        /// Position of the tier, from 0.
        index: usize,
        /// Name of the tier.
        tier: String,
    },
}

impl CheckpointedSystem {
    /// Checks every number.
    ///
    /// # Errors
    /// [`SystemError`] names the first number that makes no sense.
    pub fn check(&self) -> Result<(), SystemError> {
        let SystemMachine { nodes, cpus_per_node, gpus_per_cpu, saved_bytes_per_gpu } = self.machine;
        let keys = ["nodes", "cpus_per_node", "gpus_per_cpu", "saved_bytes_per_gpu"];
        for (key, found) in keys.into_iter().zip([nodes, cpus_per_node, gpus_per_cpu, saved_bytes_per_gpu]) {
            if !(found.is_finite() && found > 0.0) {
                return Err(SystemError::Machine { key, found });
            }
        }
        if self.tiers.is_empty() {
            return Err(SystemError::NoTier);
        }
        self.tiers.iter().enumerate().try_for_each(|(index, tier)| tier.check(index))
    }

    /// Returns this system with as many GPUs, but another number of them for each CPU.
    #[must_use]
    pub fn with_density(&self, gpus_per_cpu: f64) -> Self {
        let nodes = self.machine.nodes * self.machine.gpus_per_cpu / gpus_per_cpu;
        Self { machine: SystemMachine { nodes, gpus_per_cpu, ..self.machine }, ..self.clone() }
    }

    /// Returns this system with GPUs that fail `factor` times as often.
    #[must_use]
    pub fn with_gpu_failures(&self, factor: f64) -> Self {
        let mut system = self.clone();
        for rate in system.tiers.iter_mut().filter_map(|tier| tier.failures_per_second.gpu.as_mut()) {
            *rate *= factor;
        }
        system
    }

    /// Returns the tiers as levels of checkpoints.
    #[must_use]
    pub fn levels(&self) -> Vec<CheckpointLevel> {
        let bytes = self.machine.gpus() * self.machine.saved_bytes_per_gpu;
        let level = |tier: &StorageTier| {
            let bandwidth = self.machine.totals(tier.bytes_per_second).fold(f64::INFINITY, f64::min);
            let write_seconds = tier.written_share * bytes / bandwidth;
            CheckpointLevel {
                mtti_seconds: 1.0 / self.machine.totals(tier.failures_per_second).sum::<f64>(),
                checkpoint_seconds: tier.waited_share * write_seconds,
                recovery_seconds: bytes / bandwidth,
                drain_seconds: (1.0 - tier.waited_share) * write_seconds,
            }
        };
        self.tiers.iter().map(level).collect()
    }

    /// Returns the plan that uses every tier.
    #[must_use]
    pub fn plan(&self) -> LevelPlan {
        LevelPlan::of_all(&self.levels())
    }
}

impl SystemMachine {
    fn gpus(&self) -> f64 {
        self.nodes * self.cpus_per_node * self.gpus_per_cpu
    }

    /// Rates of all components of each kind that is stated.
    fn totals(&self, rates: ComponentRates) -> impl Iterator<Item = f64> {
        let of_one = [rates.gpu, rates.cpu, rates.node, rates.system];
        let counts = [self.gpus(), self.nodes * self.cpus_per_node, self.nodes, 1.0];
        of_one.into_iter().zip(counts).filter_map(|(rate, count)| rate.map(|rate| rate * count))
    }
}

impl StorageTier {
    fn check(&self, index: usize) -> Result<(), SystemError> {
        let tier = || self.name.clone();
        let refuse = |key, found, expected| Err(SystemError::Tier { index, tier: tier(), key, found, expected });
        let rates = self.bytes_per_second.stated();
        if rates.is_empty() {
            return Err(SystemError::NoRate { index, tier: tier() });
        }
        if let Some(&found) = rates.iter().find(|rate| rate.is_nan() || **rate <= 0.0) {
            return refuse("bytes_per_second", found, "a rate above 0, or inf");
        }
        let failures = self.failures_per_second.stated();
        if let Some(&found) = failures.iter().find(|rate| !(rate.is_finite() && **rate >= 0.0)) {
            return refuse("failures_per_second", found, "a rate of 0 or more");
        }
        for (key, found) in [("waited_share", self.waited_share), ("written_share", self.written_share)] {
            if !(0.0..=1.0).contains(&found) {
                return refuse(key, found, "a share from 0 to 1");
            }
        }
        Ok(())
    }
}

impl ComponentRates {
    fn stated(self) -> Vec<f64> {
        [self.gpu, self.cpu, self.node, self.system].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(component: &str, rate: f64) -> ComponentRates {
        let mut rates = ComponentRates::default();
        let field = match component {
            "gpu" => &mut rates.gpu,
            "cpu" => &mut rates.cpu,
            "node" => &mut rates.node,
            _ => &mut rates.system,
        };
        *field = Some(rate);
        rates
    }

    fn system() -> CheckpointedSystem {
        let tier = |name: &str, bytes_per_second, failures_per_second| StorageTier {
            name: name.to_owned(),
            bytes_per_second,
            failures_per_second,
            waited_share: 1.0,
            written_share: 1.0,
        };
        CheckpointedSystem {
            name: "small".to_owned(),
            machine: SystemMachine { nodes: 100.0, cpus_per_node: 2.0, gpus_per_cpu: 4.0, saved_bytes_per_gpu: 1e9 },
            tiers: vec![
                tier("memory", ComponentRates { gpu: Some(8e9), ..rates("cpu", 16e9) }, rates("gpu", 1e-8)),
                tier("disk", rates("node", 2e9), rates("node", 1e-9)),
            ],
        }
    }

    #[test]
    fn the_slowest_component_sets_the_rate_and_all_of_them_fail() {
        let levels = system().levels();
        // 800 GB over 200 CPUs at 16 GB/s, slower than 800 GPUs at 8 GB/s.
        assert_eq!(levels[0].checkpoint_seconds, 0.25);
        assert!((levels[0].mtti_seconds - 1.0 / 8e-6).abs() < 1e-6, "{levels:?}");
        assert_eq!(levels[1].checkpoint_seconds, 4.0);
        let dense = system().with_density(8.0);
        assert_eq!((dense.machine.nodes, dense.levels()[0].checkpoint_seconds), (50.0, 0.5));
        let failing = system().with_gpu_failures(10.0).levels();
        assert!((failing[0].mtti_seconds * 10.0 / levels[0].mtti_seconds - 1.0).abs() < 1e-12);
        assert_eq!(failing[1], levels[1]);
    }

    #[test]
    fn a_tier_that_drains_waits_less_and_reads_all() {
        let mut drained = system();
        drained.tiers[0].waited_share = 0.2;
        drained.tiers[0].written_share = 0.5;
        let level = drained.levels()[0];
        let expected = [0.025, 0.1, 0.25];
        let found = [level.checkpoint_seconds, level.drain_seconds, level.recovery_seconds];
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-15), "{found:?}");
        assert!(drained.plan().efficiency() > system().plan().efficiency());
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(system().check(), Ok(()));
        let mut wrong = system();
        wrong.machine.nodes = 0.0;
        assert_eq!(wrong.check().unwrap_err().to_string(), "machine.nodes is 0: expected a number above 0");
        let mut wrong = system();
        wrong.tiers[1].waited_share = 1.5;
        let expected = r#"tier "disk": waited_share is 1.5: expected a share from 0 to 1"#;
        assert_eq!(wrong.check().unwrap_err().to_string(), expected);
        wrong.tiers[0].bytes_per_second = ComponentRates::default();
        assert!(matches!(wrong.check(), Err(SystemError::NoRate { .. })));
        wrong.tiers.clear();
        assert_eq!(wrong.check(), Err(SystemError::NoTier));
    }
}
