//! The stand-in for the CUDA driver as tests see it: found, set, and asked for its account.
//!
//! The stand-in is the library of the folder `driver`, a workspace of its own, which nothing is
//! linked with: it is built when the first test of a process asks for it.

mod double;
mod report;
mod settings;
mod status;

pub use double::Double;
pub use report::{DoubleReport, Trace};
pub use settings::{NAMES, Settings};
pub use status::CudaStatus;
