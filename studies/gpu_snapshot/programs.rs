//! The programs whose writes are traced.

use crate::Failed;
use crate::front::front;
use crate::lu::lu;
use crate::pagerank::{delta_pagerank, pagerank};
use crate::solvers::{cg, gmres, jacobi};
use crate::trace::WriteTrace;

/// Sizes of the problems.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProblemSizes {
    /// Grid points in each direction, of the solvers.
    pub(crate) grid: usize,
    /// Columns of the matrix that LU factors.
    pub(crate) columns: usize,
    /// Blocks in each direction, a power of two.
    pub(crate) blocks: usize,
    /// Binary logarithm of the number of vertices.
    pub(crate) scale: u32,
}

impl ProblemSizes {
    /// The sizes of the figures.
    pub(crate) const FIGURES: Self = Self { grid: 96, columns: 2048, blocks: 256, scale: 19 };
}

/// Runs every program and traces its writes.
pub(crate) fn traces(sizes: ProblemSizes) -> Result<Vec<WriteTrace>, Failed> {
    let ProblemSizes { grid, columns, blocks, scale } = sizes;
    Ok(vec![cg(grid)?, gmres(grid)?, jacobi(grid)?, lu(columns), front(blocks), pagerank(scale), delta_pagerank(scale)])
}
