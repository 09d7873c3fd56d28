//! The place where a rank's solver computes: the processor, or a CUDA device.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
mod host;

#[cfg(feature = "cuda")]
pub(crate) use cuda::{PlacedSystem, SolveDevice};
#[cfg(not(feature = "cuda"))]
pub(crate) use host::{NoDevice as SolveDevice, NoSystem as PlacedSystem};
