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

    /// Splits a grid.
    pub(super) fn split(values: &[i32], grid: [usize; 3]) -> Self {
        let len = |class| class_extents(grid, class).iter().product();
        let mut classes = Self { grid, values: std::array::from_fn(|class| vec![0; len(class)]) };
        let [even_extent, odd_extent] = [0, 1].map(|class| class_extents(grid, class)[0]);
        let mut starts = [0; CLASSES];
        for (row, points) in values.chunks_exact(grid[0]).enumerate() {
            let class = row_class(row, grid[1]);
            let (even_points, odd_points) = classes.values.split_at_mut(class + 1);
            let even = &mut even_points[class][starts[class]..][..even_extent];
            let odd = &mut odd_points[0][starts[class + 1]..][..odd_extent];
            starts[class] += even_extent;
            starts[class + 1] += odd_extent;
            let (pairs, last) = points.as_chunks::<2>();
            for ((pair, even), odd) in pairs.iter().zip(&mut *even).zip(odd) {
                (*even, *odd) = (pair[0], pair[1]);
            }
            if let ([last], Some(even)) = (last, even.last_mut()) {
                *even = *last;
            }
        }
        classes
    }

    /// Joins the classes to the grid again.
    pub(super) fn merge(&self) -> Vec<i32> {
        let [even_extent, odd_extent] = [0, 1].map(|class| class_extents(self.grid, class)[0]);
        let mut values = vec![0; self.grid.iter().product()];
        let mut starts = [0; CLASSES];
        for (row, points) in values.chunks_exact_mut(self.grid[0]).enumerate() {
            let class = row_class(row, self.grid[1]);
            let even = &self.values[class][starts[class]..][..even_extent];
            let odd = &self.values[class + 1][starts[class + 1]..][..odd_extent];
            starts[class] += even_extent;
            starts[class + 1] += odd_extent;
            let (pairs, last) = points.as_chunks_mut::<2>();
            for ((pair, even), odd) in pairs.iter_mut().zip(even).zip(odd) {
                *pair = [*even, *odd];
            }
            if let ([last], Some(even)) = (last, even.last()) {
                *last = *even;
            }
        }
        values
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
            assert_eq!(classes.merge(), values, "{grid:?}");
        }
    }

    #[test]
    fn a_pyramid_ends_above_a_single_point() {
        assert_eq!(pyramid_extents([1; 3]), Vec::<[usize; 3]>::new());
        assert_eq!(pyramid_extents([5, 1, 2]), [[5, 1, 2], [3, 1, 1], [2, 1, 1]]);
    }
}
