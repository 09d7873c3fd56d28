//! Interpolation of a parity class from the classes it lies between.
//!
//! A point is predicted along each axis on which it is odd. The prediction of a cell is the mean
//! over some of these axes, all by one interpolation. An axis is left out where the grid ends
//! before the point has a neighbour on both sides, unless all its axes are like that.

use super::cell_predictor::AxisMean;
use super::cells::Point;
use super::interpolation::{InterpolationOrder, LANES, Line, Stencil, halved, third, zip};
use super::parity::{CLASSES, class_extents, is_odd};

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
    pub(super) fn predict(&self, mean_of: AxisMean, point: Point, len: usize) -> [i32; LANES] {
        let AxisMean { order, axes } = mean_of;
        let across = self.inside(axes, self.ending(point) & !1);
        let mut predicted = mean(across, &self.along_axes(across, order, point, len));
        // The last point of a row alone may have no neighbour behind it on x.
        let last = Point { x: point.x + len - 1, ..point };
        let at_end = if self.class & 1 != 0 { self.inside(axes, self.ending(last)) } else { across };
        if at_end != across {
            let along = self.along_axes(at_end, order, point, len);
            predicted[len - 1] = mean(at_end, &along)[len - 1];
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
        let inner = Stencil::inner(order).apply(line);
        let end = point.x + len;
        if point.x >= 2 && end + 3 <= extent {
            return inner;
        }
        if extent < 4 {
            return std::array::from_fn(|lane| {
                self.at(0, order, Point { x: (point.x + lane).min(end - 1), ..point })[0]
            });
        }
        at_edges(order, inner, line, point.x, extent)
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

/// The predictions along x of points that are near an end of rows of four or more.
#[inline(always)]
fn at_edges(order: InterpolationOrder, inner: [i32; LANES], line: Line<'_>, x: usize, extent: usize) -> [i32; LANES] {
    let cubic: [i32; LANES] = Stencil::Cubic.apply(line);
    let after_edge: [i32; LANES] = Stencil::AfterEdge.apply(line);
    let before_edge: [i32; LANES] = Stencil::BeforeEdge.apply(line);
    let behind: [i32; LANES] = Stencil::Extrapolation.apply(line);
    let [is_linear, is_quintic] =
        [InterpolationOrder::Linear, InterpolationOrder::Quintic].map(|other| mask(order == other));
    let mut predicted = [0; LANES];
    for lane in 0..LANES {
        let index = (x + lane) as u32;
        let after = (extent as u32).wrapping_sub(1 + index);
        let near = pick(mask(index == 0), after_edge[lane], cubic[lane]);
        let near = pick(mask(after == 1), before_edge[lane], near);
        let is_inner = is_linear | is_quintic & mask(index >= 2) & mask(after >= 3);
        predicted[lane] = pick(mask(after == 0), behind[lane], pick(is_inner, inner[lane], near));
    }
    predicted
}

/// All bits, or none.
#[inline(always)]
fn mask(is_set: bool) -> i32 {
    -i32::from(is_set)
}

/// The first where all bits are set, the second where none is. Both are read: a branch in its place
/// would make gathers of the vectors.
#[inline(always)]
fn pick(mask: i32, first: i32, second: i32) -> i32 {
    first & mask | second & !mask
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
