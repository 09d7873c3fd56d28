//! Constants of memory and buses, as the cache's simulation and the model take them.

use anyhow::{Result, ensure};
use recoup::device::{Device, DeviceVec, HostBuffer, Mapped, MappedWay, Stream};

use crate::figure::{TimedFigure, TurnSample, in_turns};
use crate::measured::MeasuredDevice;
use crate::stopwatch::{device_seconds, host_seconds};

/// Chunks of mapped memory, and of registered memory.
const CHUNKS: [(usize, &str); 4] =
    [(2 << 20, "2 MiB"), (32 << 20, "32 MiB"), (256 << 20, "256 MiB"), (1 << 30, "1 GiB")];
const REGISTERED_CHUNK: usize = 64 << 20;

/// Measures all of them.
pub(crate) fn figures(measured: &mut MeasuredDevice) -> Result<Vec<TimedFigure>> {
    let MeasuredDevice { device, stream, triad, sizes } = measured;
    let mut copies = Copies::new(device, stream, sizes.copy_bytes)?;
    in_turns(sizes.turns, || {
        let mut samples = vec![TurnSample::rate("triad on the device", triad.bytes(), triad.seconds()?)];
        samples.extend(copies.turn()?);
        samples.extend(device_memory(device, sizes.mapped_bytes)?);
        samples.extend(host_memory(device, sizes.copy_bytes)?);
        Ok(samples)
    })
}

/// Memory of both sides for copies.
struct Copies {
    device: Device,
    stream: Stream,
    here: DeviceVec<u8>,
    there: DeviceVec<u8>,
    registered: HostBuffer,
    slice: Vec<u8>,
}

impl Copies {
    fn new(device: &Device, stream: &Stream, bytes: usize) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            stream: stream.clone(),
            here: DeviceVec::zeros(stream, bytes)?,
            there: DeviceVec::zeros(stream, bytes)?,
            registered: HostBuffer::registered(device, bytes)?,
            slice: vec![1; bytes],
        })
    }

    /// Copies of each kind.
    fn turn(&mut self) -> Result<Vec<TurnSample>> {
        let Self { device, stream, here, there, registered, slice } = self;
        let bytes = slice.len();
        let within = device_seconds(stream, || stream.copy(here.view(), &mut there.view_mut()))?;
        let store = device_seconds(stream, || registered.store(stream, here.view(), 0).map(drop))?;
        let download = host_seconds(|| stream.download(here.view(), slice))?;
        let untouched = HostBuffer::reserve(device, bytes, REGISTERED_CHUNK)?;
        let first = host_seconds(|| untouched.store(stream, here.view(), 0)?.wait())?;
        let load = device_seconds(stream, || registered.load(stream, 0, &mut here.view_mut()).map(drop))?;
        let upload = host_seconds(|| stream.upload(slice, &mut here.view_mut()))?;
        Ok(vec![
            TurnSample::rate("copy within the device", bytes, within),
            TurnSample::rate("copy to the host, registered", bytes, store),
            TurnSample::rate("copy to the host, touched", bytes, download),
            TurnSample::rate("copy to the host, untouched", bytes, first),
            TurnSample::rate("copy to the device, registered", bytes, load),
            TurnSample::rate("copy to the device, touched", bytes, upload),
        ])
    }
}

/// Memory of the device: all at once, and mapped by chunks.
fn device_memory(device: &Device, bytes: usize) -> Result<Vec<TurnSample>> {
    let mut room = None;
    let seconds = host_seconds(|| DeviceVec::<u8>::new(device, bytes).map(|made| room = Some(made)))?;
    drop(room);
    let mut samples = vec![TurnSample::rate("allocation on the device, at once", bytes, seconds)];
    for (chunk_bytes, name) in CHUNKS {
        let mapped = Mapped::reserve(device, bytes, chunk_bytes)?;
        let way = mapped.way();
        ensure!(way == MappedWay::Chunks, "this device gives its memory {}: chunks cannot be timed", way.name());
        let seconds = host_seconds(|| mapped.grow(bytes))?;
        samples.push(TurnSample::rate(format!("mapping on the device, chunks of {name}"), bytes, seconds));
    }
    Ok(samples)
}

/// Memory of the host: touched, then registered, and registered as it is.
fn host_memory(device: &Device, bytes: usize) -> Result<Vec<TurnSample>> {
    let touched = HostBuffer::reserve(device, bytes, REGISTERED_CHUNK)?;
    let touching = host_seconds(|| {
        touched.touch(bytes);
        anyhow::Ok(())
    })?;
    let registering = host_seconds(|| touched.register(bytes))?;
    drop(touched);
    let untouched = HostBuffer::reserve(device, bytes, REGISTERED_CHUNK)?;
    let both = host_seconds(|| untouched.register_untouched(bytes))?;
    Ok(vec![
        TurnSample::rate("touching memory of the host", bytes, touching),
        TurnSample::rate("registration, touched", bytes, registering),
        TurnSample::rate("registration, untouched", bytes, both),
    ])
}
