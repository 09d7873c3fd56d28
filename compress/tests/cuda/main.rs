//! The CUDA twin of QB: the same bytes as the codec on the host, with and without a device.

mod corpus;
mod frames;
mod shim;
