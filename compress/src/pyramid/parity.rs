//! Grids split by parity: one level of the pyramid.
//!
//! A level is eight arrays. Class c holds the points whose coordinate along axis a is odd where bit
//! a of c is set, and even elsewhere. So neighbours along any axis lie next to each other in some
//! array, and class 0 is the grid of the next coarser level.

/// Number of the parity classes of a grid.
pub(super) const CLASSES: usize = 8;
/// The classes that are predicted, in the order in which they are coded: each is predicted from
/// classes before it, and from class 0.
pub(super) const ORDER: [usize; CLASSES - 1] = [1, 2, 4, 3, 5, 6, 7];

/// Extents of a class of a grid.
pub(super) fn class_extents(grid: [usize; 3], class: usize) -> [usize; 3] {
    std::array::from_fn(|axis| if is_odd(class, axis) { grid[axis] / 2 } else { grid[axis].div_ceil(2) })
}

/// Returns whether points of a class are odd along an axis.
#[inline(always)]
pub(super) fn is_odd(class: usize, axis: usize) -> bool {
    class >> axis & 1 != 0
}

/// Extents of the grids of a pyramid, the finest first; all but a single point, which is its top.
pub(super) fn pyramid_extents(grid: [usize; 3]) -> Vec<[usize; 3]> {
    let coarser = |grid: &[usize; 3]| Some(class_extents(*grid, 0));
    std::iter::successors(Some(grid), coarser).take_while(|grid| *grid != [1; 3]).collect()
}

/// The classes of one level.
#[derive(Clone, Debug)]
pub(super) struct ParityClasses {
    pub(super) grid: [usize; 3],
    pub(super) values: [Vec<i32>; CLASSES],
}

impl ParityClasses {
    /// Zeros in all classes but the coarser grid, which is empty.
    pub(super) fn zeros(grid: [usize; 3]) -> Self {
        let len = |class| if class == 0 { 0 } else { class_extents(grid, class).iter().product() };
        Self { grid, values: std::array::from_fn(|class| vec![0; len(class)]) }
    }

    /// A grid of one point.
    pub(super) fn point(number: i32) -> Self {
        Self::split(&[number], [1; 3])
    }

    /// Number of points of the grid.
    pub(super) fn len(&self) -> usize {
        self.grid.iter().product()
    }

    /// No values yet; [`ParityClasses::push_row`] adds them.
    fn empty(grid: [usize; 3]) -> Self {
        let len = |class| class_extents(grid, class).iter().product();
        Self { grid, values: std::array::from_fn(|class| Vec::with_capacity(len(class))) }
    }

    /// Splits a grid.
    #[inline(always)]
    pub(super) fn split(values: &[i32], grid: [usize; 3]) -> Self {
        let mut classes = Self::empty(grid);
        for (row, points) in values.chunks_exact(grid[0]).enumerate() {
            classes.push_row(row, points);
        }
        classes
    }

    /// Adds a row of the grid; rows come in order.
    #[inline(always)]
    fn push_row(&mut self, row: usize, points: &[i32]) {
        let class = row_class(row, self.grid[1]);
        let (pairs, last) = points.as_chunks::<2>();
        self.values[class].extend(pairs.iter().map(|pair| pair[0]));
        self.values[class].extend(last);
        self.values[class + 1].extend(pairs.iter().map(|pair| pair[1]));
    }

    /// Joins the classes to the grid again.
    #[inline(always)]
    pub(super) fn merge(&self, values: &mut [i32]) {
        let mut rows = ClassRows::of(self);
        for points in values.chunks_exact_mut(self.grid[0]) {
            rows.take(points);
        }
    }
}

/// The rows of a grid that is split, in order.
#[derive(Debug)]
pub(super) struct ClassRows<'a> {
    classes: &'a ParityClasses,
    row: usize,
    starts: [usize; CLASSES],
}

impl<'a> ClassRows<'a> {
    pub(super) fn of(classes: &'a ParityClasses) -> Self {
        Self { classes, row: 0, starts: [0; CLASSES] }
    }

    /// Fills `points` with the next row.
    #[inline(always)]
    pub(super) fn take(&mut self, points: &mut [i32]) {
        let class = row_class(self.row, self.classes.grid[1]);
        let [even_extent, odd_extent] = [points.len().div_ceil(2), points.len() / 2];
        let even = &self.classes.values[class][self.starts[class]..][..even_extent];
        let odd = &self.classes.values[class + 1][self.starts[class + 1]..][..odd_extent];
        self.row += 1;
        self.starts[class] += even_extent;
        self.starts[class + 1] += odd_extent;
        let (pairs, last) = points.as_chunks_mut::<2>();
        for ((pair, even), odd) in pairs.iter_mut().zip(even).zip(odd) {
            *pair = [*even, *odd];
        }
        if let ([last], Some(even)) = (last, even.last()) {
            *last = *even;
        }
    }
}

/// The class of the even points of a row.
fn row_class(row: usize, rows_of_plane: usize) -> usize {
    (row % rows_of_plane % 2) << 1 | (row / rows_of_plane % 2) << 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grid_is_the_sum_of_its_classes() {
        for grid in [[1, 1, 1], [2, 1, 1], [7, 1, 1], [1, 5, 1], [1, 1, 6], [4, 3, 1], [5, 4, 3], [2, 2, 2], [9, 8, 7]]
        {
            let n: usize = grid.iter().product();
            let values: Vec<i32> = (0..n as i32).collect();
            let classes = ParityClasses::split(&values, grid);
            for (class, own) in classes.values.iter().enumerate() {
                assert_eq!(own.len(), class_extents(grid, class).iter().product::<usize>(), "{grid:?} {class}");
            }
            let mut merged = vec![0; n];
            classes.merge(&mut merged);
            assert_eq!(merged, values, "{grid:?}");
        }
    }

    #[test]
    fn a_pyramid_ends_above_a_single_point() {
        assert_eq!(pyramid_extents([1; 3]), Vec::<[usize; 3]>::new());
        assert_eq!(pyramid_extents([5, 1, 2]), [[5, 1, 2], [3, 1, 1], [2, 1, 1]]);
    }
}
