//! The one loop that encodes a variable: encode, decode, have a judge measure, tighten the bound.
//!
//! Promises: every rank of a judge that measures tries the same bounds, and all agree on each step.
//! Must not know what is measured: judges live with their norms, in `verify` and `direction`.

use recoup_core::{Bound, Clock, Comm, CommError, Frame, ResidualRecord, agreed};
use recoup_model::residual_bound::Verdict;

use super::context::WorkerContext;
use super::frame_codec::{EncodeBuffers, FrameCoding, encode};
use crate::costs::{DeviceUse, since};
use crate::error::PipelineError;
use crate::staging::{PlacedValues, VectorView};

/// Chooses the bounds of one variable.
pub(crate) trait Judge {
    /// Returns the bound to try first.
    fn first_bound(&mut self) -> Result<Bound, PipelineError>;

    /// Returns the ranks that try the same bounds; `None` for a bound that each rank keeps alone.
    fn comm(&self) -> Option<&dyn Comm> {
        None
    }

    /// Returns whether the verdict needs the decoded values.
    fn needs_decoded(&self) -> bool {
        false
    }

    /// Accepts the values that came back under a bound, or gives a tighter bound. `decoded` is
    /// empty where nothing was decoded.
    fn verdict(&mut self, _tried: Bound, _decoded: VectorView<'_>) -> Result<Verdict, PipelineError> {
        Ok(Verdict::Accepted)
    }

    /// Returns the residual norms that were measured.
    fn residual(&self) -> ResidualRecord {
        ResidualRecord::default()
    }
}

/// A bound that is kept by the codec alone.
impl Judge for Bound {
    fn first_bound(&mut self) -> Result<Bound, PipelineError> {
        Ok(*self)
    }
}

/// One variable of a version, encoded.
pub(crate) struct EncodedVariable {
    /// The frames, whose memory is used again: see [`EncodeBuffers::reuse`].
    pub(crate) frames: Vec<Frame<'static>>,
    pub(crate) bound: Bound,
    pub(crate) residual: ResidualRecord,
    pub(crate) on_device: DeviceUse,
    pub(crate) encode_seconds: f64,
    pub(crate) verify_seconds: f64,
}

/// Encodes a variable under the bound its judge accepts. Decodes it where the judge asks, or where
/// a later version may be coded against it, to the place of [`EncodeBuffers::decoded`]. Collective
/// where the judge has ranks.
pub(crate) fn encode_judged(
    coding: FrameCoding<'_>,
    judge: &mut dyn Judge,
    context: &WorkerContext,
    buffers: &mut EncodeBuffers,
) -> Result<EncodedVariable, PipelineError> {
    let record = &coding.staged.record;
    let clock = context.clock.as_ref();
    let mut encode_seconds = 0.0;
    let mut verify_seconds = 0.0;
    let mut bound = timed(clock, &mut verify_seconds, || judge.first_bound())?;
    let is_decoded = judge.needs_decoded() || coding.link.is_chained();
    loop {
        let done = timed(clock, &mut encode_seconds, || {
            encode(coding, bound, context, buffers)?;
            if is_decoded { buffers.decode(record, coding.link, context.codecs) } else { Ok(()) }
        });
        match judge.comm() {
            Some(comm) => agreed(comm, done)?,
            None => done?,
        }
        let nothing = VectorView { record, host: &[], device: None };
        let decoded = match &buffers.decoded {
            _ if !is_decoded => nothing,
            PlacedValues::Host(values) => {
                VectorView { host: values.doubles(record.len as usize, &mut buffers.widened), ..nothing }
            }
            PlacedValues::Held(held) => VectorView { device: Some(held.as_ref()), ..nothing },
        };
        match timed(clock, &mut verify_seconds, || judge.verdict(bound, decoded))? {
            Verdict::Accepted => break,
            Verdict::Retry(tighter) => bound = tighter,
        }
    }
    let frames = std::mem::take(&mut buffers.frames);
    let on_device = buffers.take_use();
    Ok(EncodedVariable { frames, bound, residual: judge.residual(), on_device, encode_seconds, verify_seconds })
}

/// Adds the time that work takes to `seconds`.
fn timed<T>(clock: &dyn Clock, seconds: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = clock.now();
    let result = work();
    *seconds += since(clock.now(), start);
    result
}

/// Returns the largest value of all ranks; `None` when any rank has none. A value that is not a
/// number counts only where no rank has another.
pub(crate) fn largest(comm: &dyn Comm, value: Option<f64>) -> Result<Option<f64>, CommError> {
    const NONE: i64 = i64::MAX;
    const NOT_A_NUMBER: i64 = -i64::MAX;
    let mine = value.map_or(NONE, |value| if value.is_nan() { NOT_A_NUMBER } else { in_order(value.to_bits()) });
    let largest = comm.max(mine)?;
    Ok((largest < NONE).then(|| f64::from_bits(in_order(largest.cast_unsigned()).cast_unsigned())))
}

/// Returns integers in the order of the doubles of these bits; twice, the bits again.
fn in_order(bits: u64) -> i64 {
    let sign = bits.cast_signed() >> 63;
    bits.cast_signed() ^ (sign & i64::MAX)
}

#[cfg(test)]
mod tests {
    use recoup_comm::Threads;

    use super::*;

    #[test]
    fn largest_is_that_of_all_ranks_and_none_where_one_has_none() {
        let cases: [([Option<f64>; 3], Option<f64>); 8] = [
            ([Some(1.0), Some(-3.0), Some(2.5)], Some(2.5)),
            ([Some(-1e300), Some(-3.0), Some(-1e-320)], Some(-1e-320)),
            ([Some(-0.0), Some(f64::NEG_INFINITY), Some(-5e-324)], Some(-0.0)),
            ([Some(f64::INFINITY), Some(f64::MAX), Some(0.0)], Some(f64::INFINITY)),
            ([Some(f64::NAN), Some(-7.0), Some(f64::NAN)], Some(-7.0)),
            ([Some(f64::NAN), Some(f64::NEG_INFINITY), Some(-f64::NAN)], Some(f64::NEG_INFINITY)),
            ([Some(f64::INFINITY), None, Some(0.0)], None),
            ([None, Some(f64::NAN), None], None),
        ];
        for (values, expected) in cases {
            let found = Threads::launch(3, |comm| largest(&comm, values[comm.rank()]).unwrap());
            assert!(
                found.iter().all(|found| found.map(f64::to_bits) == expected.map(f64::to_bits)),
                "{values:?}: {found:?}"
            );
        }
        let found = Threads::launch(2, |comm| largest(&comm, Some(f64::NAN)).unwrap().unwrap().is_nan());
        assert_eq!(found, [true, true]);
    }
}
