//! The cores the worker may run on.

use recoup_core::{Comm, CommError, gather_bytes};

/// The placement of the worker thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerCores {
    /// Ranks on this machine.
    pub(crate) ranks_here: usize,
    /// The worker stays on the only core of a bound process.
    pub(crate) stays: bool,
}

impl WorkerCores {
    /// Moves the calling thread off the solver's only core, unless it is to stay.
    pub(crate) fn apply(self) {
        if !self.stays {
            leave_the_only_one(self.ranks_here);
        }
    }
}

/// Counts the ranks on this rank's machine, itself among them. Collective.
///
/// # Errors
/// [`CommError`].
pub(crate) fn ranks_here(comm: &dyn Comm) -> Result<usize, CommError> {
    // One where nothing is said of it: workers then stay where there may be no core for them.
    let machine = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Ok(gather_bytes(comm, &machine)?.iter().filter(|other| **other == machine).count())
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
fn leave_the_only_one(ranks_here: usize) {
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
fn leave_the_only_one(_: usize) {}

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
        leave_the_only_one(ranks_here);
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
