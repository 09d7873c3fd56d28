//! Parts that tests share: suites every codec, store, communicator and solver must pass, and
//! failures placed exactly.
//!
//! Promises: a suite that passes means the promises written on the trait hold. Must not know any
//! implementation.

pub mod allocation;
pub mod codec_suite;
pub mod comm_suite;
pub mod counting_comm;
pub mod crashing_store;
pub mod decorator_suite;
mod doubles;
pub mod folders;
pub mod mpirun;
pub mod mutation;
mod policy;
mod random;
pub mod solver_suite;
pub mod stack;
pub mod store_suite;
mod test_device;
mod values;
mod watched;

pub use doubles::{doubles, set_doubles};
pub use policy::SavesAt;
pub use random::Random;
pub use test_device::{TestDevice, TestDeviceCopy, TestDeviceVec};
pub use values::{OwnedValues, bytes_of, fill};
pub use watched::watched;

use recoup_core::Progress;

/// Progress of a solve that continues, at a safe point.
pub fn progress(iteration: u64) -> Progress {
    Progress::running(iteration, 1.0, 1.0)
}
