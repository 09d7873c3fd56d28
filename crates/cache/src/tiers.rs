//! Tiers: stores in a row, fastest first, each with its own interval and its own versions.
//!
//! A version is coded once. It counts as soon as the first tier that takes it has published it, and goes on from there to
//! the others that are due; a tier that cannot take it is passed over, named, and due again next time. It is read frame by
//! frame from the fastest tier that has it whole, so damage in one is made good by the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{
    Comm, Damage, Draft, FileRecord, Frame, FrameRecord, Manifest, Note, Place, Reads, Sealed, Store, StoreError, Tier,
    VariableRecord, agreed,
};
use serde::{Deserialize, Serialize};

/// Several stores as one.
#[derive(Debug)]
pub struct Tiers {
    tiers: Vec<Tier>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    rank: usize,
    /// Versions published so far, on all ranks alike.
    sequence: u64,
    /// Tiers that failed to take the version they were due for.
    overdue: Vec<bool>,
    /// Which tiers hold each version.
    placed: BTreeMap<u64, Vec<bool>>,
    sealed: BTreeMap<u64, Pending>,
    /// Of versions being read, by tier.
    manifests: BTreeMap<(String, u64), Arc<Manifest>>,
    notes: BTreeSet<Note>,
}

/// This rank's part of a version between seal and publish.
#[derive(Debug, Default)]
struct Pending {
    /// Tiers that take it, ascending.
    due: Vec<usize>,
    /// How the first of them fared.
    failure: Option<StoreError>,
    /// What the others get.
    variables: Vec<(VariableRecord, Vec<Frame>)>,
}

/// Where one tier put this rank's frames, in their order.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Placed {
    places: Vec<Option<Place>>,
    files: Vec<FileRecord>,
}

impl Tiers {
    /// The stores of `rank`, fastest first; the first takes every version. All ranks give the same.
    ///
    /// # Panics
    /// For no tiers.
    #[must_use]
    pub fn new(mut tiers: Vec<Tier>, rank: usize) -> Self {
        assert!(!tiers.is_empty(), "at least one tier");
        tiers[0].every = 1;
        let state = State { rank, overdue: vec![false; tiers.len()], ..State::default() };
        Self { tiers, state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tiers the next version goes to.
    fn due(&self) -> Vec<usize> {
        let state = self.lock();
        let is_due = |&i: &usize| state.overdue[i] || state.sequence.is_multiple_of(self.tiers[i].every.max(1));
        (0..self.tiers.len()).filter(is_due).collect()
    }

    /// The tiers in which this rank makes the calls that change what there is.
    fn acting(&self) -> impl Iterator<Item = &Tier> {
        let rank = self.lock().rank;
        self.tiers.iter().filter(move |tier| rank == 0 || !tier.store.is_shared())
    }

    /// The tiers that hold a version, fastest first.
    fn holding(&self, version: u64) -> impl Iterator<Item = &Tier> {
        self.tiers.iter().filter(move |tier| tier.store.versions().is_ok_and(|v| v.binary_search(&version).is_ok()))
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
        let note = Note::Passed { version, tier: tier.name.clone(), what: error.to_string() };
        tracing::warn!(%note, "tier passed over");
        self.lock().notes.insert(note);
    }

    /// Writes this rank's part of a version to a tier that was not written to directly. Collective.
    fn drain(
        &self,
        tier: &Tier,
        pending: &mut Pending,
        manifest: &Manifest,
        comm: &dyn Comm,
    ) -> Result<(), StoreError> {
        let version = manifest.version;
        let first = (comm.rank() == 0).then(|| tier.store.begin(version, 0));
        comm.barrier()?;
        let draft = first.unwrap_or_else(|| tier.store.begin(version, comm.rank()));
        let mine = draft.and_then(|draft| write_all(draft, &mut pending.variables));
        let words = mine.as_ref().map(drop).map_err(|e| StoreError::Rank { rank: comm.rank(), message: e.to_string() });
        agreed(comm, words)?;
        let lie = |e: serde_json::Error| StoreError::Manifest { version, what: e.to_string() };
        let parts = comm.gather(&serde_json::to_vec(&mine?).map_err(lie)?)?;
        let mut manifest = Manifest { files: Vec::new(), ..manifest.clone() };
        let mut places = Vec::new();
        for part in &parts {
            let part: Placed = serde_json::from_slice(part).map_err(lie)?;
            places.extend(part.places);
            manifest.files.extend(part.files);
        }
        manifest.frames.iter_mut().zip(places).for_each(|(frame, place)| frame.place = place);
        tier.store.publish(&manifest, comm)
    }

    /// A version into one of the tiers it is due in. Collective.
    fn publish_in(
        &self,
        (position, index): (usize, usize),
        pending: &mut Pending,
        manifest: &Manifest,
        comm: &dyn Comm,
    ) -> Result<(), StoreError> {
        let tier = &self.tiers[index];
        let published = if position == 0 {
            let failure = pending.failure.take();
            agreed(comm, failure.map_or(Ok(()), Err)).and_then(|()| tier.store.publish(manifest, comm))
        } else {
            self.drain(tier, pending, manifest, comm)
        };
        published.inspect_err(|_| {
            if comm.rank() == 0 || !tier.store.is_shared() {
                // The first error is the one to report; a draft that stays never counts.
                tier.store.discard_drafts().ok();
            }
        })
    }
}

/// Writes frames to a draft and seals it; where it put them.
fn write_all(mut draft: Box<dyn Draft>, variables: &mut [(VariableRecord, Vec<Frame>)]) -> Result<Placed, StoreError> {
    for (variable, frames) in variables.iter_mut() {
        draft.write(variable, frames)?;
    }
    let places = variables.iter().flat_map(|(_, frames)| frames.iter().map(|f| f.record.place.clone())).collect();
    Ok(Placed { places, files: draft.seal()?.files })
}

impl Store for Tiers {
    fn is_shared(&self) -> bool {
        false
    }

    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        if self.holding(version).next().is_some() {
            return Err(StoreError::Exists { version });
        }
        let due = self.due();
        let first = self.tiers[due[0]].store.begin(version, rank);
        let pending = Pending { due, ..Pending::default() };
        Ok(Box::new(TiersDraft { state: self.state.clone(), version, first, pending }))
    }

    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<(), StoreError> {
        let version = manifest.version;
        let pending = self.lock().sealed.remove(&version);
        agreed(comm, if pending.is_some() { Ok(()) } else { Err(StoreError::Missing { version }) })?;
        let mut pending = pending.ok_or(StoreError::Missing { version })?;
        let mut placed = vec![false; self.tiers.len()];
        let mut first_error = None;
        for (position, index) in pending.due.clone().into_iter().enumerate() {
            let published = self.publish_in((position, index), &mut pending, manifest, comm);
            placed[index] = published.is_ok();
            self.lock().overdue[index] = published.is_err();
            match published {
                Err(error @ StoreError::Comm(_)) => return Err(error),
                Err(error) => {
                    self.pass(version, &self.tiers[index], &error);
                    first_error.get_or_insert(error);
                }
                Ok(()) => {}
            }
        }
        match first_error {
            Some(error) if !placed.contains(&true) => Err(error),
            _ => {
                let mut state = self.lock();
                state.sequence += 1;
                state.manifests.clear();
                state.placed.insert(version, placed);
                Ok(())
            }
        }
    }

    fn settle(&self, comm: &dyn Comm, reads: &Reads<'_>) -> Result<(), StoreError> {
        for tier in &self.tiers {
            tier.store.settle(comm, reads)?;
        }
        let sequence = self.lock().sequence;
        let sequence = u64::try_from(comm.max(i64::try_from(sequence).unwrap_or(i64::MAX))?).unwrap_or(0);
        // A rank that came later knows of no tier that is overdue.
        let mut overdue = Vec::with_capacity(self.tiers.len());
        for index in 0..self.tiers.len() {
            let mine = self.lock().overdue[index];
            overdue.push(comm.max(i64::from(mine))? > 0);
        }
        let mut placed: BTreeMap<u64, Vec<bool>> = BTreeMap::new();
        for (index, tier) in self.tiers.iter().enumerate() {
            for version in tier.store.versions()? {
                placed.entry(version).or_insert_with(|| vec![false; self.tiers.len()])[index] = true;
            }
        }
        let mut state = self.lock();
        state.manifests.clear();
        (state.rank, state.sequence, state.overdue, state.placed) = (comm.rank(), sequence, overdue, placed);
        Ok(())
    }

    fn can_follow(&self, version: u64, parent: u64) -> bool {
        let due = self.due();
        let placed = self.lock().placed.get(&parent).cloned();
        let holds =
            |&i: &usize| placed.as_ref().is_some_and(|p| p[i]) && self.tiers[i].store.can_follow(version, parent);
        due.iter().all(holds)
    }

    fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    fn take_notes(&self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.lock().notes);
        for tier in &self.tiers {
            notes.extend(tier.store.take_notes().into_iter().map(|note| match note {
                Note::Dropped { version, what } => Note::Passed { version, tier: tier.name.clone(), what },
                other => other,
            }));
        }
        notes.into_iter().collect()
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.lock().sealed.clear();
        self.acting().try_for_each(|tier| tier.store.discard_drafts())
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

    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        let mut errors = Vec::new();
        for tier in self.holding(version) {
            let manifest = self.manifest_in(tier, version);
            match manifest.and_then(|manifest| read_in((tier, &manifest), version, frame, payload)) {
                Ok(()) => {
                    self.lock().notes.insert(Note::Read { version, tier: tier.name.clone() });
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
        let (variable, rank, run) = (frame.variable.clone(), frame.rank, frame.run);
        Err(StoreError::Frame { version, variable, rank, run, what: errors.join("; ") })
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        let found: Result<Vec<_>, _> = self.holding(version).map(|tier| tier.store.inspect_damage(version)).collect();
        // One tier that has it whole is enough.
        found?.into_iter().min_by_key(Vec::len).ok_or(StoreError::Missing { version })
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        let mut newer = BTreeSet::new();
        self.lock().manifests.clear();
        for tier in self.acting() {
            newer.extend(tier.store.set_aside_newer(version)?);
        }
        Ok(newer.into_iter().collect())
    }

    fn remove(&self, version: u64) -> Result<(), StoreError> {
        if self.holding(version).next().is_none() {
            return Err(StoreError::Missing { version });
        }
        let holds = |tier: &&Tier| tier.store.versions().is_ok_and(|v| v.binary_search(&version).is_ok());
        self.acting().filter(holds).try_for_each(|tier| tier.store.remove(version))
    }
}

/// A frame as one tier has it: the same bytes, at a place of its own.
fn read_in(
    (tier, manifest): (&Tier, &Manifest),
    version: u64,
    frame: &FrameRecord,
    payload: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let same = |f: &&FrameRecord| (f.rank, f.run, &f.variable) == (frame.rank, frame.run, &frame.variable);
    match manifest.frames.iter().find(same) {
        Some(theirs) if theirs.crc32c == frame.crc32c && theirs.payload_bytes == frame.payload_bytes => {
            tier.store.read(version, theirs, payload)
        }
        _ => Err(StoreError::Frame {
            version,
            variable: frame.variable.clone(),
            rank: frame.rank,
            run: frame.run,
            what: "another version of the same number".to_owned(),
        }),
    }
}

/// This rank's part of a version: written to the first tier that takes it, kept for the others.
struct TiersDraft {
    state: Arc<Mutex<State>>,
    version: u64,
    first: Result<Box<dyn Draft>, StoreError>,
    pending: Pending,
}

impl Draft for TiersDraft {
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame]) -> Result<(), StoreError> {
        if self.pending.due.len() > 1 {
            self.pending.variables.push((variable.clone(), frames.to_vec()));
        }
        if let Ok(draft) = &mut self.first
            && let Err(error) = draft.write(variable, frames)
        {
            self.first = Err(error);
        }
        match &self.first {
            Err(_) if self.pending.due.len() == 1 => Err(self.take_error()),
            _ => Ok(()),
        }
    }

    fn seal(mut self: Box<Self>) -> Result<Sealed, StoreError> {
        let first = std::mem::replace(&mut self.first, Err(StoreError::Missing { version: self.version }));
        let sealed = match first.and_then(|draft| draft.seal()) {
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
