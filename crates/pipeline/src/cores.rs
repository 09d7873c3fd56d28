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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    /// How many cores this thread may run on, bound to the first so many of its own, before and after.
    fn left(bound_to: usize) -> rustix::io::Result<(u32, u32)> {
        let all = sched_getaffinity(None)?;
        let mut first = CpuSet::new();
        (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).take(bound_to).for_each(|core| first.set(core));
        sched_setaffinity(None, &first)?;
        leave_the_only_one();
        let after = sched_getaffinity(None)?.count();
        sched_setaffinity(None, &all)?;
        Ok((first.count(), after))
    }

    #[test]
    fn a_thread_leaves_one_core_and_stays_on_several() {
        let cores = sched_getaffinity(None).unwrap().count();
        let (before, after) = left(1).unwrap();
        assert!(before == 1 && after >= cores, "{after} of {cores}");
        if cores > 1 {
            assert_eq!(left(2).unwrap(), (2, 2));
        }
    }
}
