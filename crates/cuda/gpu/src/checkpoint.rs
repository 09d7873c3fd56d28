//! Checkpoints of a solve on the device: the time that the solver is blocked, and the way of the
//! values to the host.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use recoup::comm::Solo;
use recoup::compress::QbCuda;
use recoup::core::{Bound, DeviceSnapshot, DeviceValues, Iteration, Resume, Scheme, ValuesMut};
use recoup::device::{DeviceVec, DeviceVector, FreezeSettings, FreezeWay, HostBuffer, Stream, ZoneRing};
use recoup::io::MemoryStore;
use recoup::pipeline::{Outcome, Session};
use recoup::solvers::device::{DeviceProblem, DeviceSystem};
use recoup::solvers::{Cg, JacobiPreconditioner, Poisson3d, Pool, RightHandSide, Stop, System};

use crate::figure::{TimedFigure, TurnSample, in_turns};
use crate::measured::MeasuredDevice;
use crate::stopwatch::host_seconds;
use crate::waves::waves;

/// No solve of the measurement gets here.
const RTOL: f64 = 1e-15;
/// Bytes of a zone that is hashed.
const ZONE_BYTES: usize = 64 << 10;

/// Measures all of it on CG with a stencil.
pub(crate) fn figures(measured: &mut MeasuredDevice) -> Result<Vec<TimedFigure>> {
    let MeasuredDevice { device, sizes, .. } = measured;
    let pool = Arc::new(Pool::new(std::thread::available_parallelism()?.get()));
    let a = Arc::new(Poisson3d::new(sizes.solver_side).with_pool(pool.clone()));
    let b: Arc<[f64]> = RightHandSide::Random { seed: 1 }.build(&*a)?.into();
    let preconditioner = JacobiPreconditioner::new(&*a)?;
    let there = DeviceSystem::new(&System { a: &*a, b: &b, comm: &Solo, pool: &pool }, device)?;
    let stream = there.passes().stream().clone();
    let problem = Arc::new(DeviceProblem::of(&there)?);
    let mut solver = Cg::new(there, &preconditioner, &vec![0.0; b.len()], Stop::at(RTOL))?;
    let session = |scheme| {
        let versions = recoup::open("").system(a.clone(), b.clone()).device_system(problem.clone());
        let versions = versions.scheme(scheme).every(1).key_every(1);
        versions.lossy_resume(Resume::Restarted).build_with(Arc::new(MemoryStore::new()), &Solo)
    };
    let mut raw = session(Scheme::Traditional)?;
    let mut lossy = session(Scheme::Lossy)?;
    let mut copies = IterateCopies::new(measured)?;
    let bytes = size_of_val(&b[..]);
    in_turns(measured.sizes.turns, || {
        let [within, registered, touched] = copies.seconds()?;
        solver.step()?;
        let raw = checkpoint(&mut raw, &solver, &stream)?;
        let lossy = checkpoint(&mut lossy, &solver, &stream)?;
        let of = |copy: f64| lossy.seconds / copy;
        let mut samples = vec![
            TurnSample::time("copy of x within the device", bytes, within),
            TurnSample::time("copy of x to the host, registered", bytes, registered),
            TurnSample::time("copy of x to the host, touched", bytes, touched),
            TurnSample::time("blocked by a traditional version", raw.saved_bytes, raw.seconds),
            TurnSample::time("blocked by a lossy version", lossy.saved_bytes, lossy.seconds),
            TurnSample::ratio("blocked by a lossy version, over the copy within the device", bytes, of(within)),
            TurnSample::ratio("blocked by a lossy version, over the copy to touched memory", bytes, of(touched)),
        ];
        samples.extend(copies.frames(registered)?);
        samples.extend(copies.zones()?);
        Ok(samples)
    })
}

/// The time that a version kept the solver waiting.
#[derive(Clone, Copy, Debug)]
struct BlockedTime {
    seconds: f64,
    saved_bytes: usize,
}

/// Takes a version, and times it until the device is done with what the solver would wait for. What
/// runs behind the solver is waited for later.
fn checkpoint(session: &mut Session, solver: &dyn Iteration, stream: &Stream) -> Result<BlockedTime> {
    stream.synchronize()?;
    let seconds = host_seconds(|| {
        session.step(solver)?.context("no version was taken")?;
        anyhow::Ok(stream.synchronize()?)
    })?;
    session.wait()?;
    match &session.take_outcomes()[..] {
        [Outcome::Saved(saved)] => Ok(BlockedTime { seconds, saved_bytes: saved.raw_bytes as usize }),
        outcomes => bail!("one version expected, found {outcomes:?}"),
    }
}

/// A vector as long as the iterate, and its ways to the host.
struct IterateCopies {
    vector: DeviceVector<f64>,
    copy: DeviceVec<f64>,
    registered: HostBuffer,
    slice: Vec<f64>,
    codec: QbCuda,
    frame: Vec<u8>,
    /// A vector that is frozen without a copy, and its last version.
    zoned: DeviceVector<f64>,
    frozen: Option<Box<dyn DeviceSnapshot>>,
}

impl IterateCopies {
    fn new(measured: &MeasuredDevice) -> Result<Self> {
        let MeasuredDevice { device, stream, sizes, .. } = measured;
        let slice = waves(sizes.solver_side);
        let settings = FreezeSettings { way: FreezeWay::Zones, ..FreezeSettings::default() };
        let ring = Arc::new(ZoneRing::new(device, settings));
        Ok(Self {
            zoned: DeviceVector::zoned(DeviceVec::copy_of(stream, &slice)?, stream.clone(), &ring),
            frozen: None,
            vector: DeviceVector::new(DeviceVec::copy_of(stream, &slice)?, stream.clone()),
            copy: DeviceVec::zeros(stream, slice.len())?,
            registered: HostBuffer::registered(device, size_of_val(&slice[..]))?,
            slice,
            codec: QbCuda::open(device.info().ordinal)?,
            frame: Vec::new(),
        })
    }

    /// Returns the seconds of a copy within the device, to registered and to touched memory of the
    /// host.
    fn seconds(&mut self) -> Result<[f64; 3]> {
        let Self { vector, copy, registered, slice, .. } = self;
        let stream = vector.stream();
        let within = host_seconds(|| {
            stream.copy(vector.view(), &mut copy.view_mut())?;
            stream.synchronize()
        })?;
        let store = host_seconds(|| registered.store(stream, vector.view(), 0)?.wait())?;
        let download = host_seconds(|| vector.download(slice))?;
        Ok([within, store, download])
    }

    /// Measures the rate at which values reach the host: fetched from a frozen copy, and as a
    /// frame of QB. A plain copy took `registered` seconds.
    fn frames(&mut self, registered: f64) -> Result<Vec<TurnSample>> {
        let Self { vector, slice, codec, frame, .. } = self;
        let bytes = size_of_val(&slice[..]);
        let held = vector.snapshot(slice.len(), None)?;
        let fetching = host_seconds(|| held.fetch(0, ValuesMut::F64(slice)))?;
        let encoding =
            host_seconds(|| codec.encode_resident(vector.view(), Bound::Absolute(1e-6), 1, frame).map(|_| ()))?;
        Ok(vec![
            TurnSample::rate("values to the host, fetched", bytes, fetching),
            TurnSample::rate("values to the host, as a frame of QB at 1e-6", bytes, encoding),
            TurnSample::ratio(
                "a frame of QB at 1e-6, over the copy to registered memory",
                bytes,
                registered / encoding,
            ),
        ])
    }
    /// Measures versions without a copy: freezing one, overwriting the vector before any of it
    /// was fetched, and overwriting it when all was. And the hashes of a vector's zones.
    fn zones(&mut self) -> Result<Vec<TurnSample>> {
        let Self { vector, copy, slice, zoned, frozen, .. } = self;
        let bytes = size_of_val(&slice[..]);
        let stream = zoned.stream().clone();
        let overwrite = |zoned: &mut DeviceVector<f64>| {
            host_seconds(|| {
                stream.copy(copy.view(), &mut zoned.write()?)?;
                stream.synchronize()
            })
        };
        *frozen = Some(zoned.snapshot(slice.len(), frozen.take())?);
        let before = overwrite(zoned)?;
        let freezing = host_seconds(|| {
            *frozen = Some(zoned.snapshot(slice.len(), frozen.take())?);
            anyhow::Ok(())
        })?;
        frozen.as_ref().map_or(Ok(()), |held| held.fetch(0, ValuesMut::F64(slice)))?;
        let after = overwrite(zoned)?;
        let copied = vector.snapshot(slice.len(), None)?;
        let hashing = host_seconds(|| copied.zone_hashes(0, slice.len(), ZONE_BYTES).map(|_| ()))?;
        Ok(vec![
            TurnSample::time("x frozen without a copy", bytes, freezing),
            TurnSample::time("x overwritten, frozen and not fetched", bytes, before),
            TurnSample::time("x overwritten, frozen and fetched", bytes, after),
            TurnSample::rate("zones of x hashed", bytes, hashing),
        ])
    }
}
