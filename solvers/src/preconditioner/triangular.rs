//! Strict triangles of a factorisation by rows, and the steps of a solve with one of them.

/// A strict lower or upper triangle; the diagonal is kept apart by its owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Triangle {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Triangle {
    /// A triangle without rows, to be filled by [`Triangle::push`] and [`Triangle::end_row`].
    pub(super) fn with_capacity(rows: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        Self { starts, columns: Vec::with_capacity(entries), values: Vec::with_capacity(entries) }
    }

    /// Adds an entry to the row in progress.
    pub(super) fn push(&mut self, column: u32, value: f64) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Ends the row in progress.
    pub(super) fn end_row(&mut self) {
        self.starts.push(self.columns.len());
    }

    /// The entries of a row as (column, value).
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.starts[row]..self.starts[row + 1];
        self.columns[range.clone()].iter().map(|&column| column as usize).zip(self.values[range].iter().copied())
    }

    /// Bytes that the triangle keeps.
    pub(super) fn bytes(&self) -> u64 {
        (8 * self.starts.len() + 12 * self.columns.len()) as u64
    }

    /// `start - sum_j t_ij x_j` over the entries of row i.
    pub(super) fn reduced(&self, row: usize, start: f64, x: &[f64]) -> f64 {
        self.row(row).fold(start, |sum, (j, t)| sum - t * x[j])
    }

    /// `x_j = x_j - t_ij x_i` for the entries of row i.
    pub(super) fn spread(&self, row: usize, x: &mut [f64]) {
        let solved = x[row];
        self.row(row).for_each(|(j, t)| x[j] -= t * solved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strict lower triangle [[0], [2], [-1, 3]] and the diagonal (1, 2, 4).
    fn lower() -> (Triangle, [f64; 3]) {
        let mut triangle = Triangle::with_capacity(3, 3);
        triangle.end_row();
        triangle.push(0, 2.0);
        triangle.end_row();
        triangle.push(0, -1.0);
        triangle.push(1, 3.0);
        triangle.end_row();
        (triangle, [1.0, 0.5, 0.25])
    }

    #[test]
    fn solves_undo_their_products() {
        let (triangle, inverse_diagonal) = lower();
        // Each right-hand side is the product with (1, 2, 3); all numbers are exact in binary.
        let mut x = [1.0, 4.0, 8.0];
        (0..3).for_each(|i| x[i] = triangle.reduced(i, x[i], &x));
        assert_eq!(x, [1.0, 2.0, 3.0]);
        let mut x = [1.0, 6.0, 17.0];
        (0..3).for_each(|i| x[i] = triangle.reduced(i, x[i], &x) * inverse_diagonal[i]);
        assert_eq!(x, [1.0, 2.0, 3.0]);
        let mut x = [2.0, 13.0, 12.0];
        for i in (0..3).rev() {
            x[i] *= inverse_diagonal[i];
            triangle.spread(i, &mut x);
        }
        assert_eq!(x, [1.0, 2.0, 3.0]);
    }
}
