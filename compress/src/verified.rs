//! `Verified`: decodes every payload and compares every value, so that codecs of foreign libraries
//! keep the bound too. A frame with a violator is stored raw as a whole, which other readers of the
//! file then see as well.

use recoup_core::{Bound, Codec, CodecError, CodecId, CodecResult, Context, Encoded, Values, ValuesMut};

use crate::scalar::Scalar;
use crate::{bytes, effective_bound};

/// A codec whose every payload is decoded and compared before it is handed out.
///
/// A frame is stored raw when some value broke the bound, when the payload outgrew the raw values,
/// or when the codec does not take the element type. The comparison allocates one copy of the
/// values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verified<C> {
    inner: C,
}

impl<C: Codec> Verified<C> {
    /// Wraps `inner`.
    pub fn new(inner: C) -> Self {
        Self { inner }
    }

    /// The codec, unwrapped.
    pub(crate) fn inner(&self) -> &C {
        &self.inner
    }

    /// The largest error of the payload just written; `None` when some value breaks the bound asked
    /// for.
    fn verify(&self, source: Values<'_>, bounds: VerifiedBounds, context: &Context, payload: &[u8]) -> Option<f64> {
        macro_rules! decoded {
            ($variant:ident, $values:expr, $zero:expr) => {{
                let mut decoded = vec![$zero; $values.len()];
                self.inner.decode(payload, bounds.coded, context, ValuesMut::$variant(&mut decoded)).ok()?;
                compare(source, Values::$variant(&decoded), bounds.asked).ok()
            }};
        }
        match source {
            Values::F64(values) => decoded!(F64, values, 0.0),
            Values::F32(values) => decoded!(F32, values, 0.0),
            Values::I64(values) => decoded!(I64, values, 0),
            Values::Bytes(values) => decoded!(Bytes, values, 0),
        }
    }
}

/// The bounds of a payload.
#[derive(Clone, Copy, Debug)]
struct VerifiedBounds {
    /// The bound it was coded under.
    coded: Bound,
    /// The bound every value must hold.
    asked: Bound,
}

impl<C: Codec> Codec for Verified<C> {
    fn id(&self) -> CodecId {
        self.inner.id()
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let asked = effective_bound(source, bound)?;
        let mut filters = Vec::new();
        match self.inner.encode(source, asked, context, target) {
            Ok(encoded) => {
                let bounds = VerifiedBounds { coded: encoded.bound, asked };
                if target.len() <= bytes::size(source)
                    && let Some(achieved_error) = self.verify(source, bounds, context, target)
                {
                    return Ok(Encoded { achieved_error, ..encoded });
                }
                filters = encoded.filters;
            }
            Err(CodecError::Element { .. }) => {}
            Err(error) => return Err(error),
        }
        target.clear();
        bytes::extend(source, target);
        Ok(Encoded { stored_raw: true, filters, ..Encoded::under(Bound::Lossless) })
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        self.inner.decode(source, bound, context, target)
    }
}

/// The first value of `decoded` that breaks `bound` on `source`, judged in real arithmetic; `None`
/// when all hold.
///
/// NaN, infinities and -0 hold only bit for bit; so does everything under [`Bound::Lossless`]. A
/// range bound is taken over the finite values of `source`. Values of another type or number, and a
/// bound that is none, are broken from the first value on.
#[must_use]
pub fn bound_holds(source: Values<'_>, decoded: Values<'_>, bound: Bound) -> Option<usize> {
    let Ok(bound) = effective_bound(source, bound) else { return Some(0) };
    compare(source, decoded, bound).err()
}

/// The largest `|x' - x|` over finite values, or the first value that breaks the bound.
pub(crate) fn compare(source: Values<'_>, decoded: Values<'_>, bound: Bound) -> Result<f64, usize> {
    if source.len() != decoded.len() {
        return Err(source.len().min(decoded.len()));
    }
    match (source, decoded) {
        (Values::F64(source), Values::F64(decoded)) => compare_floats(source, decoded, bound),
        (Values::F32(source), Values::F32(decoded)) => compare_floats(source, decoded, bound),
        (Values::I64(source), Values::I64(decoded)) => compare_exact(source, decoded),
        (Values::Bytes(source), Values::Bytes(decoded)) => compare_exact(source, decoded),
        (Values::F64(_) | Values::F32(_) | Values::I64(_) | Values::Bytes(_), _) => Err(0),
    }
}

fn compare_exact<T: PartialEq>(source: &[T], decoded: &[T]) -> Result<f64, usize> {
    let violator = source.iter().zip(decoded).position(|(x, y)| x != y);
    violator.map_or(Ok(0.0), Err)
}

/// Values compared at a time: a run without a doubtful value needs one branch.
const RUN: usize = 256;

fn compare_floats<T: Scalar>(source: &[T], decoded: &[T], bound: Bound) -> Result<f64, usize> {
    let (absolute, relative) = match bound {
        Bound::Absolute(e) => (e, 0.0),
        // An ulp or two below e: what passes this rounded test holds for certain.
        Bound::Pointwise(e) => (0.0, e * (1.0 - 4.0 * f64::EPSILON)),
        _ => (0.0, 0.0),
    };
    let mut largest = 0.0f64;
    for (run, (xs, ys)) in source.chunks(RUN).zip(decoded.chunks(RUN)).enumerate() {
        let mut surely = true;
        let mut run_largest = 0.0f64;
        for (x, y) in xs.iter().zip(ys) {
            let distance = (x.wide() - y.wide()).abs();
            let limit = absolute + relative * x.wide().abs();
            let plain = x.wide() != 0.0 && distance < limit && limit >= SAFE;
            surely &= plain | (x.bits() == y.bits());
            run_largest = if distance > run_largest { distance } else { run_largest };
        }
        if !surely {
            let violator = xs.iter().zip(ys).position(|(x, y)| !holds(*x, *y, bound));
            if let Some(position) = violator {
                return Err(run * RUN + position);
            }
        }
        largest = largest.max(run_largest);
    }
    Ok(largest)
}

/// Below this a product may have lost digits to underflow.
const SAFE: f64 = f64::MIN_POSITIVE / f64::EPSILON;

/// Returns whether one value holds, in real arithmetic.
fn holds<T: Scalar>(x: T, y: T, bound: Bound) -> bool {
    if x.bits() == y.bits() {
        return true;
    }
    let wide_x = x.wide();
    let wide_y = y.wide();
    let is_negative_zero = wide_x == 0.0 && wide_x.is_sign_negative();
    if !wide_x.is_finite() || !wide_y.is_finite() || is_negative_zero {
        return false;
    }
    match bound {
        Bound::Absolute(e) => within(wide_x, wide_y, Product { high: e, low: 0.0 }),
        Bound::Pointwise(e) if wide_x != 0.0 => {
            // Scaling by a power of two is exact here and keeps the low part of the product normal.
            let scale = if wide_x.abs() < 1.0 { f64::from_bits((1023 + 900) << 52) } else { 1.0 };
            let x = wide_x * scale;
            let y = wide_y * scale;
            y.is_finite() && within(x, y, Product::exact(e, x.abs()))
        }
        _ => false,
    }
}

/// `high + low`, unevaluated, `high` being the rounded sum.
struct Product {
    high: f64,
    low: f64,
}

impl Product {
    /// `a b` exactly, where nothing under- or overflows.
    fn exact(a: f64, b: f64) -> Self {
        let high = a * b;
        Self { high, low: a.mul_add(b, -high) }
    }
}

/// Returns whether `|x - y| <= limit` in real arithmetic.
fn within(x: f64, y: f64, limit: Product) -> bool {
    let (larger, smaller) = if x >= y { (x, y) } else { (y, x) };
    // TwoSum (Knuth): larger - smaller = high + low exactly.
    let high = larger - smaller;
    let part = high - larger;
    let low = (larger - (high - part)) + (-smaller - part);
    if high == limit.high { low <= limit.low } else { high < limit.high }
}
