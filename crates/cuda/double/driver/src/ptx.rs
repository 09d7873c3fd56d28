//! PTX: parsed once, then run thread by thread.
//!
//! [`Module::parse`] decodes the text that NVRTC writes: registers become numbers, opcodes become
//! functions. [`run`] executes a kernel for every thread of a grid, one at a time. A thread runs
//! until it ends or waits: for the lanes of its mask, at a barrier of its block, or for its next
//! turn. The order is drawn from a seed, so threads that do not wait for each other as they must
//! give other results with other seeds.
//!
//! Promises: the meaning of an instruction is that of the PTX ISA, bit for bit; the payload of a
//! double that is no number is the host's. What is not interpreted is an error with its name and
//! line. Reads of memory that is not there, and waits without an end, are faults. A register
//! without a value, and what a shuffle takes from a lane that is not there, is a number no kernel
//! makes.
//!
//! It cannot tell: the order in which threads of different blocks see each other's writes (here all
//! see them at once, and a block runs to its end before the next begins); what the assembler makes
//! of the text, its registers and spills among it; how long anything takes.

mod arena;
mod barrier;
mod block;
mod body;
mod declare;
mod decode;
mod error;
mod fault;
mod instruction;
mod kernel;
mod launch;
mod lex;
mod memory;
mod module;
mod names;
mod operand;
mod order;
mod plain;
mod register;
mod report;
mod scalar;
mod space;
mod special;
mod state;
mod syntax;
mod table;
mod thread;
mod warp;

pub use arena::Arena;
pub use error::ParseError;
pub use fault::DeviceFault;
pub use kernel::{Kernel, Parameter};
pub use launch::{INSTRUCTIONS_MAX, KernelFault, KernelRun, Launch, check_sizes, run};
pub use memory::DeviceMemory;
pub use module::{Global, Module};
