//! Memory of the host that grows while it is used, and that the device copies to and from.
//!
//! All addresses are reserved at once. Pages are then touched, and registered with the driver by
//! chunks, each once. Registered chunks are copied at the speed of the bus; pages that are only
//! touched, more slowly; pages not yet touched are touched first.

mod sys;
mod uses;

pub use self::sys::{HostBuffer, HostRead, HostWrite};
