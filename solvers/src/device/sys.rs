//! Launches of the kernels: what they are passed is typed here, and nowhere else.

mod beyond;
mod launch;
mod methods;
mod operators;
mod room;
mod vector;

pub use beyond::{DeviceBeyond, DeviceRowList, DeviceSlab};
pub use launch::{DevicePasses, Doubles, DoublesMut, KERNEL_SOURCE};
pub use methods::{BicgstabVectors, CgInverse, IterateStep};
pub use operators::{DeviceOperator, DeviceSweep};
