//! Decisions of when to save, what and how exactly, and their cost: pure functions of rates, sizes
//! and norms.
//!
//! Promises: no data is touched, no clock is read, and every random number comes from a seed, so
//! each answer repeats exactly. Times are `f64` seconds, because an infinite time is a meaningful
//! answer here. Must not know solvers, codecs or stores. Sources stand at each formula; most come
//! from Tao, Di, Liang, Chen and Cappello, HPDC 2018, doi 10.1145/3208040.3208050 ("Tao et al.
//! 2018").
//!
//! ```
//! use recoup_model::interval::Checkpointing;
//! use recoup_model::overhead::CheckpointTiming;
//!
//! let disk = Checkpointing { mtti_seconds: 4.0 * 3600.0, checkpoint_seconds: 18.0 };
//! assert_eq!(disk.young_seconds(), 720.0);
//! let busy = Checkpointing { mtti_seconds: 3600.0, checkpoint_seconds: 120.0 };
//! assert!((CheckpointTiming::synchronous(busy).overhead_fraction() - 0.4115).abs() < 5e-5);
//! ```
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod break_even;
pub mod commit_cost;
pub mod decide;
pub mod extra_iterations;
pub mod failures;
pub mod horizon;
pub mod increments;
pub mod interval;
pub mod last_save;
pub mod multilevel;
pub mod overhead;
pub mod policy;
pub mod renewal;
pub mod residual_bound;
mod rng;
pub mod saving;
pub mod scale;
pub mod shares;
pub mod simulate;
pub mod system;
pub mod units;

pub use interval::Interval;
pub use policy::{AutoPolicy, FixedPolicy, PolicyConfig};
pub use rng::Rng;
