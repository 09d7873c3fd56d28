//! PTX: parsed once, then run thread by thread.

mod fault;
mod launch;
mod memory;
mod module;

pub use fault::DeviceFault;
pub use launch::{INSTRUCTIONS_MAX, KernelFault, KernelRun, Launch, run};
pub use memory::DeviceMemory;
pub use module::{Global, Kernel, Module, Parameter, ParseError};
