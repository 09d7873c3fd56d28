//! The way values are staged: copied at once, or frozen and copied behind the solver, by the time
//! that either takes from the solver.
//!
//! An owner that sees its writes keeps the old values of what it overwrites until they are saved
//! (duplicate on write; K. Lee et al. 2019, doi 10.1145/3330345.3330361). The solver then pays for
//! the values that it overwrites before the worker has fetched them, and for nothing else, if there
//! is a core for the worker. Without one, the copy takes its time from the solver in any case, and
//! is fastest by all threads at once.

const GIB: f64 = (1_u64 << 30) as f64;
/// The smallest variable that is frozen: a copy of fewer bytes takes less than an iteration over
/// them.
const FROZEN_BYTES_MIN: u64 = 64 << 20;

/// The way values are staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagingWay {
    /// Copied at once, by all threads.
    Copy,
    /// Frozen; the owner says what it is about to write.
    Touch,
    /// Frozen; the system stops a writer at protected pages.
    Watch,
}

impl StagingWay {
    /// Returns the name of the way.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Touch => "touch",
            Self::Watch => "watch",
        }
    }
}

/// The pages of watched memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedPages {
    /// Pages of 4 KiB.
    Small,
    /// Pages of 2 MiB.
    Huge,
}

/// Whoever sees the writes to some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMonitor {
    /// Nothing does.
    None,
    /// Their owner.
    Owner,
    /// The system, by the protection of pages.
    System(WatchedPages),
}

/// Rates of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagingRates {
    /// Copying by one thread, bytes per second.
    pub copy_bytes_per_second: f64,
    /// Copying by all threads, at most.
    pub memory_bytes_per_second: f64,
    /// Fetching, encoding and writing a version, bytes of values per second; infinite where it is
    /// not known.
    pub drain_bytes_per_second: f64,
    /// Testing the zones of written values, seconds per byte.
    pub test_seconds_per_byte: f64,
    /// Protecting memory in pages of 4 KiB and lifting that again, seconds per byte.
    pub protect_seconds_per_byte: f64,
}

impl Default for StagingRates {
    /// Rates of two virtual cores of a server of 2022: one thread copies 1 GiB in 0.20 s, and two
    /// in 0.108 s.
    fn default() -> Self {
        Self {
            copy_bytes_per_second: GIB / 0.20,
            memory_bytes_per_second: GIB / 0.108,
            drain_bytes_per_second: f64::INFINITY,
            test_seconds_per_byte: 0.01 / GIB,
            protect_seconds_per_byte: 0.04 / GIB,
        }
    }
}

/// Time that earlier versions took from the solver, seconds per byte: what it waited for, and what
/// its iterations lost until they were saved. `None` of a way in which none was staged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StagingMeasured {
    /// Copied at once.
    pub copy_seconds_per_byte: Option<f64>,
    /// Frozen.
    pub frozen_seconds_per_byte: Option<f64>,
}

/// A solver and the machine it runs on, when a version is staged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagingConditions {
    /// The machine's rates.
    pub rates: StagingRates,
    /// Earlier versions. What was measured counts in place of what the rates predict.
    pub measured: StagingMeasured,
    /// Threads of the solver, which have nothing else to do while values are staged.
    pub threads: usize,
    /// Cores that the worker has for itself.
    pub idle_cores: usize,
    /// Seconds between two writes to the same value: of one iteration, for most methods.
    pub seconds_between_writes: f64,
    /// Bytes of values that one version drains, of all variables.
    pub version_bytes: u64,
}

/// A way to stage one variable, and the time each way is expected to take from the solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagingChoice {
    /// The way.
    pub way: StagingWay,
    /// Seconds for a copy at once.
    pub copy_seconds: f64,
    /// Seconds for frozen values; `None` where nothing sees the writes.
    pub frozen_seconds: Option<f64>,
    /// The reason, in words.
    pub why: &'static str,
}

impl StagingConditions {
    /// Chooses the way to stage a variable of this many bytes.
    ///
    /// ```
    /// use recoup_model::staging::{
    ///     StagingConditions, StagingMeasured, StagingRates, StagingWay, WriteMonitor,
    /// };
    /// let bytes = 512 << 20;
    /// let idle = StagingConditions {
    ///     rates: StagingRates::default(),
    ///     measured: StagingMeasured::default(),
    ///     threads: 1,
    ///     idle_cores: 1,
    ///     seconds_between_writes: 0.205,
    ///     version_bytes: bytes,
    /// };
    /// assert_eq!(idle.choose(bytes, WriteMonitor::Owner).way, StagingWay::Touch);
    /// let busy = StagingConditions { idle_cores: 0, ..idle };
    /// assert_eq!(busy.choose(bytes, WriteMonitor::Owner).way, StagingWay::Copy);
    /// ```
    #[must_use]
    pub fn choose(&self, bytes: u64, monitor: WriteMonitor) -> StagingChoice {
        let StagingMeasured { copy_seconds_per_byte, frozen_seconds_per_byte } = self.measured;
        let measured = |per_byte: Option<f64>| per_byte.map(|seconds| seconds * bytes as f64);
        let copy_seconds = measured(copy_seconds_per_byte).unwrap_or_else(|| self.copy_seconds(bytes));
        let predicted = self.frozen_seconds(bytes, monitor);
        let frozen_seconds = predicted.map(|seconds| measured(frozen_seconds_per_byte).unwrap_or(seconds));
        let copy = |why| StagingChoice { way: StagingWay::Copy, copy_seconds, frozen_seconds, why };
        let way = match monitor {
            WriteMonitor::None => return copy("nothing sees the writes"),
            WriteMonitor::Owner => StagingWay::Touch,
            WriteMonitor::System(_) => StagingWay::Watch,
        };
        if bytes < FROZEN_BYTES_MIN {
            return copy("it is small");
        }
        if self.idle_cores == 0 {
            return copy("no core is idle");
        }
        if frozen_seconds.is_none_or(|seconds| seconds > copy_seconds) {
            let is_measured = frozen_seconds_per_byte.is_some();
            return copy(if is_measured { "freezing took longer" } else { "it is written again before it is saved" });
        }
        StagingChoice { way, copy_seconds, frozen_seconds, why: "a core is idle" }
    }

    /// Returns the rate at which all threads copy.
    fn copy_bytes_per_second(&self) -> f64 {
        let StagingRates { copy_bytes_per_second, memory_bytes_per_second, .. } = self.rates;
        (copy_bytes_per_second * self.threads.max(1) as f64).min(memory_bytes_per_second.max(copy_bytes_per_second))
    }

    fn copy_seconds(&self, bytes: u64) -> f64 {
        bytes as f64 / self.copy_bytes_per_second()
    }

    /// Returns the time that frozen values take from the solver.
    fn frozen_seconds(&self, bytes: u64, monitor: WriteMonitor) -> Option<f64> {
        let StagingRates { copy_bytes_per_second, drain_bytes_per_second, .. } = self.rates;
        let bytes = bytes as f64;
        let alone_seconds = bytes / copy_bytes_per_second;
        let upkeep = match monitor {
            WriteMonitor::None => return None,
            WriteMonitor::Owner | WriteMonitor::System(WatchedPages::Huge) => self.rates.test_seconds_per_byte,
            WriteMonitor::System(WatchedPages::Small) => {
                self.rates.test_seconds_per_byte + self.rates.protect_seconds_per_byte
            }
        };
        if self.idle_cores == 0 {
            // The worker's copy takes its time from the solver, and faults come on top of it.
            let share = if monitor == WriteMonitor::Owner { 0.85 } else { 1.1 };
            return Some(share * alone_seconds + upkeep * bytes);
        }
        // The solver keeps what it overwrites before the drain has come there. All variables of a
        // version drain one after the other.
        let drain_seconds = self.version_bytes as f64 / drain_bytes_per_second.min(copy_bytes_per_second);
        let share = (1.0 - self.seconds_between_writes / drain_seconds).max(0.0);
        Some(share * bytes / self.copy_bytes_per_second() + upkeep * bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const MIB: u64 = 1 << 20;

    fn conditions(threads: usize, idle_cores: usize, seconds_between_writes: f64) -> StagingConditions {
        let rates = StagingRates::default();
        let measured = StagingMeasured::default();
        StagingConditions { rates, measured, threads, idle_cores, seconds_between_writes, version_bytes: 512 * MIB }
    }

    #[test]
    fn without_an_idle_core_values_are_always_copied() {
        let mut rng = Rng::new(0x57a6);
        for _ in 0..1000 {
            let threads = 1 + (rng.uniform() * 64.0) as usize;
            let busy = conditions(threads, 0, rng.uniform());
            let bytes = (rng.uniform() * 4096.0) as u64 * MIB;
            for monitor in [WriteMonitor::Owner, WriteMonitor::System(WatchedPages::Huge)] {
                assert_eq!(busy.choose(bytes, monitor).way, StagingWay::Copy, "{threads} threads, {bytes} bytes");
            }
        }
    }

    #[test]
    fn no_choice_takes_more_than_a_tenth_above_a_copy_by_all_threads() {
        let mut rng = Rng::new(0x57a7);
        for _ in 0..10_000 {
            let mut seen =
                conditions(1 + (rng.uniform() * 16.0) as usize, (rng.uniform() * 3.0) as usize, rng.uniform());
            seen.rates.drain_bytes_per_second = GIB * 20.0 * rng.uniform();
            seen.version_bytes = 1 + (rng.uniform() * 8.0 * GIB) as u64;
            let bytes = (rng.uniform() * seen.version_bytes as f64) as u64;
            for monitor in [WriteMonitor::Owner, WriteMonitor::System(WatchedPages::Small)] {
                let choice = seen.choose(bytes, monitor);
                let seconds = match choice.way {
                    StagingWay::Copy => choice.copy_seconds,
                    StagingWay::Touch | StagingWay::Watch => choice.frozen_seconds.unwrap(),
                };
                assert!(seconds <= 1.1 * choice.copy_seconds, "{seen:?}: {choice:?}");
            }
        }
    }

    #[test]
    fn an_idle_core_hides_a_copy_that_ends_before_the_next_write() {
        let seen = conditions(1, 1, 0.205);
        let touch = seen.choose(512 * MIB, WriteMonitor::Owner);
        assert_eq!(touch.way, StagingWay::Touch);
        assert!(touch.frozen_seconds.unwrap() <= 0.01, "{touch:?}");
        let watch = seen.choose(512 * MIB, WriteMonitor::System(WatchedPages::Huge));
        assert_eq!(watch.way, StagingWay::Watch);
        assert_eq!(seen.choose(512 * MIB, WriteMonitor::None).way, StagingWay::Copy);
        assert_eq!(seen.choose(63 * MIB, WriteMonitor::Owner).way, StagingWay::Copy);
    }

    /// A solve of 402 MB lost 0.15 s to each version that was frozen, and 0.07 s to each that was
    /// copied: the worker, slower than predicted, left most duplicates to the solver.
    #[test]
    fn a_way_that_took_longer_than_the_other_is_not_taken_again() {
        let mut seen = conditions(1, 1, 0.205);
        assert_eq!(seen.choose(402_000_000, WriteMonitor::Owner).way, StagingWay::Touch);
        seen.measured.frozen_seconds_per_byte = Some(0.15 / 402e6);
        let choice = seen.choose(402_000_000, WriteMonitor::Owner);
        assert_eq!((choice.way, choice.why), (StagingWay::Copy, "freezing took longer"));
        seen.measured.copy_seconds_per_byte = Some(0.07 / 402e6);
        assert_eq!(seen.choose(402_000_000, WriteMonitor::Owner).way, StagingWay::Copy);
        seen.measured.copy_seconds_per_byte = Some(0.20 / 402e6);
        assert_eq!(seen.choose(402_000_000, WriteMonitor::Owner).way, StagingWay::Touch);
    }

    #[test]
    fn values_that_are_written_at_once_by_a_pass_faster_than_the_drain_are_copied() {
        let mut seen = conditions(2, 1, 0.0);
        seen.rates.drain_bytes_per_second = GIB;
        assert_eq!(seen.choose(512 * MIB, WriteMonitor::Owner).way, StagingWay::Copy);
        seen.seconds_between_writes = 1.0;
        assert_eq!(seen.choose(512 * MIB, WriteMonitor::Owner).way, StagingWay::Touch);
    }
}
