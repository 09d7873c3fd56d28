//! CodecSelection: codecs that take the place of the planned one where the storage is slow enough
//! for their better ratio.
//!
//! A slower codec with a better ratio pays below a storage bandwidth `W* = (1/R_a - 1/R_b) /
//! (1/C_b - 1/C_a)`, R being ratios, C rates. A slab of the variable, coded against the version
//! before as the whole will be, says both; the bandwidth is declared, or the one at which this
//! worker has written so far. The slower the storage, the larger the slab: a small one misjudges
//! codecs that predict from a distance.
//!
//! The best codec of a key need not be that of the versions coded against it, so keys have a choice
//! of their own, among the codecs that others may follow. It does not bind the versions after.
//! Codecs that do not round each value for itself do not compete where that costs iterations: for
//! the iterate of a deflated restart, and where a method gains by a symmetry that they would break.
//! Rank 0 judges by its own part, and all ranks do the same.

use recoup_core::{
    Bound, Chain, Clock, Codec, CodecId, CommError, Context, Parent, Resume, Role, Values, VariableRecord,
    broadcast_json,
};
use recoup_model::break_even::CodecRates;

use super::bound_loop::EncodedVariable;
use super::chain::ChainLink;
use super::context::{CheckpointJob, WorkerContext};
use super::frame_codec::FrameCoding;
use crate::costs::since;
use crate::staging::{FetchedFrame, Staged};

/// Values of a slab, at least, where a frame has them.
const SLAB_VALUES: usize = 1 << 15;
/// The part of the time that a version takes to be written in which one candidate is sampled.
const SAMPLE_FRACTION: f64 = 1.0 / 64.0;
/// Values per second that nearly every codec reaches on one core.
const SAMPLE_RATE: f64 = 1e7;
/// Versions between two looks at the candidates.
const SAMPLE_EVERY: u64 = 10;

/// The codecs a lossy variable may be coded with, and what became of it last time.
#[derive(Debug)]
pub(crate) struct CodecSelection {
    candidates: Vec<CodecId>,
    /// Storage bandwidth in bytes per second, where it is declared.
    declared: Option<f64>,
    written_bytes: f64,
    written_seconds: f64,
    seen: Vec<LastCoding>,
}

/// The last version of a variable.
#[derive(Debug)]
struct LastCoding {
    name: String,
    bound: Bound,
    payload_bytes: u64,
    /// The codec of versions that are no keys.
    codec: CodecId,
    /// The ability of that codec to code versions against others.
    can_follow: bool,
    /// Versions of this variable.
    versions: u64,
}

impl CodecSelection {
    /// Takes the codecs that may replace the planned one, and the storage bandwidth if it is
    /// declared.
    pub(crate) fn new(candidates: Vec<CodecId>, declared: Option<f64>) -> Self {
        Self { candidates, declared, written_bytes: 0.0, written_seconds: 0.0, seen: Vec::new() }
    }

    /// Adds bytes that were written.
    pub(crate) fn wrote(&mut self, bytes: u64, seconds: f64) {
        self.written_bytes += bytes as f64;
        self.written_seconds += seconds;
    }

    /// Returns the storage bandwidth: declared, or that of all bytes written so far.
    fn bytes_per_second(&self) -> Option<f64> {
        let measured = || (self.written_seconds > 0.0).then(|| self.written_bytes / self.written_seconds);
        self.declared.or_else(measured)
    }

    /// Chooses the codec for the next version of a variable: the planned one until its first
    /// version counts. Collective.
    pub(crate) fn choose(
        &self,
        job: &CheckpointJob,
        staged: &Staged,
        link: ChainLink<'_>,
        context: &WorkerContext,
    ) -> Result<CodecId, CommError> {
        let planned = job.plan.codec;
        let name = &staged.record.name;
        let Some(seen) = self.seen.iter().find(|seen| seen.name == *name) else { return Ok(planned) };
        let is_key = seen.is_key(link);
        let is_due = is_key || seen.versions % SAMPLE_EVERY == 1;
        if self.candidates.is_empty() || !is_due {
            return Ok(seen.codec);
        }
        let mine = self.bytes_per_second().map_or(planned, |bandwidth| {
            let sampled = |id| {
                let codec = context.codecs.find(id).ok().filter(|codec| !is_key || codec.can_follow())?;
                let bandwidth = self.weighed_bandwidth();
                let threads = context.codecs.threads;
                let coding = FrameCoding { staged, brought: None, codec: codec.as_ref(), link, bandwidth, threads };
                Some((id, sample(coding, seen, context.clock.as_ref())?))
            };
            let seconds = |coding: &CodecRates| 1.0 / coding.encode_bytes_per_second + 1.0 / (coding.ratio * bandwidth);
            let is_deflated = job.plan.resume == Resume::Deflated && staged.record.role == Role::Iterate;
            let are_alone = is_deflated || job.gains_by_symmetry && has_symmetry(staged, seen.bound);
            let candidates = self.candidates.iter().copied().filter(|candidate| !are_alone || rounds_alone(*candidate));
            let codings = std::iter::once(planned).chain(candidates).filter_map(sampled);
            codings.min_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b))).map_or(planned, |(id, _)| id)
        });
        let agreed = broadcast_json(context.comm.as_ref(), || mine)?;
        if agreed != seen.codec {
            tracing::debug!(variable = %name, codec = %agreed, "another codec");
        }
        Ok(agreed)
    }

    /// Returns the bandwidth a codec weighs against its own time: none where the codec was chosen
    /// by the user, who gets the fewest bytes.
    pub(crate) fn weighed_bandwidth(&self) -> Option<f64> {
        (!self.candidates.is_empty()).then(|| self.bytes_per_second()).flatten()
    }

    /// Takes note of how a variable was coded.
    pub(crate) fn coded(&mut self, staged: &Staged, codec: &dyn Codec, link: ChainLink<'_>, encoded: &EncodedVariable) {
        let name = &staged.record.name;
        let place = self.seen.iter().position(|seen| seen.name == *name);
        let before = place.map(|place| self.seen.swap_remove(place));
        let kept = before.as_ref().filter(|before| before.is_key(link));
        self.seen.push(LastCoding {
            name: name.clone(),
            bound: encoded.bound,
            payload_bytes: encoded.frames.iter().map(|frame| frame.payload.len() as u64).sum(),
            codec: kept.map_or(codec.id(), |kept| kept.codec),
            can_follow: kept.is_some() || codec.can_follow(),
            versions: before.map_or(0, |before| before.versions) + 1,
        });
    }
}

impl LastCoding {
    /// Returns whether a version at this place is the key of a chain that others will follow. To a
    /// codec that stands alone every version is one, and none matters.
    fn is_key(&self, link: ChainLink<'_>) -> bool {
        self.can_follow && matches!(link, ChainLink::Key)
    }

    /// Returns the values to sample where storage takes `bandwidth` bytes per second.
    fn slab_values(&self, bandwidth: f64) -> usize {
        ((self.payload_bytes as f64 / bandwidth * SAMPLE_FRACTION * SAMPLE_RATE) as usize).max(SLAB_VALUES)
    }
}

/// Returns whether the middle frame has a symmetry that errors under a bound could break.
fn has_symmetry(staged: &Staged, bound: Bound) -> bool {
    let mut fetched = FetchedFrame::new();
    match (staged.frame(staged.frames() / 2, &mut fetched), bound) {
        (Ok(Values::F64(values)), Bound::Absolute(e)) => is_symmetric(values, staged.record.frame_dims, e),
        _ => false,
    }
}

/// Measures ratio and rate of a codec on a slab of the middle frame; `None` when it cannot
/// encode that.
fn sample(coding: FrameCoding<'_>, seen: &LastCoding, clock: &dyn Clock) -> Option<CodecRates> {
    let FrameCoding { staged, codec, link, bandwidth, threads, .. } = coding;
    let VariableRecord { frame_dims: dims, stride, .. } = staged.record;
    let run = staged.frames() / 2;
    let [mut fetched, mut fetched_parent] = [FetchedFrame::new(), FetchedFrame::new()];
    let parent = link.parent(run).map(|placed| placed.host(&staged.record, run, &mut fetched_parent));
    let chain = link.chain(parent.transpose().ok()?);
    let frame = Context { dims, stride, chain, bandwidth, threads };
    let (slab, dims) = frame.middle(bandwidth.map_or(SLAB_VALUES, |bandwidth| seen.slab_values(bandwidth)));
    let values = staged.frame(run, &mut fetched).ok()?;
    let source = values.slice(slab.start, slab.len());
    let chain = match frame.chain {
        Chain::Follow(Parent { values, hash }) => {
            Chain::Follow(Parent { values: values.slice(slab.start, slab.len()), hash })
        }
        chain => chain,
    };
    let context = Context { dims, chain, ..frame };
    let mut payload = Vec::new();
    let start = clock.now();
    codec.encode(source, seen.bound, &context, &mut payload).ok()?;
    let seconds = since(clock.now(), start);
    let bytes = (slab.len() * source.element().size()) as f64;
    let ratio = bytes / payload.len().max(1) as f64;
    Some(CodecRates { ratio, encode_bytes_per_second: bytes / seconds, decode_bytes_per_second: f64::INFINITY })
}

/// Points that are compared with their images.
const SAMPLES: u64 = 64;
/// The part of the bound that values may differ by from their images.
const ALIKE: f64 = 0.125;

/// Returns whether a codec rounds each value for itself: equal values have equal errors, and those
/// of neighbours have nothing to do with each other.
pub(crate) fn rounds_alone(codec: CodecId) -> bool {
    !matches!(codec, CodecId::Pyramid | CodecId::Sz3 | CodecId::Zfp)
}

/// Returns whether a sample of the values on a grid, fastest extent first, equals its reflection
/// across the middle of an axis, or its image with two axes exchanged, to a part of `bound`. Values
/// that do not differ by more than `bound` have no symmetry that could be lost.
pub(crate) fn is_symmetric(values: &[f64], dims: [usize; 3], bound: f64) -> bool {
    let points: Vec<[usize; 3]> = (0..SAMPLES).map(|number| point(number, dims)).collect();
    let value = |[x, y, z]: [usize; 3]| values[x + dims[0] * (y + dims[1] * z)];
    let [min, max] = [f64::min, f64::max].map(|of| points.iter().map(|point| value(*point)).fold(f64::NAN, of));
    // An image names for each axis the one its coordinate comes from, and whether it is reflected.
    let holds = |image: [(usize, bool); 3]| {
        points.iter().all(|point| {
            let coordinate = |(from, is_reflected): (usize, bool)| match is_reflected {
                true => dims[from] - 1 - point[from],
                false => point[from],
            };
            (value(*point) - value(image.map(coordinate))).abs() <= ALIKE * bound
        })
    };
    let is_reflection = |axis: usize| dims[axis] > 1 && holds(std::array::from_fn(|a| (a, a == axis)));
    let is_exchange = |(a, b): (usize, usize)| {
        let mut image = [(0, false), (1, false), (2, false)];
        image.swap(a, b);
        dims[a] == dims[b] && dims[a] > 1 && holds(image)
    };
    let is_image = (0..3).any(is_reflection) || [(0, 1), (0, 2), (1, 2)].into_iter().any(is_exchange);
    max - min > bound && is_image
}

/// A point of the sample, spread over the grid without a pattern.
fn point(number: u64, dims: [usize; 3]) -> [usize; 3] {
    let mixed = recoup_core::mix(number + 1);
    std::array::from_fn(|axis| ((mixed >> (21 * axis) & 0x1f_ffff) as usize * dims[axis]) >> 21)
}

#[cfg(test)]
mod tests {
    use recoup_core::{Bound, Context, Values, ValuesMut};

    use super::*;

    #[test]
    fn slower_storage_lets_larger_slabs_be_sampled() {
        let bound = Bound::Absolute(1.0);
        let codec = CodecId::Qb;
        let seen = LastCoding { name: "x".into(), bound, payload_bytes: 64_000, codec, can_follow: true, versions: 1 };
        assert_eq!([1e3, 1e5, 1e9].map(|bandwidth| seen.slab_values(bandwidth)), [10_000_000, 100_000, SLAB_VALUES]);
    }

    #[test]
    fn a_declared_bandwidth_is_not_measured_over() {
        let mut declared = CodecSelection::new(Vec::new(), Some(5.0));
        let mut measured = CodecSelection::new(Vec::new(), None);
        assert_eq!(measured.bytes_per_second(), None);
        declared.wrote(100, 1.0);
        measured.wrote(100, 1.0);
        measured.wrote(200, 2.0);
        assert_eq!((declared.bytes_per_second(), measured.bytes_per_second()), (Some(5.0), Some(100.0)));
    }

    const DIMS: [usize; 3] = [12, 10, 9];
    const CUBE: [usize; 3] = [8, 8, 8];

    fn on_grid(dims: [usize; 3], f: impl Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let at = |i: usize, axis: usize| i as f64 / (dims[axis] - 1) as f64 - 0.5;
        let n = dims.iter().product();
        (0..n)
            .map(|i: usize| f(at(i % dims[0], 0), at(i / dims[0] % dims[1], 1), at(i / dims[0] / dims[1], 2)))
            .collect()
    }

    #[test]
    fn each_reflection_and_each_exchange_of_axes_is_a_symmetry() {
        for values in [
            on_grid(DIMS, |x, y, z| x * x + y + 2.0 * z),
            on_grid(DIMS, |x, y, z| x + y * y + 2.0 * z),
            on_grid(DIMS, |x, y, z| x + y + z * z),
        ] {
            assert!(is_symmetric(&values, DIMS, 1e-6));
        }
        for values in [
            on_grid(CUBE, |x, y, z| x + y + x * y * z),
            on_grid(CUBE, |x, y, z| x + z + 2.0 * y),
            on_grid(CUBE, |x, y, z| y + z - 3.0 * x),
        ] {
            assert!(is_symmetric(&values, CUBE, 1e-6));
        }
    }

    #[test]
    fn fields_without_a_symmetry_have_none() {
        let lopsided = on_grid(CUBE, |x, y, z| x + 2.0 * y + 4.0 * z + x * y);
        assert!(!is_symmetric(&lopsided, CUBE, 1e-3));
        // Within the bound all values are equal.
        assert!(!is_symmetric(&lopsided, CUBE, 100.0));
        assert!(!is_symmetric(&[1.0; 512], CUBE, 1e-3));
        assert!(!is_symmetric(&[2.0], [1, 1, 1], 1e-3));
        assert!(!is_symmetric(&[f64::NAN; 512], CUBE, 1e-3));
    }

    /// A hill with the reflections of a box, bit for bit.
    fn hill(dims: [usize; 3]) -> Vec<f64> {
        let along = |i: usize, extent: usize| {
            let t = (2 * i + 1) as f64 / extent as f64 - 1.0;
            1.0 - t * t
        };
        let [x, y, z] = dims;
        (0..x * y * z).map(|i| along(i % x, x) * along(i / x % y, y) * along(i / x / y, z)).collect()
    }

    const CODECS: [CodecId; 4] = [CodecId::Qb, CodecId::Pco, CodecId::Pyramid, CodecId::Zfp];

    /// Values on a grid after a codec that kept an absolute bound.
    fn decoded(id: CodecId, values: &[f64], dims: [usize; 3], bound: f64) -> Vec<f64> {
        let codec = recoup_compress::codec(id).unwrap();
        let context = Context::grid(dims);
        let mut payload = Vec::new();
        let encoded = codec.encode(Values::F64(values), Bound::Absolute(bound), &context, &mut payload).unwrap();
        assert!(!encoded.stored_raw, "{id}");
        let mut decoded = vec![0.0; values.len()];
        codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut decoded)).unwrap();
        decoded
    }

    #[test]
    fn codecs_keep_a_symmetry_exactly_where_they_are_said_to() {
        // No two extents are the same: pyramids may keep an exchange of axes.
        let dims = [16, 14, 10];
        for id in CODECS {
            // 2^-20 of the bound: only equal errors pass.
            let is_kept = is_symmetric(&decoded(id, &hill(dims), dims, 1e-3), dims, 1e-3 / 1048576.0);
            // A pyramid codes one half of what equals its reflection.
            assert_eq!(is_kept, rounds_alone(id) || id == CodecId::Pyramid, "{id}");
        }
    }

    #[test]
    fn errors_of_codecs_are_smooth_exactly_where_they_are_said_to_be() {
        let dims = [32, 32, 32];
        let values = on_grid(dims, |x, y, z| (3.0 * x + 1.0).sin() * (4.0 * y).cos() + (5.0 * z - x * y).sin());
        for id in CODECS {
            let decoded = decoded(id, &values, dims, 1e-3);
            let errors: Vec<f64> = values.iter().zip(&decoded).map(|(x, decoded)| decoded - x).collect();
            // The correlation of errors of neighbours across the slowest axis.
            let products: f64 = errors.iter().zip(&errors[dims[0] * dims[1]..]).map(|(a, b)| a * b).sum();
            let correlation = products / errors.iter().map(|e| e * e).sum::<f64>();
            assert_eq!(correlation < 0.25, rounds_alone(id), "{id}: {correlation}");
        }
    }
}
