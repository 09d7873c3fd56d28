//! Discrete-event simulation of a run with failures: the judge of every formula here.
//!
//! Failures are exponential and strike while computing, checkpointing and recovering alike. A run
//! is an amount of computing; checkpoints come after every interval of computing and none comes at
//! the end. A failure falls back to the last version that counted (or the start), a recovery that
//! is interrupted begins again, and a lossy recovery leaves `N' T_it` more to compute. Checkpoints
//! that drain count when the drain is done; the next one waits for it.
//!
//! Where the formulas hold. Eqs. 5 and 7 of Tao et al. 2018 are first order in `y = sqrt(2 T_ckp /
//! MTTI)` and lie `y^2 / 3` above the truth to the next order. So they agree with the simulation
//! while T_ckp << interval << MTTI and overstate beyond. Simulated at Young's interval, 100 runs of
//! 1000 MTTIs each and 20,000 runs of 50 minutes, seed 1, T_rc = T_ckp, with 95 % intervals:
//!
//! | MTTI, T_ckp (s) | Eq. 5 | exact expectation | simulated, long runs | simulated, 50 min |
//! |---|---|---|---|---|
//! | 14400, 18 | 0.0540 | 0.0530 | 0.0531 +- 0.0002 | 0.0519 +- 0.0010 |
//! | 3600, 10 | 0.0838 | 0.0814 | 0.0817 +- 0.0003 | 0.0807 +- 0.0008 |
//! | 3600, 25 | 0.1426 | 0.1357 | 0.1361 +- 0.0005 | 0.1346 +- 0.0013 |
//! | 3600, 60 | 0.2488 | 0.2279 | 0.2284 +- 0.0009 | 0.2090 +- 0.0022 |
//! | 3600, 120 | 0.4115 | 0.3553 | 0.3570 +- 0.0015 | 0.3351 +- 0.0036 |
//! | 1200, 120 | 1.2085 | 0.8001 | 0.8023 +- 0.0040 | 0.7407 +- 0.0053 |
//! | 600, 120 | 4.9686 | 1.5086 | 1.5151 +- 0.0084 | 1.4083 +- 0.0078 |
//!
//! The long runs share their random numbers, hence the common deviation. A run of 50 minutes pays
//! less because it needs no checkpoint at its end.

mod estimate;
mod multilevel;
mod policy;
mod saving;
mod single;

pub use self::estimate::Estimate;
pub use self::multilevel::MultilevelSimulation;
pub use self::policy::{Every, PolicyOutcome, PolicySimulation, SimulatedMethod};
pub use self::saving::SavingSimulation;
pub use self::single::{Simulation, SimulationOutcome};
