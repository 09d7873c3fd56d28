//! The launch of the tests' kernel.

#![expect(unsafe_code, reason = "a kernel is launched on its caller's word")]

use recoup_device::{DeviceError, DeviceKernel, DeviceView, DeviceViewMut, Grid, Stream};

/// `y = a x + y` for `n` values.
pub(crate) const AXPY: &str = include_str!("axpy.cu");

/// Launches it with blocks of `threads` threads.
pub(crate) fn axpy(
    stream: &Stream,
    kernel: &DeviceKernel,
    threads: u32,
    a: f64,
    x: DeviceView<'_, f64>,
    y: &mut DeviceViewMut<'_, f64>,
) -> Result<(), DeviceError> {
    let n = x.len().min(y.len()) as u32;
    let grid = Grid { blocks: n.div_ceil(threads), threads, shared_bytes: 0 };
    // SAFETY: as the kernel is declared; both vectors have n values.
    unsafe { kernel.launch(stream, grid, &[&a, &x, &*y, &n]) }
}
