//! The device that is measured, and the sizes for it.

use anyhow::Result;
use recoup::device::{Device, Stream};

use crate::triad::DeviceTriad;

/// The name of a device that the double of the driver plays. Its events count operations, not time.
const DOUBLE: &str = "recoup CUDA double";

/// Sizes of vectors, and numbers of repetitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasureSizes {
    /// The words that name them in reports.
    pub(crate) name: &'static str,
    /// Bytes of copies, and of memory of the host that is touched and registered.
    pub(crate) copy_bytes: usize,
    /// Bytes of memory of the device that is mapped.
    pub(crate) mapped_bytes: usize,
    /// Points along each side of the grid that is encoded, a multiple of 16.
    pub(crate) codec_side: usize,
    /// Points along each side of the grid that is solved.
    pub(crate) solver_side: usize,
    /// Iterations of a solver in a turn, at least; whole cycles are taken.
    pub(crate) iterations: u64,
    /// Restart length of solvers that have one.
    pub(crate) restart: usize,
    /// Turns that count.
    pub(crate) turns: usize,
}

const FULL: MeasureSizes = MeasureSizes {
    name: "full",
    copy_bytes: 1 << 30,
    mapped_bytes: 4 << 30,
    codec_side: 320,
    solver_side: 256,
    iterations: 20,
    restart: 30,
    turns: 7,
};

const QUICK: MeasureSizes = MeasureSizes {
    name: "quick",
    copy_bytes: 128 << 20,
    mapped_bytes: 1 << 30,
    codec_side: 160,
    solver_side: 128,
    turns: 3,
    ..FULL
};

/// Sizes for kernels that are interpreted.
const SMALLEST: MeasureSizes = MeasureSizes {
    name: "smallest",
    copy_bytes: 4 << 20,
    mapped_bytes: 4 << 20,
    codec_side: 16,
    solver_side: 6,
    iterations: 1,
    restart: 8,
    turns: 1,
};

/// The device, a stream of it, and a triad to compare with.
#[derive(Debug)]
pub(crate) struct MeasuredDevice {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    pub(crate) triad: DeviceTriad,
    pub(crate) sizes: MeasureSizes,
}

impl MeasuredDevice {
    /// Opens device number `ordinal`.
    ///
    /// # Errors
    /// Those of the device, and that of a machine without one.
    pub(crate) fn open(ordinal: usize, quick: bool) -> Result<Self> {
        let device = Device::open(ordinal)?;
        device.check_kernels()?;
        let is_double = device.info().name == DOUBLE;
        let sizes = match (is_double, quick) {
            (true, _) => SMALLEST,
            (false, true) => QUICK,
            (false, false) => FULL,
        };
        let stream = Stream::new(&device)?;
        let values = if is_double { 4096 } else { sizes.copy_bytes / size_of::<f64>() };
        let triad = DeviceTriad::new(&stream, values)?;
        Ok(Self { device, stream, triad, sizes })
    }

    /// Returns why times mean nothing here; `None` on a device.
    pub(crate) fn untimed(&self) -> Option<&'static str> {
        (self.device.info().name == DOUBLE).then_some("the double")
    }
}
