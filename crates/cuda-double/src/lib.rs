//! A stand-in for the CUDA driver, for tests on machines without a device.
//!
//! The library is called `libcuda.so`: a program that loads it first, by its path, finds it when it
//! asks for the driver. Kernels run in an interpreter of PTX ([`ptx`]); streams, memory and the
//! driver's rules are in `driver`.
//!
//! Promises: a program that is right on it made no use of luck, as far as the rules it checks go.
//! Must not know: what kernels compute, who calls.

mod double;
mod driver;
pub mod ptx;
mod report;
mod settings;
mod status;

pub use double::Double;
pub use report::{DoubleReport, Trace};
pub use settings::Settings;
pub use status::CudaStatus;
