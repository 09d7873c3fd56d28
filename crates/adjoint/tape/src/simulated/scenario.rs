//! Scenarios of the published evaluation (Maurya et al., HiPC 2022), and the approaches it
//! compares.

use crate::settings::{Eviction, Growth, LevelSettings, Registration, TapeSettings, Touching};
use crate::simulated::rates::{NodeRates, PinningTurns};
use crate::simulated::run::{Blocking, NodeRun, Preparation, Script};
use crate::touching::TouchMode;
use crate::work::PlaceError;

/// Bytes of a state in the uniform scenario.
pub const UNIFORM_BYTES: u64 = 128 << 20;
/// States of a process in the uniform scenario.
pub const UNIFORM_STATES: usize = 256;
/// Bytes of device memory that are mapped at a time: smaller chunks take longer.
const MAPPED_CHUNK_BYTES: u64 = 1 << 30;
/// Bytes that are registered at a time where that is done by chunks.
const PINNED_CHUNK_BYTES: u64 = 256 << 20;

/// Ways to come by memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Approach {
    /// Everything is allocated and registered before the first push: the published baseline.
    Direct,
    /// Pages are touched during copies, and registered by all processes at once.
    Memset {
        /// Rate at which small pages are touched.
        touch: f64,
        /// Rate at which small pages are registered once touched.
        pin: f64,
    },
    /// The published approach: one registration for each process, in turns, after the last page was
    /// touched.
    Whole {
        /// Order of touching; `None` leaves it to the model.
        touching: Option<TouchMode>,
        /// Order of registrations.
        turns: PinningTurns,
    },
    /// Registration by chunks while the program computes.
    Chunked,
}

impl Approach {
    /// Small pages: touching at 3 GB/s is stated; their registration at 10 GB/s is not.
    pub const MEMSET: Self = Self::Memset { touch: 3e9, pin: 10e9 };
    /// The published approach as its authors recommend it.
    pub const PUBLISHED: Self = Self::Whole { touching: None, turns: PinningTurns::Serial };
}

/// A machine and what its processes push.
#[derive(Clone, Debug)]
pub struct MachineScenario {
    /// Rates of the machine.
    pub rates: NodeRates,
    /// Computation before each push and pop.
    pub interval_seconds: f64,
    /// Bytes of device memory of each process.
    pub device_bytes: u64,
    /// Bytes of memory of the host for each process; 0 for none.
    pub host_bytes: u64,
    /// Bytes of the states of each process.
    pub states: Vec<Vec<u64>>,
}

impl MachineScenario {
    /// States of one size; 4 GiB of device memory and 32 GiB of the host's for each process.
    #[must_use]
    pub fn large_host(rates: NodeRates, n_processes: usize, interval_seconds: f64) -> Self {
        let states = vec![vec![UNIFORM_BYTES; UNIFORM_STATES]; n_processes];
        Self { rates, interval_seconds, device_bytes: 4 << 30, host_bytes: 32 << 30, states }
    }

    /// States of one size; 32 GiB of device memory, which holds them all.
    #[must_use]
    pub fn large_device(rates: NodeRates, n_processes: usize, interval_seconds: f64) -> Self {
        let base = Self::large_host(rates, n_processes, interval_seconds);
        Self { device_bytes: 32 << 30, host_bytes: 0, ..base }
    }

    /// Runs an approach, and returns the mean over the processes.
    ///
    /// # Errors
    /// [`PlaceError`] if the states do not fit.
    pub fn run(&self, approach: Approach) -> Result<Blocking, PlaceError> {
        Ok(Blocking::mean(&self.run_each(approach)?))
    }

    /// Runs an approach, and returns the time that each process waited.
    ///
    /// # Errors
    /// [`PlaceError`] if the states do not fit.
    pub fn run_each(&self, approach: Approach) -> Result<Vec<Blocking>, PlaceError> {
        let mut rates = self.rates.clone();
        if let Approach::Memset { touch, pin } = approach {
            rates.touch = touch;
            rates.pin = pin;
        }
        let turns = match approach {
            Approach::Direct | Approach::Memset { .. } => PinningTurns::Parallel,
            Approach::Whole { turns, .. } => turns,
            Approach::Chunked => PinningTurns::Serial,
        };
        let preparation = match approach {
            Approach::Direct => Preparation::Direct { device_bytes: self.device_bytes, host_bytes: self.host_bytes },
            _ => Preparation::None,
        };
        let script = |sizes: &Vec<u64>| Script { interval_seconds: self.interval_seconds, state_bytes: sizes.clone() };
        let scripts = self.states.iter().map(script).collect();
        NodeRun { settings: self.settings(&rates, approach), rates, turns, preparation, scripts }.run()
    }

    fn settings(&self, rates: &NodeRates, approach: Approach) -> TapeSettings {
        let mapped = match approach {
            Approach::Direct => Growth::Ready,
            _ => Growth::Mapped { chunk_bytes: MAPPED_CHUNK_BYTES },
        };
        let paged = match approach {
            Approach::Direct => Growth::Ready,
            Approach::Memset { .. } => Growth::Paged {
                touching: Touching::Fixed(TouchMode::Concurrent),
                registration: Registration::Whole,
                ahead_bytes: u64::MAX,
            },
            Approach::Whole { touching, .. } => {
                let model = Touching::Modelled(rates.touch_model());
                let touching = touching.map_or(model, Touching::Fixed);
                Growth::Paged { touching, registration: Registration::Whole, ahead_bytes: u64::MAX }
            }
            Approach::Chunked => {
                let touching = Touching::Modelled(rates.touch_model());
                Growth::Paged {
                    touching,
                    registration: Registration::Chunks { bytes: PINNED_CHUNK_BYTES },
                    ahead_bytes: u64::MAX,
                }
            }
        };
        let mut levels = vec![LevelSettings { bytes: self.device_bytes, growth: mapped, is_coded: false }];
        if self.host_bytes > 0 {
            levels.push(LevelSettings { bytes: self.host_bytes, growth: paged, is_coded: false });
        }
        TapeSettings { levels, eviction: Eviction::Fifo }
    }
}
