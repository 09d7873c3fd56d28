//! The prediction of a parity class from the classes it lies between.
//!
//! A point is predicted along each axis on which it is odd. The prediction of a cell is the mean
//! over some of these axes, all by one interpolation. An axis is left out where the grid ends
//! before the point has a neighbour on both sides, unless all its axes are like that.

use super::interpolation::{InterpolationOrder, LANES, Line, Stencil, halved, third, zip};
use super::parity::{CLASSES, class_extents, is_odd};

/// Number of the predictors a cell may have.
pub(super) const PREDICTORS: usize = InterpolationOrder::ALL.len() * (CLASSES - 1);

/// The predictor of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellPredictor {
    pub(super) order: InterpolationOrder,
    /// Bit a stands for axis a; at least one.
    pub(super) axes: usize,
}

impl CellPredictor {
    /// The number of the predictor, below [`PREDICTORS`].
    pub(super) fn number(self) -> usize {
        self.order as usize * (CLASSES - 1) + self.axes - 1
    }

    /// The predictor of a number, where it is one for this class.
    pub(super) fn of(number: usize, class: usize) -> Option<Self> {
        let order = *InterpolationOrder::ALL.get(number / (CLASSES - 1))?;
        let axes = number % (CLASSES - 1) + 1;
        (axes & !class == 0).then_some(Self { order, axes })
    }
}

/// Values of one class, by which others are predicted.
#[derive(Clone, Copy, Debug)]
struct NeighbourClass<'a> {
    values: &'a [i32],
    extents: [usize; 3],
}

/// The classes next to a class along each axis on which it is odd.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbours<'a> {
    class: usize,
    sources: [Option<NeighbourClass<'a>>; 3],
}

/// A point of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) z: usize,
}

impl Point {
    #[inline(always)]
    fn along(self, axis: usize) -> usize {
        [self.x, self.y, self.z][axis]
    }
}

impl<'a> Neighbours<'a> {
    pub(super) fn of(values: &'a [Vec<i32>; CLASSES], grid: [usize; 3], class: usize) -> Self {
        let source = |axis: usize| {
            let next = class ^ 1 << axis;
            is_odd(class, axis).then(|| NeighbourClass { values: &values[next], extents: class_extents(grid, next) })
        };
        Self { class, sources: std::array::from_fn(source) }
    }

    /// The class that is predicted.
    #[inline(always)]
    pub(super) fn class(&self) -> usize {
        self.class
    }

    /// The prediction of the `len` points from `point` on, along x; lanes behind hold anything.
    #[inline(always)]
    pub(super) fn predict(&self, predictor: CellPredictor, point: Point, len: usize) -> [i32; LANES] {
        let CellPredictor { order, axes } = predictor;
        let across = self.inside(axes, self.ending(point) & !1);
        let mut predicted = mean(across, &self.along_axes(across, order, point, len));
        // The last point of a row alone may have no neighbour behind it on x.
        let last = point.x + len - 1;
        if self.class & 1 != 0 && self.ending(Point { x: last, ..point }) & 1 != 0 {
            let last = Point { x: last, ..point };
            let axes = self.inside(axes, self.ending(last));
            let along = [0, 1, 2].map(|axis| if is_odd(axes, axis) { self.at(axis, order, last) } else { [0] });
            predicted[len - 1] = mean(axes, &along)[0];
        }
        predicted
    }

    /// The axes, of those on which the class is odd, on which the grid ends behind a point.
    #[inline(always)]
    fn ending(&self, point: Point) -> usize {
        let mut ending = 0;
        for axis in 0..3 {
            if let Some(source) = &self.sources[axis]
                && point.along(axis) + 1 == source.extents[axis]
            {
                ending |= 1 << axis;
            }
        }
        ending
    }

    /// The axes asked for without those that end; others instead if all of them end, where there
    /// are any.
    #[inline(always)]
    fn inside(&self, axes: usize, ending: usize) -> usize {
        let asked = axes & !ending;
        let any = if asked != 0 { asked } else { self.class & !ending };
        if any != 0 { any } else { axes }
    }

    /// The predictions along each axis of a set; zeros along others.
    #[inline(always)]
    pub(super) fn along_axes(
        &self,
        axes: usize,
        order: InterpolationOrder,
        point: Point,
        len: usize,
    ) -> [[i32; LANES]; 3] {
        let mut along = [[0; LANES]; 3];
        if is_odd(axes, 0) {
            along[0] = self.along(0, order, point, len);
        }
        if is_odd(axes, 1) {
            along[1] = self.along(1, order, point, len);
        }
        if is_odd(axes, 2) {
            along[2] = self.along(2, order, point, len);
        }
        along
    }

    /// The prediction along one axis, of points from `point` on.
    #[inline(always)]
    fn along(&self, axis: usize, order: InterpolationOrder, point: Point, len: usize) -> [i32; LANES] {
        let Some(source) = &self.sources[axis] else { return [0; LANES] };
        let line = source.line(axis, point);
        let extent = source.extents[axis];
        if axis != 0 {
            return Stencil::of(order, point.along(axis), extent).apply(line);
        }
        let inner = match order {
            InterpolationOrder::Linear => Stencil::Linear,
            InterpolationOrder::Cubic => Stencil::Cubic,
            InterpolationOrder::Quintic => Stencil::Quintic,
        };
        let mut predicted = inner.apply(line);
        let end = point.x + len;
        let near = point.x..end.min(2);
        let far = end.saturating_sub(3).max(point.x).max(near.end)..end;
        for x in near {
            predicted[x - point.x] = self.at(0, order, Point { x, ..point })[0];
        }
        for x in far {
            if x + 3 >= extent {
                predicted[x - point.x] = self.at(0, order, Point { x, ..point })[0];
            }
        }
        predicted
    }

    /// The prediction of one point along one axis.
    #[inline(always)]
    fn at(&self, axis: usize, order: InterpolationOrder, point: Point) -> [i32; 1] {
        let Some(source) = &self.sources[axis] else { return [0] };
        Stencil::of(order, point.along(axis), source.extents[axis]).apply(source.line(axis, point))
    }
}

impl<'a> NeighbourClass<'a> {
    /// The line along an axis on which points lie, beginning with the neighbour before them.
    #[inline(always)]
    fn line(&self, axis: usize, point: Point) -> Line<'a> {
        let [x, y, _] = self.extents;
        let start = point.x + x * (point.y + y * point.z);
        Line { values: self.values, start, stride: [1, x, x * y][axis] }
    }
}

/// The mean over the axes of a set.
#[inline(always)]
pub(super) fn mean<const W: usize>(axes: usize, along: &[[i32; W]; 3]) -> [i32; W] {
    let [x, y, z] = *along;
    match axes {
        1 => x,
        2 => y,
        4 => z,
        3 => mean_of_two(x, y),
        5 => mean_of_two(x, z),
        6 => mean_of_two(y, z),
        _ => mean_of_three(x, y, z),
    }
}

#[inline(always)]
fn mean_of_two<const W: usize>(a: [i32; W], b: [i32; W]) -> [i32; W] {
    zip(a, b, |a, b| a.wrapping_add(halved(b.wrapping_sub(a))))
}

#[inline(always)]
fn mean_of_three<const W: usize>(a: [i32; W], b: [i32; W], c: [i32; W]) -> [i32; W] {
    let apart = zip(zip(b, a, i32::wrapping_sub), zip(c, a, i32::wrapping_sub), i32::wrapping_add);
    zip(a, apart, |a, d| a.wrapping_add(third(d)))
}
