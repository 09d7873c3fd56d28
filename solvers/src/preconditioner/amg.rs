//! Algebraic multigrid: one V-cycle of hypre's BoomerAMG over the rows of all ranks.
//!
//! hypre is found when it is asked for: nothing of it is needed to build. Its levels are static: a
//! restore sets them up again, to the same bits on the same ranks. The cycle smooths by a forward
//! sweep on the way down and a backward one on the way up, so M is symmetric with A, as CG needs
//! it. The first coarsening is aggressive; all other settings are hypre's own. A rank uses one
//! thread.
//! Sources: V. E. Henson, U. M. Yang 2002, doi 10.1016/S0168-9274(01)00115-5; the smoother: A. H.
//! Baker, R. D. Falgout, T. V. Kolev, U. M. Yang 2011, doi 10.1137/100798806.

mod error;
mod rows;
mod sys;

use recoup_core::{Comm, MpiHandle, Operator, SolveError};

pub use self::error::AmgError;
use self::rows::HypreRows;
pub use self::sys::find_hypre;
use self::sys::{Hierarchy, Hypre};
use super::solve::Preconditioner;
use crate::Pool;

/// Bytes of hypre's A and of all other levels, and those that a cycle reads in two sweeps and a
/// residual, for each byte of A: as measured of the Laplacian, because hypre does not tell.
const KEPT_SHARE: f64 = 2.4;
const READ_SHARE: f64 = 4.0;

/// All that is local of setting up: on an error of one rank no other waits in hypre.
pub struct AmgPlan {
    hypre: &'static Hypre,
    handle: MpiHandle,
    rows: HypreRows,
    /// Bytes of A.
    bytes: f64,
    comm: Box<dyn Comm>,
}

impl AmgPlan {
    /// Loads hypre and copies the rows of an assembled operator. `comm` is an MPI communicator of
    /// the ranks that share them, of which no other calls are made.
    ///
    /// # Errors
    /// [`AmgError`]; ranks agree on it before any goes on.
    pub fn new(a: &dyn Operator, comm: Box<dyn Comm>) -> Result<Self, AmgError> {
        let handle = comm.mpi().ok_or(AmgError::NoMpi)?;
        let hypre = Hypre::load()?;
        hypre.check_mpi(handle)?;
        Ok(Self { hypre, handle, rows: HypreRows::of(a)?, bytes: a.bytes() as f64, comm })
    }

    /// Sets up all levels. Collective.
    ///
    /// # Errors
    /// [`AmgError::NotUsable`] for a library with numbers of another size, [`AmgError::Solve`] when
    /// hypre fails.
    pub fn set_up(self) -> Result<Amg, AmgError> {
        let hierarchy = Hierarchy::new(self.hypre, self.handle, self.rows)?;
        Ok(Amg { hierarchy, bytes: self.bytes, _comm: self.comm })
    }
}

/// `M^-1` is a V-cycle.
pub struct Amg {
    hierarchy: Hierarchy,
    /// Bytes of A.
    bytes: f64,
    /// hypre uses it until its levels are given back.
    _comm: Box<dyn Comm>,
}

impl Preconditioner for Amg {
    fn name(&self) -> &'static str {
        "amg"
    }

    fn apply(&self, _pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        // z = a V-cycle on A z = r, from z = 0
        self.hierarchy.cycle(r, z)
    }

    fn bytes(&self) -> u64 {
        (KEPT_SHARE * self.bytes) as u64
    }

    fn bytes_per_apply(&self) -> u64 {
        (READ_SHARE * self.bytes) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use recoup_comm::{Solo, Threads};

    use super::*;
    use crate::{Csr, DistributedCsr, LocalRows, RowPartition};

    /// Each rank would set up levels of its own rows, and hypre's state belongs to the process.
    #[test]
    fn ranks_without_an_mpi_are_refused_by_name() {
        let refused = |comm: Box<dyn Comm>| AmgPlan::new(&Csr::poisson3d(2), comm).map(drop);
        assert!(matches!(refused(Box::new(Solo)), Err(AmgError::NoMpi)));
        let all = Threads::launch(2, |comm| matches!(refused(Box::new(comm)), Err(AmgError::NoMpi)));
        assert_eq!(all, [true; 2]);
    }

    #[test]
    fn shared_rows_are_those_of_the_whole_matrix() {
        let whole = HypreRows::of(&Csr::poisson3d(6)).unwrap();
        let shares = Threads::launch(3, |comm| {
            let partition = RowPartition::even(216, 36, 3);
            let rows = LocalRows::poisson3d(6, partition.range(comm.rank()));
            let matrix = DistributedCsr::new(Box::new(comm), &partition, &rows, Arc::new(Pool::new(1))).unwrap();
            HypreRows::of(&matrix).unwrap()
        });
        assert_eq!(shares.iter().flat_map(|share| share.columns.clone()).collect::<Vec<_>>(), whole.columns);
        assert_eq!(shares.iter().flat_map(|share| share.values.clone()).collect::<Vec<_>>(), whole.values);
        let mut next = 0;
        for HypreRows { first, lengths: [all, own, beyond], columns, .. } in shares {
            assert_eq!(first as usize, next);
            next += all.len();
            let is_own = |column: &i32| (first as usize..next).contains(&(*column as usize));
            assert_eq!(own.iter().sum::<i32>() as usize, columns.iter().filter(|column| is_own(column)).count());
            assert!(all.iter().zip(own.iter().zip(&beyond)).all(|(all, (own, beyond))| *all == own + beyond));
        }
        assert_eq!(next, 216);
    }
}
