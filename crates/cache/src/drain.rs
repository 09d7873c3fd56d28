//! The drain: moves versions from the fastest tier on to the slower ones behind the worker, one at
//! a time.
//!
//! Its thread has a communicator of its own, so its collective calls never meet those of the
//! worker, and all ranks hand it the same versions in the same order. It is given the encoded
//! frames, so nothing is read back or coded again. Given up, it ends before the next variable, on
//! all ranks alike, and its draft is gone. Must not know when a version is due.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use recoup_core::{
    Clock, Comm, CommonError, Draft, FileRecord, Frame, KindedError, Manifest, NextCall, RankFailure, StoreError, Tier,
    VariableRecord, agreed, each,
};
use recoup_io::SystemClock;

use crate::notes::Notes;

/// A rank's part of a version, and of the version's manifest.
#[derive(Debug)]
pub(crate) struct Cargo {
    pub(crate) manifest: Manifest,
    pub(crate) variables: Vec<(VariableRecord, Vec<Frame<'static>>)>,
}

/// A version on its way to the tiers at these positions.
#[derive(Debug)]
pub(crate) struct DrainedVersion {
    pub(crate) tiers: Vec<(usize, Tier)>,
    pub(crate) cargo: Cargo,
}

/// The end of a version's way to the tier at `tier`: the same on all ranks but for the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Landed {
    pub(crate) version: u64,
    pub(crate) tier: usize,
    pub(crate) is_there: bool,
    /// Time on this rank.
    pub(crate) seconds: f64,
}

/// A handle to the thread that drains.
#[derive(Debug)]
pub(crate) struct TierDrain {
    /// Rank and size of its communicator.
    place: (usize, usize),
    jobs: Option<Sender<DrainedVersion>>,
    shared: Arc<DrainShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct DrainShared {
    slot: Mutex<DrainState>,
    changed: Condvar,
    is_given_up: AtomicBool,
}

#[derive(Debug, Default)]
struct DrainState {
    /// The positions of the tiers a version is on its way to; none when nothing is.
    tiers: Vec<usize>,
    landed: Vec<Landed>,
}

impl DrainShared {
    fn slot(&self) -> MutexGuard<'_, DrainState> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TierDrain {
    /// Starts a drain of the ranks of `comm`; versions it cannot write are named in `notes`.
    /// Collective.
    ///
    /// # Errors
    /// [`StoreError::Io`] when no thread is available on some rank, [`StoreError::Comm`].
    pub(crate) fn start(comm: &dyn Comm, notes: Notes) -> Result<Self, CommonError<StoreError>> {
        let ours = comm.dup()?;
        let place = (comm.rank(), comm.size());
        let shared = Arc::new(DrainShared::default());
        let (jobs, received) = mpsc::channel();
        let theirs = shared.clone();
        let spawned = std::thread::Builder::new()
            .name("recoup-drain".to_owned())
            .spawn(move || run(&received, ours.as_ref(), &theirs, &notes))
            .map_err(|source| StoreError::Io { action: "start", path: "the drain".to_owned(), source });
        let thread = each(comm, spawned.map_err(|e| words(comm, &e)))?;
        Ok(Self { place, jobs: Some(jobs), shared, thread: Some(thread) })
    }

    /// Returns whether it serves the ranks of `comm`.
    pub(crate) fn serves(&self, comm: &dyn Comm) -> bool {
        self.place == (comm.rank(), comm.size())
    }

    /// Returns the positions of the tiers it writes to now.
    pub(crate) fn tiers(&self) -> Vec<usize> {
        self.shared.slot().tiers.clone()
    }

    /// Hands over a version; nothing may be on its way.
    pub(crate) fn give(&self, job: DrainedVersion) {
        let tiers: Vec<usize> = job.tiers.iter().map(|(index, _)| *index).collect();
        let mut slot = self.shared.slot();
        assert!(slot.tiers.is_empty(), "one version at a time");
        let version = job.cargo.manifest.version;
        if self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok()) {
            slot.tiers = tiers;
        } else {
            slot.landed.extend(tiers.into_iter().map(|tier| Landed { version, tier, is_there: false, seconds: 0.0 }));
        }
    }

    /// Returns when nothing is on its way.
    pub(crate) fn finish(&self) {
        let slot = self.shared.slot();
        drop(self.shared.changed.wait_while(slot, |slot| !slot.tiers.is_empty()));
    }

    /// Gives up the version on its way where it is not done yet, and returns when nothing is on its
    /// way.
    pub(crate) fn give_up(&self) {
        self.shared.is_given_up.store(true, Ordering::Release);
        self.finish();
        self.shared.is_given_up.store(false, Ordering::Release);
    }

    /// Takes the versions that have ended since the last call, in that order.
    pub(crate) fn take_landed(&self) -> Vec<Landed> {
        std::mem::take(&mut self.shared.slot().landed)
    }
}

impl Drop for TierDrain {
    /// Finishes what was handed over, then ends the thread.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the drain panicked");
        }
    }
}

/// The error of this rank, as the others report it.
fn words(comm: &dyn Comm, error: &StoreError) -> StoreError {
    RankFailure::of(comm.rank(), error).into()
}

/// The thread: version after version, until the last handle is gone.
fn run(jobs: &Receiver<DrainedVersion>, comm: &dyn Comm, shared: &DrainShared, notes: &Notes) {
    for DrainedVersion { tiers, mut cargo } in jobs {
        let mut landing = Landing { shared, landed: Vec::new() };
        let version = cargo.manifest.version;
        for (index, tier) in tiers {
            let clock = SystemClock::new();
            let carried = carry(&tier, &mut cargo, comm, &shared.is_given_up);
            let seconds = clock.now().as_secs_f64();
            landing.landed.push(Landed { version, tier: index, is_there: carried.is_ok(), seconds });
            if let Err(error) = carried {
                notes.unwritten(version, &tier.name, error.kind(), error.to_string());
            }
        }
    }
}

/// Tells those who wait when a version is done, however it ends.
struct Landing<'a> {
    shared: &'a DrainShared,
    landed: Vec<Landed>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let mut slot = self.shared.slot();
        slot.tiers.clear();
        slot.landed.append(&mut self.landed);
        self.shared.changed.notify_all();
    }
}

/// Writes this rank's part of a version to a tier, and publishes it there. Collective.
///
/// # Errors
/// [`StoreError`]; the version does not count there then, and no draft is left.
pub(crate) fn carry(
    tier: &Tier,
    cargo: &mut Cargo,
    comm: &dyn Comm,
    is_given_up: &AtomicBool,
) -> Result<(), CommonError<StoreError>> {
    write_and_publish(tier, cargo, comm, is_given_up).inspect_err(|_| {
        if comm.rank() == 0 || !tier.store.is_shared() {
            // The first error is the one to report; a draft that stays never counts.
            tier.store.discard_drafts().ok();
        }
    })
}

fn write_and_publish(
    tier: &Tier,
    cargo: &mut Cargo,
    comm: &dyn Comm,
    is_given_up: &AtomicBool,
) -> Result<(), CommonError<StoreError>> {
    let version = cargo.manifest.version;
    let acts = comm.rank() == 0 || !tier.store.is_shared();
    let parents = cargo.manifest.parents_of_all(comm)?;
    agreed(comm, if acts { check_chain(tier, parents) } else { Ok(()) })?;
    let first = (comm.rank() == 0).then(|| tier.store.begin(version, 0));
    comm.barrier()?;
    let draft = first.unwrap_or_else(|| tier.store.begin(version, comm.rank()));
    let mine = draft.and_then(|draft| write_all(draft, &mut cargo.variables, is_given_up));
    let files = each(comm, mine.map_err(|e| words(comm, &e)))?;
    let mut manifest = Manifest { files, ..cargo.manifest.clone() };
    let placed = cargo.variables.iter().flat_map(|(_, frames)| frames);
    manifest.frames.iter_mut().zip(placed).for_each(|(frame, placed)| frame.place.clone_from(&placed.record.place));
    tier.store.publish(&manifest, comm).map(drop)
}

/// Refuses a version where the tier lacks one that is decoded before it.
fn check_chain(tier: &Tier, parents: BTreeSet<u64>) -> Result<(), StoreError> {
    let mut left = parents;
    while let Some(version) = left.pop_last() {
        if !tier.store.holds(version)? {
            return Err(StoreError::Missing { version });
        }
        // Versions ascend along a chain, so no walk is endless.
        left.extend(tier.store.links(version)?.parents.into_iter().filter(|&parent| parent < version));
    }
    Ok(())
}

/// Writes frames to a draft, where each gets its place, and seals it. Returns its files.
fn write_all(
    mut draft: Box<dyn Draft>,
    variables: &mut [(VariableRecord, Vec<Frame>)],
    is_given_up: &AtomicBool,
) -> Result<Vec<FileRecord>, StoreError> {
    let check = || if is_given_up.load(Ordering::Acquire) { Err(StoreError::GivenUp) } else { Ok(()) };
    let count = variables.len();
    for (position, (variable, frames)) in variables.iter_mut().enumerate() {
        check()?;
        draft.write(variable, frames, NextCall::after(position, count))?;
    }
    check()?;
    Ok(draft.seal()?.files)
}

#[cfg(test)]
mod tests {
    use recoup_comm::Threads;
    use recoup_core::{Storage, Store};
    use recoup_io::MemoryStore;
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;

    /// One rank's part of a sample, as a job for one tier.
    fn job(pfs: &MemoryStore, comm: &dyn Comm, parents: &[u64]) -> DrainedVersion {
        let mut sample = SampleVersion::new(5, comm.size());
        sample.parts.iter_mut().flat_map(|part| &mut part.frames).for_each(|f| f.record.parents = parents.to_vec());
        let manifest = sample.of_rank(comm.rank()).manifest(Vec::new());
        let ours = sample.parts.into_iter().filter(|part| part.record.rank == comm.rank());
        let variables = ours.map(|part| (part.record, part.frames)).collect();
        let tier = Tier { name: "pfs".to_owned(), store: Arc::new(pfs.clone()), every: 1, keep: 1, max_bytes: None };
        DrainedVersion { tiers: vec![(1, tier)], cargo: Cargo { manifest, variables } }
    }

    fn landed(drain: &TierDrain) -> Vec<(u64, usize, bool)> {
        drain.take_landed().into_iter().map(|landed| (landed.version, landed.tier, landed.is_there)).collect()
    }

    #[test]
    fn what_one_rank_gives_up_is_given_up_by_all_and_may_be_written_again() {
        let pfs = MemoryStore::new();
        let notes = Threads::launch(3, |comm| {
            let notes = Notes::default();
            let drain = TierDrain::start(&comm, notes.clone()).unwrap();
            drain.shared.is_given_up.store(comm.rank() == 2, Ordering::Release);
            drain.give(job(&pfs, &comm, &[]));
            drain.give_up();
            assert_eq!(landed(&drain), [(5, 1, false)]);
            assert!(pfs.versions().unwrap().is_empty());
            comm.barrier().unwrap();
            drain.give(job(&pfs, &comm, &[]));
            drain.finish();
            assert_eq!(landed(&drain), [(5, 1, true)]);
            notes.take().into_iter().map(|note| note.to_string()).collect::<Vec<_>>()
        });
        assert_eq!(notes[2], ["version 5 not written to pfs: rank 2: given up on the way"]);
        assert!(notes.iter().all(|notes| notes.len() == 1), "{notes:?}");
        assert_eq!(pfs.versions().unwrap(), [5]);
    }

    #[test]
    fn a_version_does_not_come_to_a_tier_that_lacks_what_it_is_decoded_after() {
        let pfs = MemoryStore::new();
        let lands = |parents: &[u64]| {
            let landed = Threads::launch(2, |comm| {
                let drain = TierDrain::start(&comm, Notes::default()).unwrap();
                drain.give(job(&pfs, &comm, parents));
                drain.finish();
                landed(&drain)
            });
            landed[0] == [(5, 1, true)]
        };
        assert!(!lands(&[4]), "4 is not there");
        for (version, parents) in [(3, &[][..]), (4, &[3])] {
            let mut sample = SampleVersion::new(version, 1);
            let frames = sample.parts.iter_mut().flat_map(|part| &mut part.frames);
            let coded = frames.filter(|frame| frame.record.storage == Storage::Coded);
            coded.for_each(|frame| frame.record.parents = parents.to_vec());
            sample.publish(&pfs).unwrap();
        }
        pfs.remove(3).unwrap();
        assert!(!lands(&[4]), "4 is there, and 3, which it is coded against, is not");
        assert_eq!(pfs.versions().unwrap(), [4]);
    }
}
