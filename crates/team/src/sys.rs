//! Lending a job to threads that outlive it.
#![expect(unsafe_code, reason = "lends jobs across threads")]

use crate::{Team, TeamJob};

/// Calls `job` on the workers of `team`, and `here` on the calling thread.
pub(crate) fn work_beside(team: &Team, job: TeamJob<'_>, here: impl FnOnce()) {
    // SAFETY: only the lifetime changes. `Finish` waits for every worker before the job's borrow
    // ends, also when `here` panics.
    let job = unsafe { std::mem::transmute::<TeamJob<'_>, TeamJob<'static>>(job) };
    let _finish = Finish { team };
    team.start(job);
    here();
}

/// Waits for the workers when dropped.
struct Finish<'a> {
    team: &'a Team,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.team.finish();
    }
}
