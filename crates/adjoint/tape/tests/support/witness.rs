//! A mover that keeps account of each byte: it ends work in any order, fails some of it, and notes
//! whatever a policy must not do.

use std::collections::{BTreeMap, BTreeSet};

use recoup_model::Rng;
use recoup_tape::{
    EndedMove, Extent, Growth, LevelSettings, Location, MoveError, MoveTicket, Mover, StateId, TapeWork,
};

/// Ways in which a mover can betray its policy, each as a fault in the policy's book-keeping would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Betrayal {
    None,
    /// Copies between levels are said to be done before they are.
    EarlyCopies,
    /// Memory is said to be mapped before it is.
    EarlyMemory,
    /// Copies that failed are said to be done.
    HiddenFailures,
    /// Copies to a level go to the place beside the one that was asked for.
    WrongPlace,
}

/// Bytes of a level that hold a state.
#[derive(Clone, Copy, Debug)]
struct Content {
    extent: Extent,
    id: StateId,
    is_whole: bool,
}

/// A level as it really is.
#[derive(Clone, Debug)]
pub(crate) struct WitnessLevel {
    pub(crate) bytes: u64,
    /// Bytes that have memory.
    pub(crate) mapped: u64,
    /// It holds states as a codec has left them.
    pub(crate) is_coded: bool,
    contents: Vec<Content>,
    /// The highest watermarks of touching and registration so far.
    marks: [u64; 2],
}

/// Work under way.
#[derive(Clone, Copy, Debug)]
struct Moving {
    ticket: MoveTicket,
    work: TapeWork,
    id: Option<StateId>,
    /// Bytes that the copy writes, if a codec leaves fewer than the state had.
    written_bytes: Option<u64>,
    was_told: bool,
}

/// The mover.
pub(crate) struct Witness {
    rng: Rng,
    pub(crate) levels: Vec<WitnessLevel>,
    moving: Vec<Moving>,
    told: Vec<EndedMove>,
    n_works: u64,
    /// Bytes of each state before it was coded.
    raw_bytes: BTreeMap<StateId, u64>,
    failures: f64,
    betrayal: Betrayal,
    /// The state that the program pushes or pops now.
    pub(crate) current: StateId,
    /// The program reads it and leaves it on the tape.
    pub(crate) is_peeking: bool,
    /// States that the program may still pop.
    pub(crate) live: BTreeSet<StateId>,
    pub(crate) violations: Vec<String>,
    pub(crate) n_failed: u64,
}

impl WitnessLevel {
    pub(crate) fn new(settings: &LevelSettings) -> Self {
        let LevelSettings { bytes, is_coded, .. } = *settings;
        let mapped = if matches!(settings.growth, Growth::Mapped { .. }) { 0 } else { bytes };
        Self { bytes, mapped, is_coded, contents: Vec::new(), marks: [0; 2] }
    }
}

impl Witness {
    pub(crate) fn new(rng: Rng, levels: Vec<WitnessLevel>, failures: f64, betrayal: Betrayal) -> Self {
        Self {
            rng,
            levels,
            moving: Vec::new(),
            told: Vec::new(),
            n_works: 0,
            raw_bytes: BTreeMap::new(),
            failures,
            betrayal,
            current: StateId(0),
            is_peeking: false,
            live: BTreeSet::new(),
            violations: Vec::new(),
            n_failed: 0,
        }
    }

    /// Number of works that were asked for.
    pub(crate) fn n_started(&self) -> u64 {
        self.n_works
    }

    /// Returns whether work is under way.
    pub(crate) fn is_moving(&self) -> bool {
        !self.moving.is_empty() || !self.told.is_empty()
    }

    /// Returns whether the last level has all of a state.
    pub(crate) fn holds_at_last(&self, id: StateId) -> bool {
        let last = self.levels.last();
        last.is_some_and(|level| level.contents.iter().any(|content| content.id == id && content.is_whole))
    }

    fn note(&mut self, violation: String) {
        self.violations.push(violation);
    }

    fn is_unlucky(&mut self) -> bool {
        let fails = self.rng.uniform() < self.failures;
        self.n_failed += u64::from(fails);
        fails
    }

    /// Returns the state that a copy reads, and notes one that was never written there.
    fn read(&mut self, source: Location, bytes: u64) -> StateId {
        let Location::Level { level, start } = source else { return self.current };
        let extent = Extent { start, bytes };
        let found = self.levels[level].contents.iter().find(|content| content.extent == extent && content.is_whole);
        let id = found.map(|content| content.id);
        if id.is_none() {
            self.note(format!("level {level}, {extent:?}: read before it was written"));
        }
        id.unwrap_or(StateId(u64::MAX))
    }

    /// Begins to overwrite an extent.
    fn write(&mut self, target: Location, bytes: u64, id: StateId) {
        let Location::Level { level, start } = target else { return };
        let extent = Extent { start, bytes };
        if extent.end() > self.levels[level].mapped {
            self.note(format!("level {level}, {extent:?}: no memory there"));
        }
        if let Some(busy) = self.busy(level, extent) {
            self.note(format!("level {level}, {extent:?}: written during {busy:?}"));
        }
        let contents = std::mem::take(&mut self.levels[level].contents);
        let (lost, kept): (Vec<_>, Vec<_>) = contents.into_iter().partition(|content| content.extent.overlaps(extent));
        self.levels[level].contents = kept;
        for content in lost {
            let is_elsewhere = self
                .levels
                .iter()
                .flat_map(|level| &level.contents)
                .any(|other| other.id == content.id && other.is_whole);
            let is_needed = content.is_whole && self.live.contains(&content.id);
            if is_needed && self.levels[level].mapped < self.levels[level].bytes && self.n_failed == 0 {
                self.note(format!("level {level}: {:?} left before all memory was mapped", content.id));
            }
            if is_needed && !is_elsewhere {
                self.note(format!("level {level}: {:?} left before it was drained", content.id));
            }
        }
        self.levels[level].contents.push(Content { extent, id, is_whole: false });
    }

    /// Returns a copy under way that uses an extent.
    fn busy(&self, level: usize, extent: Extent) -> Option<TapeWork> {
        let uses_it = |moving: &&Moving| {
            let TapeWork::Copy { source, target, bytes, room_bytes } = moving.work else { return false };
            let uses = |location: Location, bytes: u64| matches!(location, Location::Level { level: other, start } if other == level && Extent { start, bytes }.overlaps(extent));
            uses(source, bytes) || uses(target, room_bytes)
        };
        self.moving.iter().find(uses_it).map(|moving| moving.work)
    }

    /// Ends one piece of work, any of those under way.
    fn end_one(&mut self) {
        let index = self.rng.next_u64() as usize % self.moving.len();
        let moving = self.moving.swap_remove(index);
        let mut is_done = !self.is_unlucky();
        match moving.work {
            TapeWork::Extend { level, to } if is_done => self.levels[level].mapped = self.levels[level].mapped.max(to),
            TapeWork::Copy { target: Location::Level { level, start }, .. } => {
                let contents = &mut self.levels[level].contents;
                let at = contents.iter().position(|content| content.extent.start == start);
                match at {
                    Some(at) if is_done => {
                        contents[at].is_whole = true;
                        let extent = &mut contents[at].extent;
                        extent.bytes = moving.written_bytes.unwrap_or(extent.bytes);
                    }
                    Some(at) => _ = contents.swap_remove(at),
                    None => {}
                }
            }
            TapeWork::Copy { target: Location::Program, .. } if is_done => {
                if moving.id != Some(self.current) {
                    self.note(format!("{:?} was given for {:?}", moving.id, self.current));
                }
                if !self.is_peeking {
                    self.live.remove(&self.current);
                }
            }
            _ => {}
        }
        is_done |= self.betrayal == Betrayal::HiddenFailures;
        if !moving.was_told {
            self.tell(&moving, is_done);
        }
    }

    fn tell(&mut self, moving: &Moving, is_done: bool) {
        let Moving { ticket, work, written_bytes, .. } = *moving;
        let failed = || MoveError { work, reason: "the witness fails it".to_owned() };
        self.told.push(EndedMove { ticket, written_bytes, result: if is_done { Ok(()) } else { Err(failed()) } });
    }

    fn is_coded(&self, location: Location) -> bool {
        matches!(location, Location::Level { level, .. } if self.levels[level].is_coded)
    }

    /// Begins a copy: notes a place that is not of the size of its state, and draws the bytes that
    /// a codec leaves.
    fn copy(&mut self, source: Location, target: Location, bytes: u64, room_bytes: u64) -> (StateId, Option<u64>) {
        let id = self.read(source, bytes);
        if source == Location::Program {
            self.raw_bytes.insert(id, bytes);
        }
        let is_plain = self.is_coded(source) == self.is_coded(target);
        let raw_bytes = self.raw_bytes.get(&id).copied().unwrap_or(0);
        let expected = if is_plain { bytes } else { raw_bytes };
        if room_bytes != expected {
            self.note(format!("{id:?}: {expected} bytes need room, {room_bytes} have it"));
        }
        self.write(target, room_bytes, id);
        let is_encoded = self.is_coded(target) && !is_plain;
        (id, is_encoded.then(|| 1 + self.rng.next_u64() % room_bytes))
    }

    /// Notes a watermark that does not rise.
    fn check_mark(&mut self, work: TapeWork) {
        let (level, to, mark) = match work {
            TapeWork::Touch { level, to } => (level, to, &mut self.levels[level].marks[0]),
            TapeWork::Pin { level, to } => (level, to, &mut self.levels[level].marks[1]),
            _ => return,
        };
        let before = std::mem::replace(mark, to);
        if to <= before || to > self.levels[level].bytes {
            self.note(format!("{work:?} after {before}"));
        }
    }
}

impl Mover for Witness {
    fn discard(&mut self, level: usize, extent: Extent) {
        // Work that has ended, and whose end was not told, is still the policy's.
        if let Some(busy) = self.busy(level, extent) {
            self.note(format!("level {level}, {extent:?}: given up during {busy:?}"));
        }
        let gone = self.levels[level].contents.iter().position(|content| content.extent == extent);
        let Some(gone) = gone.map(|at| self.levels[level].contents.swap_remove(at)) else { return };
        let mut others = self.levels.iter().flat_map(|level| &level.contents);
        let is_elsewhere = others.any(|other| other.id == gone.id && other.is_whole);
        if gone.is_whole && self.live.contains(&gone.id) && !is_elsewhere {
            self.note(format!("level {level}: {:?} was given up before it was drained", gone.id));
        }
    }

    fn start(&mut self, work: TapeWork) -> Result<MoveTicket, MoveError> {
        self.check_mark(work);
        let ticket = MoveTicket(self.n_works);
        self.n_works += 1;
        if self.failures > 0.0 && self.rng.uniform() < 0.3 && self.is_unlucky() {
            return Err(MoveError { work, reason: "the witness refuses it".to_owned() });
        }
        let mut moving = Moving { ticket, work, id: None, written_bytes: None, was_told: false };
        match work {
            TapeWork::Copy { source, mut target, bytes, room_bytes } => {
                if let (Betrayal::WrongPlace, Location::Level { start, .. }) = (self.betrayal, &mut target) {
                    *start += bytes;
                }
                let (id, written_bytes) = self.copy(source, target, bytes, room_bytes);
                moving.id = Some(id);
                moving.written_bytes = written_bytes;
                let is_inside = source != Location::Program && target != Location::Program;
                moving.was_told = is_inside && self.betrayal == Betrayal::EarlyCopies;
            }
            TapeWork::Extend { .. } => moving.was_told = self.betrayal == Betrayal::EarlyMemory,
            _ => {}
        }
        if moving.was_told {
            self.tell(&moving, true);
        }
        self.moving.push(moving);
        Ok(ticket)
    }

    fn poll(&mut self) -> Option<EndedMove> {
        while !self.moving.is_empty() && self.rng.uniform() < 0.3 {
            self.end_one();
        }
        if self.told.is_empty() { None } else { Some(self.told.remove(0)) }
    }

    fn wait(&mut self) -> Option<EndedMove> {
        while self.told.is_empty() && !self.moving.is_empty() {
            self.end_one();
        }
        self.poll()
    }

    fn now_seconds(&self) -> f64 {
        self.n_works as f64 * 1e-3
    }
}
