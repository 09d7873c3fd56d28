//! Interpolation along one axis, in integers that wrap: the same on every machine.
//!
//! A point between a row of others is predicted from up to three of them on each side. Next to an
//! edge fewer are there. Every formula is written as a difference to the middle of the two nearest
//! points, so that smooth rows stay far from the ends of an i32.

/// Points predicted at a time.
pub(super) const LANES: usize = 16;

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

    /// The formula between points `index` and `index + 1` of `extent`.
    #[inline(always)]
    pub(super) fn of(order: InterpolationOrder, index: usize, extent: usize) -> Self {
        let after = extent - 1 - index;
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

    /// Predicts `W` points at once, the first one between the points 0 and 1 of `line`.
    #[inline(always)]
    pub(super) fn apply<const W: usize>(self, line: Line<'_>) -> [i32; W] {
        let before = line.load(0);
        match self {
            // p = a0
            Self::Copy => before,
            // p = a0 + (a0 - a-1) / 2
            Self::Extrapolation => zip(before, line.load(-1), |a, b| a.wrapping_add(halved(a.wrapping_sub(b)))),
            // p = (a0 + a1) / 2
            Self::Linear => zip(before, line.load(1), |a, b| halved(a.wrapping_add(b))),
            // p = (3 a0 + 6 a1 - a2) / 8
            Self::AfterEdge => {
                let after = line.load(1);
                let twice = zip(after, before, |b, a| b.wrapping_add(b).wrapping_sub(a));
                bent(before, after, zip(twice, line.load(2), i32::wrapping_sub))
            }
            // p = (6 a0 + 3 a1 - a-1) / 8
            Self::BeforeEdge => {
                let after = line.load(1);
                let twice = zip(before, after, |a, b| a.wrapping_add(a).wrapping_sub(b));
                bent(before, after, zip(twice, line.load(-1), i32::wrapping_sub))
            }
            // p = (9 (a0 + a1) - (a-1 + a2)) / 16
            Self::Cubic => {
                let near = zip(before, line.load(1), i32::wrapping_add);
                let far = zip(line.load(-1), line.load(2), i32::wrapping_add);
                zip(near, far, |s, t| halved(s.wrapping_add(s.wrapping_sub(t).wrapping_add(4) >> 3)))
            }
            // p = (150 (a0 + a1) - 25 (a-1 + a2) + 3 (a-2 + a3)) / 256
            Self::Quintic => {
                let near = zip(before, line.load(1), i32::wrapping_add);
                let far = zip(line.load(-1), line.load(2), i32::wrapping_add);
                let farthest = zip(line.load(-2), line.load(3), i32::wrapping_add);
                let outer = zip(far, farthest, |t, u| t.wrapping_sub(u).wrapping_mul(3));
                let inner = zip(near, far, |s, t| s.wrapping_sub(t).wrapping_mul(22));
                let bend = zip(inner, outer, |a, b| a.wrapping_sub(b).wrapping_add(64) >> 7);
                zip(near, bend, |s, b| halved(s.wrapping_add(b)))
            }
        }
    }
}

/// Points along one axis, for as many rows as are predicted at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) values: &'a [i32],
    /// The place of point 0 of the first row; that of the next row is one more.
    pub(super) start: usize,
    /// Places from a point to the next.
    pub(super) stride: usize,
}

impl Line<'_> {
    /// The point `number` of each row; zeros where there are none, in rows that are not used.
    #[inline(always)]
    fn load<const W: usize>(self, number: isize) -> [i32; W] {
        let at = self.start.wrapping_add_signed(number * self.stride as isize);
        let whole = self.values.get(at..).and_then(|rest| rest.first_chunk());
        if let Some(lanes) = whole { *lanes } else { self.load_at_end(at) }
    }

    #[cold]
    #[inline(never)]
    fn load_at_end<const W: usize>(self, at: usize) -> [i32; W] {
        std::array::from_fn(|lane| self.values.get(at.wrapping_add(lane)).copied().unwrap_or(0))
    }
}

/// Half of a number, halves rounded up.
#[inline(always)]
pub(super) fn halved(x: i32) -> i32 {
    x.wrapping_add(1) >> 1
}

/// A third of a number, to less than one above 2^-10 of it.
#[inline(always)]
pub(super) fn third(x: i32) -> i32 {
    let series = x.wrapping_add(x >> 2).wrapping_add(x >> 4).wrapping_add(x >> 6).wrapping_add(x >> 8);
    series.wrapping_add(4) >> 2
}

/// The middle of two points, and an eighth of how far the row bends there.
#[inline(always)]
fn bent<const W: usize>(before: [i32; W], after: [i32; W], bend: [i32; W]) -> [i32; W] {
    let near = zip(before, after, i32::wrapping_add);
    zip(near, bend, |s, b| halved(s.wrapping_add(b.wrapping_add(2) >> 2)))
}

/// The function of each pair.
#[inline(always)]
pub(super) fn zip<const W: usize>(a: [i32; W], b: [i32; W], f: impl Fn(i32, i32) -> i32) -> [i32; W] {
    let mut result = [0; W];
    for lane in 0..W {
        result[lane] = f(a[lane], b[lane]);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let values: Vec<i32> = (-2..=3).map(|j| polynomial(2.0 * f64::from(j) - 1.0).round() as i32).collect();
            let [found] = stencil.apply(Line { values: &values, start: 2, stride: 1 });
            // Rounded points move a result by at most half the sum of the weights' sizes, below 1.
            let error = (f64::from(found) - polynomial(0.0)).abs();
            assert!(error < 2.0, "{stencil:?}: {found} {}", polynomial(0.0));
        }
    }

    #[test]
    fn a_third_is_near_a_third() {
        for x in (-100_000..100_000).step_by(37) {
            let error = (f64::from(third(x)) - f64::from(x) / 3.0).abs();
            assert!(error <= 1.25 + f64::from(x).abs() / 1024.0, "{x}: {}", third(x));
        }
    }

    #[test]
    fn stencils_use_only_points_of_the_row() {
        for extent in 1..9 {
            for index in 0..extent {
                for order in InterpolationOrder::ALL {
                    // Points outside would be zeros, and the prediction of a constant another one.
                    let values = vec![1 << 20; extent];
                    let line = Line { values: &values, start: index, stride: 1 };
                    assert_eq!(Stencil::of(order, index, extent).apply(line), [1 << 20], "{order:?} {index} {extent}");
                }
            }
        }
    }
}
