//! A stand-in for the CUDA driver, for tests on machines without a device.
//!
//! The library is called `libcuda.so`: a program that loads it first, by its path, finds it when it
//! asks for the driver. Kernels run in an interpreter of PTX ([`ptx`]); streams, memory and the
//! driver's rules are in `driver`.
//!
//! A test reaches it through the crate `recoup-cuda-double`, which builds it when a test asks.
//!
//! Promises: a program that is right on it made no use of luck, as far as the rules it checks go.
//! Work waits until something forces it; a seed repeats a run exactly. Must not know: what kernels
//! compute, who calls.
//!
//! It cannot tell:
//! - speed. There is no clock; events count operations.
//! - what the compiler of the device makes of PTX: the registers of a kernel are a setting, and
//!   binaries are refused.
//! - the order in which the memory of a device shows writes to threads that do not synchronise.
//! - accesses of the program to its own memory. A pinned buffer that is read too early holds old
//!   bytes, and one that is written too early sends the new ones; neither is a race in the account.
//! - races between threads of the program: their calls count as ordered.
//! - host memory mapped piece by piece, managed memory, memory in the order of a stream, functions
//!   of the host, graphs, textures, cooperative launches: these calls fail, and the account names
//!   them.
//!
//! Calls that came after CUDA 12.2 are missing, as in a driver of that version.

mod driver;
pub mod ptx;
mod random;

/// The result of a call.
pub(crate) type Refusable<T> = Result<T, recoup_cuda_double::CudaStatus>;
