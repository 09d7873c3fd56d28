//! The CUDA twin of QB: the same bytes as the codec on the host, with and without a device.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

mod corpus;
#[cfg(feature = "cuda")]
mod device;
mod frames;
#[cfg(feature = "cuda")]
mod interpreted;
#[cfg(feature = "cuda")]
mod kernels;
mod shim;
