//! Rivals: codecs that take the place of the planned one where the storage is slow enough for their
//! better ratio.
//!
//! A slower codec with a better ratio pays below a storage bandwidth `W* = (1/R_a - 1/R_b) /
//! (1/C_b - 1/C_a)`, R being ratios, C rates. A slab of the variable, coded against the version
//! before as the whole will be, says both; the bandwidth is declared, or the one at which this
//! worker has written so far. Rank 0 judges, and all ranks do the same.

use recoup_core::{Bound, Chain, Clock, CodecId, Comm, CommError, Context, Parent, broadcast_json};
use recoup_model::break_even::CodecRates;

use crate::chain::Follow;
use crate::codecs::Codecs;
use crate::staging::Staged;
use crate::timing::since;

/// Values of a slab, at least, where a frame has them.
const SLAB_VALUES: usize = 1 << 15;
/// Versions between two looks at the rivals.
const LOOK_EVERY: u64 = 10;

/// The codecs a lossy variable may be coded with, and what became of it last time.
#[derive(Debug)]
pub(crate) struct Rivals {
    codecs: Codecs,
    rivals: Vec<CodecId>,
    /// Bytes per second: declared, or written so far.
    pub(crate) bandwidth: Bandwidth,
    seen: Vec<Seen>,
}

/// Storage bandwidth.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bandwidth {
    Declared(f64),
    Measured { bytes: f64, seconds: f64 },
}

/// The last version of a variable.
#[derive(Debug)]
struct Seen {
    name: String,
    bound: Bound,
    codec: CodecId,
    versions: u64,
}

impl Bandwidth {
    pub(crate) fn new(declared: Option<f64>) -> Self {
        declared.map_or(Self::Measured { bytes: 0.0, seconds: 0.0 }, Self::Declared)
    }

    /// Bytes were written.
    pub(crate) fn wrote(&mut self, written: u64, took_seconds: f64) {
        if let Self::Measured { bytes, seconds } = self {
            *bytes += written as f64;
            *seconds += took_seconds;
        }
    }

    fn bytes_per_second(self) -> Option<f64> {
        match self {
            Self::Declared(rate) => Some(rate),
            Self::Measured { bytes, seconds } => (seconds > 0.0).then(|| bytes / seconds),
        }
    }
}

impl Rivals {
    pub(crate) fn new(codecs: Codecs, rivals: Vec<CodecId>, bandwidth: Bandwidth) -> Self {
        Self { codecs, rivals, bandwidth, seen: Vec::new() }
    }

    /// The codec for the next version of a variable: the planned one until its first version
    /// counts. Collective.
    pub(crate) fn pick(
        &mut self,
        (planned, staged): (CodecId, &Staged),
        follow: Follow<'_>,
        comm: &dyn Comm,
        clock: &dyn Clock,
    ) -> Result<CodecId, CommError> {
        let name = &staged.record.name;
        let Some(at) = self.seen.iter().position(|seen| seen.name == *name) else { return Ok(planned) };
        let is_due = self.seen[at].versions % LOOK_EVERY == 1;
        if self.rivals.is_empty() || !is_due {
            return Ok(self.seen[at].codec);
        }
        let mine = self.bandwidth.bytes_per_second().map_or(planned, |bandwidth| {
            let judged = |id| Some((id, self.judge(id, staged, (self.seen[at].bound, follow), clock)?));
            let seconds = |coding: &CodecRates| 1.0 / coding.encode_bytes_per_second + 1.0 / (coding.ratio * bandwidth);
            let codings = std::iter::once(planned).chain(self.rivals.iter().copied()).filter_map(judged);
            codings.min_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b))).map_or(planned, |(id, _)| id)
        });
        let agreed = broadcast_json(comm, || mine)?;
        if agreed != self.seen[at].codec {
            tracing::debug!(variable = %name, codec = %agreed, "another codec");
        }
        Ok(agreed)
    }

    /// The bandwidth a codec weighs against its own time: none where the codec was chosen by the
    /// user, who gets the fewest bytes.
    pub(crate) fn weighed_bandwidth(&self) -> Option<f64> {
        (!self.rivals.is_empty()).then(|| self.bandwidth.bytes_per_second()).flatten()
    }

    /// A variable was coded.
    pub(crate) fn coded(&mut self, staged: &Staged, codec: CodecId, bound: Bound) {
        match self.seen.iter_mut().find(|seen| seen.name == staged.record.name) {
            Some(seen) => {
                seen.versions += 1;
                (seen.codec, seen.bound) = (codec, bound);
            }
            None => self.seen.push(Seen { name: staged.record.name.clone(), bound, codec, versions: 1 }),
        }
    }

    /// Ratio and rate of a codec on a slab of the middle frame; `None` when the codec cannot.
    fn judge(
        &self,
        id: CodecId,
        staged: &Staged,
        (bound, follow): (Bound, Follow<'_>),
        clock: &dyn Clock,
    ) -> Option<CodecRates> {
        let codec = self.codecs.find(id).ok()?;
        let (len, run) = (staged.frame_len(), staged.frames() / 2);
        let frame = Context {
            dims: staged.record.frame_dims,
            stride: staged.record.stride,
            chain: follow.chain(run),
            bandwidth: self.weighed_bandwidth(),
            threads: self.codecs.threads,
        };
        let (sample, dims) = frame.middle(SLAB_VALUES);
        let source = staged.values.slice(run * len + sample.start, sample.len());
        let chain = match frame.chain {
            Chain::Follow(Parent { values, hash }) => {
                Chain::Follow(Parent { values: values.slice(sample.start, sample.len()), hash })
            }
            chain => chain,
        };
        let context = Context { dims, chain, ..frame };
        let mut payload = Vec::new();
        let begin = clock.now();
        codec.encode(source, bound, &context, &mut payload).ok()?;
        let seconds = since(clock.now(), begin);
        let bytes = (sample.len() * source.element().size()) as f64;
        let ratio = bytes / payload.len().max(1) as f64;
        Some(CodecRates { ratio, encode_bytes_per_second: bytes / seconds, decode_bytes_per_second: f64::INFINITY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_bandwidth_is_not_measured_over() {
        let (mut declared, mut measured) = (Bandwidth::new(Some(5.0)), Bandwidth::new(None));
        assert_eq!(measured.bytes_per_second(), None);
        declared.wrote(100, 1.0);
        measured.wrote(100, 1.0);
        measured.wrote(200, 2.0);
        assert_eq!((declared.bytes_per_second(), measured.bytes_per_second()), (Some(5.0), Some(100.0)));
    }
}
