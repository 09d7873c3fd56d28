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

mod architecture;
mod compiled;
mod compiler;
mod device;
mod error;
mod sys;
mod version;

pub use cudarc::driver;

pub use architecture::{Architecture, Capability};
pub use compiled::Compiled;
pub use compiler::{Compiler, compile};
pub use device::{Device, DeviceInfo, Pinned, driver_version, pinned, probe};
pub use error::DeviceError;
pub use version::CudaVersion;
