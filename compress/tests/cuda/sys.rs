//! The launch of QB's kernels, argument by argument.

#![expect(unsafe_code, reason = "a kernel is launched on its caller's word")]

use recoup_device::{Argument, DeviceKernel, Grid, Stream};

/// Launches `blocks` blocks of `threads` threads. The double finds what is out of bounds.
pub(crate) fn launch(stream: &Stream, kernel: &DeviceKernel, blocks: usize, threads: u32, list: &[&dyn Argument]) {
    let grid = Grid { blocks: blocks as u32, threads, shared_bytes: 0 };
    // SAFETY: the arguments are those that the kernel declares; work is on one stream.
    unsafe { kernel.launch(stream, grid, list) }.unwrap();
}
