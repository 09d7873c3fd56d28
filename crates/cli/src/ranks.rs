//! The ranks of a run: this process alone, or a job of MPI.
//!
//! Rank 0 alone prints. All ranks end with the same code: what goes wrong on some is told to all
//! where they meet anyway ([`agree`]), and elsewhere a rank that fails alone ends the job.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use recoup::comm::Solo;
use recoup::core::{Comm, gather_json};

use crate::exit::{Exit, is_broken_pipe, message};
use crate::inject::last_words::Watched;

static IS_SILENT: AtomicBool = AtomicBool::new(false);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on it can be seen what ranks do when they are killed.
pub(crate) fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

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
    Ok(if IS_WATCHED.load(Ordering::Relaxed) { Box::new(Watched(comm)) } else { comm })
}

/// The result of this rank, unless another has failed: then all ranks return the first one's error.
/// Collective.
///
/// # Errors
/// The error of the first rank that has one.
pub(crate) fn agree<T>(comm: &dyn Comm, result: Result<T>) -> Result<T> {
    if comm.size() == 1 {
        return result;
    }
    let own = result.as_ref().err().map(|error| (Exit::of(error) as u8, message(error)));
    let all = gather_json(comm, &own)?;
    let Some((rank, (code, text))) = all.iter().enumerate().find_map(|(rank, failed)| Some((rank, failed.as_ref()?)))
    else {
        return result;
    };
    let is_everybodys = all.iter().all(|other| *other == all[rank]);
    let text = if is_everybodys { text.clone() } else { format!("rank {rank}: {text}") };
    Err(Exit::from_code(*code).because(text))
}

/// Makes spares of the last `spares` processes of the MPI job. Collective.
///
/// # Errors
/// Exit 5 where MPI is not in this build or cannot survive a lost rank, exit 2 for too many spares.
pub(crate) fn keep_spares(spares: usize) -> Result<Place> {
    let place = job::keep_spares(spares)?;
    IS_SILENT.store(place.process > 0, Ordering::Relaxed);
    Ok(place)
}

/// Where a process of an MPI job stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its number.
    pub(crate) process: usize,
    /// Processes that compute.
    pub(crate) places: usize,
}

pub(crate) use job::{has_lost, is_spare, repair, rest, was_repaired};

/// The number of this process's node, which it keeps wherever it computes: so many processes in a
/// row share one where a number is given, else those of one machine do; on a single machine each
/// process is one.
pub(crate) fn node(processes: Option<u16>) -> usize {
    let Seat { process, host, hosts } = job::seat();
    match processes {
        Some(processes) => process / usize::from(processes),
        None if hosts > 1 => host,
        None => process,
    }
}

/// Where a process was put at the start.
#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    process: usize,
    host: usize,
    hosts: usize,
}

/// Tells how a command ended, and leaves the job.
pub(crate) fn conclude(outcome: Result<Exit>) -> Exit {
    let tell = |error: &anyhow::Error| eprintln!("error: {}", message(error));
    match outcome {
        Ok(exit) => {
            job::end(exit);
            exit
        }
        // The reader of a pipe left: nothing is wrong, and there is nobody to tell.
        Err(error) if is_broken_pipe(&error) => {
            job::end(Exit::Done);
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
            job::end(exit);
            exit
        }
    }
}

#[cfg(feature = "mpi")]
mod job {
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use anyhow::Result;
    use recoup::comm::{MpiError, MpiJob, RepairableJob};
    use recoup::core::Comm;

    use super::{Place, Seat};
    use crate::exit::Exit;

    /// How long a rank that failed waits for the others to fail too.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// After a loss `mpirun` passes on what a process printed only while it lives, and one that
    /// leaves while others still hear that all are done would be taken for lost: how long each
    /// stays.
    const LAST_WORDS: Duration = Duration::from_secs(1);

    static JOB: Mutex<Option<MpiJob>> = Mutex::new(None);

    fn job() -> MutexGuard<'static, Option<MpiJob>> {
        JOB.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn comm() -> Result<Box<dyn Comm>> {
        Ok(Box::new(with_job(|job| job.comm())?))
    }

    pub(super) fn all_are_here() -> bool {
        job().as_ref().is_none_or(|job| job.meet(PATIENCE))
    }

    pub(super) fn abort(exit: Exit) {
        if let Some(job) = &*job() {
            job.abort(exit as u8);
        }
    }

    pub(super) fn end(exit: Exit) {
        if let Some(job) = job().take() {
            if job.was_repaired() {
                std::thread::sleep(LAST_WORDS);
            }
            job.end(exit as u8);
        }
    }

    fn unavailable(error: MpiError) -> anyhow::Error {
        let exit = if matches!(error, MpiError::Spares { .. }) { Exit::Usage } else { Exit::NotAvailable };
        exit.because(format!("--mpi: {error}"))
    }

    /// Calls `call` with the job, which is started where there is none.
    fn with_job<T>(call: impl FnOnce(&mut MpiJob) -> Result<T, MpiError>) -> Result<T> {
        let mut job = job();
        let job = match &mut *job {
            Some(job) => job,
            None => job.insert(MpiJob::start().map_err(unavailable)?),
        };
        call(job).map_err(unavailable)
    }

    pub(super) fn keep_spares(spares: usize) -> Result<Place> {
        with_job(|job| {
            job.keep_spares(spares)?;
            if job.can_repair() {
                return Ok(Place { process: job.process(), places: job.places() });
            }
            Err(MpiError::NoRepair)
        })
    }

    pub(super) fn seat() -> Seat {
        let seat = |job: &MpiJob| Seat { process: job.process(), host: job.host().number, hosts: job.host().of };
        job().as_ref().map(seat).unwrap_or_default()
    }

    /// Whether a rank was lost before.
    pub(crate) fn was_repaired() -> bool {
        job().as_ref().is_some_and(MpiJob::was_repaired)
    }

    /// Whether this process waits for the place of a lost one.
    pub(crate) fn is_spare() -> bool {
        job().as_ref().is_some_and(MpiJob::is_spare)
    }

    /// Whether a rank is lost.
    pub(crate) fn has_lost() -> bool {
        job().as_ref().is_some_and(MpiJob::has_lost)
    }

    /// Whether all processes have come here; not when one is lost.
    ///
    /// # Errors
    /// When MPI fails otherwise.
    pub(crate) fn rest() -> Result<bool> {
        Ok(job().as_mut().map_or(Ok(true), RepairableJob::rest)?)
    }

    /// Shares the places among the processes that are alive; how many have been lost by now.
    ///
    /// # Errors
    /// Exit 5 where that cannot be done.
    pub(crate) fn repair() -> Result<u64> {
        with_job(|job| {
            job.repair()?;
            Ok(job.processes_lost()? as u64)
        })
    }
}

#[cfg(not(feature = "mpi"))]
mod job {
    use anyhow::Result;
    use recoup::core::Comm;

    use super::{Place, Seat};
    use crate::exit::Exit;

    fn unavailable() -> anyhow::Error {
        Exit::NotAvailable.because(
            "--mpi: this build has no MPI: build it with `cargo build --release -p recoup-cli --features mpi`, or leave \
             --mpi out and the program runs one rank",
        )
    }

    pub(super) fn comm() -> Result<Box<dyn Comm>> {
        Err(unavailable())
    }

    pub(super) fn keep_spares(_spares: usize) -> Result<Place> {
        Err(unavailable())
    }

    pub(super) fn seat() -> Seat {
        Seat::default()
    }

    pub(crate) fn was_repaired() -> bool {
        false
    }

    pub(crate) fn is_spare() -> bool {
        false
    }

    pub(crate) fn has_lost() -> bool {
        false
    }

    pub(crate) fn rest() -> Result<bool> {
        Ok(true)
    }

    pub(crate) fn repair() -> Result<u64> {
        Err(unavailable())
    }

    pub(super) fn all_are_here() -> bool {
        true
    }

    pub(super) fn abort(_exit: Exit) {}

    pub(super) fn end(_exit: Exit) {}
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
