//! The passes of the methods on a CUDA device, with the bits of the host.
//!
//! Each pass has a neighbour of the same name on the host, which is the oracle: the same operations
//! in the same order, no fused multiply-add. Sums have the host's lanes, blocks and chunks.
//!
//! Promises: the bits of the host for every pass; no wait but for sums. Must not know: methods.

mod error;
mod problem;
mod rows;
mod share;
mod space;
mod sys;
mod system;

pub use problem::DeviceProblem;
pub use rows::DeviceRows;
pub use share::DeviceShare;
pub use sys::{
    BicgstabVectors, CgInverse, DeviceBeyond, DeviceOperator, DevicePasses, DeviceRowList, DeviceSlab, DeviceSweep,
    Doubles, DoublesMut, IterateStep, KERNEL_SOURCE,
};
pub use system::{DevicePreconditioner, DeviceSystem};
