//! Restore: the newest version that is complete, whole and of this problem on all ranks.

use recoup_core::{
    Difference, Iteration, Manifest, Note, Registered, ResidualRecord, Resume, Role, Scheme, SolveError, StoreError,
    Tiered, VariableMut, agreed, from_rank_0, gather_json,
};

use crate::candidate::Candidate;
use crate::chain::{Base, Decoded};
use crate::error::Skipped;
use crate::guess::is_given;
use crate::keeper::manages_versions;
use crate::redistribute::{self, Place, Wanted};
use crate::staging::{self, Buffer};
use crate::timing::since;
use crate::{ChainReader, Guess, PipelineError, ProblemSize, Session, Timing, registry};

/// A version that came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    /// The version, and the iteration to go on from.
    pub version: u64,
    /// Ranks that wrote it; where this job has another number, its rows were spread anew, and the
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
    /// How good its iterate is for this problem, where it belongs to another one. Directions and
    /// what a recurrence needs were then left as they are.
    pub guess: Option<Guess>,
    /// Time it took, on the run's clock. Virtual time has not been moved yet.
    pub seconds: f64,
    /// Newer versions that were not whole.
    pub skipped: Vec<Skipped>,
    /// The tiers it was read from, and what had to be repaired or passed over; the same on all
    /// ranks.
    pub notes: Vec<Note>,
}

impl Restored {
    /// The names of the tiers its frames were read from; none where the store is not made of tiers.
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
    /// Says which newer versions were not taken, and what the first fault of each was.
    fn tell_skipped(&self) {
        for Skipped { version, damage } in &self.skipped {
            let (first, rest) = (damage.first().map_or("damaged", String::as_str), damage.len().saturating_sub(1));
            let more = if rest > 0 { format!(" (and {rest} more faults)") } else { String::new() };
            tracing::warn!("version {version} is passed over for version {}: {first}{more}", self.version);
        }
    }
}

/// Why a version is not the one.
enum Refusal {
    /// It is damaged; try an older one.
    Damaged(Vec<String>),
    /// It is not ours; older ones are not either.
    Foreign(PipelineError),
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
        self.marks.method = method;
        let Some(restored) = self.restored(&mut [solver], method)? else { return Ok(None) };
        if let Some((other, method)) = restored.other_method.as_deref().zip(method) {
            let version = restored.version;
            tracing::warn!(
                "version {version} was saved by {other}: {method} takes its iterate and starts anew from it"
            );
        }
        let mut how = restored.resume;
        loop {
            match (solver.resume(restored.version, how), less_faithful(how)) {
                (Ok(_), _) => return Ok(Some(Restored { resume: how, ..restored })),
                (Err(SolveError::Resume { .. }), Some(next)) => how = next,
                (Err(error), _) => return Err(error.into()),
            }
        }
    }

    /// Overwrites the variables of all owners, in the order they were saved. Collective.
    ///
    /// # Errors
    /// As [`Session::restore`]. After an error no variable has been touched.
    pub fn restore_with(&mut self, owners: &mut [&mut dyn Registered]) -> Result<Option<Restored>, PipelineError> {
        self.restored(owners, None)
    }

    /// As [`Session::restore_with`], for the variables of a method.
    fn restored(
        &mut self,
        owners: &mut [&mut dyn Registered],
        method: Option<&str>,
    ) -> Result<Option<Restored>, PipelineError> {
        self.wait()?;
        self.give_up_drains();
        // Whatever is found, nothing must be coded against a version that may be set aside.
        self.chain_from(Base::default())?;
        let start = self.clock.now();
        self.prepare_store(owners)?;
        let store = self.store.clone();
        let mut reader = ChainReader::new(store.as_ref(), self.codecs);
        let mut skipped = Vec::new();
        for version in self.agreed_versions()?.into_iter().rev() {
            let candidate = self.candidate((version, method), owners, &mut reader);
            match self.verdict(candidate)? {
                Ok(candidate) => {
                    let guess = self.guess(&candidate, owners)?;
                    self.set_aside_newer(Some(version))?;
                    give_out(&candidate, guess, owners);
                    let mut restored = restored(&candidate, guess, skipped);
                    restored.tell_skipped();
                    restored.notes = self.notes()?;
                    restored.seconds = match self.timing {
                        Timing::Real => since(self.clock.now(), start),
                        Timing::Virtual(costs) => costs.recovery_seconds(&candidate.frames_read),
                    };
                    self.meter.recall(candidate.manifest.measured.as_ref());
                    self.meter.recovered(version, (restored.scheme, restored.resume), restored.seconds);
                    self.restarted(version);
                    self.kept_best(restored.residual.norm / restored.residual.rhs_norm);
                    let depth = self.agreed_depth(&mut reader, &candidate.manifest)?;
                    self.chain_from(Base { depth, variables: followed(candidate) })?;
                    return Ok(Some(restored));
                }
                Err(damage) => skipped.push(Skipped { version, damage }),
            }
        }
        for note in self.notes()? {
            tracing::warn!(%note, "nothing was restored");
        }
        self.restarted(0);
        self.kept_best(f64::INFINITY);
        if skipped.is_empty() { Ok(None) } else { Err(PipelineError::NoUsable { versions: skipped }) }
    }

    /// Puts all versions out of the way, to start from nothing where none is usable. Collective.
    ///
    /// # Errors
    /// [`PipelineError::Store`].
    pub fn start_anew(&mut self) -> Result<(), PipelineError> {
        self.wait()?;
        self.chain_from(Base::default())?;
        self.set_aside_newer(None)?;
        self.restarted(0);
        self.kept_best(f64::INFINITY);
        Ok(())
    }

    /// Rank 0's list of versions, on every rank.
    fn agreed_versions(&self) -> Result<Vec<u64>, PipelineError> {
        Ok(from_rank_0(self.comm.as_ref(), || self.store.versions())?)
    }

    /// The depth of a version, where one rank may fail to read what another has read. Collective.
    fn agreed_depth(&self, reader: &mut ChainReader<'_>, manifest: &Manifest) -> Result<usize, PipelineError> {
        let deepest = self.comm.max(i64::try_from(reader.depth(manifest)).unwrap_or(i64::MAX))?;
        Ok(usize::try_from(deepest).unwrap_or(usize::MAX))
    }

    /// What this rank can make of a version.
    fn candidate(
        &self,
        (version, method): (u64, Option<&str>),
        owners: &mut [&mut dyn Registered],
        reader: &mut ChainReader<'_>,
    ) -> Result<Candidate, Refusal> {
        let manifest = match self.store.manifest(version) {
            Ok(manifest) => manifest,
            Err(StoreError::Io { action, path, source }) => {
                return Err(Refusal::Damaged(vec![format!("{action} {path}: {source}")]));
            }
            Err(error) => return Err(Refusal::Damaged(vec![error.to_string()])),
        };
        let difference = self.check_problem(&manifest).map_err(Refusal::Foreign)?;
        let place = Place { rank: self.comm.rank(), ranks: self.comm.size() };
        let is_other = |other: &String| method.is_some_and(|method| method != other.as_str());
        let other_method = manifest.method.clone().filter(is_other);
        // The variables of another method may bear the same names, and mean something else.
        let resume = if other_method.is_some() { Resume::Restarted } else { manifest.resume };
        let wanted = match wanted(&manifest, owners, place, resume) {
            Ok(wanted) => wanted,
            Err(error) => return Err(Refusal::Foreign(error)),
        };
        let mut variables = Vec::with_capacity(wanted.len());
        let mut damage = Vec::new();
        let is_own = other_method.is_none() && wanted.iter().all(|wanted| matches!(wanted, Wanted::Own(_)));
        for wanted in wanted {
            match read(reader, &manifest, wanted) {
                Ok(decoded) => variables.push(decoded),
                Err(errors) => damage.extend(errors.iter().map(ToString::to_string)),
            }
        }
        let frames_read = match self.timing {
            Timing::Virtual(_) if damage.is_empty() => reader.frames_read(&manifest),
            _ => Ok(Vec::new()),
        };
        match (damage.as_slice(), frames_read) {
            ([], Ok(frames_read)) => {
                Ok(Candidate { manifest, variables, is_own, frames_read, difference, other_method })
            }
            ([], Err(error)) => Err(Refusal::Damaged(vec![error.to_string()])),
            _ => Err(Refusal::Damaged(damage)),
        }
    }

    /// How the problem of a version differs from this one, where it may.
    fn check_problem(&self, manifest: &Manifest) -> Result<Option<Difference>, PipelineError> {
        let Some((problem, found)) = self.problem.as_ref().zip(manifest.fingerprint) else { return Ok(None) };
        match problem.fingerprint.difference(&found) {
            Some(difference) if problem.is_fixed || matches!(difference, Difference::Size { .. }) => {
                let here = ProblemSize { rows: problem.fingerprint.rows, nonzeros: problem.nonzeros };
                let there = ProblemSize { rows: found.rows, nonzeros: manifest.nonzeros };
                let (version, name) = (manifest.version, manifest.name.clone());
                Err(PipelineError::OtherProblem { version, name, here, there, difference })
            }
            difference => Ok(difference),
        }
    }

    /// The same verdict on every rank: usable by all, or what each found wrong.
    fn verdict(&self, candidate: Result<Candidate, Refusal>) -> Result<Result<Candidate, Vec<String>>, PipelineError> {
        let (kind, lines) = match &candidate {
            Ok(_) => (0, Vec::new()),
            Err(Refusal::Damaged(lines)) => (1, lines.clone()),
            Err(Refusal::Foreign(error)) => (2, vec![error.to_string()]),
        };
        let worst = self.comm.max(kind)?;
        let all = gather_json(self.comm.as_ref(), &lines)?;
        let everywhere: Vec<String> = all.iter().flatten().cloned().collect();
        match (worst, candidate) {
            (0, Ok(candidate)) => Ok(Ok(candidate)),
            (2, Err(Refusal::Foreign(error))) => Err(error),
            (2, _) => {
                let rank = all.iter().position(|lines| !lines.is_empty()).unwrap_or(0);
                Err(PipelineError::Rank { rank, message: everywhere.join("; ") })
            }
            _ => Ok(Err(everywhere)),
        }
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<(), PipelineError> {
        let manages_versions = manages_versions(self.store.as_ref(), self.comm.as_ref());
        let mine = if manages_versions { self.store.set_aside_newer(version).map(drop) } else { Ok(()) };
        Ok(agreed(self.comm.as_ref(), mine)?)
    }

    /// Every rank finds what it will read.
    fn prepare_store(&self, owners: &[&mut dyn Registered]) -> Result<(), PipelineError> {
        let place = Place { rank: self.comm.rank(), ranks: self.comm.size() };
        let spread = |v: recoup_core::Variable<'_>| (v.distribution, v.values.len() as u64);
        let spreads: Vec<_> = owners.iter().flat_map(|owner| owner.variables()).map(spread).collect();
        let reads = |manifest: &Manifest| redistribute::sources(manifest, &spreads, place);
        let prepare = |tiered: &dyn Tiered| tiered.prepare_restore(self.comm.as_ref(), &reads);
        Ok(self.store.as_tiered().map_or(Ok(()), prepare)?)
    }

    /// What the ranks' stores have to say, on every rank.
    pub(crate) fn notes(&self) -> Result<Vec<Note>, PipelineError> {
        let mine = self.store.as_tiered().map(Tiered::take_notes).unwrap_or_default();
        let all = gather_json(self.comm.as_ref(), &mine)?;
        let mut notes: Vec<Note> = all.into_iter().flatten().collect();
        notes.sort_unstable();
        notes.dedup();
        Ok(notes)
    }
}

/// Where this rank finds the variables the owners expect from a version for a resume, each compared
/// with what is registered.
fn wanted(
    manifest: &Manifest,
    owners: &mut [&mut dyn Registered],
    place: Place,
    resume: Resume,
) -> Result<Vec<Wanted>, PipelineError> {
    let held = if resume == manifest.resume { redistribute::names(manifest, place) } else { Vec::new() };
    owners.iter_mut().for_each(|owner| owner.make_room(&held));
    let shared: Vec<&dyn Registered> = owners.iter().map(|owner| &**owner).collect();
    let variables = registry::collect(&shared)?;
    let saved = variables.iter().filter(|v| v.role.is_saved_for(resume));
    saved.map(|v| redistribute::find(manifest, v, staging::record(v, place.rank), place)).collect()
}

/// Reads and decodes one variable; one put together from pieces has no hashes, so nothing is coded
/// against it.
fn read(reader: &mut ChainReader<'_>, manifest: &Manifest, wanted: Wanted) -> Result<Decoded, Vec<PipelineError>> {
    let version = manifest.version;
    let (record, pieces) = match wanted {
        Wanted::Own(record) => {
            let read = reader.variable(manifest, &record)?;
            return Ok(Decoded { version, record, values: read.values, hashes: read.hashes });
        }
        Wanted::Pieces { target, pieces } => (target, pieces),
    };
    let mut values = Buffer::new(record.element);
    values.resize(record.len as usize);
    let errors = pieces.iter().filter_map(|piece| reader.piece(manifest, piece, &mut values).err());
    let errors: Vec<PipelineError> = errors.flatten().collect();
    if errors.is_empty() { Ok(Decoded { version, record, values, hashes: Vec::new() }) } else { Err(errors) }
}

/// Copies decoded values into the owners' variables.
fn give_out(candidate: &Candidate, guess: Option<Guess>, owners: &mut [&mut dyn Registered]) {
    for owner in owners.iter_mut() {
        for VariableMut { name, values } in owner.variables_mut() {
            let mut given = candidate.variables.iter().filter(|decoded| is_given(decoded.record.role, guess));
            if let Some(decoded) = given.find(|decoded| decoded.record.name == name) {
                decoded.values.copy_to(0, values);
            }
        }
    }
}

/// What the next lossy version may be coded against: the iterate and the directions of a lossy one.
fn followed(candidate: Candidate) -> Vec<Decoded> {
    let is_followed = candidate.is_own && candidate.difference.is_none();
    let is_lossy = candidate.manifest.scheme == Scheme::Lossy && is_followed;
    let is_lossy =
        |d: &Decoded| is_lossy && matches!(d.record.role, Role::Iterate | Role::Direction | Role::Recomputed { .. });
    candidate.variables.into_iter().filter(is_lossy).collect()
}

fn restored(candidate: &Candidate, guess: Option<Guess>, skipped: Vec<Skipped>) -> Restored {
    let manifest = &candidate.manifest;
    let is_iterate_alone = guess.is_some() || candidate.other_method.is_some();
    Restored {
        version: manifest.version,
        ranks: manifest.ranks,
        scheme: manifest.scheme,
        resume: if is_iterate_alone { Resume::Restarted } else { manifest.resume },
        other_method: candidate.other_method.clone(),
        guess,
        residual: manifest.residual,
        seconds: 0.0,
        skipped,
        notes: Vec::new(),
    }
}

fn less_faithful(how: Resume) -> Option<Resume> {
    match how {
        Resume::Exact => Some(Resume::Traditional),
        Resume::Traditional => Some(Resume::Deflated),
        Resume::Deflated => Some(Resume::Restarted),
        Resume::Restarted => None,
    }
}
