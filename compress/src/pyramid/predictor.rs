//! Interpolation of a parity class from the classes it lies between.
//!
//! A point is predicted along each axis on which it is odd. The prediction of a cell is the mean
//! over some of these axes, all by one interpolation. An axis is left out where the grid ends
//! before the point has a neighbour on both sides, unless all its axes are like that.

use super::cell_predictor::AxisMean;
use super::cells::{CellRuns, Point, PointRun, RunValues};
use super::interpolation::{
    InterpolationOrder, Line, Stencil, UnevenEnd, at_end, bend_at_edge, cubic_bend, quintic_bend, third,
};
use super::levels::is_odd;
use super::parity::ParityClasses;
use super::simd::{self, LANES, LaneKernel, NumberLanes};
use crate::qb::SimdLevel;

/// Values of one class, by which others are predicted.
#[derive(Clone, Copy, Debug)]
struct NeighbourClass<'a> {
    /// With room on both sides.
    values: &'a [i32],
    extents: [usize; 3],
    /// The end of the rows along the axis that leads to the class.
    end: Option<UnevenEnd>,
}

/// The classes next to a class along each axis on which it is odd.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbours<'a> {
    class: usize,
    sources: [Option<NeighbourClass<'a>>; 3],
    level: SimdLevel,
}

impl<'a> Neighbours<'a> {
    pub(super) fn of(classes: &'a ParityClasses, class: usize, level: SimdLevel) -> Self {
        let ParityClasses { shape, values } = classes;
        let source = |axis: usize| {
            let next = class ^ 1 << axis;
            is_odd(class, axis).then(|| NeighbourClass {
                values: values[next].with_room(),
                extents: shape.class_extents(next),
                end: shape.axes[axis].uneven_end().map(UnevenEnd::of),
            })
        };
        Self { class, sources: std::array::from_fn(source), level }
    }

    /// The class that is predicted.
    #[inline(always)]
    pub(super) fn class(&self) -> usize {
        self.class
    }

    /// The level of vector instructions that kernels run at.
    #[inline(always)]
    pub(super) fn level(&self) -> SimdLevel {
        self.level
    }

    /// The predictions of runs; lanes behind a run hold anything.
    #[inline(always)]
    pub(super) fn predict<V: NumberLanes>(&self, mean_of: AxisMean, runs: &CellRuns, predicted: &mut RunValues) {
        const LINEAR: u8 = InterpolationOrder::Linear as u8;
        const CUBIC: u8 = InterpolationOrder::Cubic as u8;
        const QUINTIC: u8 = InterpolationOrder::Quintic as u8;
        match mean_of.order {
            InterpolationOrder::Linear => self.predict_by::<V, LINEAR>(mean_of, runs, predicted),
            InterpolationOrder::Cubic => self.predict_by::<V, CUBIC>(mean_of, runs, predicted),
            InterpolationOrder::Quintic => self.predict_by::<V, QUINTIC>(mean_of, runs, predicted),
        }
    }

    #[inline(always)]
    fn predict_by<V: NumberLanes, const ORDER: u8>(
        &self,
        mean_of: AxisMean,
        runs: &CellRuns,
        predicted: &mut RunValues,
    ) {
        match mean_of.axes {
            1 => self.predict_along::<V, ORDER, 1>(mean_of, runs, predicted),
            2 => self.predict_along::<V, ORDER, 2>(mean_of, runs, predicted),
            3 => self.predict_along::<V, ORDER, 3>(mean_of, runs, predicted),
            4 => self.predict_along::<V, ORDER, 4>(mean_of, runs, predicted),
            5 => self.predict_along::<V, ORDER, 5>(mean_of, runs, predicted),
            6 => self.predict_along::<V, ORDER, 6>(mean_of, runs, predicted),
            _ => self.predict_along::<V, ORDER, 7>(mean_of, runs, predicted),
        }
    }

    /// Runs far from the edges across x are all alike; others are looked at one by one.
    #[inline(always)]
    fn predict_along<V: NumberLanes, const ORDER: u8, const AXES: usize>(
        &self,
        mean_of: AxisMean,
        runs: &CellRuns,
        predicted: &mut RunValues,
    ) {
        for (run, target) in runs.iter().zip(predicted) {
            let PointRun { point, len } = *run;
            let is_inner = |axis: usize| {
                let even = self.sources[axis].as_ref().map_or(0, |source| source.even(axis));
                !is_odd(AXES, axis) || is_inner::<ORDER>(point.along(axis), even)
            };
            let width = self.sources[0].map_or(0, |source| source.extents[0]);
            let even_width = self.sources[0].as_ref().map_or(0, |source| source.even(0));
            // The last point alone would need other axes.
            let is_cut = AXES == 1 && self.class != 1 && point.x + len == width;
            let is_narrow = is_odd(AXES, 0) && width < 4;
            if !is_inner(1) || !is_inner(2) || is_cut || is_narrow {
                simd::run(self.level, PredictAtEdge { neighbours: self, mean_of, run: *run, target });
                continue;
            }
            let across: [V; 3] = [
                V::all(0),
                if is_odd(AXES, 1) { self.inner::<V, ORDER>(1, point) } else { V::all(0) },
                if is_odd(AXES, 2) { self.inner::<V, ORDER>(2, point) } else { V::all(0) },
            ];
            if !is_odd(AXES, 0) {
                mean(AXES, across).store(target);
            } else if point.x >= 2 && point.x + LANES + 3 <= even_width {
                mean(AXES, [self.inner::<V, ORDER>(0, point), across[1], across[2]]).store(target);
            } else {
                let along = self.along_edges::<V, ORDER>(point, width);
                let all = mean(AXES, [along, across[1], across[2]]);
                let others = if AXES == 1 { all } else { mean(AXES & !1, across) };
                all.replaced(bit_of(width - 1, point.x), others).store(target);
            }
        }
    }

    /// The predictions along an axis, far from its ends.
    #[inline(always)]
    fn inner<V: NumberLanes, const ORDER: u8>(&self, axis: usize, point: Point) -> V {
        let Some(source) = &self.sources[axis] else { return V::all(0) };
        Stencil::inner(order_of::<ORDER>()).apply(source.line(axis, point))
    }

    /// The predictions along x, near an end of rows of four or more.
    #[inline(always)]
    fn along_edges<V: NumberLanes, const ORDER: u8>(&self, point: Point, width: usize) -> V {
        let Some(source) = &self.sources[0] else { return V::all(0) };
        let line = source.line(0, point);
        let [before, after]: [V; 2] = [line.load(0), line.load(1)];
        let near = before.plus(after);
        let bit = |x: usize| bit_of(x, point.x);
        // Where the last point lies nearer, the rules for it hold for the one before.
        let even = source.even(0);
        let bend = match order_of::<ORDER>() {
            InterpolationOrder::Linear => V::all(0),
            order => {
                let cubic = cubic_bend(near, line);
                let inner = match order {
                    InterpolationOrder::Quintic => quintic_bend(near, line).replaced(bit(1) | bit(even - 3), cubic),
                    _ => cubic,
                };
                let before_end = bend_at_edge(before, after, line.load(-1));
                let at_start = bend_at_edge(after, before, line.load(2));
                inner.replaced(bit(0), at_start).replaced(bit(even - 2), before_end)
            }
        };
        let between = near.plus(bend).halved();
        let Some(end) = &source.end else {
            return between.replaced(bit(width - 1), Stencil::Extrapolation.apply(line));
        };
        if point.x + LANES + 3 <= width {
            return between;
        }
        match (order_of::<ORDER>(), end.cubic) {
            (InterpolationOrder::Linear, _) => between.replaced(bit(width - 2), at_end(end.line, line)),
            (_, None) => between.replaced(bit(width - 2), at_end(end.parabola, line)),
            (_, Some(cubic)) => {
                let last = between.replaced(bit(width - 2), at_end(end.parabola, line));
                last.replaced(bit(width - 3), at_end(cubic, line))
            }
        }
    }

    /// The prediction of a run anywhere.
    #[inline(always)]
    fn predict_at_edge<V: NumberLanes>(&self, mean_of: AxisMean, PointRun { point, len }: PointRun) -> V {
        let AxisMean { order, axes } = mean_of;
        let across = self.inside(axes, self.ending(point) & !1);
        // The last point of a row alone may have no neighbour behind it on x.
        let last = Point { x: point.x + len - 1, ..point };
        let at_end = if self.class & 1 != 0 { self.inside(axes, self.ending(last)) } else { across };
        let along: [V; 3] = self.along_axes(across | at_end, order, point, len);
        let predicted = mean(across, along);
        if at_end == across { predicted } else { predicted.replaced(1 << (len - 1), mean(at_end, along)) }
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
    pub(super) fn along_axes<V: NumberLanes>(
        &self,
        axes: usize,
        order: InterpolationOrder,
        point: Point,
        len: usize,
    ) -> [V; 3] {
        let mut along = [V::all(0); 3];
        if is_odd(axes, 0) {
            along[0] = self.along_x(order, point, len);
        }
        for (axis, predicted) in along.iter_mut().enumerate().skip(1) {
            if is_odd(axes, axis)
                && let Some(source) = &self.sources[axis]
            {
                let stencil = Stencil::of(order, point.along(axis), source.extents[axis], source.end.as_ref());
                *predicted = stencil.apply(source.line(axis, point));
            }
        }
        along
    }

    /// The predictions along x, of points from `point` on.
    #[inline(always)]
    fn along_x<V: NumberLanes>(&self, order: InterpolationOrder, point: Point, len: usize) -> V {
        const LINEAR: u8 = InterpolationOrder::Linear as u8;
        const CUBIC: u8 = InterpolationOrder::Cubic as u8;
        const QUINTIC: u8 = InterpolationOrder::Quintic as u8;
        let Some(source) = &self.sources[0] else { return V::all(0) };
        let width = source.extents[0];
        if width < 4 {
            return V::load(&source.along_short(order, point, len));
        }
        match order {
            InterpolationOrder::Linear => self.along_edges::<V, LINEAR>(point, width),
            InterpolationOrder::Cubic => self.along_edges::<V, CUBIC>(point, width),
            InterpolationOrder::Quintic => self.along_edges::<V, QUINTIC>(point, width),
        }
    }
}

/// The prediction of a run anywhere: a function of its own, as it is large, and most runs lie far
/// from edges.
struct PredictAtEdge<'a, 'n> {
    neighbours: &'a Neighbours<'n>,
    mean_of: AxisMean,
    run: PointRun,
    target: &'a mut [i32; LANES],
}

impl LaneKernel for PredictAtEdge<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<V: NumberLanes>(self) {
        let Self { neighbours, mean_of, run, target } = self;
        neighbours.predict_at_edge::<V>(mean_of, run).store(target);
    }
}

impl<'a> NeighbourClass<'a> {
    /// Number of points along an axis that are all equally far apart.
    #[inline(always)]
    fn even(&self, axis: usize) -> usize {
        self.extents[axis] - usize::from(self.end.is_some())
    }

    /// The line along an axis on which points lie, beginning with the neighbour before them.
    #[inline(always)]
    fn line(&self, axis: usize, point: Point) -> Line<'a> {
        let [x, y, _] = self.extents;
        let start = point.x + x * (point.y + y * point.z);
        Line { values: self.values, start, stride: [1, x, x * y][axis] }
    }

    /// The predictions along x in a row of fewer than four points.
    #[cold]
    #[inline(never)]
    fn along_short(&self, order: InterpolationOrder, point: Point, len: usize) -> [i32; LANES] {
        let mut along = [0; LANES];
        for (lane, predicted) in along[..len].iter_mut().enumerate() {
            let at = Point { x: point.x + lane, ..point };
            let stencil = Stencil::of(order, at.x, self.extents[0], self.end.as_ref());
            let lanes: [i32; LANES] = stencil.apply(self.line(0, at));
            *predicted = lanes[0];
        }
        along
    }
}

/// The order of a number.
#[inline(always)]
fn order_of<const ORDER: u8>() -> InterpolationOrder {
    InterpolationOrder::ALL[ORDER as usize]
}

/// Returns whether a point between points `index` and `index + 1` of `extent` is far enough from
/// both ends for the formula of its order.
#[inline(always)]
fn is_inner<const ORDER: u8>(index: usize, extent: usize) -> bool {
    let reach = ORDER as usize;
    index >= reach && index + reach + 1 < extent
}

/// The bit of the lane with the number `x`, in lanes that begin with `first`; none if there is no
/// such lane.
#[inline(always)]
fn bit_of(x: usize, first: usize) -> u16 {
    let lane = x.wrapping_sub(first);
    if lane < LANES { 1 << lane } else { 0 }
}

/// The mean over the axes of a set.
#[inline(always)]
pub(super) fn mean<V: NumberLanes>(axes: usize, [x, y, z]: [V; 3]) -> V {
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
fn mean_of_two<V: NumberLanes>(a: V, b: V) -> V {
    a.plus(b.minus(a).halved())
}

#[inline(always)]
fn mean_of_three<V: NumberLanes>(a: V, b: V, c: V) -> V {
    a.plus(third(b.minus(a).plus(c.minus(a))))
}
