//! `Increment`: the runs of values that differ from the parent's frame; of a frame that stands
//! alone, the runs that are not zero.
//!
//! A frame that equals its parent costs its header. The encoder is given the parent's values and
//! compares, or is told which runs changed and touches nothing else: [`Chain::Changed`]. Values are
//! taken as they are, so the codec is lossless under every bound.
//!
//! Payload, little-endian; FORMAT.md has it too:
//!
//! | byte | field |
//! |---|---|
//! | 0 | magic `RECOUPIN` |
//! | 8 | version u8, 1 |
//! | 9 | reference u8: 0 zeros, 1 the parent's values |
//! | 10 | packing u8 of the values: 0 as they are, 1 zstd after a byte shuffle |
//! | 11 | zero |
//! | 12 | number of runs u32 |
//! | 16 | first 16 bytes of the BLAKE3 hash of the parent's payload; zeros without one |
//! | 32 | runs: first value u32, number of values u32 |
//! | behind | the values of all runs |

use std::borrow::Cow;
use std::ops::Range;

use recoup_core::{Bound, Chain, Codec, CodecError, CodecId, CodecResult, Context, Encoded, Values, ValuesMut};

use crate::{bytes, effective_bound, zstd};

const MAGIC: [u8; 8] = *b"RECOUPIN";
const VERSION: u8 = 1;
const HEADER: usize = 32;
/// Bytes of a run in front of its values: two runs that are less apart are one.
const RUN_BYTES: usize = 8;

/// Runs of values that differ from the parent's, or from zeros.
#[derive(Clone, Copy, Debug, Default)]
pub struct Increment;

/// A payload on its way: the runs, and what they differ from.
struct Changes<'a> {
    /// Ascending and disjoint ranges of values.
    runs: Cow<'a, [Range<usize>]>,
    /// The parent's hash; `None` where the reference is zeros.
    hash: Option<[u8; 16]>,
    packs: bool,
}

impl<'a> Changes<'a> {
    /// Finds the changes of a frame against its parent, or against zeros.
    fn of(source: Values<'_>, raw: &[u8], context: &Context<'a>) -> Self {
        let element = source.element().size();
        match context.chain {
            Chain::Changed(known) => {
                Self { runs: Cow::Borrowed(known.runs), hash: Some(known.hash), packs: known.packs }
            }
            Chain::Follow(parent)
                if (parent.values.element(), parent.values.len()) == (source.element(), source.len()) =>
            {
                let runs = differing_runs(raw, Some(&raw_bytes(parent.values)), element);
                Self { runs: runs.into(), hash: Some(parent.hash), packs: true }
            }
            Chain::Alone | Chain::Start | Chain::Follow(_) => {
                Self { runs: differing_runs(raw, None, element).into(), hash: None, packs: true }
            }
        }
    }

    /// Writes the payload.
    fn write(&self, raw: &[u8], element: usize, target: &mut Vec<u8>) -> CodecResult<()> {
        target.clear();
        target.resize(HEADER, 0);
        target[..8].copy_from_slice(&MAGIC);
        target[8] = VERSION;
        target[9] = u8::from(self.hash.is_some());
        target[12..16].copy_from_slice(&(self.runs.len() as u32).to_le_bytes());
        target[16..32].copy_from_slice(&self.hash.unwrap_or_default());
        for run in self.runs.iter() {
            target.extend((run.start as u32).to_le_bytes());
            target.extend((run.len() as u32).to_le_bytes());
        }
        let values_from = target.len();
        for run in self.runs.iter() {
            target.extend_from_slice(&raw[run.start * element..run.end * element]);
        }
        if self.packs
            && let Some(packed) = zstd::packed(&target[values_from..], element)?
        {
            target[10] = 1;
            target.truncate(values_from);
            target.extend_from_slice(&packed);
        }
        Ok(())
    }
}

/// The bytes of values as [`CodecId::Raw`] writes them; copied only where memory holds others.
fn raw_bytes(values: Values<'_>) -> Cow<'_, [u8]> {
    values.as_raw().map_or_else(
        || {
            let mut raw = Vec::new();
            bytes::extend(values, &mut raw);
            raw.into()
        },
        Cow::Borrowed,
    )
}

/// The runs of values whose bytes differ from those of `reference`, or from zeros.
fn differing_runs(raw: &[u8], reference: Option<&[u8]>, element: usize) -> Vec<Range<usize>> {
    let is_equal = |range: Range<usize>| match reference {
        Some(reference) => raw[range.clone()] == reference[range],
        None => raw[range].iter().all(|&byte| byte == 0),
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    let n = raw.len() / element;
    /// Values compared at a time.
    const STRIDE: usize = 512;
    for first in (0..n).step_by(STRIDE) {
        let end = n.min(first + STRIDE);
        if is_equal(first * element..end * element) {
            continue;
        }
        for value in (first..end).filter(|&value| !is_equal(value * element..(value + 1) * element)) {
            match runs.last_mut() {
                Some(last) if (value - last.end) * element <= RUN_BYTES => last.end = value + 1,
                _ => runs.push(value..value + 1),
            }
        }
    }
    runs
}

/// Values from `range` on, to be overwritten.
fn part(target: ValuesMut<'_>, range: Range<usize>) -> ValuesMut<'_> {
    match target {
        ValuesMut::F64(values) => ValuesMut::F64(&mut values[range]),
        ValuesMut::F32(values) => ValuesMut::F32(&mut values[range]),
        ValuesMut::I64(values) => ValuesMut::I64(&mut values[range]),
        ValuesMut::Bytes(values) => ValuesMut::Bytes(&mut values[range]),
    }
}

/// Overwrites all values with zeros.
fn zero(target: ValuesMut<'_>) {
    match target {
        ValuesMut::F64(values) => values.fill(0.0),
        ValuesMut::F32(values) => values.fill(0.0),
        ValuesMut::I64(values) => values.fill(0),
        ValuesMut::Bytes(values) => values.fill(0),
    }
}

/// Overwrites all values with those of the parent; returns whether there are as many, of the same
/// type.
fn copy(parent: Values<'_>, target: ValuesMut<'_>) -> bool {
    if parent.len() != target.as_values().len() {
        return false;
    }
    match (parent, target) {
        (Values::F64(parent), ValuesMut::F64(target)) => target.copy_from_slice(parent),
        (Values::F32(parent), ValuesMut::F32(target)) => target.copy_from_slice(parent),
        (Values::I64(parent), ValuesMut::I64(target)) => target.copy_from_slice(parent),
        (Values::Bytes(parent), ValuesMut::Bytes(target)) => target.copy_from_slice(parent),
        _ => return false,
    }
    true
}

/// A payload that was read, its header and its runs checked.
struct ParsedIncrement<'a> {
    hash: Option<[u8; 16]>,
    is_packed: bool,
    runs: &'a [[u8; RUN_BYTES]],
    /// Values of all runs together.
    len: usize,
    values: &'a [u8],
}

fn damaged(what: &'static str) -> CodecError {
    CodecError::Damaged { codec: CodecId::Increment, what }
}

impl<'a> ParsedIncrement<'a> {
    /// Reads a payload of a frame of `n` values.
    fn parse(source: &'a [u8], n: usize) -> CodecResult<Self> {
        let (header, rest) = source.split_first_chunk::<HEADER>().ok_or(damaged("shorter than its header"))?;
        let [reference, packing, zero] = [header[9], header[10], header[11]];
        if header[..8] != MAGIC || header[8] != VERSION || reference > 1 || packing > 1 || zero != 0 {
            return Err(damaged("header does not fit"));
        }
        let hash: [u8; 16] = std::array::from_fn(|i| header[16 + i]);
        if reference == 0 && hash != [0; 16] {
            return Err(damaged("zeros have no hash"));
        }
        let n_runs = u32::from_le_bytes(std::array::from_fn(|i| header[12 + i])) as usize;
        let runs_bytes = n_runs.checked_mul(RUN_BYTES).filter(|&runs_bytes| runs_bytes <= rest.len());
        let (runs, values) = rest.split_at(runs_bytes.ok_or(damaged("more runs than bytes"))?);
        let runs = runs.as_chunks::<RUN_BYTES>().0;
        let hash = (reference == 1).then_some(hash);
        let mut payload = Self { hash, is_packed: packing == 1, runs, len: 0, values };
        let mut end = None;
        for run in payload.runs() {
            let follows = end.is_none_or(|end| run.start > end);
            if !follows || run.is_empty() || run.end > n {
                return Err(damaged("runs are not ascending and apart"));
            }
            payload.len += run.len();
            end = Some(run.end);
        }
        if payload.is_packed && payload.runs.is_empty() {
            return Err(damaged("nothing is packed"));
        }
        Ok(payload)
    }

    /// The runs, whose ends are not checked to be sums that fit.
    fn runs(&self) -> impl Iterator<Item = Range<usize>> + use<'a> {
        let word = |bytes: &[u8]| u32::from_le_bytes(std::array::from_fn(|i| bytes[i])) as usize;
        self.runs.iter().map(move |run| word(run)..word(run).saturating_add(word(&run[4..])))
    }
}

impl Codec for Increment {
    fn id(&self) -> CodecId {
        CodecId::Increment
    }

    fn can_follow(&self) -> bool {
        true
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        let raw = raw_bytes(source);
        let changes = Changes::of(source, &raw, context);
        changes.write(&raw, source.element().size(), target)?;
        let encoded = Encoded::under(Bound::Lossless);
        if target.len() < raw.len() {
            return Ok(Encoded { follows: changes.hash.is_some(), ..encoded });
        }
        target.clear();
        target.extend_from_slice(&raw);
        Ok(Encoded { stored_raw: true, ..encoded })
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, mut target: ValuesMut<'_>) -> CodecResult<()> {
        let n = target.as_values().len();
        bytes::check_shape(context, n)?;
        let payload = ParsedIncrement::parse(source, n)?;
        let element = target.as_values().element().size();
        let wrong = CodecError::Parent { codec: CodecId::Increment };
        match (payload.hash, context.chain.parent()) {
            (None, _) => zero(target.reborrow()),
            (Some(hash), Some(parent)) if parent.hash == hash => {
                if !copy(parent.values, target.reborrow()) {
                    return Err(wrong);
                }
            }
            (Some(_), _) => return Err(wrong),
        }
        let values = match payload.is_packed {
            false => Cow::Borrowed(payload.values),
            true => zstd::unpacked(payload.values, payload.len * element, element)
                .ok_or(damaged("zstd refuses the values, or they are too few or too many"))?
                .into(),
        };
        if values.len() != payload.len * element {
            return Err(damaged("length is not that of the runs"));
        }
        let mut left = &values[..];
        for run in payload.runs() {
            let (run_values, behind) = left.split_at(run.len() * element);
            bytes::fill(run_values, part(target.reborrow(), run), CodecId::Increment)?;
            left = behind;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::{KnownChanges, Parent, mix};

    use super::*;

    const N: usize = 1000;
    const HASH: [u8; 16] = [7; 16];

    fn before() -> Vec<f64> {
        (0..N as u32).map(|i| f64::from(i).sqrt()).collect()
    }

    fn follow(parent: &[f64]) -> Context<'_> {
        Context::flat(N).chained(Chain::Follow(Parent { values: Values::F64(parent), hash: HASH }))
    }

    fn encode(values: &[f64], context: &Context<'_>) -> (Encoded, Vec<u8>) {
        let mut payload = Vec::new();
        let encoded = Increment.encode(Values::F64(values), Bound::Lossless, context, &mut payload).unwrap();
        (encoded, payload)
    }

    fn decode(payload: &[u8], context: &Context<'_>) -> CodecResult<Vec<f64>> {
        let mut values = vec![9.0; N];
        Increment.decode(payload, Bound::Lossless, context, ValuesMut::F64(&mut values)).map(|()| values)
    }

    fn same_bits(a: &[f64], b: &[f64]) -> bool {
        a.iter().map(|value| value.to_bits()).eq(b.iter().map(|value| value.to_bits()))
    }

    #[test]
    fn a_frame_that_equals_its_parent_costs_its_header() {
        let before = before();
        let (encoded, payload) = encode(&before, &follow(&before));
        assert!(encoded.follows && payload.len() == HEADER);
        assert!(same_bits(&decode(&payload, &follow(&before)).unwrap(), &before));
    }

    /// NaN, -0 and 0 differ from each other by their bits alone.
    #[test]
    fn changed_values_come_back_bit_for_bit_by_comparison_and_as_told() {
        let before = before();
        let mut now = before.clone();
        now[0] = -0.0;
        now[5] = f64::from_bits(0x7ff8_0000_0000_0001);
        now[N - 1] = f64::NAN;
        let runs = [0..1, 3..8, N - 1..N];
        let known = |packs| Context::flat(N).chained(Chain::Changed(KnownChanges { runs: &runs, hash: HASH, packs }));
        for context in [follow(&before), known(false), known(true)] {
            let (encoded, payload) = encode(&now, &context);
            assert!(encoded.follows && payload.len() <= HEADER + 3 * RUN_BYTES + 7 * 8);
            assert!(same_bits(&decode(&payload, &follow(&before)).unwrap(), &now));
        }
    }

    #[test]
    fn another_parent_or_none_is_refused() {
        let before = before();
        let (_, payload) = encode(&before, &follow(&before));
        let wrong = Err(CodecError::Parent { codec: CodecId::Increment });
        assert_eq!(decode(&payload, &Context::flat(N)), wrong);
        let other = Parent { values: Values::F64(&before), hash: [8; 16] };
        assert_eq!(decode(&payload, &Context::flat(N).chained(Chain::Follow(other))), wrong);
        let integers = Parent { values: Values::I64(&[0; N]), hash: HASH };
        assert_eq!(decode(&payload, &Context::flat(N).chained(Chain::Follow(integers))), wrong);
        let shorter = Parent { values: Values::F64(&before[1..]), hash: HASH };
        assert_eq!(decode(&payload, &Context::flat(N).chained(Chain::Follow(shorter))), wrong);
    }

    #[test]
    fn every_lie_of_a_payload_with_a_parent_is_named() {
        let before = before();
        let mut now = before.clone();
        now[3] += 1.0;
        now[20] += 1.0;
        let (_, payload) = encode(&now, &follow(&before));
        for len in 0..payload.len() {
            assert!(decode(&payload[..len], &follow(&before)).is_err(), "{len} bytes");
        }
        let lies: [(usize, &[u8]); 12] = [
            (0, b"r"),
            (8, &[2]),
            (9, &[0]),
            (9, &[2]),
            (10, &[2]),
            (11, &[1]),
            (12, &[3]),
            (16, &[0]),
            (32, &[19]),
            (36, &[0]),
            (36, &[255, 255, 255, 255]),
            (40, &[255, 255, 255, 255]),
        ];
        for (at, lie) in lies {
            let mut damaged = payload.clone();
            damaged[at..at + lie.len()].copy_from_slice(lie);
            assert!(decode(&damaged, &follow(&before)).is_err(), "{lie:?} at {at}");
        }
        for bit in 0..(HEADER + 2 * RUN_BYTES) * 8 {
            let mut damaged = payload.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Two runs may lie elsewhere; that is for the checksum to find.
            drop(decode(&damaged, &follow(&before)));
        }
    }

    #[test]
    fn a_frame_of_which_nearly_all_changed_is_stored_raw() {
        let before = before();
        let mut state = 1_u64;
        let mut random = || {
            state += 1;
            f64::from_bits(mix(state))
        };
        let now: Vec<f64> = (0..N).map(|_| random()).collect();
        let (encoded, payload) = encode(&now, &follow(&before));
        assert!(encoded.stored_raw && !encoded.follows && payload.len() == 8 * N);
    }
}
