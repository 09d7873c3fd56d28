//! The launch of the triad.

#![expect(unsafe_code, reason = "a kernel is launched on its caller's word")]

use recoup::device::{DeviceError, DeviceKernel, DeviceView, DeviceViewMut, Grid, Stream};

const THREADS: u32 = 256;

/// `a = b + 3 c`, as the next work of `stream`. All have the same length.
pub(super) fn triad(
    stream: &Stream,
    kernel: &DeviceKernel,
    a: &mut DeviceViewMut<'_, f64>,
    b: DeviceView<'_, f64>,
    c: DeviceView<'_, f64>,
) -> Result<(), DeviceError> {
    assert!(a.len() == b.len() && b.len() == c.len(), "vectors of one pass differ in length");
    let n = u32::try_from(a.len()).expect("rows have 32-bit numbers");
    let grid = Grid { blocks: n.div_ceil(THREADS), threads: THREADS, shared_bytes: 0 };
    // SAFETY: as the kernel is declared; all three vectors have n values.
    unsafe { kernel.launch(stream, grid, &[&*a, &b, &c, &n]) }
}
