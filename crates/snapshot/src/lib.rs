//! Values that are frozen without a copy, and saved behind a solver that continues writing.
//!
//! An owner of memory freezes its values in the time it takes to mark a table of zones. The
//! pipeline then fetches the frozen values piece by piece. A writer that is about to overwrite a
//! zone before it was fetched keeps a duplicate of it first (K. Lee et al. 2019, doi
//! 10.1145/3330345.3330361: duplicate on write).
//!
//! Promises: what is fetched is what was frozen, or an error; a value is fetched once; a writer
//! waits for a bounded time. Must not know who saves the values, nor what they mean.
//!
//! - [`TouchedRegion`] is memory of our own, in huge pages where the system has them.
//! - [`TouchedZones`] watches over memory of other owners, which keep the promises of
//!   [`ZoneMemory`].
//! - [`TrackedRegion`] is memory of which the system says what was written. It is never frozen.
//!
//! The last one is there on Linux only, and not every container permits it: [`Monitors::probe`]
//! tries it.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod duplicates;
mod element;
mod frozen;
mod memory;
mod no_monitor;
mod probe;
mod region;
mod sync;
mod sys;
mod table;
mod touch;
#[cfg(target_os = "linux")]
mod track;
#[cfg(target_os = "linux")]
mod userfault;

pub use element::RegionElement;
pub use frozen::FrozenValues;
pub use no_monitor::NoMonitor;
pub use probe::Monitors;
pub use recoup_pages::PageSize;
pub use region::{RegionPart, TouchedRegion};
pub use sys::ZoneMemory;
pub use touch::{TouchedZones, ZONE_BYTES};
#[cfg(target_os = "linux")]
pub use track::TrackedRegion;
