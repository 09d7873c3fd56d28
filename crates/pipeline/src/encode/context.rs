//! The surroundings of every step of the worker: the version to be made, codecs, store, ranks,
//! clock, the sign to give up, and the cores it may run on.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use recoup_core::{
    Clock, Codec, CodecError, CodecId, Comm, CommError, Measured, Plan, Prediction, Progress, ResidualKind, Role,
    Store, gather_words, text_hash,
};

use crate::error::PipelineError;
use crate::staging::StagingSet;
use crate::verify::{KnownNorms, SolveResiduals};

/// The surroundings of the worker, the same for all versions.
pub(crate) struct WorkerContext {
    pub(crate) codecs: Codecs,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Set from outside to give up between two frames.
    pub(crate) abort: Arc<AtomicBool>,
}

impl WorkerContext {
    /// Returns whether the version under way is to be given up.
    pub(crate) fn is_aborted(&self) -> bool {
        self.abort.load(Ordering::Acquire)
    }

    /// Refuses to continue with a version that is to be given up: what is sealed or written after
    /// the memory is lost counts for nothing.
    pub(crate) fn check_abort(&self) -> Result<(), PipelineError> {
        if self.is_aborted() { Err(PipelineError::Aborted) } else { Ok(()) }
    }
}

/// The source of codecs: a codec wrapped to keep its bound, or the reason why there is none.
pub type CodecTable = fn(CodecId) -> Result<Arc<dyn Codec>, CodecError>;

/// Codecs, and the threads they may work on.
#[derive(Clone, Copy, Debug)]
pub struct Codecs {
    /// The source of codecs.
    pub table: CodecTable,
    /// Threads they may work on while the solver waits; behind its back they take one. The copy of
    /// the variables takes as many.
    pub threads: usize,
}

impl Codecs {
    /// Makes codecs that work on this rank's part of the process' cores, which all `ranks` share.
    #[must_use]
    pub fn shared(table: CodecTable, ranks: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { table, threads: (cores / ranks.max(1)).max(1) }
    }

    pub(crate) fn find(self, id: CodecId) -> Result<Arc<dyn Codec>, CodecError> {
        (self.table)(id)
    }
}

/// Counts the ranks on this rank's machine, itself among them. Collective.
///
/// # Errors
/// [`CommError`].
pub(crate) fn ranks_here(comm: &dyn Comm) -> Result<usize, CommError> {
    // One where nothing is said of it: workers then stay where there may be no core for them.
    let machine = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let machine = [text_hash(&machine)];
    Ok(gather_words(comm, machine)?.iter().filter(|other| **other == machine).count())
}

/// Returns the cores left for the worker where each rank of this machine has `threads` threads:
/// none for a process that is bound to one core, as what its launcher leaves idle is not known
/// here. Collective.
///
/// # Errors
/// [`CommError`].
pub(crate) fn idle_cores(threads: usize, comm: &dyn Comm) -> Result<usize, CommError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(cores.saturating_sub(threads * ranks_here(comm)?))
}

/// Lets the calling thread run on all cores the system gives the process, where it is bound to one:
/// launchers of MPI bind each rank so, and a worker that inherits the solver's core takes it from
/// the solver while others idle. Where the ranks of this machine leave no core idle it stays: the
/// scheduler would move all workers to the core that handles disk interrupts, and every solver
/// waits for the slowest. Threads bound to several cores stay there. Best effort: where the system
/// refuses, nothing changes.
#[cfg(target_os = "linux")]
pub(crate) fn leave_the_only_core(ranks_here: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(own) = sched_getaffinity(None) else { return };
    if own.count() > 1 {
        return;
    }
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|core| all.set(core));
    // The kernel leaves out cores that the process may not have at all.
    sched_setaffinity(None, &all).ok();
    let are_some_idle = sched_getaffinity(None).is_ok_and(|cores| cores.count() as usize > ranks_here);
    if !are_some_idle {
        sched_setaffinity(None, &own).ok();
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn leave_the_only_core(_: usize) {}

/// A version to be made.
#[derive(Debug)]
pub(crate) struct CheckpointJob {
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    /// The residuals that the method has reported up to this state.
    pub(crate) residuals: SolveResiduals,
    pub(crate) known: KnownNorms,
    /// `||r||` of each column of a block, as its method knows them; empty where it does not say.
    pub(crate) column_norms: Vec<f64>,
    /// The solver's tolerance on relative residuals.
    pub(crate) tolerance: f64,
    /// The measurements of the run, where its policy asks for them.
    pub(crate) measured: Option<Measured>,
    /// Extra iterations expected of a recovery from it.
    pub(crate) predicted: Option<Prediction>,
    /// The method converges sooner from a symmetric state.
    pub(crate) gains_by_symmetry: bool,
    /// The name of the method, where it has one.
    pub(crate) method: Option<&'static str>,
    pub(crate) staging: StagingSet,
    pub(crate) stage_seconds: f64,
    pub(crate) wait_seconds: f64,
}

impl CheckpointJob {
    /// Returns whether the residual norm that the method reports says something about the iterate.
    pub(crate) fn has_comparable_residual(&self) -> bool {
        self.residuals.kind_at(&self.progress) != ResidualKind::Unknown
    }

    /// Returns `||b - A x||` of a column of a block, as the program knows it.
    pub(crate) fn known_column(&self, column: usize) -> Option<f64> {
        self.known.column_norms.get(column).copied()
    }

    /// Returns `d . A d` of the direction as the program knows it: it speaks of one direction.
    pub(crate) fn direction_squared(&self) -> Option<f64> {
        let directions = self.staging.staged.iter().filter(|staged| staged.record.role == Role::Direction);
        self.known.direction_squared.filter(|_| directions.count() == 1)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    /// Binds this thread to the first `bound_to` of its cores. Returns the number it may run on
    /// before and after the worker's choice.
    #[cfg(target_os = "linux")]
    fn left(bound_to: usize, ranks_here: usize) -> rustix::io::Result<(u32, u32)> {
        let all = sched_getaffinity(None)?;
        let mut first = CpuSet::new();
        (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).take(bound_to).for_each(|core| first.set(core));
        sched_setaffinity(None, &first)?;
        leave_the_only_core(ranks_here);
        let after = sched_getaffinity(None)?.count();
        sched_setaffinity(None, &all)?;
        Ok((first.count(), after))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_leaves_one_core_and_stays_on_several() {
        let cores = sched_getaffinity(None).unwrap().count();
        let (before, after) = left(1, 0).unwrap();
        assert!(before == 1 && after >= cores, "{after} of {cores}");
        if cores > 1 {
            assert_eq!(left(2, 1).unwrap(), (2, 2));
        }
        assert_eq!(left(1, after as usize).unwrap(), (1, 1), "no core is idle where each has a rank");
    }

    #[test]
    fn ranks_of_one_process_share_a_machine() {
        let here = recoup_comm::Threads::launch(3, |comm| ranks_here(&comm).unwrap());
        assert_eq!(here, [3, 3, 3]);
    }
}
