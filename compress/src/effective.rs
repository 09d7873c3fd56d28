//! The bound that a codec holds for given values.

use recoup_core::{Bound, CodecError, CodecResult, Values};

/// The bound a codec is to hold for `source`: never looser than `bound`, and one of
/// [`Bound::Lossless`], [`Bound::Absolute`] and [`Bound::Pointwise`].
///
/// A range bound becomes the absolute one over the finite values of `source`, rounded down so that
/// it is not above `e (max - min)` in real arithmetic; a bound of 0, and any bound on integers or
/// bytes, is lossless.
///
/// # Errors
/// [`CodecError::Bound`] for a negative, NaN or infinite bound.
pub fn effective_bound(source: Values<'_>, bound: Bound) -> CodecResult<Bound> {
    let bound = bound.validated().map_err(|_| CodecError::Bound { value: bound.value() })?;
    let is_float = matches!(source, Values::F64(_) | Values::F32(_));
    if !is_float || bound.value() == 0.0 {
        return Ok(Bound::Lossless);
    }
    Ok(match bound {
        Bound::Range(e) => absolute_or_lossless(e, source),
        other => other,
    })
}

fn absolute_or_lossless(e: f64, source: Values<'_>) -> Bound {
    let Some((min, max)) = extremes(source) else { return Bound::Lossless };
    // Three roundings of 2^-53 each, paid for by four; e max - e min where max - min overflows.
    const ROUNDED_DOWN: f64 = 1.0 - 4.0 * f64::EPSILON;
    let range = max - min;
    let product = if range.is_finite() { e * range } else { e * max - e * min };
    let absolute = (product * ROUNDED_DOWN).min(f64::MAX);
    if absolute > f64::MIN_POSITIVE { Bound::Absolute(absolute) } else { Bound::Lossless }
}

/// Smallest and largest finite value.
fn extremes(source: Values<'_>) -> Option<(f64, f64)> {
    fn fold(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let (min, max) = values.filter(|x| x.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), x| {
            (if x < min { x } else { min }, if x > max { x } else { max })
        });
        (min <= max).then_some((min, max))
    }
    match source {
        Values::F64(values) => fold(values.iter().copied()),
        Values::F32(values) => fold(values.iter().map(|&x| f64::from(x))),
        Values::I64(_) | Values::Bytes(_) => None,
    }
}

/// Smallest nonzero and largest finite magnitude; `None` when there is no nonzero finite value.
pub(crate) fn magnitudes(source: Values<'_>) -> Option<(f64, f64)> {
    fn fold(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let (min, max) = values
            .map(f64::abs)
            .filter(|x| x.is_finite() && *x > 0.0)
            .fold((f64::INFINITY, 0.0), |(min, max), x| (if x < min { x } else { min }, if x > max { x } else { max }));
        (min <= max).then_some((min, max))
    }
    match source {
        Values::F64(values) => fold(values.iter().copied()),
        Values::F32(values) => fold(values.iter().map(|&x| f64::from(x))),
        Values::I64(_) | Values::Bytes(_) => None,
    }
}

/// The absolute bound, for codecs that know no other: pointwise becomes `e min|x|`, and a bound
/// that would ask for more digits than a double has becomes lossless.
pub(crate) fn absolute_only(source: Values<'_>, bound: Bound) -> CodecResult<Bound> {
    // A codec that shares one exponent among neighbours keeps at most a double's digits.
    const DIGITS: f64 = 1.0 / (1u64 << 52) as f64;
    let bound = effective_bound(source, bound)?;
    let Some((smallest, largest)) = magnitudes(source) else { return Ok(Bound::Lossless) };
    let absolute = match bound {
        Bound::Absolute(e) => e,
        Bound::Pointwise(e) => e * smallest * (1.0 - 4.0 * f64::EPSILON),
        _ => return Ok(Bound::Lossless),
    };
    let pays = absolute > f64::MIN_POSITIVE && absolute >= largest * DIGITS;
    Ok(if pays { Bound::Absolute(absolute) } else { Bound::Lossless })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_bound_ignores_what_is_not_finite() {
        let values = [1.0, f64::NAN, 5.0, f64::INFINITY, f64::NEG_INFINITY];
        let Ok(Bound::Absolute(e)) = effective_bound(Values::F64(&values), Bound::Range(0.25)) else { unreachable!() };
        assert!(e <= 1.0 && e > 1.0 - 1e-14, "{e}");
    }

    #[test]
    fn a_range_bound_survives_a_range_that_overflows() {
        let values = [f64::MAX, -f64::MAX];
        let bound = effective_bound(Values::F64(&values), Bound::Range(0.25)).unwrap();
        assert!(matches!(bound, Bound::Absolute(e) if e <= 0.5 * f64::MAX && e > 0.49 * f64::MAX));
    }

    #[test]
    fn no_range_and_no_bound_are_lossless() {
        for values in [&[][..], &[f64::NAN][..], &[3.0, 3.0][..]] {
            assert_eq!(effective_bound(Values::F64(values), Bound::Range(0.1)), Ok(Bound::Lossless));
        }
        assert_eq!(effective_bound(Values::F64(&[1.0]), Bound::Absolute(0.0)), Ok(Bound::Lossless));
        assert_eq!(effective_bound(Values::I64(&[1]), Bound::Absolute(2.0)), Ok(Bound::Lossless));
    }

    #[test]
    fn a_bound_that_is_none_is_refused() {
        for value in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                effective_bound(Values::F64(&[1.0]), Bound::Absolute(value)),
                Err(CodecError::Bound { .. })
            ));
        }
    }
}
