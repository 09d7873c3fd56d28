//! CUDA devices, loaded at run time.
//!
//! Nothing of CUDA is needed to build or to start: [`probe`] looks for the driver, and where there
//! is none says so in a [`DeviceError::NotAvailable`]. Kernels come as CUDA C and are compiled when
//! first needed, by the runtime compiler (NVRTC), which is looked for likewise. Compiling needs no
//! device, so tests without one can do it.
//!
//! Promises: no call reaches a library that is not there. Must not know: what kernels compute.
//!
//! Contexts, streams, events, device and pinned memory are those of [`driver`], once a [`Device`]
//! is open.

mod compiled;
mod compiler;
mod device;
mod error;
mod sys;

pub use cudarc::driver;

pub use compiled::Compiled;
pub use compiler::{compile, find_compiler};
pub use device::{Device, DeviceInfo, Pinned, pinned, probe};
pub use error::DeviceError;
