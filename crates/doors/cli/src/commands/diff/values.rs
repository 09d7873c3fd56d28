//! The values of a variable in two versions.

use recoup::core::{Bound, Manifest, Values};
use recoup::pipeline::Whole;
use serde::Serialize;

/// The differences of two rows of values. A difference from a value that is not finite has no size:
/// null.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ValueDifferences {
    /// Values whose bits differ.
    pub(super) differing: usize,
    /// The first of them, from 0.
    first: Option<usize>,
    /// The largest difference, and where it is, from 0.
    pub(super) largest: Option<f64>,
    largest_at: Option<usize>,
    /// The largest difference divided by what the error bounds of both allow there; null where both
    /// are lossless.
    pub(super) of_bounds: Option<f64>,
    /// `||a - b|| / ||a||`; where a is 0, `||b||`.
    pub(super) relative_norm: Option<f64>,
}

/// The difference from what was saved that the error bound of a version allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    absolute: f64,
    pointwise: f64,
}

impl Allowed {
    /// Reads the largest bound of the frames of a variable.
    pub(super) fn new(manifest: &Manifest, whole: &Whole) -> Self {
        let bounds = manifest.frames.iter().filter(|frame| frame.variable == whole.name).map(|frame| frame.bound);
        let largest = |of: fn(Bound) -> f64| bounds.clone().map(of).fold(0.0, f64::max);
        let range = largest(|bound| if let Bound::Range(e) = bound { e } else { 0.0 });
        let absolute = largest(|bound| if let Bound::Absolute(e) = bound { e } else { 0.0 });
        let pointwise = largest(|bound| if let Bound::Pointwise(e) = bound { e } else { 0.0 });
        let spread = if range > 0.0 { spread(whole.values.all()) } else { 0.0 };
        // The range and the value that the bound means are those before saving: 2 e wider, 1 - e
        // smaller at most.
        Self { absolute: absolute.max(range * spread / (1.0 - 2.0 * range)), pointwise: pointwise / (1.0 - pointwise) }
    }

    fn at(self, value: f64) -> f64 {
        self.absolute.max(self.pointwise * value.abs())
    }
}

/// Returns `max - min` of the finite values.
fn spread(values: Values<'_>) -> f64 {
    let of = |values: &mut dyn Iterator<Item = f64>| {
        let finite = values.filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (v.min(low), v.max(high)));
        (high - low).max(0.0)
    };
    match values {
        Values::F64(values) => of(&mut values.iter().copied()),
        Values::F32(values) => of(&mut values.iter().copied().map(f64::from)),
        Values::I64(values) => of(&mut values.iter().map(|&value| value as f64)),
        Values::Bytes(values) => of(&mut values.iter().copied().map(f64::from)),
    }
}

/// Compares two rows of values; `None` where their types or lengths differ.
pub(super) fn compare(a: Values<'_>, b: Values<'_>, allowed: [Allowed; 2]) -> Option<ValueDifferences> {
    if a.len() != b.len() {
        return None;
    }
    match (a, b) {
        (Values::F64(a), Values::F64(b)) => Some(differences(a, b, allowed, |v| v.to_bits(), |v| v)),
        (Values::F32(a), Values::F32(b)) => Some(differences(a, b, allowed, |v| u64::from(v.to_bits()), f64::from)),
        (Values::I64(a), Values::I64(b)) => Some(differences(a, b, allowed, |v| v as u64, |v| v as f64)),
        (Values::Bytes(a), Values::Bytes(b)) => Some(differences(a, b, allowed, u64::from, f64::from)),
        _ => None,
    }
}

fn differences<T: Copy>(
    a: &[T],
    b: &[T],
    allowed: [Allowed; 2],
    bits: fn(T) -> u64,
    value: fn(T) -> f64,
) -> ValueDifferences {
    let mut found = ValueDifferences {
        differing: 0,
        first: None,
        largest: Some(0.0),
        largest_at: None,
        of_bounds: None,
        relative_norm: None,
    };
    let is_lossy = allowed.iter().any(|of| of.absolute > 0.0 || of.pointwise > 0.0);
    let mut of_bounds = 0.0_f64;
    let [mut of_a, mut of_difference] = [0.0; 2];
    for (index, (&a, &b)) in a.iter().zip(b).enumerate() {
        let [from, to] = [a, b].map(value);
        of_a += from * from;
        if bits(a) == bits(b) {
            continue;
        }
        found.differing += 1;
        found.first = found.first.or(Some(index));
        let difference = (from - to).abs();
        of_difference += difference * difference;
        // A NaN stays the largest, and gives no size.
        if difference.is_nan() || found.largest.is_some_and(|largest| difference > largest) {
            found.largest_at = found.largest.and(Some(index)).or(found.largest_at);
            found.largest = difference.is_finite().then_some(difference);
        }
        let [first, second] = allowed;
        let share = if difference == 0.0 { 0.0 } else { difference / (first.at(from) + second.at(to)) };
        of_bounds = if share.is_nan() { f64::INFINITY } else { of_bounds.max(share) };
    }
    let norm = if of_a > 0.0 { (of_difference / of_a).sqrt() } else { of_difference.sqrt() };
    found.relative_norm = norm.is_finite().then_some(norm);
    found.of_bounds = is_lossy.then_some(of_bounds).filter(|share| share.is_finite());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Allowed = Allowed { absolute: 0.0, pointwise: 0.0 };

    fn of(a: &[f64], b: &[f64], allowed: [Allowed; 2]) -> ValueDifferences {
        compare(Values::F64(a), Values::F64(b), allowed).unwrap()
    }

    #[test]
    fn differences_are_counted_by_bits_and_measured_by_value() {
        let found = of(&[3.0, 0.0, 4.0, 1.0], &[3.0, -0.0, 4.5, 1.25], [EXACT; 2]);
        assert_eq!((found.differing, found.first, found.largest, found.largest_at), (3, Some(1), Some(0.5), Some(2)));
        assert_eq!(found.relative_norm, Some((0.3125_f64 / 26.0).sqrt()));
        assert_eq!(found.of_bounds, None, "both are lossless");
        assert_eq!(compare(Values::F64(&[1.0]), Values::F32(&[1.0]), [EXACT; 2]), None);
        let nan = of(&[f64::NAN, 1.0], &[f64::NAN, 2.0], [EXACT; 2]);
        assert_eq!((nan.differing, nan.largest), (1, Some(1.0)), "the same NaN is the same");
        let infinite = of(&[f64::INFINITY, 1.0], &[1.0, 3.0], [EXACT; 2]);
        assert_eq!((infinite.largest, infinite.largest_at, infinite.relative_norm), (None, Some(0), None));
    }

    /// Each of two lossy versions may be off by its own bound.
    #[test]
    fn share_of_the_bounds_is_that_of_both_at_the_value() {
        let absolute = Allowed { absolute: 0.25, pointwise: 0.0 };
        let pointwise = Allowed { absolute: 0.0, pointwise: 0.5 };
        assert_eq!(of(&[1.0], &[1.5], [absolute; 2]).of_bounds, Some(1.0));
        assert_eq!(of(&[1.0, 8.0], &[1.5, 8.5], [pointwise, EXACT]).of_bounds, Some(1.0));
        assert_eq!(of(&[0.0], &[1.0], [pointwise, EXACT]).of_bounds, None, "more than any bound");
        assert_eq!(of(&[0.0], &[-0.0], [pointwise, EXACT]).of_bounds, Some(0.0));
    }
}
