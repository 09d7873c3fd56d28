//! The diagonal blocks of A over contiguous rows, each with a preconditioner of its own.
//!
//! The number of blocks follows from A or is given. It never follows from the threads, which share
//! the blocks in set-up and their pieces in solves: the bits are the same for any number of them.
//! Blocks are those of the rows of all ranks, so the bits are also the same for any number of ranks
//! that share whole blocks. What couples two blocks is left out of M, so more blocks cost
//! iterations. M is symmetric positive definite where
//! those of all blocks are. Static: a restore builds it again. Source: section 12.2 of Y. Saad,
//! "Iterative Methods for Sparse Linear Systems", 2003, doi 10.1137/1.9780898718003.

use recoup_core::{Operator, SolveError};

use super::order::{ROWS_MIN, cut, made_by};
use super::pieces::Pieces;
use super::solve::{Preconditioner, RowSweeps};
use crate::{Csr, Pool};

/// Blocks where their number is not given, if each has the rows of a piece.
const BLOCKS: usize = 4;

/// `M = diag(M_1, M_2, ...)`, each a preconditioner of the diagonal block that its rows make.
pub struct BlockJacobi<M: RowSweeps> {
    pieces: Pieces<M::Steps>,
    shift: f64,
}

impl<M: RowSweeps + Send> BlockJacobi<M> {
    /// Sets up `blocks` blocks of `a`, of equal length but for a chunk of its sums, or a row, each
    /// by `of_block`, with the threads of `pool`.
    ///
    /// # Errors
    /// [`SolveError::Parameter`] for no blocks and for more than rows, and the error of the first
    /// block that is refused, with the row's number in `a`.
    pub fn new(
        pool: &Pool,
        a: &Csr,
        blocks: usize,
        of_block: impl Fn(Csr) -> Result<M, SolveError> + Sync,
    ) -> Result<Self, SolveError> {
        Self::on_rank(pool, a, a, blocks, of_block)
    }

    /// Sets up the part of this rank in `blocks` blocks of the rows of all ranks: `rows` are the
    /// entries of `a` between its own. Blocks end where ranks do if the ranks share the blocks
    /// evenly; else the block between two ranks is cut.
    ///
    /// # Errors
    /// As [`BlockJacobi::new`], with the row's number on this rank.
    pub fn on_rank(
        pool: &Pool,
        a: &dyn Operator,
        rows: &Csr,
        blocks: usize,
        of_block: impl Fn(Csr) -> Result<M, SolveError> + Sync,
    ) -> Result<Self, SolveError> {
        let all = a.global_rows() as usize;
        if blocks == 0 || blocks > all {
            let expected = "at least 1, and at most the number of rows";
            return Err(SolveError::Parameter { what: "number of blocks", value: blocks as f64, expected });
        }
        let own = |row: usize| row.saturating_sub(a.first_row() as usize).min(rows.n());
        let mut starts: Vec<usize> = cut(all, a.chunk_rows(), blocks).into_iter().map(own).collect();
        starts.dedup();
        let made = made_by(pool, starts.len() - 1, |block| {
            let [first, end] = [starts[block], starts[block + 1]];
            of_block(rows.diagonal_block(first..end)).map_err(|error| error.in_rows_from(first))
        });
        let blocks: Vec<M> = made.into_iter().collect::<Result<_, _>>()?;
        let shift = blocks.iter().map(M::shift).fold(0.0, f64::max);
        Ok(Self { pieces: Pieces::joined(blocks.into_iter().map(M::into_pieces)), shift })
    }
}

/// Number of blocks of [`BlockJacobi`] where none is given: 4, whose pieces threads share; fewer
/// below 16384 rows.
#[must_use]
pub fn usual_blocks(rows: usize) -> usize {
    1 << (rows / ROWS_MIN).clamp(1, BLOCKS).ilog2()
}

impl<M: RowSweeps> Preconditioner for BlockJacobi<M> {
    fn name(&self) -> &'static str {
        "bjacobi"
    }

    fn apply(&self, pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z_k = M_k^-1 r_k
        self.pieces.apply(pool, r, z);
        Ok(())
    }

    fn shift(&self) -> f64 {
        self.shift
    }

    fn bytes(&self) -> u64 {
        self.pieces.bytes()
    }

    fn bytes_per_apply(&self) -> u64 {
        self.pieces.bytes_per_apply()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ic0, Ilu0, SsorPreconditioner, random_value};

    const EACH: [&str; 3] = ["ic0", "ilu0", "ssor"];

    fn made(inner: &str, threads: usize, a: &Csr, blocks: usize) -> Result<Box<dyn Preconditioner>, SolveError> {
        let pool = Pool::new(threads);
        Ok(match inner {
            "ic0" => Box::new(BlockJacobi::new(&pool, a, blocks, |block| Ic0::new(&block))?),
            "ilu0" => Box::new(BlockJacobi::new(&pool, a, blocks, |block| Ilu0::new(&block))?),
            _ => Box::new(BlockJacobi::new(&pool, a, blocks, |block| SsorPreconditioner::keeping(block, 1.2))?),
        })
    }

    fn applied(m: &dyn Preconditioner, threads: usize, n: usize) -> Vec<f64> {
        let r: Vec<f64> = (0..n as u64).map(|row| random_value(5, row)).collect();
        let mut z = vec![f64::NAN; n];
        m.apply(&Pool::new(threads), &r, &mut z).unwrap();
        z
    }

    fn bits(z: &[f64]) -> Vec<u64> {
        z.iter().map(|z| z.to_bits()).collect()
    }

    /// A matrix from the rows of a dense one, zeros left out.
    fn sparse<const N: usize>(rows: [[f64; N]; N]) -> Csr {
        let mut starts = vec![0];
        let mut columns = Vec::new();
        let mut values = Vec::new();
        for row in rows {
            for (column, value) in row.into_iter().enumerate().filter(|(_, value)| *value != 0.0) {
                columns.push(column as u32);
                values.push(value);
            }
            starts.push(columns.len());
        }
        Csr::new(starts, columns, values).unwrap()
    }

    #[test]
    fn any_number_of_threads_sets_up_and_applies_the_same_bits() {
        let a = Csr::poisson3d(11);
        for inner in EACH {
            for blocks in [1, 3, 8, 64] {
                let run = |threads| {
                    let m = made(inner, threads, &a, blocks).unwrap();
                    bits(&applied(m.as_ref(), threads, a.n()))
                };
                let alone = run(1);
                (2..=8).for_each(|threads| assert_eq!(run(threads), alone, "{inner:?}, {blocks} blocks, {threads}"));
            }
        }
    }

    #[test]
    fn one_block_is_the_preconditioner_of_the_whole_and_n_blocks_are_the_diagonal() {
        let a = Csr::poisson3d(7);
        let n = a.n();
        let of = |blocks, inner| applied(made(inner, 2, &a, blocks).unwrap().as_ref(), 2, n);
        let whole: [Vec<f64>; 3] = [
            applied(&Ic0::new(&a).unwrap(), 1, n),
            applied(&Ilu0::new(&a).unwrap(), 1, n),
            applied(&SsorPreconditioner::new(&a, 1.2).unwrap(), 1, n),
        ];
        for (inner, whole) in EACH.into_iter().zip(whole) {
            assert_eq!(bits(&of(1, inner)), bits(&whole), "{inner:?}");
        }
        let r: Vec<f64> = (0..n as u64).map(|row| random_value(5, row)).collect();
        for (z, r) in of(n, "ilu0").iter().zip(&r) {
            assert_eq!(*z, r * 6.0_f64.recip());
        }
    }

    /// Blocks of 2 and 3 rows, tridiagonal: both factorisations are exact, so M is A without what
    /// couples the blocks.
    #[test]
    fn equals_a_dense_solve_with_the_diagonal_blocks() {
        let coupled = [
            [4.0, -1.0, 0.0, 0.5, 0.0],
            [-1.0, 4.0, -1.0, 0.0, 0.5],
            [0.0, -1.0, 4.0, -1.0, 0.0],
            [0.5, 0.0, -1.0, 3.0, 1.0],
            [0.0, 0.5, 0.0, 1.0, 5.0],
        ];
        let a = sparse(coupled);
        for inner in ["ic0", "ilu0"] {
            let m = made(inner, 2, &a, 2).unwrap();
            // Rows 0 to 1 and 2 to 4.
            let block = |row: usize| if row < 2 { 0..2 } else { 2..5 };
            let r: Vec<f64> =
                (0..5).map(|row| block(row).map(|column| coupled[row][column] * (column + 1) as f64).sum()).collect();
            let mut z = [0.0; 5];
            m.apply(&Pool::new(1), &r, &mut z).unwrap();
            for (z, expected) in z.iter().zip(1..) {
                // Condition below 5, 3 rows, numbers below 30: 5 * 3 * 30 eps.
                assert!((z - f64::from(expected)).abs() <= 450.0 * f64::EPSILON, "{inner:?}: {z}");
            }
        }
    }

    #[test]
    fn blocks_of_symmetric_factors_make_a_symmetric_positive_definite_m() {
        let a = Csr::poisson3d(5);
        let n = a.n();
        for inner in ["ic0", "ssor"] {
            let m = made(inner, 1, &a, 6).unwrap();
            let [x, y] = [1, 2].map(|seed| (0..n as u64).map(|row| random_value(seed, row)).collect::<Vec<f64>>());
            let [mut of_x, mut of_y] = [(); 2].map(|()| vec![0.0; n]);
            m.apply(&Pool::new(1), &x, &mut of_x).unwrap();
            m.apply(&Pool::new(1), &y, &mut of_y).unwrap();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            // Entries of M^-1 are below 1, so each product is a sum of n values below n.
            assert!((dot(&x, &of_y) - dot(&y, &of_x)).abs() <= (n * n) as f64 * f64::EPSILON, "{inner:?}");
            assert!(dot(&x, &of_x) > 0.0 && dot(&y, &of_y) > 0.0, "{inner:?}");
        }
    }

    #[test]
    fn the_usual_number_follows_from_rows() {
        for (rows, blocks) in [(1, 1), (8191, 1), (8192, 2), (16383, 2), (16384, 4), (1 << 30, 4)] {
            assert_eq!(usual_blocks(rows), blocks, "{rows} rows");
        }
    }

    #[test]
    fn numbers_of_blocks_that_rows_do_not_make_are_refused() {
        let a = Csr::poisson3d(2);
        for blocks in [0, 9, usize::MAX] {
            let refused = made("ilu0", 2, &a, blocks).err();
            assert!(matches!(refused, Some(SolveError::Parameter { what: "number of blocks", .. })), "{blocks}");
        }
        let one = sparse([[4.0]]);
        assert_eq!(applied(made("ic0", 2, &one, 1).unwrap().as_ref(), 1, 1), [random_value(5, 0) / 4.0]);
    }

    #[test]
    fn rows_without_a_usable_pivot_are_named_as_rows_of_the_whole() {
        let entry = |row: usize, value: f64| {
            let mut rows = [[0.0; 6]; 6];
            (0..6).for_each(|diagonal| rows[diagonal][diagonal] = 2.0);
            // A row that is not empty, but has no diagonal; and one with the diagonal given.
            if value == 0.0 {
                rows[row][row - 1] = 1.0
            }
            rows[row][row] = value;
            sparse(rows)
        };
        for inner in EACH {
            let refused = |a: &Csr| made(inner, 2, a, 2).err();
            let of = |error: Option<SolveError>| match error {
                Some(SolveError::Diagonal { row, value, .. }) => (row, value),
                other => panic!("{inner:?}: {other:?}"),
            };
            assert_eq!(of(refused(&entry(4, 0.0))), (4, 0.0));
            // Its reciprocal overflows; that of its square root, in IC(0), does not.
            let unusable = if inner == "ic0" { -2.0 } else { 1e-310 };
            assert_eq!(of(refused(&entry(3, unusable))), (3, unusable));
        }
        let empty = Csr::new(vec![0, 1, 1, 2], vec![0, 2], vec![1.0, 1.0]).unwrap();
        let refused = made("ilu0", 2, &empty, 3).err();
        assert!(matches!(refused, Some(SolveError::Diagonal { row: 1, value: 0.0, .. })), "{refused:?}");
    }

    #[test]
    fn the_largest_shift_of_the_blocks_is_told() {
        // Kershaw's matrix needs a shift, a diagonal none.
        let mut rows = [[0.0; 8]; 8];
        let kershaw = [[3.0, -2.0, 0.0, 2.0], [-2.0, 3.0, -2.0, 0.0], [0.0, -2.0, 3.0, -2.0], [2.0, 0.0, -2.0, 3.0]];
        for (row, values) in kershaw.iter().enumerate() {
            rows[row][..4].copy_from_slice(values);
            rows[row + 4][row + 4] = 1.0;
        }
        let a = sparse(rows);
        let m = made("ic0", 1, &a, 2).unwrap();
        assert!(m.shift() > 0.0);
        assert_eq!(m.shift(), Ic0::new(&a.diagonal_block(0..4)).unwrap().shift());
    }
}
