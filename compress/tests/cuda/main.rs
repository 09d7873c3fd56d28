//! The CUDA twin of QB: the same bytes as the codec on the host, with and without a device.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

extern crate self as recoup;

mod corpus;
mod device;
mod frames;
mod golden;
mod held;
mod kernels;
#[path = "../../../tests/qb_cases.rs"]
mod qb_cases;
mod scenarios;
mod shapes;

// The names that the frozen cases know the crates by.
pub(crate) use recoup_compress as compress;
pub(crate) use recoup_core as core;
