//! Interpolation along one axis, in integers that wrap: the same on every machine.
//!
//! A point between a row of others is predicted from up to three of them on each side. Next to an
//! edge fewer are there. Every formula is written as a difference to the middle of the two nearest
//! points, so that smooth rows stay far from the ends of an i32.

use super::levels::SPACING;
use super::line_vec::BEFORE;
use super::simd::NumberLanes;

/// The interpolation asked for; next to an edge it is one of lower order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterpolationOrder {
    Linear,
    Cubic,
    Quintic,
}

impl InterpolationOrder {
    pub(super) const ALL: [Self; 3] = [Self::Linear, Self::Cubic, Self::Quintic];
}

/// The formula at one place of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stencil {
    /// The point before, as there is no other.
    Copy,
    /// The line through the two points before.
    Extrapolation,
    /// The line through the nearest point of each side.
    Linear,
    /// The parabola through one point before and two behind.
    AfterEdge,
    /// The parabola through two points before and one behind.
    BeforeEdge,
    /// The cubic through two points of each side.
    Cubic,
    /// The quintic through three points of each side.
    Quintic,
    /// The curve through points of which the last one lies nearer.
    AtEnd(DistanceWeights),
}

impl Stencil {
    /// The formula far from the ends of a row.
    #[inline(always)]
    pub(super) fn inner(order: InterpolationOrder) -> Self {
        match order {
            InterpolationOrder::Linear => Self::Linear,
            InterpolationOrder::Cubic => Self::Cubic,
            InterpolationOrder::Quintic => Self::Quintic,
        }
    }

    /// The formula between points `index` and `index + 1` of `extent`, the last of which may lie
    /// nearer.
    #[inline(always)]
    pub(super) fn of(order: InterpolationOrder, index: usize, extent: usize, end: Option<&UnevenEnd>) -> Self {
        let after = extent - 1 - index;
        if let Some(end) = end {
            match (order, after) {
                (InterpolationOrder::Linear, 1) => return Self::AtEnd(end.line),
                (_, 1) => return Self::AtEnd(if index == 0 { end.line } else { end.parabola }),
                (InterpolationOrder::Linear, _) => {}
                (_, 2) if index == 0 => return Self::Linear,
                (_, 2) => return end.cubic.map_or(Self::BeforeEdge, Self::AtEnd),
                (InterpolationOrder::Quintic, 3) if index >= 1 => return Self::Cubic,
                _ => {}
            }
        }
        match order {
            _ if after == 0 && index == 0 => Self::Copy,
            _ if after == 0 => Self::Extrapolation,
            InterpolationOrder::Linear => Self::Linear,
            InterpolationOrder::Quintic if index >= 2 && after >= 3 => Self::Quintic,
            _ if index >= 1 && after >= 2 => Self::Cubic,
            _ if after >= 2 => Self::AfterEdge,
            _ if index >= 1 => Self::BeforeEdge,
            _ => Self::Linear,
        }
    }

    /// Predicts points, the first one between the points 0 and 1 of `line`.
    #[inline(always)]
    pub(super) fn apply<V: NumberLanes>(self, line: Line<'_>) -> V {
        let before: V = line.load(0);
        match self {
            // p = a0
            Self::Copy => before,
            // p = a0 + (a0 - a-1) / 2
            Self::Extrapolation => before.plus(before.minus(line.load(-1)).halved()),
            // p = (a0 + a1) / 2
            Self::Linear => before.plus(line.load(1)).halved(),
            // p = (3 a0 + 6 a1 - a2) / 8
            Self::AfterEdge => {
                let after: V = line.load(1);
                before.plus(after).plus(bend_at_edge(after, before, line.load(2))).halved()
            }
            // p = (6 a0 + 3 a1 - a-1) / 8
            Self::BeforeEdge => {
                let after: V = line.load(1);
                before.plus(after).plus(bend_at_edge(before, after, line.load(-1))).halved()
            }
            // p = (9 (a0 + a1) - (a-1 + a2)) / 16
            Self::Cubic => {
                let near = before.plus(line.load(1));
                near.plus(cubic_bend(near, line)).halved()
            }
            // p = (150 (a0 + a1) - 25 (a-1 + a2) + 3 (a-2 + a3)) / 256
            Self::Quintic => {
                let near = before.plus(line.load(1));
                near.plus(quintic_bend(near, line)).halved()
            }
            Self::AtEnd(weights) => at_end(weights, line),
        }
    }
}

/// The prediction by weighted distances: `p = a0 + u (a1 - a0) + v (a0 - a-1) + w (a2 - a1)`.
#[inline(always)]
pub(super) fn at_end<V: NumberLanes>(weights: DistanceWeights, line: Line<'_>) -> V {
    let DistanceWeights { near, before: outer, behind } = weights;
    let [before, after]: [V; 2] = [line.load(0), line.load(1)];
    let p = before.plus(part(after.minus(before), near)).plus(part(before.minus(line.load(-1)), outer));
    p.plus(part(line.load::<V>(2).minus(after), behind))
}

/// Parts of a distance that weights count in.
const WHOLE: i32 = 1 << 10;

/// Weights, in parts of [`WHOLE`], of the distances of neighbours on a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DistanceWeights {
    /// Weight of the distance of the two points next to the one predicted.
    near: i32,
    /// Weight of the distance of the two before it.
    before: i32,
    /// Weight of the distance of the two behind it.
    behind: i32,
}

/// The formulas next to the end of a row whose last point lies nearer to the one before it than
/// other points do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnevenEnd {
    /// The line to the last point.
    pub(super) line: DistanceWeights,
    /// The parabola through two points before and the last one.
    pub(super) parabola: DistanceWeights,
    /// The cubic through two points before and the last two; `None` where these are too near to
    /// each other.
    pub(super) cubic: Option<DistanceWeights>,
}

impl UnevenEnd {
    /// The formulas for the distance of the last two points, of which [`SPACING`] is half of what
    /// all others are apart.
    pub(super) fn of(distance: u32) -> Self {
        let [one, l] = [u64::from(SPACING), u64::from(distance)];
        // Behind a point in the middle of the last interval, the last point lies at d.
        let d = l.saturating_sub(one);
        let line = DistanceWeights { near: rounded(one, one + d), ..DistanceWeights::default() };
        let parabola = DistanceWeights {
            near: rounded(3 * one * one, (one + d) * (3 * one + d)),
            before: rounded(d, 2 * (3 * one + d)),
            behind: 0,
        };
        let cubic = (l >= one).then(|| {
            let behind = -rounded(3 * one * one * one, (4 * one + l) * (2 * one + l) * l);
            DistanceWeights {
                near: rounded(3 * (one + l), 8 * l) + behind,
                before: rounded(one + l, 8 * (4 * one + l)),
                behind,
            }
        });
        Self { line, parabola, cubic }
    }
}

/// A quotient in parts of [`WHOLE`].
fn rounded(dividend: u64, divisor: u64) -> i32 {
    ((2 * WHOLE as u64 * dividend + divisor) / (2 * divisor)) as i32
}

/// A weighted distance, in two parts that do not overflow where the result does not.
#[inline(always)]
fn part<V: NumberLanes>(distance: V, weight: i32) -> V {
    let high = distance.shifted::<10>();
    let low = distance.minus(high.times(WHOLE));
    high.times(weight).plus(low.times(weight).plus(V::all(WHOLE / 2)).shifted::<10>())
}

/// The distance of twice the cubic from the sum of the two nearest points: `(s - t) / 8`.
#[inline(always)]
pub(super) fn cubic_bend<V: NumberLanes>(near: V, line: Line<'_>) -> V {
    let far = line.load::<V>(-1).plus(line.load(2));
    near.minus(far).plus(V::all(4)).shifted::<3>()
}

/// The same of the quintic: `(22 (s - t) - 3 (t - v)) / 128`.
#[inline(always)]
pub(super) fn quintic_bend<V: NumberLanes>(near: V, line: Line<'_>) -> V {
    let far = line.load::<V>(-1).plus(line.load(2));
    let farthest = line.load::<V>(-2).plus(line.load(3));
    let outer = far.minus(farthest).times(3);
    near.minus(far).times(22).minus(outer).plus(V::all(64)).shifted::<7>()
}

/// The same of the parabola through a point, its neighbour on the side of the edge, and the one
/// behind the point.
#[inline(always)]
pub(super) fn bend_at_edge<V: NumberLanes>(point: V, outer: V, inner: V) -> V {
    point.plus(point).minus(outer).minus(inner).plus(V::all(2)).shifted::<2>()
}

/// Points along one axis, for as many rows as are predicted at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// The values of a class, with room on both sides.
    pub(super) values: &'a [i32],
    /// The place of point 0 of the first row, counted in the class; that of the next row is one
    /// more.
    pub(super) start: usize,
    /// Places from a point to the next.
    pub(super) stride: usize,
}

impl Line<'_> {
    /// The point `number` of each row; anything where there is none, in rows that are not used.
    #[inline(always)]
    pub(super) fn load<V: NumberLanes>(self, number: isize) -> V {
        load(self.values, self.start.wrapping_add_signed(number * self.stride as isize))
    }
}

/// The values of a class from a place on, of values with room on both sides.
#[inline(always)]
pub(super) fn load<V: NumberLanes>(values: &[i32], place: usize) -> V {
    match values.get(place.wrapping_add(BEFORE)..).and_then(|rest| rest.first_chunk()) {
        Some(lanes) => V::load(lanes),
        None => V::all(0),
    }
}

/// A third of each number, to less than one above 2^-10 of it.
#[inline(always)]
pub(super) fn third<V: NumberLanes>(x: V) -> V {
    let series = x.plus(x.shifted::<2>()).plus(x.shifted::<4>()).plus(x.shifted::<6>()).plus(x.shifted::<8>());
    series.plus(V::all(4)).shifted::<2>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::line_vec::LineVec;
    use crate::pyramid::simd::LANES;

    fn numbers(values: impl ExactSizeIterator<Item = i32>) -> LineVec {
        let mut numbers = LineVec::default();
        numbers.resize(values.len());
        numbers.iter_mut().zip(values).for_each(|(number, value)| *number = value);
        numbers
    }

    /// The polynomial of each formula's degree comes back, to the rounding of its last steps: less
    /// than one unit.
    #[test]
    fn each_stencil_is_exact_on_polynomials_of_its_degree() {
        let stencils = [
            (Stencil::Copy, 0),
            (Stencil::Extrapolation, 1),
            (Stencil::Linear, 1),
            (Stencil::AfterEdge, 2),
            (Stencil::BeforeEdge, 2),
            (Stencil::Cubic, 3),
            (Stencil::Quintic, 5),
        ];
        for (stencil, degree) in stencils {
            let polynomial = |x: f64| 1000.0 * (1.0 + (1..=degree).map(|k| (x / 3.0).powi(k)).sum::<f64>());
            // Points lie two apart, and the one that is predicted at 0 between them.
            let values = numbers((0..6).map(|j| polynomial(2.0 * f64::from(j) - 5.0).round() as i32));
            let line = Line { values: values.with_room(), start: 2, stride: 1 };
            let [found, ..]: [i32; LANES] = stencil.apply(line);
            // Rounded points move a result by at most half the sum of the weights' sizes, below 1.
            let error = (f64::from(found) - polynomial(0.0)).abs();
            assert!(error < 2.0, "{stencil:?}: {found} {}", polynomial(0.0));
        }
    }

    /// Rows whose last two points are `l` apart, half of the distance of all others being 1.
    #[test]
    fn formulas_at_an_uneven_end_are_exact_on_polynomials_of_their_degree() {
        for eighths in 1..16u32 {
            let l = f64::from(eighths) / 8.0;
            let end = UnevenEnd::of(SPACING * eighths / 8);
            let d = l - 1.0;
            let cases = [
                (Some(end.line).filter(|_| l > 1.0), 1, [-3.0, -1.0, d, 9.0]),
                (Some(end.parabola).filter(|_| l > 1.0), 2, [-3.0, -1.0, d, 9.0]),
                (end.cubic, 3, [-3.0, -1.0, 1.0, 1.0 + l]),
            ];
            for (weights, degree, places) in cases {
                let Some(weights) = weights else { continue };
                let polynomial = |x: f64| 1000.0 * (1.0 + (1..=degree).map(|k| (x / 3.0).powi(k)).sum::<f64>());
                let values = numbers(places.into_iter().map(|x| polynomial(x).round() as i32));
                let line = Line { values: values.with_room(), start: 1, stride: 1 };
                let [found, ..]: [i32; LANES] = Stencil::AtEnd(weights).apply(line);
                // Three weights are off by half a part of 1024 each, and distances are below 4000:
                // 6; points and products are rounded, which is less than 4.
                let error = (f64::from(found) - polynomial(0.0)).abs();
                assert!(error < 10.0, "{l} {degree}: {found} {}", polynomial(0.0));
            }
        }
    }

    #[test]
    fn a_weighted_distance_is_exact_where_it_fits() {
        for distance in [0, 1, -1, 1023, -1024, 1 << 29, -(1 << 29), 123_456_789] {
            for weight in [0, 1, 205, 512, 1024, -205, 768] {
                let [found, ..] = part([distance; LANES], weight);
                let expected = (i64::from(distance) * i64::from(weight) + 512) >> 10;
                assert_eq!(i64::from(found), expected, "{distance} {weight}");
            }
        }
    }

    #[test]
    fn a_third_is_near_a_third() {
        for x in (-100_000..100_000).step_by(37) {
            let [found, ..] = third([x; LANES]);
            let error = (f64::from(found) - f64::from(x) / 3.0).abs();
            assert!(error <= 1.25 + f64::from(x).abs() / 1024.0, "{x}: {found}");
        }
    }

    #[test]
    fn stencils_use_only_points_of_the_row() {
        for extent in 1..9 {
            for index in 0..extent {
                for order in InterpolationOrder::ALL {
                    // Points outside are zeros, and would change the prediction of a constant.
                    let values = numbers((0..extent).map(|_| 1 << 20));
                    let line = Line { values: values.with_room(), start: index, stride: 1 };
                    for end in [None, Some(UnevenEnd::of(SPACING / 4)), Some(UnevenEnd::of(SPACING + SPACING / 4))] {
                        let is_behind = extent == 1 || index + 1 == extent;
                        if end.is_some() && is_behind {
                            continue;
                        }
                        let [found, ..]: [i32; LANES] = Stencil::of(order, index, extent, end.as_ref()).apply(line);
                        assert_eq!(found, 1 << 20, "{order:?} {index} {extent} {end:?}");
                    }
                }
            }
        }
    }
}
