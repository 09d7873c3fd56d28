//! Tiers: stores in a row, fastest first, each with its own interval and its own versions.
//!
//! A version is coded once. It counts as soon as the first tier that takes it has published it, and
//! continues from there to the others that are due, before `publish` returns or behind it. A tier
//! that fails to take it is named, and is due again next time. It is read frame by frame from the
//! fastest tier that has it whole, so damage in one is made good by the next.
//!
//! The end of a drain counts for decisions only after a collective confirmed that all ranks have
//! seen it, in `publish` or `prepare_restore`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{
    Clock, Comm, CommError, CommonError, Damage, Draft, ErrorKind, Frame, FrameRecord, KindedError, Manifest,
    NextBegin, NextCall, Note, Reads, RowRange, Sealed, Store, StoreError, Tier, Tiered, VariableRecord, VersionLinks,
    agreed, broadcast_json, each,
};

use recoup_io::SystemClock;

use crate::drain::{Cargo, DrainedVersion, TierDrain, carry};
use crate::notes::Notes;
use crate::schedule::Schedule;

/// Several stores as one.
pub struct Tiers {
    tiers: Vec<Tier>,
    state: Arc<Mutex<TiersState>>,
    notes: Notes,
    /// The choice for a version that finds the drain busy; `None` if nothing is written behind.
    when_busy: Option<WhenBusy>,
    pace: Option<Arc<TierPacing>>,
    drain: Mutex<Option<Arc<TierDrain>>>,
}

/// Returns the interval of each tier, in versions, from the seconds that versions took in each;
/// `None` before the first.
pub type TierPacing = dyn Fn(&[Option<f64>]) -> Vec<u64> + Send + Sync;

/// The choice for a version that is due in a slower tier while the one before is still on its way
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenBusy {
    /// The tier skips the version, which is noted, and gets the next one.
    Skip,
    /// The version waits, and the versions after it wait too.
    Wait,
}

#[derive(Debug)]
struct TiersState {
    rank: usize,
    schedule: Schedule,
    sealed: BTreeMap<u64, Pending>,
    /// The manifests of versions being read, by tier and version.
    manifests: BTreeMap<(String, u64), Arc<Manifest>>,
}

/// A rank's part of a version between seal and publish.
#[derive(Debug, Default)]
struct Pending {
    /// Tiers that take it, ascending.
    due: Vec<usize>,
    /// The error of the first of these tiers.
    failure: Option<StoreError>,
    /// The variables that the others get.
    variables: Vec<(VariableRecord, Vec<Frame<'static>>)>,
    /// The last of these variables has more frames.
    has_more: bool,
    /// Time spent in the first.
    seconds: f64,
}

impl Pending {
    /// Keeps frames for the tiers behind the first.
    fn keep(&mut self, variable: &VariableRecord, frames: &[Frame], next: NextCall) {
        if !std::mem::replace(&mut self.has_more, next == NextCall::Frames) {
            self.variables.push((variable.clone(), Vec::new()));
        }
        let kept = self.variables.last_mut().map(|(_, kept)| kept);
        kept.into_iter().for_each(|kept| kept.extend(frames.iter().map(Frame::to_owned)));
    }
}

impl Tiers {
    /// Makes one store of the stores of `rank`, fastest first; the first takes every version. All
    /// ranks give the same.
    ///
    /// # Panics
    /// For no tiers.
    #[must_use]
    pub fn new(mut tiers: Vec<Tier>, rank: usize) -> Self {
        assert!(!tiers.is_empty(), "at least one tier");
        tiers[0].every = 1;
        let schedule = Schedule::new(tiers.iter().map(|tier| tier.every.max(1)).collect());
        let state = TiersState { rank, schedule, sealed: BTreeMap::new(), manifests: BTreeMap::new() };
        let notes = Notes::default();
        let drain = Mutex::default();
        Self { tiers, state: Arc::new(Mutex::new(state)), notes, when_busy: None, pace: None, drain }
    }

    /// Lets rank 0 choose the intervals again, for all ranks, whenever a slower tier was written
    /// to.
    #[must_use]
    pub fn paced(self, pace: Arc<TierPacing>) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// Writes slower tiers behind [`Store::publish`], one version at a time: a version counts once
    /// the fastest tier that takes it has it. All ranks give the same.
    #[must_use]
    pub fn behind(self, when_busy: WhenBusy) -> Self {
        Self { when_busy: Some(when_busy), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, TiersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drain(&self) -> Option<Arc<TierDrain>> {
        self.drain.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the tiers in which this rank removes versions: all but those that rank 0 serves.
    fn acting(&self) -> impl Iterator<Item = (usize, &Tier)> {
        let rank = self.lock().rank;
        self.tiers.iter().enumerate().filter(move |(_, tier)| rank == 0 || !tier.store.is_shared())
    }

    /// Returns the tiers that hold a version, fastest first.
    fn holding(&self, version: u64) -> impl Iterator<Item = &Tier> {
        self.tiers.iter().filter(move |tier| tier.store.holds(version).unwrap_or(false))
    }

    fn manifest_in(&self, tier: &Tier, version: u64) -> Result<Arc<Manifest>, StoreError> {
        let key = (tier.name.clone(), version);
        if let Some(manifest) = self.lock().manifests.get(&key) {
            return Ok(manifest.clone());
        }
        let manifest = Arc::new(tier.store.manifest(version)?);
        self.lock().manifests.insert(key, manifest.clone());
        Ok(manifest)
    }

    fn pass(&self, version: u64, tier: &Tier, error: &StoreError) {
        self.notes.passed(version, &tier.name, &error.to_string());
    }

    /// Publishes a version in the tier its draft was written to. Collective.
    fn publish_first(
        &self,
        tier: &Tier,
        failure: Option<StoreError>,
        manifest: &Manifest,
        comm: &dyn Comm,
    ) -> Result<NextBegin, CommonError<StoreError>> {
        let published = agreed(comm, failure.map_or(Ok(()), Err)).and_then(|()| tier.store.publish(manifest, comm));
        published.inspect_err(|_| {
            if comm.rank() == 0 || !tier.store.is_shared() {
                // The first error is the one to report; a draft that stays never counts.
                tier.store.discard_drafts().ok();
            }
        })
    }

    /// Publishes a version in another tier, now. Collective.
    fn publish_next(&self, tier: &Tier, cargo: &mut Cargo, comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {
        // One draft at a time: the drain may be writing there.
        self.finish();
        carry(tier, cargo, comm, &AtomicBool::new(false))
    }

    /// Gives a version that counts to the drain for the tiers at these positions, and records the
    /// versions that the drain has ended. Collective.
    fn hand_over(&self, tiers: &[usize], cargo: Cargo, comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {
        let Some(when_busy) = self.when_busy else { return Ok(()) };
        let mut drain = self.drain();
        if let Some(drain) = &drain {
            // Ranks see the drain's end at different instants: it is busy until all have seen it.
            let is_busy = comm.max(i64::from(!drain.tiers().is_empty()))? > 0;
            match when_busy {
                WhenBusy::Skip if is_busy => {
                    self.skip(tiers, cargo.manifest.version);
                    return Ok(());
                }
                WhenBusy::Wait if is_busy && tiers.is_empty() => return Ok(()),
                _ => drain.finish(),
            }
            let landed = drain.take_landed();
            self.lock().schedule.learn(&landed);
            if !landed.is_empty() {
                self.choose(comm)?;
            }
        }
        if tiers.is_empty() {
            return Ok(());
        }
        if drain.as_ref().is_none_or(|drain| !drain.serves(comm)) {
            let started = Arc::new(TierDrain::start(comm, self.notes.clone())?);
            *self.drain.lock().unwrap_or_else(PoisonError::into_inner) = Some(started.clone());
            drain = Some(started);
        }
        self.lock().schedule.promise(tiers, cargo.manifest.version);
        let tiers = tiers.iter().map(|&index| (index, self.tiers[index].clone())).collect();
        if let Some(drain) = drain {
            drain.give(DrainedVersion { tiers, cargo });
        }
        Ok(())
    }

    /// Notes that these tiers are still busy with an older version.
    fn skip(&self, tiers: &[usize], version: u64) {
        for &index in tiers {
            self.lock().schedule.wrote(index, false);
            let what = "the one before is still on its way there".to_owned();
            self.notes.unwritten(version, &self.tiers[index].name, ErrorKind::GivenUp, what);
        }
    }

    /// Lets rank 0 choose the intervals again; every rank gets them. Collective.
    fn choose(&self, comm: &dyn Comm) -> Result<(), CommError> {
        let Some(pace) = &self.pace else { return Ok(()) };
        let chosen = broadcast_json(comm, || {
            let seconds = self.lock().schedule.seconds().to_vec();
            pace(&seconds)
        })?;
        self.lock().schedule.adopt(&chosen);
        Ok(())
    }

    /// Returns the tiers that hold each version.
    fn placed(&self) -> Result<BTreeMap<u64, Vec<bool>>, StoreError> {
        let mut placed: BTreeMap<u64, Vec<bool>> = BTreeMap::new();
        for (index, tier) in self.tiers.iter().enumerate() {
            for version in tier.store.versions()? {
                placed.entry(version).or_insert_with(|| vec![false; self.tiers.len()])[index] = true;
            }
        }
        Ok(placed)
    }

    /// Records a version that counts, and the tiers that hold it.
    fn count(&self, version: u64, placed: Vec<bool>) {
        let mut state = self.lock();
        state.manifests.clear();
        state.schedule.count(version, placed);
    }
}

impl std::fmt::Debug for Tiers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.tiers).finish()
    }
}

impl Store for Tiers {
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        if self.holding(version).next().is_some() {
            return Err(StoreError::Exists { version });
        }
        let due = self.lock().schedule.due();
        let first = self.tiers[due[0]].store.begin(version, rank);
        let pending = Pending { due, ..Pending::default() };
        Ok(Box::new(TiersDraft { state: self.state.clone(), version, first, pending }))
    }

    /// Publishes a version, which was begun in the first tier; the others get theirs later, rank 0
    /// first. So the next version may begin in any order if the first tier allows it, but not if
    /// that tier lacks this version, which counts if any tier has it.
    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        let version = manifest.version;
        let pending = self.lock().sealed.remove(&version);
        let pending = each(comm, pending.ok_or(StoreError::Missing { version }))?;
        let Pending { due, mut failure, variables, seconds, .. } = pending;
        let mut cargo = Cargo { manifest: manifest.clone(), variables };
        let mut placed = vec![false; self.tiers.len()];
        let mut next_begin = NextBegin::RankZeroFirst;
        let mut first_error = None;
        let mut left = due.as_slice();
        while let Some((&index, later)) = left.split_first() {
            if placed.contains(&true) && self.when_busy.is_some() {
                break;
            }
            let tier = &self.tiers[index];
            let clock = SystemClock::new();
            let is_first = left.len() == due.len();
            let published = match is_first {
                true => self.publish_first(tier, failure.take(), manifest, comm),
                false => self.publish_next(tier, &mut cargo, comm).map(|()| NextBegin::RankZeroFirst),
            };
            left = later;
            if published.is_ok() {
                let before = if is_first { seconds } else { 0.0 };
                self.lock().schedule.took(index, before + clock.now().as_secs_f64());
            }
            placed[index] = published.is_ok();
            self.lock().schedule.wrote(index, published.is_ok());
            match published {
                Err(error) if matches!(*error, StoreError::Comm(_)) => return Err(error),
                Err(error) => {
                    self.notes.unwritten(version, &tier.name, error.kind(), error.to_string());
                    first_error.get_or_insert(error);
                }
                Ok(next) if index == 0 => next_begin = next,
                Ok(_) => {}
            }
        }
        match first_error {
            Some(error) if !placed.contains(&true) => Err(error),
            _ => {
                let wrote_slower = placed.iter().skip(1).any(|is_there| *is_there);
                self.count(version, placed);
                if wrote_slower {
                    self.choose(comm)?;
                }
                self.hand_over(left, cargo, comm)?;
                Ok(next_begin)
            }
        }
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.lock().sealed.clear();
        // The drain looks after its own drafts.
        let drained = self.drain().map(|drain| drain.tiers()).unwrap_or_default();
        let mut idle = self.acting().filter(|(index, _)| !drained.contains(index));
        idle.try_for_each(|(_, tier)| tier.store.discard_drafts())
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        let mut versions = BTreeSet::new();
        for tier in &self.tiers {
            versions.extend(tier.store.versions()?);
        }
        Ok(versions.into_iter().collect())
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        let mut first_error = None;
        for tier in self.holding(version) {
            match tier.store.manifest(version) {
                Ok(manifest) => return Ok(manifest),
                Err(error) => {
                    self.pass(version, tier, &error);
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or(StoreError::Missing { version }))
    }

    /// Returns the whole manifest where several tiers hold the version: one may make good what is
    /// damaged in another.
    fn top(&self, version: u64) -> Result<Manifest, StoreError> {
        let mut holding = self.holding(version);
        match (holding.next(), holding.next()) {
            (Some(only), None) => only.store.top(version).inspect_err(|error| self.pass(version, only, error)),
            _ => self.manifest(version),
        }
    }

    fn parts(&self, top: &Manifest, ranks: &BTreeSet<usize>, rows: &[RowRange]) -> Result<Manifest, StoreError> {
        let version = top.version;
        let mut error = StoreError::Missing { version };
        for tier in self.holding(version) {
            match tier.store.parts(top, ranks, rows) {
                Ok(parts) => {
                    // Frames are looked up here when they are read.
                    self.lock().manifests.insert((tier.name.clone(), version), Arc::new(parts.clone()));
                    return Ok(parts);
                }
                Err(found) => error = found,
            }
        }
        Err(error)
    }

    fn links(&self, version: u64) -> Result<VersionLinks, StoreError> {
        let mut error = StoreError::Missing { version };
        for tier in self.holding(version) {
            match tier.store.links(version) {
                Err(found) => error = found,
                links => return links,
            }
        }
        Err(error)
    }

    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        let mut errors = Vec::new();
        for tier in self.holding(version) {
            let manifest = self.manifest_in(tier, version);
            match manifest.and_then(|manifest| read_in(tier, &manifest, version, frame, payload)) {
                Ok(()) => {
                    self.notes.add(Note::Read { version, tier: tier.name.clone() });
                    return Ok(());
                }
                Err(error) => {
                    self.pass(version, tier, &error);
                    errors.push(format!("{}: {error}", tier.name));
                }
            }
        }
        payload.clear();
        if errors.is_empty() {
            return Err(StoreError::Missing { version });
        }
        Err(StoreError::frame(version, frame, errors.join("; ")))
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        let found: Result<Vec<_>, _> = self.holding(version).map(|tier| tier.store.inspect_damage(version)).collect();
        // One tier that has it whole is enough.
        found?.into_iter().min_by_key(Vec::len).ok_or(StoreError::Missing { version })
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        let mut newer = BTreeSet::new();
        self.lock().manifests.clear();
        for (_, tier) in self.acting() {
            newer.extend(tier.store.set_aside_newer(version)?);
        }
        Ok(newer.into_iter().collect())
    }

    fn remove(&self, version: u64) -> Result<(), StoreError> {
        if self.holding(version).next().is_none() {
            return Err(StoreError::Missing { version });
        }
        let holds = |(_, tier): &(usize, &Tier)| tier.store.holds(version).unwrap_or(false);
        self.acting().filter(holds).try_for_each(|(_, tier)| tier.store.remove(version))
    }

    fn as_tiered(&self) -> Option<&dyn Tiered> {
        Some(self)
    }
}

impl Tiered for Tiers {
    fn prepare_restore(&self, comm: &dyn Comm, reads: &Reads<'_>) -> Result<(), CommonError<StoreError>> {
        self.finish();
        if let Some(drain) = self.drain() {
            self.lock().schedule.learn(&drain.take_landed());
        }
        for tier in &self.tiers {
            if let Some(tiered) = tier.store.as_tiered() {
                tiered.prepare_restore(comm, reads)?;
            }
        }
        let placed = each(comm, self.placed())?;
        let mut schedule = self.lock().schedule.clone();
        schedule.agree(placed, comm)?;
        let mut state = self.lock();
        state.manifests.clear();
        state.rank = comm.rank();
        state.schedule = schedule;
        Ok(())
    }

    fn can_follow(&self, version: u64, parent: u64) -> bool {
        let (due, is_there) = {
            let schedule = &self.lock().schedule;
            let due = schedule.due();
            let is_there = due.iter().all(|&i| schedule.holds(i, parent));
            (due, is_there)
        };
        let can_follow = |tier: &Tier| tier.store.as_tiered().is_none_or(|tiered| tiered.can_follow(version, parent));
        is_there && due.iter().all(|&i| can_follow(&self.tiers[i]))
    }

    fn tiers(&self) -> Vec<Tier> {
        let schedule = &self.lock().schedule;
        let tiers = self.tiers.iter().enumerate();
        tiers.map(|(index, tier)| Tier { every: schedule.every(index), ..tier.clone() }).collect()
    }

    fn next_everywhere(&self) {
        self.lock().schedule.call_all();
        self.tiers.iter().filter_map(|tier| tier.store.as_tiered()).for_each(Tiered::next_everywhere);
    }

    fn finish(&self) {
        if let Some(drain) = self.drain() {
            drain.finish();
        }
    }

    fn give_up(&self) {
        if let Some(drain) = self.drain() {
            drain.give_up();
        }
    }

    fn take_notes(&self) -> Vec<Note> {
        let mut notes = self.notes.take();
        for tier in &self.tiers {
            let theirs = tier.store.as_tiered().map(Tiered::take_notes).unwrap_or_default();
            notes.extend(theirs.into_iter().map(|note| match note {
                Note::Dropped { version, what } => Note::Passed { version, tier: tier.name.clone(), what },
                other => other,
            }));
        }
        notes.into_iter().collect()
    }
}

/// Reads a frame from one tier: the same bytes, at a place of its own.
fn read_in(
    tier: &Tier,
    manifest: &Manifest,
    version: u64,
    frame: &FrameRecord,
    payload: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let same = |f: &&FrameRecord| (f.rank, f.run, &f.variable) == (frame.rank, frame.run, &frame.variable);
    match manifest.frames.iter().find(same) {
        Some(theirs) if theirs.crc32c == frame.crc32c && theirs.payload_bytes == frame.payload_bytes => {
            tier.store.read(version, theirs, payload)
        }
        _ => Err(StoreError::frame(version, frame, "another version of the same number".to_owned())),
    }
}

/// A rank's part of a version: written to the first tier that takes it, kept for the others.
struct TiersDraft {
    state: Arc<Mutex<TiersState>>,
    version: u64,
    first: Result<Box<dyn Draft>, StoreError>,
    pending: Pending,
}

impl Draft for TiersDraft {
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame], next: NextCall) -> Result<(), StoreError> {
        if self.pending.due.len() > 1 {
            self.pending.keep(variable, frames, next);
        }
        let clock = SystemClock::new();
        if let Ok(draft) = &mut self.first
            && let Err(error) = draft.write(variable, frames, next)
        {
            self.first = Err(error);
        }
        self.pending.seconds += clock.now().as_secs_f64();
        match &self.first {
            Err(_) if self.pending.due.len() == 1 => Err(self.take_error()),
            _ => Ok(()),
        }
    }

    fn seal(mut self: Box<Self>) -> Result<Sealed, StoreError> {
        let first = std::mem::replace(&mut self.first, Err(StoreError::Missing { version: self.version }));
        let clock = SystemClock::new();
        let sealed = first.and_then(|draft| draft.seal());
        self.pending.seconds += clock.now().as_secs_f64();
        let sealed = match sealed {
            Ok(sealed) => sealed,
            Err(error) if self.pending.due.len() == 1 => return Err(error),
            Err(error) => {
                self.pending.failure = Some(error);
                Sealed::default()
            }
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sealed.insert(self.version, std::mem::take(&mut self.pending));
        Ok(sealed)
    }
}

impl TiersDraft {
    fn take_error(&mut self) -> StoreError {
        let none = Err(StoreError::Missing { version: self.version });
        std::mem::replace(&mut self.first, none).err().unwrap_or(StoreError::Missing { version: self.version })
    }
}
