//! The loop of a run that continues when processes are lost: spares take their places, or the
//! others close up.
//!
//! Every process does the same: it computes or waits, until all are done or one is lost; then those
//! alive share the places again, and compute from the newest version. See
//! [`crate::Threads`] for jobs without losses; [`crate::MpiJob`] is a job to survive with.

use std::fmt::Display;

/// A job whose processes can continue without those that are lost.
pub trait RepairableJob {
    /// The reason that the job cannot continue.
    type Error;

    /// Returns whether this process waits for the place of a lost one.
    fn is_spare(&self) -> bool;

    /// Returns whether a process is lost and the job was not repaired since.
    fn has_lost(&self) -> bool;

    /// Waits until all processes have come here; returns false when one is lost.
    ///
    /// # Errors
    /// When the job fails otherwise.
    fn rest(&mut self) -> Result<bool, Self::Error>;

    /// Shares the places among the processes that are alive. All of them call it.
    ///
    /// # Errors
    /// When too many are lost, or the job cannot be repaired.
    fn repair(&mut self) -> Result<(), Self::Error>;
}

/// Computes with `life`, or waits as a spare, until all processes are done. After a loss `life` is
/// called again: it makes communicator, problem, solver and session again and restores. Returns
/// `None` for a spare that was not needed.
///
/// # Errors
/// Those of `life` that no loss explains, and those of a job that cannot be repaired.
pub fn survive<J: RepairableJob, T, E: From<J::Error> + Display>(
    job: &mut J,
    mut life: impl FnMut(&mut J) -> Result<T, E>,
) -> Result<Option<T>, E> {
    loop {
        match if job.is_spare() { Ok(None) } else { life(job).map(Some) } {
            Ok(outcome) => {
                if job.rest()? {
                    return Ok(outcome);
                }
            }
            Err(error) if !job.has_lost() => return Err(error),
            Err(error) => tracing::warn!("a rank is lost: {error:#}"),
        }
        job.repair()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of a job that loses another one several times.
    struct Losing {
        is_spare: bool,
        losses: usize,
        repairs: usize,
    }

    impl RepairableJob for Losing {
        type Error = String;

        fn is_spare(&self) -> bool {
            self.is_spare
        }

        fn has_lost(&self) -> bool {
            self.losses > 0
        }

        fn rest(&mut self) -> Result<bool, String> {
            Ok(self.losses == 0)
        }

        fn repair(&mut self) -> Result<(), String> {
            self.losses -= 1;
            self.repairs += 1;
            self.is_spare = false;
            if self.repairs > 3 { Err("too many are lost".to_owned()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_life_is_lived_again_after_each_loss_and_a_spare_computes_once_it_is_needed() {
        for (is_spare, losses, expected) in
            [(false, 0, Some(1)), (false, 2, Some(3)), (true, 0, None), (true, 1, Some(1))]
        {
            let mut job = Losing { is_spare, losses, repairs: 0 };
            let mut lives = 0;
            let outcome = survive(&mut job, |job| {
                lives += 1;
                if job.has_lost() { Err("rank 1 is lost".to_owned()) } else { Ok(lives) }
            });
            assert_eq!(outcome, Ok(expected), "{losses} losses");
        }
    }

    #[test]
    fn errors_no_loss_explains_and_jobs_beyond_repair_end_the_run() {
        let mut job = Losing { is_spare: false, losses: 0, repairs: 0 };
        assert_eq!(survive(&mut job, |_| Err::<(), _>("no file".to_owned())), Err("no file".to_owned()));
        let mut job = Losing { is_spare: false, losses: 5, repairs: 0 };
        assert_eq!(survive(&mut job, |_| Err::<(), _>("lost".to_owned())), Err("too many are lost".to_owned()));
    }
}
