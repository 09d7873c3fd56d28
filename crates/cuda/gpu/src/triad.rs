//! The bandwidth of the device's memory, measured as STREAM does.
//!
//! Source: J. D. McCalpin, Memory Bandwidth and Machine Balance in Current High Performance
//! Computers, IEEE TCCA Newsletter 1995, <https://www.cs.virginia.edu/stream/>. Two reads and one
//! write of each element count, 24 bytes.

mod sys;

use anyhow::Result;
use recoup::device::{DeviceKernel, DeviceModule, DeviceVec, Stream};

use crate::stopwatch::device_seconds;

/// The kernel, as CUDA C.
pub(crate) const TRIAD_SOURCE: &str = include_str!("triad/triad.cu");

/// `a = b + 3 c` on the device.
#[derive(Debug)]
pub(crate) struct DeviceTriad {
    kernel: DeviceKernel,
    stream: Stream,
    target: DeviceVec<f64>,
    sources: [DeviceVec<f64>; 2],
}

impl DeviceTriad {
    /// Three vectors of `n` values.
    pub(crate) fn new(stream: &Stream, n: usize) -> Result<Self> {
        let kernel = DeviceModule::load(stream.device(), TRIAD_SOURCE, "triad.cu")?.kernel("triad")?;
        let zeros = || DeviceVec::zeros(stream, n);
        Ok(Self { kernel, stream: stream.clone(), target: zeros()?, sources: [zeros()?, zeros()?] })
    }

    /// Bytes that a pass moves.
    pub(crate) fn bytes(&self) -> usize {
        3 * size_of::<f64>() * self.target.len()
    }

    /// Returns the seconds of a pass.
    pub(crate) fn seconds(&mut self) -> Result<f64> {
        let Self { kernel, stream, target, sources: [b, c] } = self;
        device_seconds(stream, || sys::triad(stream, kernel, &mut target.view_mut(), b.view(), c.view()))
    }

    /// Returns the bytes a second of a pass.
    pub(crate) fn bytes_per_second(&mut self) -> Result<f64> {
        Ok(self.bytes() as f64 / self.seconds()?)
    }
}
