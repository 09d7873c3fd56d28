//! CUDA devices, loaded at run time.
//!
//! Nothing of CUDA is needed to build or to start: [`probe`] looks for the driver, and where there
//! is none says so in a [`DeviceError::NotAvailable`]. Kernels come as CUDA C and are compiled when
//! first needed, by the runtime compiler (NVRTC), which is looked for likewise. Compiling needs no
//! device, so tests without one can do it, and a [`KernelFolder`] takes kernels to machines without
//! a compiler.
//!
//! A [`Device`] has [`Stream`]s, which do their work in order. A [`DeviceTicket`] is a place in
//! that work: other streams and threads wait for it. Memory of the device is a [`DeviceVec`], or a
//! [`Mapped`] that grows while it is used. Memory of the host is any slice, copied while the caller
//! waits, or a [`HostBuffer`], which the device copies to and from while the caller continues.
//! Memory of the device that the program owns is told by its address ([`device_pointer`]) and lent
//! to a session as a [`BorrowedMemory`].
//!
//! Promises: no call reaches a library or a function that is not there; no copy reads or writes
//! memory of the host that has been given back; errors name the call and its size. Must not know:
//! what kernels compute.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod ahead;
mod architecture;
mod borrowed;
mod compiled;
mod compiler;
mod device;
mod device_values;
mod driver;
mod element;
mod error;
mod freezer;
mod frozen;
mod host;
mod kept;
mod mapped;
mod module;
mod pending;
mod placed;
mod pointer;
mod stream;
mod ticket;
mod vector;
mod vector_snapshot;
mod version;
mod view;
mod zone_hash;
mod zone_ring;

pub use ahead::KernelFolder;
pub use architecture::{Architecture, Capability};
pub use borrowed::BorrowedMemory;
pub use compiled::Compiled;
pub use compiler::{Compiler, compile};
pub use device::{Device, DeviceInfo, driver_version, probe};
pub use device_values::DeviceVector;
pub use driver::{DevicePlace, Grid, MemoryBytes};
pub use element::DeviceElement;
pub use error::{CallSize, DeviceError};
pub use frozen::DeviceFrozen;
pub use host::{HostBuffer, HostRead, HostWrite};
pub use mapped::{Mapped, MappedWay};
pub use module::{Argument, DeviceKernel, DeviceModule};
pub use placed::{MappedPart, PlacedCopy};
pub use pointer::device_pointer;
pub use stream::Stream;
pub use ticket::DeviceTicket;
pub use vector::DeviceVec;
pub use vector_snapshot::{VectorSnapshot, device_values_error};
pub use version::CudaVersion;
pub use view::{DeviceView, DeviceViewMut};
pub use zone_hash::{ZONE_HASH_SOURCE, hash_zones};
pub use zone_ring::{FreezeSettings, FreezeWay, ZoneRing};
