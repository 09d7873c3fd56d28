//! The driver's side: contexts, memory, streams, events, modules.
//!
//! Each subject has a file with its rules and, below it, one with the calls of the driver's
//! interface. Promises: a call that a driver forbids fails, and one that is not here is
//! missing in the library by its name; work runs as late as it may. Must not
//! know: what kernels compute.

mod address_space;
mod advance;
mod allocations;
mod backlog;
mod contexts;
mod control;
mod copies;
mod devices;
mod events;
mod execute;
mod host_memory;
mod interface;
mod kernels;
mod operation;
mod paged_bytes;
mod parsed;
mod pinning;
mod races;
mod ranges;
mod state;
mod streams;
mod virtual_memory;
mod work;
