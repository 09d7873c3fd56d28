//! Costs: what became of each checkpoint, and the time it took on the run's clock.
//!
//! Others may use outcomes and the clock; the account of costs is the session's.

mod ledger;
mod marks;
mod meter;
mod outcome;
mod timing;

pub(crate) use self::ledger::Ledger;
pub(crate) use self::marks::Marks;
pub(crate) use self::meter::Meter;
pub use self::outcome::{AfarUse, Outcome, Saved, Spent};
pub(crate) use self::timing::{RunClock, since};
pub use self::timing::{Timing, VirtualCosts};
