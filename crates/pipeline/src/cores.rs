//! The cores the worker may run on.

/// Lets the calling thread run on all cores the system gives the process, where it is bound to one: launchers of MPI bind each
/// rank so, and a worker that inherits the solver's core takes it from the solver while others idle. Threads bound to several cores stay there.
/// Best effort: where it cannot be, nothing changes.
#[cfg(target_os = "linux")]
pub(crate) fn leave_the_only_one() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    if sched_getaffinity(None).is_ok_and(|cores| cores.count() == 1) {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|core| all.set(core));
        // The kernel leaves out cores that the process may not have at all.
        sched_setaffinity(None, &all).ok();
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn leave_the_only_one() {}
