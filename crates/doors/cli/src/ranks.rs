//! The ranks of a run: this process alone, or a job of MPI.
//!
//! Rank 0 alone prints. All ranks end with the same code: errors of some ranks reach all ranks at
//! the next collective call ([`agree`]); elsewhere a rank that fails alone ends the job.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use recoup::comm::Solo;
use recoup::core::{Comm, gather_json};

use crate::exit::{Exit, is_broken_pipe, message};
use crate::tell::tell;

static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Returns whether this process prints.
pub(crate) fn is_first() -> bool {
    !IS_SILENT.load(Ordering::Relaxed)
}

/// Returns a communicator of all ranks: of the MPI job with `mpi`, else of this process.
/// Collective.
///
/// # Errors
/// Exit 5 where there is no MPI, or it does not start.
pub(crate) fn comm(mpi: bool) -> Result<Box<dyn Comm>> {
    if !mpi {
        return Ok(Box::new(Solo));
    }
    let comm = job::comm()?;
    IS_SILENT.store(comm.rank() > 0, Ordering::Relaxed);
    Ok(comm)
}

/// Returns a communicator for a library that makes its own calls of MPI. A process without `--mpi`
/// starts MPI alone. Collective.
///
/// # Errors
/// Exit 5 where there is no MPI, exit 2 where a launcher started several processes.
pub(crate) fn comm_for_library(comm: &dyn Comm) -> Result<Box<dyn Comm>> {
    if comm.mpi().is_some() || comm.size() > 1 {
        return Ok(comm.dup()?);
    }
    let started = job::comm()?;
    if started.size() > 1 {
        let text = format!("a launcher started {} processes: add --mpi, so that they share one solve", started.size());
        return Err(Exit::Usage.because(text));
    }
    Ok(started)
}

/// Returns the result of this rank, unless another has failed; then all ranks return the first
/// one's error. Collective.
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
/// Exit 5 where there is no MPI or it cannot survive a lost rank, exit 2 for too many spares.
pub(crate) fn keep_spares(spares: usize) -> Result<ProcessPlace> {
    let place = job::keep_spares(spares)?;
    IS_SILENT.store(place.process > 0, Ordering::Relaxed);
    Ok(place)
}

/// The place of a process in an MPI job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessPlace {
    /// Number of the process.
    pub(crate) process: usize,
    /// Processes that compute.
    pub(crate) places: usize,
}

pub(crate) use job::{abort, has_lost, is_spare, repair, rest, waits, was_repaired};

/// Returns the number of this process's node, which it keeps wherever it computes. If a number is
/// given, that many consecutive processes share a node. Otherwise the processes of one machine do;
/// on a single machine each process is a node.
pub(crate) fn node(processes: Option<u16>) -> usize {
    let Seat { process, host, hosts } = job::seat();
    match processes {
        Some(processes) => process / usize::from(processes),
        None if hosts > 1 => host,
        None => process,
    }
}

/// The place where a process was started.
#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    process: usize,
    host: usize,
    hosts: usize,
}

/// Reports how a command ended, and leaves the job.
pub(crate) fn conclude(outcome: Result<Exit>) -> Exit {
    let tell_error = |error: &anyhow::Error| tell(format_args!("error: {}", message(error)));
    match outcome {
        Ok(exit) => {
            job::end(exit);
            exit
        }
        // The reader of a pipe left: nothing is wrong, and no message would be read.
        Err(error) if is_broken_pipe(&error) => {
            job::end(Exit::Done);
            Exit::Done
        }
        Err(error) => {
            let exit = Exit::of(&error);
            if !job::all_are_here() {
                // The others wait for this one.
                tell_error(&error);
                job::abort(exit);
            } else if is_first() {
                tell_error(&error);
            }
            job::end(exit);
            exit
        }
    }
}

mod job {
    use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
    use std::time::Duration;

    use anyhow::Result;
    use recoup::comm::{MpiError, MpiJob, RepairableJob, Waits};
    use recoup::core::Comm;

    use super::{ProcessPlace, Seat};
    use crate::exit::Exit;

    /// Time that a failed rank waits for the others to fail, too.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// Time that each process stays after a loss: `mpirun` passes on what a process printed only
    /// while it lives, and a process that leaves before all are told of the end would count as
    /// lost.
    const LAST_WORDS: Duration = Duration::from_secs(1);

    static JOB: Mutex<Option<MpiJob>> = Mutex::new(None);

    /// The calls of the job, for threads that do not wait for one of its calls.
    static WAITS: OnceLock<Arc<Waits>> = OnceLock::new();

    fn job() -> MutexGuard<'static, Option<MpiJob>> {
        JOB.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn comm() -> Result<Box<dyn Comm>> {
        Ok(Box::new(with_job(|job| job.comm())?))
    }

    pub(super) fn all_are_here() -> bool {
        job().as_ref().is_none_or(|job| job.meet(PATIENCE))
    }

    pub(crate) fn abort(exit: Exit) {
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
        WAITS.get_or_init(|| job.waits().clone());
        call(job).map_err(unavailable)
    }

    pub(super) fn keep_spares(spares: usize) -> Result<ProcessPlace> {
        with_job(|job| {
            job.keep_spares(spares)?;
            if job.can_repair() {
                return Ok(ProcessPlace { process: job.process(), places: job.places() });
            }
            Err(MpiError::NoRepair)
        })
    }

    pub(super) fn seat() -> Seat {
        let seat = |job: &MpiJob| Seat { process: job.process(), host: job.host().number, hosts: job.host().of };
        job().as_ref().map(seat).unwrap_or_default()
    }

    /// Returns the calls of this process that wait for others.
    pub(crate) fn waits() -> Arc<Waits> {
        WAITS.get().cloned().unwrap_or_default()
    }

    /// Returns whether a rank was lost before.
    pub(crate) fn was_repaired() -> bool {
        job().as_ref().is_some_and(MpiJob::was_repaired)
    }

    /// Returns whether this process is a spare.
    pub(crate) fn is_spare() -> bool {
        job().as_ref().is_some_and(MpiJob::is_spare)
    }

    /// Returns whether a rank is lost.
    pub(crate) fn has_lost() -> bool {
        job().as_ref().is_some_and(MpiJob::has_lost)
    }

    /// Waits for all processes; returns `false` if one is lost.
    pub(crate) fn rest() -> Result<bool> {
        Ok(job().as_mut().map_or(Ok(true), RepairableJob::rest)?)
    }

    /// Shares the places among the processes that are alive, and returns the number lost so far.
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
