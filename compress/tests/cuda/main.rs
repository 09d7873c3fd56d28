//! The CUDA twin of QB: the same bytes as the codec on the host, with and without a device.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

extern crate self as recoup;

mod corpus;
#[cfg(feature = "cuda")]
mod device;
mod frames;
#[cfg(feature = "cuda")]
mod golden;
#[cfg(feature = "cuda")]
mod held;
#[cfg(feature = "cuda")]
mod kernels;
#[cfg(feature = "cuda")]
#[path = "../../../tests/qb_cases.rs"]
mod qb_cases;
#[cfg(feature = "cuda")]
mod scenarios;
mod shapes;
mod shim;

// The names that the frozen cases know the crates by.
#[cfg(feature = "cuda")]
pub(crate) use recoup_compress as compress;
#[cfg(feature = "cuda")]
pub(crate) use recoup_core as core;
