//! An MPI job from its start to its end, with spares and repairs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recoup_core::CommError;

use super::comm::Mpi;
use super::error::MpiError;
use super::fault::MpiFault;
use super::sys::{self, Family, Pause, PendingCalls, RawComm};
use crate::survive::RepairableJob;
use crate::waits::Waits;

/// Naps in one second of waiting.
const LOOKS_PER_SECOND: u32 = 10_000;

/// The number of threads that may call the library at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadLevel {
    /// Any, one at a time.
    Serialized,
    /// Any.
    Multiple,
}

/// The machine a process runs on, among those of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Number of the machine, in the order of the processes.
    pub number: usize,
    /// The number of machines.
    pub of: usize,
}

impl Host {
    /// The host of one process, given a word for that of each.
    fn among(all: &[i64], process: usize) -> Self {
        let mut hosts: Vec<i64> = Vec::new();
        for word in all {
            if !hosts.contains(word) {
                hosts.push(*word);
            }
        }
        Self { number: hosts.iter().position(|host| *host == all[process]).unwrap_or(0), of: hosts.len() }
    }
}

/// MPI, from its start to its end: one per process.
///
/// Of its processes some may be spares, which wait for the place of one that is lost.
#[derive(Debug)]
pub struct MpiJob {
    /// All processes that are alive.
    world: RawComm,
    /// The group of this process: the processes that compute, or those that wait.
    crew: RawComm,
    /// This process's place: below `places` it computes.
    place: usize,
    places: usize,
    family: Arc<Family>,
    /// Calls under way on communicators of the processes that compute.
    waits: Arc<Waits>,
    level: ThreadLevel,
    /// This process's place at the start.
    process: usize,
    /// The number of processes at the start.
    processes: usize,
    host: Host,
    /// All have told each other whether they are done, since the last repair.
    has_agreed: bool,
    /// A rank was lost: MPI may not come to its own end.
    is_maimed: bool,
}

impl MpiJob {
    /// Starts MPI and asks for `MPI_THREAD_MULTIPLE`.
    ///
    /// # Errors
    /// [`MpiError`] when it was started before, refuses, or grants too few threads.
    pub fn start() -> Result<Self, MpiError> {
        Self::start_with(ThreadLevel::Multiple)
    }

    /// Starts MPI and asks for `level`.
    ///
    /// # Errors
    /// As [`MpiJob::start`].
    pub fn start_with(level: ThreadLevel) -> Result<Self, MpiError> {
        static STARTED: AtomicBool = AtomicBool::new(false);
        if STARTED.swap(true, Ordering::AcqRel) {
            return Err(MpiError::StartedBefore);
        }
        let wanted = match level {
            ThreadLevel::Serialized => sys::ThreadSupport::Serialized,
            ThreadLevel::Multiple => sys::ThreadSupport::Multiple,
        };
        let level = match sys::start(wanted)? {
            sys::ThreadSupport::One => return Err(MpiError::OneThread),
            sys::ThreadSupport::Serialized => ThreadLevel::Serialized,
            sys::ThreadSupport::Multiple => ThreadLevel::Multiple,
        };
        let family = Arc::new(Family::new());
        let world = RawComm::world()?.dup(&family)?;
        family.join(world);
        let place = world.rank()?;
        let places = world.size()?;
        sys::check_size(places)?;
        let mut hosts = vec![0; places];
        let own = [host_word()];
        let mut pending = PendingCalls::new(world, &family);
        pending.gather(&own, &mut hosts)?;
        pending.wait()?;
        drop(pending);
        let host = Host::among(&hosts, place);
        let process = place;
        let processes = places;
        Ok(Self {
            world,
            crew: world,
            place,
            places,
            family,
            waits: Arc::default(),
            level,
            process,
            processes,
            host,
            has_agreed: false,
            is_maimed: false,
        })
    }

    /// Makes spares of the last `spares` processes. Collective.
    ///
    /// # Errors
    /// [`MpiError::Spares`] when none would compute, [`MpiError::Library`].
    pub fn keep_spares(&mut self, spares: usize) -> Result<(), MpiError> {
        let processes = self.world.size()?;
        if spares >= processes {
            return Err(MpiError::Spares { spares, processes });
        }
        self.places = processes - spares;
        self.crew = self.crew_of(self.world, self.place, self.places)?;
        Ok(())
    }

    /// Returns the group of this process, at `place`: the `places` that compute, or those that
    /// wait.
    ///
    /// Where none waits no communicator is made: Open MPI 5.0.11 was seen to end by SIGSEGV
    /// (`ompi_comm_revoke_local`) when it heard of a lost rank while one was being made.
    fn crew_of(&self, all: RawComm, place: usize, places: usize) -> Result<RawComm, MpiFault> {
        if places == all.size()? {
            return Ok(all);
        }
        let crew = all.split(usize::from(place >= places), place)?;
        self.family.join(crew);
        Ok(crew)
    }

    /// This process's number at the start, which it keeps.
    #[must_use]
    pub fn process(&self) -> usize {
        self.process
    }

    /// The machine it runs on.
    #[must_use]
    pub fn host(&self) -> Host {
        self.host
    }

    /// Returns whether this process waits for the place of a lost one.
    #[must_use]
    pub fn is_spare(&self) -> bool {
        self.place >= self.places
    }

    /// Returns whether a lost rank can be survived: the library has what it takes.
    #[must_use]
    pub fn can_repair(&self) -> bool {
        sys::can_repair()
    }

    /// Returns whether a rank is lost, and [`MpiJob::repair`] has not been called since.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.family.lost().is_some()
    }

    /// Returns the number of processes lost up to the last repair.
    ///
    /// # Errors
    /// [`MpiError::Library`].
    pub fn processes_lost(&self) -> Result<usize, MpiError> {
        Ok(self.processes - self.world.size()?)
    }

    /// Returns whether a rank was lost since the start.
    #[must_use]
    pub fn was_repaired(&self) -> bool {
        self.is_maimed
    }

    /// Returns when every process has called it: spares at the beginning, the others when all is
    /// done. Collective.
    ///
    /// All return or none does: one that left while others still waited would be missed, and taken
    /// for lost.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a process is gone.
    pub fn rest(&mut self) -> Result<(), CommError> {
        let mut pending = PendingCalls::new(self.world, &self.family);
        let rested = pending.barrier().and_then(|()| pending.wait());
        drop(pending);
        rested.map_err(|fault| self.family.error(fault))?;
        self.has_agreed = true;
        if self.world.agree(true) {
            return Ok(());
        }
        self.family.lose(0);
        Err(CommError::RankLost { rank: 0 })
    }

    /// Repairs the job after a loss: spares take the places of lost processes, and where there are
    /// too few, the others close up. Communicators from before are of no further use. All processes
    /// that are alive call it, whether they compute or not.
    ///
    /// # Errors
    /// [`MpiError::NoRepair`] where a lost rank cannot be survived, [`MpiError::Library`].
    pub fn repair(&mut self) -> Result<(), MpiError> {
        if !self.can_repair() {
            return Err(MpiError::NoRepair);
        }
        self.is_maimed = true;
        self.family.lose(0);
        if !std::mem::take(&mut self.has_agreed) {
            // Others may have come to rest: they must not leave.
            self.world.agree(false);
        }
        // Each failure during the repair costs one round, and there are not more failures than
        // processes.
        for _ in 0..=self.world.size()? {
            let alive = self.world.shrink()?;
            let repaired = self.take_places(alive);
            self.world = alive;
            if alive.agree(repaired.is_ok()) {
                return Ok(());
            }
            self.family.lose(0);
        }
        Err(MpiError::Library { class: 0 })
    }

    /// Every process alive tells its place, and all fill up those that are empty alike.
    fn take_places(&mut self, alive: RawComm) -> Result<(), MpiFault> {
        self.family = Arc::new(Family::new());
        self.family.join(alive);
        let own = [self.place as i64];
        let mut all = vec![0_i64; alive.size()?];
        let mut pending = PendingCalls::new(alive, &self.family);
        pending.gather(&own, &mut all)?;
        pending.wait()?;
        drop(pending);
        let mut taken: Vec<usize> = all.into_iter().map(|place| place as usize).collect();
        taken.sort_unstable();
        let (place, places) = filled(&taken, self.places, self.place);
        let crew = self.crew_of(alive, place, places)?;
        // Nothing has changed before all has succeeded.
        self.crew = crew;
        self.place = place;
        self.places = places;
        Ok(())
    }

    /// Returns the number of processes that compute.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places
    }

    /// This process's number among those that compute, and behind them those that wait.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place
    }

    /// The level granted.
    #[must_use]
    pub fn level(&self) -> ThreadLevel {
        self.level
    }

    /// Returns the calls under way on the communicators of [`MpiJob::comm`], over all repairs.
    #[must_use]
    pub fn waits(&self) -> &Arc<Waits> {
        &self.waits
    }

    /// A communicator of all processes that compute. Collective among them.
    ///
    /// # Errors
    /// [`MpiError::Library`].
    pub fn comm(&self) -> Result<Mpi, MpiError> {
        Ok(Mpi::new(self.crew.dup(&self.family)?, Arc::clone(&self.family), Arc::clone(&self.waits))?)
    }

    /// Waits until all processes have called it, at most so long; whether they have.
    #[must_use]
    pub fn meet(&self, patience: Duration) -> bool {
        let mut pending = PendingCalls::new(self.world, &self.family);
        if pending.barrier().is_err() {
            return false;
        }
        let mut pause = Pause::default();
        for _ in 0..patience.as_secs_f64().ceil() as u32 * LOOKS_PER_SECOND {
            if pending.test() {
                return pending.wait().is_ok();
            }
            pause.wait();
        }
        // No rank waits for it any more: the caller ends the process.
        std::mem::forget(pending);
        false
    }

    /// Ends this process: in the ordinary way, or at once after a loss, when MPI might not come to
    /// its own end.
    pub fn end(self, code: u8) {
        if self.is_maimed {
            sys::leave(i32::from(code));
        }
    }

    /// Ends all processes of the job with this exit code.
    pub fn abort(&self, code: u8) -> ! {
        sys::abort(i32::from(code));
        std::process::exit(i32::from(code))
    }
}

/// A number made of this machine's name: FNV-1a of 64 bits (draft-eastlake-fnv).
fn host_word() -> i64 {
    // Without a name all machines count as one, and each rank gets fewer threads than it might.
    let name = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    name.iter().fold(0xcbf2_9ce4_8422_2325, mix) as i64
}

/// The place of the process that had place `own`, and the number of places, once those missing from
/// `taken` (ascending) are filled by spares, lowest first, or closed up.
fn filled(taken: &[usize], places: usize, own: usize) -> (usize, usize) {
    let computing = taken.partition_point(|&place| place < places);
    let spares = taken.len() - computing;
    let missing: Vec<usize> = (0..places).filter(|place| taken.binary_search(place).is_err()).collect();
    let places_left = places - missing.len().saturating_sub(spares);
    let rank = taken.partition_point(|&place| place < own);
    let place = match rank.checked_sub(computing) {
        _ if places_left < places => rank,
        // The lowest spare goes to the lowest empty place; those left over wait behind all places.
        Some(spare) => missing.get(spare).copied().unwrap_or(places + spare),
        None => own,
    };
    (place, places_left)
}

impl Drop for MpiJob {
    /// Ends MPI. Collective.
    fn drop(&mut self) {
        if self.is_maimed {
            return;
        }
        // No rank is left that could be told of a failure here.
        let _ended = sys::end();
    }
}

impl RepairableJob for MpiJob {
    type Error = MpiError;

    fn is_spare(&self) -> bool {
        self.is_spare()
    }

    fn has_lost(&self) -> bool {
        self.has_lost()
    }

    fn rest(&mut self) -> Result<bool, MpiError> {
        match self.rest() {
            Ok(()) => Ok(true),
            Err(CommError::RankLost { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn repair(&mut self) -> Result<(), MpiError> {
        self.repair()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of all that are alive, after those of `taken` out of `places` are filled.
    fn all(taken: &[usize], places: usize) -> (Vec<usize>, usize) {
        let ends: Vec<_> = taken.iter().map(|&own| filled(taken, places, own)).collect();
        assert!(ends.iter().all(|(_, left)| *left == ends[0].1));
        (ends.iter().map(|(place, _)| *place).collect(), ends[0].1)
    }

    #[test]
    fn hosts_are_numbered_in_the_order_of_the_processes() {
        let words = [7, 7, -3, 7, 5];
        let numbers: Vec<usize> = (0..5).map(|process| Host::among(&words, process).number).collect();
        assert_eq!((numbers, Host::among(&words, 0).of), (vec![0, 0, 1, 0, 2], 3));
    }

    #[test]
    fn spares_take_the_lowest_empty_places_and_the_others_stay() {
        assert_eq!(all(&[0, 2, 3, 4, 5], 4), (vec![0, 2, 3, 1, 4 + 1], 4));
        assert_eq!(all(&[1, 2, 4, 5], 4), (vec![1, 2, 0, 3], 4));
        assert_eq!(all(&[0, 1, 2, 5], 3), (vec![0, 1, 2, 3], 3));
    }

    #[test]
    fn places_close_up_where_spares_are_too_few() {
        assert_eq!(all(&[0, 2, 3], 4), (vec![0, 1, 2], 3));
        assert_eq!(all(&[2, 3, 4], 4), (vec![0, 1, 2], 3));
        assert_eq!(all(&[3], 4), (vec![0], 1));
    }
}
