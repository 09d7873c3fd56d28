//! The driver's library, its calls, and contexts.
//!
//! Each call returns a [`DeviceError`](crate::DeviceError) with its name and size. Calls that need
//! a context are methods of `Current`, which exists only while the context is that of the thread.

mod sys;

pub(crate) use sys::context::PrimaryContext;
pub use sys::memory::MemoryBytes;
pub use sys::module::Grid;
pub(crate) use sys::module::{KernelHandle, ModuleHandle};
pub use sys::pointer::DevicePlace;
pub(crate) use sys::pointer::place;
pub(crate) use sys::stream::{EventHandle, StreamHandle};
pub(crate) use sys::virtual_memory::AddressRange;
pub(crate) use sys::{CudaDriver, DeviceAttribute, DeviceHandle};
