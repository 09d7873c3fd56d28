//! The ranks of a run: this process alone, or a job of MPI.
//!
//! Rank 0 alone prints. All ranks end with the same code: what goes wrong on some is told to all where they meet
//! anyway ([`agree`]), and elsewhere a rank that fails alone ends the job.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use recoup::comm::Solo;
use recoup::core::Comm;

use crate::exit::{Exit, message};

static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Whether this process prints.
pub(crate) fn is_first() -> bool {
    !IS_SILENT.load(Ordering::Relaxed)
}

/// A communicator of all ranks: of the MPI job with `mpi`, else of this process. Collective.
///
/// # Errors
/// Exit 5 where MPI is not in this build or does not start.
pub(crate) fn comm(mpi: bool) -> Result<Box<dyn Comm>> {
    if !mpi {
        return Ok(Box::new(Solo));
    }
    let comm = job::comm()?;
    IS_SILENT.store(comm.rank() > 0, Ordering::Relaxed);
    Ok(comm)
}

/// The result of this rank, unless another has failed: then all ranks return the first one's error. Collective.
///
/// # Errors
/// The error of the first rank that has one.
pub(crate) fn agree<T>(comm: &dyn Comm, result: Result<T>) -> Result<T> {
    if comm.size() == 1 {
        return result;
    }
    let mut own = Vec::new();
    if let Err(error) = &result {
        own.push(Exit::of(error) as u8);
        own.extend(message(error).into_bytes());
    }
    let all = comm.gather(&own)?;
    let Some((rank, failed)) = all.iter().enumerate().find(|(_, bytes)| !bytes.is_empty()) else { return result };
    let text = String::from_utf8_lossy(&failed[1..]).into_owned();
    let text = if all.iter().all(|other| other == failed) { text } else { format!("rank {rank}: {text}") };
    Err(Exit::from_code(failed[0]).because(text))
}

/// Tells how a command ended, and leaves the job.
pub(crate) fn conclude(outcome: Result<Exit>) -> Exit {
    let tell = |error: &anyhow::Error| eprintln!("error: {}", message(error));
    match outcome {
        Ok(exit) => {
            job::end();
            exit
        }
        // The reader of a pipe left: nothing is wrong, and there is nobody to tell.
        Err(error) if crate::output::is_broken_pipe(&error) => {
            job::end();
            Exit::Done
        }
        Err(error) => {
            let exit = Exit::of(&error);
            if !job::all_are_here() {
                // The others wait for this one.
                tell(&error);
                job::abort(exit);
            } else if is_first() {
                tell(&error);
            }
            job::end();
            exit
        }
    }
}

#[cfg(feature = "mpi")]
mod job {
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use anyhow::Result;
    use recoup::comm::MpiJob;
    use recoup::core::Comm;

    use crate::exit::Exit;

    /// How long a rank that failed waits for the others to fail too.
    const PATIENCE: Duration = Duration::from_secs(2);

    static JOB: Mutex<Option<MpiJob>> = Mutex::new(None);

    fn job() -> MutexGuard<'static, Option<MpiJob>> {
        JOB.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn comm() -> Result<Box<dyn Comm>> {
        let unavailable = |error: recoup::comm::MpiError| Exit::NotAvailable.because(format!("--mpi: {error}"));
        let mut job = job();
        let job = match &mut *job {
            Some(job) => job,
            None => job.insert(MpiJob::start().map_err(unavailable)?),
        };
        Ok(Box::new(job.comm().map_err(unavailable)?))
    }

    pub(super) fn all_are_here() -> bool {
        job().as_ref().is_none_or(|job| job.meet(PATIENCE))
    }

    pub(super) fn abort(exit: Exit) {
        if let Some(job) = &*job() {
            job.abort(exit as u8);
        }
    }

    pub(super) fn end() {
        drop(job().take());
    }
}

#[cfg(not(feature = "mpi"))]
mod job {
    use anyhow::Result;
    use recoup::core::Comm;

    use crate::exit::Exit;

    pub(super) fn comm() -> Result<Box<dyn Comm>> {
        Err(Exit::NotAvailable.because(
            "--mpi: this build has no MPI: build it with `cargo build --release -p recoup-cli --features mpi`, or leave \
             --mpi out and the program runs one rank",
        ))
    }

    pub(super) fn all_are_here() -> bool {
        true
    }

    pub(super) fn abort(_exit: Exit) {}

    pub(super) fn end() {}
}

#[cfg(test)]
mod tests {
    use recoup::comm::Threads;

    use super::*;

    #[test]
    fn the_first_error_is_everybodys_with_its_exit_code() {
        let results = Threads::launch(3, |comm| {
            let own = match comm.rank() {
                0 => Ok(7),
                rank => Err(Exit::NotAvailable.because(format!("no part {rank}"))),
            };
            agree(&comm, own).map_err(|error| (Exit::of(&error), message(&error)))
        });
        assert!(results.iter().all(|r| *r == Err((Exit::NotAvailable, "rank 1: no part 1".to_owned()))), "{results:?}");
        let same = Threads::launch(2, |comm| {
            agree(&comm, Err::<(), _>(Exit::Usage.because("no"))).map_err(|error| message(&error))
        });
        assert_eq!(same, vec![Err("no".to_owned()); 2]);
    }
}
