//! Restore: the newest version that is complete, whole and of this problem on all ranks.
//!
//! Others may use what was restored and the reader of chains; retention serves the worker too.

mod candidate;
mod chain_reader;
mod portions;
mod retention;
mod sources;

use recoup_core::{
    Comm, CommError, CommonError, DeviceSnapshot, Difference, ErrorKind, Iteration, Manifest, Note, Progress,
    RankFailure, Registered, ResidualRecord, Resume, Scheme, SolveError, SystemRecord, Tiered, Variable,
    VariableRecord, agreed, broadcast_json, each, from_rank_0, gather_json, gather_unlike,
};

use self::candidate::{Candidate, overwrite_variables, room_for};
use self::portions::{Asked, PartIndex, Spreads, spreads};
use self::sources::VariableSource;
use crate::encode::{Base, Decoded};
use crate::error::{PipelineError, ProblemSize, Skipped, as_damage, device_values_error};
use crate::session::{Session, check_variables};
use crate::staging::{Buffer, PlacedValues, record};

pub use self::candidate::Guess;
pub use self::chain_reader::{ChainReader, Whole};
pub(crate) use self::retention::{Keeper, Swept, manages_versions};
pub use self::retention::{PublishedVersion, Retention, Sweep};
pub use self::sources::VariableChanges;

/// A version that came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    /// The version.
    pub version: u64,
    /// The iteration to continue from: the version itself, less the start of its system.
    pub iteration: u64,
    /// The system it belongs to, where the run solves many.
    pub system: Option<SystemRecord>,
    /// Ranks that wrote it; where this job has another number, its rows were redistributed, and the
    /// next version stands alone.
    pub ranks: usize,
    /// The scheme it was saved under.
    pub scheme: Scheme,
    /// The most faithful resume it holds enough for.
    pub resume: Resume,
    /// The method that saved it, where it is not the solver's: its iterate alone was restored.
    pub other_method: Option<String>,
    /// The residual stored with it.
    pub residual: ResidualRecord,
    /// The quality of its iterate for this problem, where it belongs to another one. Directions and
    /// what a recurrence needs were then left as they are.
    pub guess: Option<Guess>,
    /// Time it took, on the run's clock. Virtual time has not been moved yet.
    pub seconds: f64,
    /// Variables that it lacks and that were declared with a default: the program's values stay.
    pub defaults: Vec<String>,
    /// Newer versions that were not whole.
    pub skipped: Vec<Skipped>,
    /// The tiers it was read from, and what had to be repaired or passed over; the same on all
    /// ranks.
    pub notes: Vec<Note>,
}

impl Restored {
    /// Returns the names of the tiers its frames were read from; none where the store is not made
    /// of tiers.
    #[must_use]
    pub fn tiers(&self) -> Vec<&str> {
        let read = |note: &'_ Note| matches!(note, Note::Read { version, .. } if *version == self.version);
        let names = self.notes.iter().filter(|note| read(note)).filter_map(|note| match note {
            Note::Read { tier, .. } => Some(tier.as_str()),
            _ => None,
        });
        names.collect()
    }
}

impl Restored {
    fn of(candidate: &Candidate, guess: Option<Guess>, skipped: Vec<Skipped>) -> Self {
        let manifest = &candidate.manifest;
        let is_iterate_alone = guess.is_some() || candidate.other_method.is_some();
        Self {
            version: manifest.version,
            iteration: manifest.version - manifest.system.map_or(0, |system| system.start.min(manifest.version)),
            system: manifest.system,
            ranks: manifest.ranks,
            scheme: manifest.scheme,
            resume: if is_iterate_alone { Resume::Restarted } else { manifest.resume },
            other_method: candidate.other_method.clone(),
            guess,
            residual: manifest.residual,
            seconds: 0.0,
            defaults: candidate.defaults.clone(),
            skipped,
            notes: Vec::new(),
        }
    }

    /// Logs the variables that are not from the version.
    fn log_defaults(&self) {
        for variable in &self.defaults {
            tracing::warn!("version {} has no {variable}: the program's values stay", self.version);
        }
    }

    /// Logs which newer versions were not taken, and what the first fault of each was.
    fn log_skipped(&self) {
        for Skipped { version, damage, .. } in &self.skipped {
            let first = damage.first().map_or("damaged", String::as_str);
            let rest = damage.len().saturating_sub(1);
            let more = if rest > 0 { format!(" (and {rest} more faults)") } else { String::new() };
            tracing::warn!("version {version} is passed over for version {}: {first}{more}", self.version);
        }
    }
}

impl Session {
    /// Brings a solver back: overwrites its variables from the newest usable version and resumes
    /// it as faithfully as the version allows. `None` when there is no version. Collective.
    ///
    /// # Errors
    /// [`PipelineError::NoUsable`] when there are versions but none is whole,
    /// [`PipelineError::OtherProblem`], [`PipelineError::RankCount`].
    pub fn restore(&mut self, solver: &mut dyn Iteration) -> Result<Option<Restored>, PipelineError> {
        let method = solver.method();
        self.method = method;
        let Some(restored) = self.restore_variables(&mut [solver], method)? else { return Ok(None) };
        if let Some((other, method)) = restored.other_method.as_deref().zip(method) {
            let version = restored.version;
            tracing::warn!("version {version} was saved by {other}: {method} starts from its iterate alone");
        }
        let mut how = restored.resume;
        loop {
            match (solver.resume(restored.iteration, how), weaker_resume(how)) {
                (Ok(progress), _) => {
                    if how != restored.resume {
                        self.resumed_weaker(&restored, how, &progress);
                    }
                    return Ok(Some(Restored { resume: how, ..restored }));
                }
                (Err(SolveError::Resume { .. }), Some(next)) => how = next,
                (Err(error), _) => return Err(error.into()),
            }
        }
    }

    /// Takes note that a solve continues less faithfully than its version allows: with another
    /// residual than that of the state that was saved.
    fn resumed_weaker(&mut self, restored: &Restored, how: Resume, progress: &Progress) {
        let Restored { version, resume, .. } = restored;
        tracing::warn!(
            "version {version} holds enough for the {resume} resume, which this solve refuses: {how} resume"
        );
        self.residuals.kept_best(progress.relative_residual());
    }

    /// Overwrites the variables of all owners, in the order they were saved. Collective.
    ///
    /// # Errors
    /// As [`Session::restore`], and [`PipelineError::Device`] where values are stored elsewhere
    /// without room for more. After an error no variable has been touched, except after
    /// [`PipelineError::RestoredInPart`].
    pub fn restore_with(&mut self, owners: &mut [&mut dyn Registered]) -> Result<Option<Restored>, PipelineError> {
        Ok(self.restore_variables(owners, None)?)
    }

    /// Restores as [`Session::restore_with`] does, for the variables of a method.
    fn restore_variables(
        &mut self,
        owners: &mut [&mut dyn Registered],
        method: Option<&str>,
    ) -> Result<Option<Restored>, CommonError<PipelineError>> {
        let waited = self.wait();
        self.give_up_drains();
        // Whatever is found, nothing must be coded against a version that may be set aside.
        let is_ready = waited.and_then(|()| self.link.restart(Base::default()));
        agreed(self.comm.as_ref(), is_ready)?;
        let start = self.costs.clock.now();
        let mut asked = self.prepare_store(owners)?;
        let store = self.store.clone();
        let mut reader = ChainReader::new(store.as_ref(), self.codecs);
        let mut skipped = Vec::new();
        for version in self.agreed_versions()?.into_iter().rev() {
            if let Some(there) = self.other_system_of(version).map_err(CommonError::lift)? {
                // What is newer and not whole is of the system at hand.
                if self.systems.has_begun(there.index) || !skipped.is_empty() {
                    return self.restored_nothing(Some(version), skipped);
                }
                return Err(CommonError::alike(self.other_system(version, there)));
            }
            let manifest = self.portion(version, &mut asked, &mut reader)?;
            let candidate = self.candidate(manifest, method, owners, &mut reader);
            match self.verdict(candidate)? {
                Ok(mut candidate) => {
                    if self.costs.clock.is_virtual() {
                        let frames = || std::mem::take(&mut candidate.frames_read);
                        candidate.frames_read = broadcast_json(self.comm.as_ref(), frames)?;
                    }
                    let guess = self.guess(&candidate, owners)?;
                    self.set_aside_newer(Some(version))?;
                    each(self.comm.as_ref(), overwrite_variables(&candidate, guess, owners))?;
                    let mut restored = Restored::of(&candidate, guess, skipped);
                    restored.log_skipped();
                    restored.log_defaults();
                    restored.notes = self.notes()?;
                    restored.seconds = self.costs.clock.recovery_seconds(start, &candidate.frames_read);
                    self.account_for(&restored, &candidate.manifest);
                    let chain = broadcast_json(self.comm.as_ref(), || reader.chain(&candidate.manifest))?;
                    let base = Base { chain, variables: candidate.into_parents(), tracked: Vec::new() };
                    let chained = self.link.restart(base);
                    agreed(self.comm.as_ref(), chained)?;
                    return Ok(Some(restored));
                }
                Err(errors) => skipped.push(Skipped {
                    version,
                    kind: errors.first().map_or(ErrorKind::Damaged, |first| as_damage(first.kind)),
                    damage: errors.into_iter().map(|error| error.message).collect(),
                }),
            }
        }
        if skipped.is_empty() {
            return self.restored_nothing(None, skipped);
        }
        self.restored_nothing(None, Vec::new())?;
        Err(CommonError::alike(PipelineError::NoUsable { versions: skipped }))
    }

    /// Ends a restore that found nothing of the system at hand. Where older systems have versions,
    /// of which `older` is the newest, those of this one are put out of the way.
    fn restored_nothing(
        &mut self,
        older: Option<u64>,
        skipped: Vec<Skipped>,
    ) -> Result<Option<Restored>, CommonError<PipelineError>> {
        for note in self.notes()? {
            tracing::warn!(%note, "nothing was restored");
        }
        for Skipped { version, damage, .. } in &skipped {
            let first = damage.first().map_or("damaged", String::as_str);
            tracing::warn!("version {version} is passed over, and its system starts from the beginning: {first}");
        }
        if !skipped.is_empty() {
            self.set_aside_newer(older)?;
        }
        self.restarted(self.systems.start());
        self.residuals.kept_best(f64::INFINITY);
        Ok(None)
    }

    fn other_system(&self, version: u64, there: SystemRecord) -> PipelineError {
        let name = self.store.top(version).map(|manifest| manifest.name).unwrap_or_default();
        let here = self.systems.here.map_or(0, |system| system.index);
        PipelineError::OtherSystem { version, name, here, there: there.index }
    }

    /// Puts all versions out of the way, to start from nothing where none is usable. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Store`].
    pub fn start_over(&mut self) -> Result<(), PipelineError> {
        let is_ready = self.wait().and_then(|()| self.link.restart(Base::default()));
        agreed(self.comm.as_ref(), is_ready)?;
        self.set_aside_newer(None)?;
        self.restarted(self.systems.start());
        self.residuals.kept_best(f64::INFINITY);
        Ok(())
    }

    /// Takes over what the process before had measured, and starts a new interval.
    fn account_for(&mut self, restored: &Restored, manifest: &Manifest) {
        self.costs.recall(manifest.measured.as_ref());
        self.costs.recovered(restored.version, restored.scheme, restored.resume, restored.seconds);
        self.restarted(restored.version);
        self.systems.restored(restored.version, restored.system);
        self.residuals.kept_best(restored.residual.norm / restored.residual.rhs_norm);
    }

    /// Returns rank 0's list of versions, on every rank.
    pub(crate) fn agreed_versions(&self) -> Result<Vec<u64>, CommonError<PipelineError>> {
        from_rank_0(self.comm.as_ref(), || self.store.versions()).map_err(CommonError::lift)
    }

    /// Reads this rank's part of a version, whose manifest it gets; all that is damaged of it,
    /// where an older one is to be tried.
    ///
    /// # Errors
    /// The version is not ours; older ones are not either.
    fn candidate(
        &self,
        manifest: Result<Manifest, Vec<PipelineError>>,
        method: Option<&str>,
        owners: &mut [&mut dyn Registered],
        reader: &mut ChainReader<'_>,
    ) -> Result<Result<Candidate, Vec<PipelineError>>, PipelineError> {
        let manifest = match manifest {
            Ok(manifest) => manifest,
            Err(damage) => return Ok(Err(damage)),
        };
        let difference = self.check_problem(&manifest)?;
        let is_other = |other: &String| method.is_some_and(|method| method != other.as_str());
        let other_method = manifest.method.clone().filter(is_other);
        // The variables of another method may bear the same names, and mean something else.
        let resume = if other_method.is_some() { Resume::Restarted } else { manifest.resume };
        let located = locate_variables(&manifest, owners, self.comm.as_ref(), resume, &self.changes)?;
        let mut variables = Vec::with_capacity(located.len());
        let mut defaults = Vec::new();
        let mut damage = Vec::new();
        let is_as_written = |(name, source): &(String, Option<VariableSource>)| matches!(source, Some(VariableSource::Own(record)) if record.name == *name);
        let is_own = other_method.is_none() && located.iter().all(is_as_written);
        for (name, source) in located {
            let Some(source) = source else {
                defaults.push(name);
                continue;
            };
            let record = VariableRecord { name, ..source.record().clone() };
            let room = room_for(&record, owners)?;
            match read_variable(reader, &manifest, source, room) {
                Ok(decoded) => variables.push(Decoded { record, ..decoded }),
                Err(errors) => {
                    // A place that fails says nothing about the version.
                    let is_place = |error: &PipelineError| matches!(error, PipelineError::Device { .. });
                    damage.extend(errors);
                    if let Some(index) = damage.iter().position(is_place) {
                        return Err(damage.swap_remove(index));
                    }
                }
            }
        }
        if !damage.is_empty() {
            return Ok(Err(damage));
        }
        // Rank 0 alone knows all frames, whose cost all ranks are charged.
        let is_charged = self.costs.clock.is_virtual() && self.comm.rank() == 0;
        let frames_read = if is_charged { reader.frames_read(&manifest) } else { Ok(Vec::new()) };
        let whole =
            |frames_read| Candidate { manifest, variables, defaults, is_own, frames_read, difference, other_method };
        Ok(frames_read.map(whole).map_err(|error| vec![error]))
    }

    /// Returns how the problem of a version differs from this one, where it may.
    fn check_problem(&self, manifest: &Manifest) -> Result<Option<Difference>, PipelineError> {
        let Some((problem, found)) = self.problem.as_ref().zip(manifest.fingerprint) else { return Ok(None) };
        match problem.fingerprint.difference(&found) {
            Some(difference) if self.same_operator || matches!(difference, Difference::Size { .. }) => {
                let here = ProblemSize { rows: problem.fingerprint.rows, nonzeros: problem.nonzeros };
                let there = ProblemSize { rows: found.rows, nonzeros: manifest.nonzeros };
                let name = manifest.name.clone();
                Err(PipelineError::OtherProblem { version: manifest.version, name, here, there, difference })
            }
            difference => Ok(difference),
        }
    }

    /// Comes to the same verdict on every rank: this rank's part of a version that is whole on all,
    /// or what any of them found damaged.
    fn verdict(
        &self,
        candidate: Result<Result<Candidate, Vec<PipelineError>>, PipelineError>,
    ) -> Result<Result<Candidate, Vec<RankFailure>>, CommonError<PipelineError>> {
        let is_whole = matches!(candidate, Ok(Ok(_)));
        if self.comm.min(i64::from(is_whole))? > 0
            && let Ok(Ok(whole)) = candidate
        {
            return Ok(Ok(whole));
        }
        let failure = |error| RankFailure::of(self.comm.rank(), error);
        let (damage, foreign) = match &candidate {
            Ok(Ok(_)) => (Vec::new(), None),
            Ok(Err(errors)) => (errors.iter().map(failure).collect(), None),
            Err(error) => (Vec::new(), Some(failure(error))),
        };
        let all = gather_json(self.comm.as_ref(), &(damage, foreign))?;
        let first_foreign = all.iter().find_map(|(_, foreign)| foreign.clone());
        match (first_foreign, candidate) {
            (Some(_), Err(error)) => Err(CommonError::alike(error)),
            (Some(failure), _) => Err(CommonError::alike(failure.into())),
            (None, Ok(Ok(candidate))) if all.iter().all(|(damage, _)| damage.is_empty()) => Ok(Ok(candidate)),
            _ => Ok(Err(all.into_iter().flat_map(|(damage, _)| damage).collect())),
        }
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<(), CommonError<PipelineError>> {
        let manages_versions = manages_versions(self.store.as_ref(), self.comm.as_ref());
        let mine = if manages_versions { self.store.set_aside_newer(version).map(drop) } else { Ok(()) };
        agreed(self.comm.as_ref(), mine).map_err(CommonError::lift)
    }

    /// Asks the store to bring back what the ranks will read. Returns that. Collective.
    fn prepare_store(&self, owners: &[&mut dyn Registered]) -> Result<Asked, CommonError<PipelineError>> {
        let mut asked = Asked::new(spreads(owners));
        let Some(tiered) = self.store.as_tiered() else { return Ok(asked) };
        let of_all = asked.of_all(self.comm.as_ref())?;
        let reads = |manifest: &Manifest| {
            let index = PartIndex::of(manifest);
            let reads = |(rank, spreads): (usize, &Spreads)| index.read_by(rank, spreads).into_iter().collect();
            of_all.into_iter().flatten().enumerate().map(reads).collect()
        };
        tiered.prepare_restore(self.comm.as_ref(), &reads).map_err(CommonError::lift)?;
        Ok(asked)
    }

    /// Gathers what the ranks' stores have to say, on every rank.
    pub(crate) fn notes(&self) -> Result<Vec<Note>, CommError> {
        let mine = self.store.as_tiered().map(Tiered::take_notes).unwrap_or_default();
        let all = gather_unlike(self.comm.as_ref(), &mine)?;
        let mut notes: Vec<Note> = all.into_iter().flatten().collect();
        notes.sort_unstable();
        notes.dedup();
        Ok(notes)
    }
}

/// Finds the variables the owners expect from a version for a resume, each compared with what is
/// registered: its name of now and its values, or none for a variable that may lack them.
fn locate_variables(
    manifest: &Manifest,
    owners: &mut [&mut dyn Registered],
    comm: &dyn Comm,
    resume: Resume,
    changes: &VariableChanges,
) -> Result<Vec<(String, Option<VariableSource>)>, PipelineError> {
    let mut held = if resume == manifest.resume { sources::names(manifest, comm) } else { Vec::new() };
    let renames: Vec<&str> =
        changes.renames(manifest).filter(|(_, former)| held.contains(former)).map(|(now, _)| now).collect();
    held.extend(renames);
    owners.iter_mut().for_each(|owner| owner.make_room(&held));
    let shared: Vec<&dyn Registered> = owners.iter().map(|owner| &**owner).collect();
    let variables: Vec<_> = shared.iter().flat_map(|owner| owner.variables()).collect();
    check_variables(&variables)?;
    check_columns(manifest, &variables)?;
    let mut located = Vec::new();
    let mut taken = Vec::new();
    for v in variables.iter().filter(|v| v.role.is_saved_for(resume)) {
        let name = v.name.to_owned();
        match changes.saved_name(v.name, manifest) {
            Some(saved) => {
                let source = sources::find(manifest, v, saved, record(v, comm.rank()), comm)?;
                taken.push(saved.to_owned());
                located.push((name, Some(source)));
            }
            None if changes.has_default(v.name) => located.push((name, None)),
            None => return Err(sources::lacks(manifest, v.name, comm)),
        }
    }
    if resume == manifest.resume {
        for name in changes.left_over(manifest, &taken) {
            tracing::warn!("version {} has {name}, which is registered no more: it is left out", manifest.version);
        }
    }
    Ok(located)
}

/// Refuses a version of another number of columns: a block is restored as a whole.
fn check_columns(manifest: &Manifest, variables: &[Variable<'_>]) -> Result<(), PipelineError> {
    let count = |largest: Option<usize>| largest.map_or(0, |column| column + 1);
    let registered = count(variables.iter().filter_map(|variable| variable.column).max());
    let saved = count(manifest.variables.iter().filter_map(|variable| variable.column).max());
    let Some(first) = variables.iter().find(|variable| variable.column.is_some() && registered != saved) else {
        return Ok(());
    };
    let what = format!("{registered} columns registered, {saved} saved");
    Err(PipelineError::Variable { version: manifest.version, variable: first.name.to_owned(), rank: 0, what })
}

/// Reads and decodes one variable, to `room` if its values are stored elsewhere. One put together
/// from pieces has no hashes, so nothing is coded against it.
fn read_variable(
    reader: &mut ChainReader<'_>,
    manifest: &Manifest,
    source: VariableSource,
    room: Option<Box<dyn DeviceSnapshot>>,
) -> Result<Decoded, Vec<PipelineError>> {
    let (record, pieces) = match source {
        VariableSource::Own(record) => return reader.variable(manifest, &record, room),
        VariableSource::Pieces { target, pieces } => (target, pieces),
    };
    let mut values = Buffer::new(record.element);
    values.resize(record.len as usize);
    let errors = pieces.iter().filter_map(|piece| reader.piece(manifest, piece, &mut values).err());
    let errors: Vec<PipelineError> = errors.flatten().collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let values = match room {
        None => PlacedValues::Host(values),
        Some(mut room) => {
            room.put(0, values.all()).map_err(|error| vec![device_values_error(&record)(error)])?;
            PlacedValues::Held(room)
        }
    };
    Ok(Decoded { version: manifest.version, record, values, hashes: Vec::new() })
}

/// Returns the next less faithful resume.
fn weaker_resume(how: Resume) -> Option<Resume> {
    match how {
        Resume::Exact => Some(Resume::Traditional),
        Resume::Traditional => Some(Resume::Deflated),
        Resume::Deflated => Some(Resume::Restarted),
        Resume::Restarted => None,
    }
}
