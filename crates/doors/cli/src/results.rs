//! Files a solve reads and writes: `--x0`, `--solution`, `--residual-log`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use recoup::core::{Comm, Values};
use recoup::io::Array;
use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};

use crate::exit::{self, Exit};
use crate::options::row_grid::RowGrid;
use crate::problem::LinearProblem;
use crate::ranks::{self, agree};
use crate::target::require_writable;
use crate::tell::tell;
use crate::vector_file::{self, FileKind, ITERATE};

/// Files a solve reads its first guess from, and writes its result to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ResultArgs {
    /// Write the solution to a file .npy, .mtx or .h5.
    ///
    /// NumPy's format, an array of Matrix Market, or dataset x of HDF5.
    #[arg(long, value_name = "OUT")]
    pub(crate) solution: Option<PathBuf>,

    /// Start from this vector instead of x = 0: in NumPy's format, text or HDF5 (dataset x, or the
    /// only one). A run that resumes from a version ignores it.
    #[arg(long, value_name = "FILE", help_heading = "Problem")]
    pub(crate) x0: Option<PathBuf>,

    /// Write the residual of every iteration as the solve goes: columns executed, iteration,
    /// seconds, relative_residual. A run that resumes appends to the file.
    #[arg(long, value_name = "FILE.csv", help_heading = "Results")]
    pub(crate) residual_log: Option<PathBuf>,
}

impl ResultArgs {
    /// Refuses files that cannot be read or written, before anything long is done. Collective if
    /// there are ranks.
    ///
    /// # Errors
    /// Exit 2 for names of another kind and places that cannot be used.
    pub(crate) fn check(&self, mpi: bool) -> Result<()> {
        if self.solution.is_none() && self.x0.is_none() && self.residual_log.is_none() {
            return Ok(());
        }
        let comm = ranks::comm(mpi)?;
        agree(comm.as_ref(), if comm.rank() == 0 { self.check_here() } else { Ok(()) })
    }

    fn check_here(&self) -> Result<()> {
        if let Some(path) = &self.x0 {
            access(path, Access::READ_OK)
                .map_err(|error| Exit::Usage.because(format!("--x0 {}: cannot be read: {error}", path.display())))?;
        }
        if let Some(path) = &self.solution {
            FileKind::written(path, "--solution")?;
            require_writable(path, "--solution")?;
        }
        self.residual_log.as_ref().map_or(Ok(()), |path| require_writable(path, "--residual-log"))
    }

    /// This rank's rows of the first guess; `None` for x = 0. Collective.
    ///
    /// # Errors
    /// Exit 1 for a file that is no vector of the problem's length with finite values.
    pub(crate) fn start(&self, problem: &LinearProblem) -> Result<Option<Vec<f64>>> {
        let Some(path) = &self.x0 else { return Ok(None) };
        let rows = usize::try_from(problem.unknowns()).unwrap_or(usize::MAX);
        let read = || fitting(path, vector_file::read(path, "--x0", ITERATE)?, rows);
        let x = agree(problem.comm(), read())?;
        let first = problem.operator.first_row() as usize;
        Ok(Some(x[first..first + problem.n()].to_vec()))
    }

    /// Writes the solution of all ranks, where it is asked for, and says so. It has the extents of
    /// the grid that the rows lie on, as in an export. Collective.
    ///
    /// What rank 0 could not write is told in `results`, which it must not cost.
    pub(crate) fn write(
        &self,
        own: &[f64],
        grid: Option<RowGrid>,
        converged: bool,
        comm: &dyn Comm,
        results: &mut Results,
    ) -> Result<()> {
        let Some(path) = &self.solution else { return Ok(()) };
        let whole = gathered(own, comm)?;
        if comm.rank() > 0 {
            return Ok(());
        }
        let dims = grid.map_or([whole.len(), 1, 1], |RowGrid(grid)| grid);
        let x = Array { name: ITERATE, dims, values: Values::F64(&whole) };
        match vector_file::write(path, "--solution", &x) {
            Ok(()) => {
                let what = if converged { "the solution" } else { "the last iterate, which is no solution," };
                tell(format_args!("{what} is in {}", path.display()));
                results.solution = Some(path.clone());
            }
            Err(error) => results.unwritten.push(format!("--solution: {}", exit::message(&error))),
        }
        Ok(())
    }
}

/// The places of a solve's results, and the results that could not be written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[must_use]
pub(crate) struct Results {
    /// The version that holds the solution.
    pub(crate) solution_version: Option<u64>,
    /// The file that does.
    pub(crate) solution: Option<PathBuf>,
    /// Results that could not be written, and why.
    pub(crate) unwritten: Vec<String>,
}

impl Results {
    /// The error of what could not be written, once everything else has been said.
    ///
    /// # Errors
    /// Exit 1.
    pub(crate) fn told(&self) -> Result<()> {
        match self.unwritten.as_slice() {
            [] => Ok(()),
            [one] => Err(Exit::Failed.because(format!("not written: {one}"))),
            all => Err(Exit::Failed.because(format!("not written:\n  {}", all.join("\n  ")))),
        }
    }
}

/// Rows of all ranks on rank 0, which other ranks need not hold.
fn gathered(own: &[f64], comm: &dyn Comm) -> Result<Vec<f64>> {
    if comm.size() == 1 {
        return Ok(own.to_vec());
    }
    let bytes: Vec<u8> = own.iter().flat_map(|value| value.to_le_bytes()).collect();
    if comm.rank() > 0 {
        comm.exchange_bytes(&[(0, &bytes)], &[])?;
        return Ok(Vec::new());
    }
    let others: Vec<usize> = (1..comm.size()).collect();
    let parts = comm.exchange_bytes(&[], &others)?;
    let rows = |part: &Vec<u8>| part.as_chunks::<8>().0.iter().map(|v| f64::from_le_bytes(*v)).collect::<Vec<_>>();
    Ok(own.iter().copied().chain(parts.iter().flat_map(rows)).collect())
}

/// Returns the vector if it has this many finite values.
fn fitting(path: &Path, x: Vec<f64>, rows: usize) -> Result<Vec<f64>> {
    let path = path.display();
    if x.len() != rows {
        anyhow::bail!("--x0 {path}: {rows} values expected, as A has rows, {} found", x.len());
    }
    match x.iter().position(|value| !value.is_finite()) {
        Some(row) => anyhow::bail!("--x0 {path}: finite values expected, {} found at index {row}", x[row]),
        None => Ok(x),
    }
}

#[cfg(test)]
mod tests {
    use recoup::comm::Threads;

    use super::*;

    #[test]
    fn rows_of_ranks_come_together_in_their_order() {
        let seen = Threads::launch(3, |comm| gathered(&vec![comm.rank() as f64; comm.rank() + 1], &comm).unwrap());
        assert_eq!(seen, [vec![0.0, 1.0, 1.0, 2.0, 2.0, 2.0], vec![], vec![]]);
    }
}
