//! `Delta`: codes a frame as its difference to the parent's decoded values, with a codec that knows
//! nothing of chains.
//!
//! The difference is taken to the *decoded* parent, so errors do not add up along a chain: each
//! frame keeps its own bound (the closed loop of predictive coding). Rounding `p + d'` may
//! cost an ulp, so the difference is coded under a bound that much smaller, and every sum is
//! compared with its value before the payload is handed out. A frame that takes fewer bytes
//! alone is coded alone, in the codec's own bytes.
//!
//! Payload of a frame that follows, little-endian; FORMAT.md has it too:
//!
//! | byte | field |
//! |---|---|
//! | 0 | magic `RECOUPDX` |
//! | 8 | version u8, 1 |
//! | 9 | bound of the difference u8: 0 lossless, 1 absolute |
//! | 10 | zeros |
//! | 16 | first 16 bytes of the BLAKE3 hash of the parent's payload |
//! | 32 | bound of the difference f64 |
//! | 40 | the codec's payload of the difference |

use recoup_core::{Bound, Codec, CodecError, CodecId, CodecResult, Context, Encoded, Values, ValuesMut};

use crate::parent::TypedParent;
use crate::verified::compare;
use crate::{Verified, bytes, effective_bound};

const MAGIC: [u8; 8] = *b"RECOUPDX";
const VERSION: u8 = 1;
const HEADER: usize = 40;
/// Least part of the bound that must be left for the difference.
const LEFT_MIN: f64 = 0.5;
/// Slices of a frame, of which the middle one judges it.
const SLICES: usize = 8;
/// Least number of values of such a slice.
const SLICE_VALUES: usize = 1 << 15;

/// A verified codec that follows a parent where that takes fewer bytes.
///
/// Doubles under an absolute bound can follow; everything else is coded alone. Of large frames, a
/// slice decides which takes fewer bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delta<C> {
    alone: Verified<C>,
}

impl<C: Codec> Delta<C> {
    /// Wraps `inner`.
    pub fn new(inner: C) -> Self {
        Self { alone: Verified::new(inner) }
    }

    /// Encodes the frame as a difference, where that holds the bound and promises to be shorter
    /// than the frame alone; otherwise returns `None`, with anything in `target`.
    fn follow(
        &self,
        values: &[f64],
        bound: f64,
        parent: TypedParent<'_, f64>,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Option<Encoded> {
        let mut difference: Vec<f64> = values.iter().zip(parent.values).map(|(x, p)| x - p).collect();
        let inner_bound = Bound::Absolute(left_for_difference(values, &difference, bound)?);
        let alone = BoundedValues { values, bound: Bound::Absolute(bound) };
        let following = BoundedValues { values: &difference, bound: inner_bound };
        if !self.pays(following, alone, context, target) {
            return None;
        }
        let inner = self.alone.inner();
        let mut payload = Vec::new();
        let coded = inner.encode(Values::F64(&difference), inner_bound, context, &mut payload).ok()?;
        if HEADER + payload.len() >= size_of_val(values) {
            return None;
        }
        inner.decode(&payload, coded.bound, context, ValuesMut::F64(&mut difference)).ok()?;
        add(parent.values, &mut difference);
        let achieved_error = compare(Values::F64(values), Values::F64(&difference), Bound::Absolute(bound)).ok()?;
        target.clear();
        target.extend_from_slice(&DifferenceHeader { hash: parent.hash, bound: coded.bound }.to_bytes());
        target.extend_from_slice(&payload);
        Some(Encoded { achieved_error, follows: true, ..Encoded::under(Bound::Absolute(bound)) })
    }

    /// Returns whether the difference takes fewer bytes than the values alone, judged by a slice of
    /// both.
    fn pays(
        &self,
        difference: BoundedValues<'_>,
        alone: BoundedValues<'_>,
        context: &Context,
        payload: &mut Vec<u8>,
    ) -> bool {
        let (range, dims) = context.middle(alone.values.len().div_ceil(SLICES).max(SLICE_VALUES));
        let sampled = Context { dims, ..*context };
        let mut size = |source: BoundedValues<'_>| {
            let slice = Values::F64(&source.values[range.clone()]);
            let encoded = self.alone.inner().encode(slice, source.bound, &sampled, payload);
            encoded.map_or(usize::MAX - HEADER, |_| payload.len())
        };
        HEADER + size(difference) < size(alone)
    }
}

/// Values, and the bound they are to be coded under.
#[derive(Clone, Copy, Debug)]
struct BoundedValues<'a> {
    values: &'a [f64],
    bound: Bound,
}

/// The part of an absolute bound that is left when `p + d'` is rounded; `None` when that is too
/// little. Values that are not finite leave nothing.
fn left_for_difference(values: &[f64], difference: &[f64], bound: f64) -> Option<f64> {
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |m, v| if v.abs() > m { v.abs() } else { m });
    // x - p and p + d' are rounded once each, by half an ulp of |x - p| and of |x| + bound at most.
    let rounded = f64::EPSILON * (largest(values) + largest(difference) + bound);
    let left = bound - rounded;
    (left >= LEFT_MIN * bound && left > f64::MIN_POSITIVE).then_some(left)
}

/// `d = p + d`
fn add(parent: &[f64], difference: &mut [f64]) {
    for (d, p) in difference.iter_mut().zip(parent) {
        *d += p;
    }
}

impl<C: Codec> Codec for Delta<C> {
    fn id(&self) -> CodecId {
        self.alone.id()
    }

    fn can_follow(&self) -> bool {
        true
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let plain = alone(context);
        let asked = effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        if let Bound::Absolute(e) = asked
            && let Values::F64(values) = source
            && let Some(parent) = parent_of(context, values.len())
            && let Some(encoded) = self.follow(values, e, parent, &plain, target)
        {
            return Ok(encoded);
        }
        let encoded = self.alone.encode(source, asked, &plain, target)?;
        if encoded.stored_raw || !target.starts_with(&MAGIC) {
            return Ok(encoded);
        }
        // The decoder would take the codec's own bytes for ours.
        target.clear();
        bytes::extend(source, target);
        Ok(Encoded { stored_raw: true, filters: encoded.filters, ..Encoded::under(Bound::Lossless) })
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        let plain = alone(context);
        let Some(header) = DifferenceHeader::parse(source, self.id())? else {
            return self.alone.decode(source, bound, &plain, target);
        };
        let ValuesMut::F64(target) = target else {
            return Err(CodecError::Damaged { codec: self.id(), what: "a difference, where only doubles have one" });
        };
        let wrong = CodecError::Parent { codec: self.id() };
        let parent = parent_of(context, target.len()).ok_or(wrong.clone())?;
        if parent.hash != header.hash {
            return Err(wrong);
        }
        self.alone.decode(&source[HEADER..], header.bound, &plain, ValuesMut::F64(target))?;
        add(parent.values, target);
        Ok(())
    }
}

/// The context of a codec that knows no chains.
fn alone<'a>(context: &Context<'a>) -> Context<'a> {
    context.chained(recoup_core::Chain::Alone)
}

/// The parent of a frame of `n` doubles, where it has as many.
fn parent_of<'a>(context: &Context<'a>, n: usize) -> Option<TypedParent<'a, f64>> {
    TypedParent::of(context.chain.parent()).filter(|parent: &TypedParent<'_, f64>| parent.values.len() == n)
}

/// The header of a difference.
struct DifferenceHeader {
    hash: [u8; 16],
    bound: Bound,
}

impl DifferenceHeader {
    fn to_bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = VERSION;
        bytes[9] = u8::from(self.bound != Bound::Lossless);
        bytes[16..32].copy_from_slice(&self.hash);
        bytes[32..].copy_from_slice(&self.bound.value().to_le_bytes());
        bytes
    }

    /// Reads the header; `None` where the payload is the codec's own.
    fn parse(source: &[u8], codec: CodecId) -> CodecResult<Option<Self>> {
        if !source.starts_with(&MAGIC) {
            return Ok(None);
        }
        let refuse = CodecError::Damaged { codec, what: "header of a difference does not fit" };
        let Some(header) = source.first_chunk::<HEADER>() else { return Err(refuse) };
        let hash = std::array::from_fn(|i| header[16 + i]);
        let value = f64::from_le_bytes(std::array::from_fn(|i| header[32 + i]));
        let bound = match header[9] {
            0 if value == 0.0 => Bound::Lossless,
            1 if value.is_finite() && value > 0.0 => Bound::Absolute(value),
            _ => return Err(refuse),
        };
        if header[8] != VERSION || header[10..16] != [0; 6] {
            return Err(refuse);
        }
        Ok(Some(Self { hash, bound }))
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::{Chain, Parent};

    use super::*;
    use crate::{Pco, Zfp, bound_holds};

    const N: usize = 4096;

    /// Two states of something that converges: the second is near the first, and neither is smooth.
    fn states() -> (Vec<f64>, Vec<f64>) {
        let noise = |i: usize| ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
        let before: Vec<f64> = (0..N).map(|i| 3.0 * noise(i) - 1.0).collect();
        let after = before.iter().enumerate().map(|(i, x)| x + 1e-3 * (i as f64 * 0.01).sin()).collect();
        (before, after)
    }

    fn codecs() -> Vec<Box<dyn Codec>> {
        vec![
            Box::new(Delta::new(Pco)),
            Box::new(Delta::new(Zfp)),
            #[cfg(feature = "sz3")]
            Box::new(Delta::new(crate::Sz3)),
        ]
    }

    fn follow<'a>(values: &'a [f64], hash: [u8; 16]) -> Context<'a> {
        Context::flat(N).chained(Chain::Follow(Parent { values: Values::F64(values), hash }))
    }

    #[test]
    fn a_frame_that_follows_keeps_its_bound_and_takes_fewer_bytes() {
        let (before, after) = states();
        for codec in codecs() {
            for e in [1e-3, 1e-6, 1e-12, 3e-16] {
                let bound = Bound::Absolute(e);
                let source = Values::F64(&after);
                let mut payload = Vec::new();
                let mut alone = Vec::new();
                let context = follow(&before, [7; 16]);
                let encoded = codec.encode(source, bound, &context, &mut payload).unwrap();
                codec.encode(source, bound, &Context::flat(N), &mut alone).unwrap();
                assert!(payload.len() <= alone.len(), "{} at {e}", codec.id());
                // Far above the values' last bits there is something to gain.
                assert!(encoded.follows || e < 1e-14, "{} at {e}", codec.id());
                if encoded.stored_raw {
                    continue;
                }
                let mut decoded = vec![0.0; N];
                codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut decoded)).unwrap();
                assert_eq!(bound_holds(source, Values::F64(&decoded), bound), None, "{} at {e}", codec.id());
                let largest = after.iter().zip(&decoded).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
                assert_eq!(largest, encoded.achieved_error, "{} at {e}", codec.id());
            }
        }
    }

    #[test]
    fn another_parent_is_refused() {
        let (before, after) = states();
        for codec in codecs() {
            let mut payload = Vec::new();
            let mut decoded = vec![0.0; N];
            let bound = Bound::Absolute(1e-6);
            let encoded = codec.encode(Values::F64(&after), bound, &follow(&before, [7; 16]), &mut payload).unwrap();
            for context in [follow(&before, [8; 16]), follow(&before[1..], [7; 16]), Context::flat(N)] {
                let result = codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut decoded));
                assert_eq!(result, Err(CodecError::Parent { codec: codec.id() }));
            }
        }
    }

    /// The parent given is the right one: what is wrong is that singles have no differences.
    #[test]
    fn a_difference_of_singles_is_refused_for_what_it_is() {
        let (before, after) = states();
        let singles: Vec<f32> = before.iter().map(|&x| x as f32).collect();
        let context = Context::flat(N).chained(Chain::Follow(Parent { values: Values::F32(&singles), hash: [7; 16] }));
        for codec in codecs() {
            let mut payload = Vec::new();
            let mut decoded = vec![0.0_f32; N];
            let bound = Bound::Absolute(1e-6);
            assert!(codec.encode(Values::F64(&after), bound, &follow(&before, [7; 16]), &mut payload).unwrap().follows);
            let error = codec.decode(&payload, bound, &context, ValuesMut::F32(&mut decoded)).unwrap_err();
            assert!(matches!(error, CodecError::Damaged { .. }) && error.to_string().contains("doubles"), "{error}");
        }
    }

    /// Singles are coded alone, whatever parent there is.
    #[test]
    fn singles_do_not_follow() {
        let (before, after) = states();
        let [before, after] = [before, after].map(|values| values.iter().map(|&x| x as f32).collect::<Vec<f32>>());
        let parent = Parent { values: Values::F32(&before), hash: [7; 16] };
        let context = Context::flat(N).chained(Chain::Follow(parent));
        for codec in codecs() {
            let encoded = codec.encode(Values::F32(&after), Bound::Absolute(1e-3), &context, &mut Vec::new()).unwrap();
            assert!(!encoded.follows, "{}", codec.id());
        }
    }

    /// NaN, infinities, -0 and values far from their parents: coded alone, or within the bound all
    /// the same.
    #[test]
    fn what_a_difference_cannot_hold_is_coded_alone() {
        let (before, after) = states();
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300, -1e300, 5e-324];
        for codec in codecs() {
            for value in odd {
                for is_parent in [false, true] {
                    let mut parent = before.clone();
                    let mut values = after.clone();
                    (if is_parent { &mut parent } else { &mut values })[77] = value;
                    let source = Values::F64(&values);
                    let context = follow(&parent, [1; 16]);
                    let bound = Bound::Absolute(1e-4);
                    let mut payload = Vec::new();
                    let mut decoded = vec![0.0; N];
                    let encoded = codec.encode(source, bound, &context, &mut payload).unwrap();
                    let target = ValuesMut::F64(&mut decoded);
                    match encoded.stored_raw {
                        true => crate::decode_raw(&payload, target).unwrap(),
                        false => codec.decode(&payload, encoded.bound, &context, target).unwrap(),
                    }
                    assert_eq!(bound_holds(source, Values::F64(&decoded), bound), None, "{} {value}", codec.id());
                }
            }
        }
    }

    #[test]
    fn a_damaged_header_is_an_error() {
        let (before, after) = states();
        let codec = Delta::new(Pco);
        let context = follow(&before, [7; 16]);
        let mut payload = Vec::new();
        let encoded = codec.encode(Values::F64(&after), Bound::Absolute(1e-6), &context, &mut payload).unwrap();
        let mut decoded = vec![0.0; N];
        for bit in 0..HEADER * 8 {
            let mut flipped = payload.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // A bound of the difference that is another number is not seen here, but by the frame's
            // checksum.
            let result = codec.decode(&flipped, encoded.bound, &context, ValuesMut::F64(&mut decoded));
            assert!(result.is_err() || bit >= 32 * 8, "bit {bit}");
        }
        for len in 0..HEADER {
            let result = codec.decode(&payload[..len], encoded.bound, &context, ValuesMut::F64(&mut decoded));
            assert!(result.is_err(), "{len} bytes");
        }
    }
}
