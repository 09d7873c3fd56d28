//! The policy of a tape: a state machine that is told what happened, and says what to do.
//!
//! Promises: no state leaves a level before a level below has all of it, nor before the level has
//! all its memory and is full; only a copy that cannot be read leaves sooner. No place is given out
//! while bytes of it are read or written. Each call is answered: with an error if nothing is under
//! way that could make room. Must not know time, threads or memory; a [`Mover`](crate::Mover) does
//! the work. Source: Maurya, Nicolae, Rafique, Elsayed, Tonellot, Cappello, HiPC 2022
//! (hal-03799226).

use std::collections::{BTreeMap, BTreeSet};

use crate::call::{CallKind, ProgramCall};
use crate::event::{AdoptedState, TapeAction, TapeEvent};
use crate::level::{CacheLevel, GrowthMoment, GrowthStep};
use crate::settings::{Eviction, TapeSettings};
use crate::state::{Residence, TapeStates};
use crate::touching::{MeasuredRate, TouchMode};
use crate::work::{Extent, Location, PlaceError, StateBytes, StateId, TapeWork, WorkId};

/// Direction in which the program goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TapePass {
    Forward,
    Backward,
    /// The tape ends.
    Closed,
}

/// Meaning of work that is under way.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Grow { level: usize, step: GrowthStep, is_disturbed: bool },
    Store { id: StateId, level: usize },
    Give { id: StateId, level: usize, is_last: bool },
    Drain { id: StateId, level: usize, measures: Option<MeasuredRate> },
    Fetch { id: StateId, level: usize },
}

/// The policy of a tape.
#[derive(Clone, Debug)]
pub struct TapePolicy {
    levels: Vec<CacheLevel>,
    eviction: Eviction,
    states: TapeStates,
    pass: TapePass,
    call: Option<ProgramCall>,
    under_way: BTreeMap<WorkId, Purpose>,
    n_works: u64,
    /// States that must be drained to make room, for each level.
    urgent: Vec<BTreeSet<StateId>>,
    actions: Vec<TapeAction>,
}

impl TapePolicy {
    /// Makes the policy of these settings.
    ///
    /// # Panics
    /// If there is no level.
    #[must_use]
    pub fn new(settings: TapeSettings) -> Self {
        assert!(!settings.levels.is_empty(), "a tape has a level");
        let levels: Vec<CacheLevel> = settings.levels.into_iter().map(CacheLevel::new).collect();
        Self {
            urgent: vec![BTreeSet::new(); levels.len()],
            levels,
            eviction: settings.eviction,
            states: TapeStates::default(),
            pass: TapePass::Forward,
            call: None,
            under_way: BTreeMap::new(),
            n_works: 0,
            actions: Vec::new(),
        }
    }

    /// Begins to give levels their memory.
    #[must_use]
    pub fn start(&mut self) -> Vec<TapeAction> {
        self.advance();
        std::mem::take(&mut self.actions)
    }

    /// Returns what to do after an event.
    ///
    /// # Panics
    /// If the program calls while it waits, or work ends that is not under way.
    #[must_use]
    pub fn handle(&mut self, event: TapeEvent) -> Vec<TapeAction> {
        match event {
            TapeEvent::Push { bytes, interval_seconds } => self.begin_push(bytes, interval_seconds),
            TapeEvent::Pop { id } => {
                self.pass = TapePass::Backward;
                self.begin_reading(id, CallKind::Pop(id));
            }
            TapeEvent::Peek { id } => self.begin_reading(id, CallKind::Peek(id)),
            TapeEvent::Forget { id } => self.forget(id),
            TapeEvent::Keep => self.begin_call(CallKind::Keep),
            TapeEvent::Announce(order) => self.states.announce(order),
            TapeEvent::Turn => self.pass = TapePass::Backward,
            TapeEvent::Close => self.pass = TapePass::Closed,
            TapeEvent::Ended { work, failure, written_bytes, seconds } => {
                self.end(work, failure, written_bytes, seconds);
            }
        }
        self.advance();
        std::mem::take(&mut self.actions)
    }

    /// Number of states it keeps a record of: those on the tape, and those that leave.
    #[must_use]
    pub fn n_states(&self) -> usize {
        self.states.len()
    }

    /// Returns whether copies under way still use the place of a state that was popped.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.states.iter().any(|(_, state)| state.is_consumed)
    }

    /// Returns the state that is popped next if the program continues as announced.
    #[must_use]
    pub fn next_pop(&self) -> Option<StateId> {
        self.states.upcoming().find(|id| self.states.get(*id).is_some_and(|state| !state.is_consumed))
    }

    /// Takes in a state that the last level held before the tape was made, newer than all before.
    ///
    /// # Errors
    /// [`PlaceError::Full`] if the level has no room for it.
    pub fn adopt(&mut self, bytes: StateBytes) -> Result<AdoptedState, PlaceError> {
        let level = self.levels.len() - 1;
        let needed = self.levels[level].needed(bytes);
        let extent = self.levels[level].ring.fit(needed, self.levels[level].usable());
        let extent = extent.ok_or(PlaceError::Full { bytes: needed })?;
        let id = self.states.add(bytes, self.levels.len());
        self.arrive(id, level, extent);
        if let Some(residence) = self.states.get_mut(id).and_then(|state| state.residences[level].as_mut()) {
            residence.is_whole = true;
        }
        Ok(AdoptedState { id, extent })
    }

    /// Bytes that the states on the tape take, each where it is smallest.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let live = self.states.iter().filter(|(_, state)| !state.is_consumed);
        live.map(|(_, state)| state.bytes.reserved(true)).sum()
    }

    /// Number of bytes of a level that may be used; it only rises.
    #[must_use]
    pub fn usable_bytes(&self, level: usize) -> u64 {
        self.levels[level].usable()
    }

    /// Returns whether pages of a level are touched during copies.
    #[must_use]
    pub fn is_touching_concurrently(&self) -> bool {
        self.levels.iter().any(|level| level.mode() == TouchMode::Concurrent)
    }

    fn begin_push(&mut self, bytes: u64, interval_seconds: f64) {
        assert!(self.call.is_none(), "one call at a time");
        self.pass = TapePass::Forward;
        let largest = self.levels.iter().map(CacheLevel::bytes).max().unwrap_or(0);
        if bytes == 0 || bytes > largest {
            self.actions.push(TapeAction::Reply(Err(PlaceError::TooLarge { bytes, largest })));
            return;
        }
        self.levels.iter_mut().for_each(|level| level.choose_mode(bytes, interval_seconds));
        let id = self.states.add(StateBytes::uncoded(bytes), self.levels.len());
        self.begin_call(CallKind::Push(id));
    }

    fn begin_reading(&mut self, id: StateId, kind: CallKind) {
        let is_there = self.states.get(id).is_some_and(|state| !state.is_consumed);
        if is_there {
            self.begin_call(kind);
        } else {
            self.actions.push(TapeAction::Reply(Err(PlaceError::Unknown { id })));
        }
    }

    fn begin_call(&mut self, kind: CallKind) {
        assert!(self.call.is_none(), "one call at a time");
        self.call = Some(ProgramCall { kind, is_copying: false });
    }

    fn forget(&mut self, id: StateId) {
        if let Some(state) = self.states.get_mut(id) {
            state.is_consumed = true;
            self.release(id);
        }
    }

    /// Starts all work that may begin now.
    fn advance(&mut self) {
        if self.pass == TapePass::Closed {
            return;
        }
        loop {
            let before = self.actions.len();
            self.serve(false);
            for level in 0..self.levels.len() - 1 {
                self.drain(level);
                self.fetch(level);
            }
            self.grow();
            if self.actions.len() == before {
                break;
            }
        }
        if self.under_way.is_empty() {
            self.serve(true);
        }
    }

    /// Starts the copy of the call. A push takes the first level that is large enough, or, at a
    /// last attempt, the first one with room.
    fn serve(&mut self, is_last_attempt: bool) {
        let Some(call) = self.call.filter(|call| !call.is_copying) else { return };
        match call.kind {
            CallKind::Push(id) => self.serve_push(id, is_last_attempt),
            CallKind::Pop(id) => self.serve_reading(id, true),
            CallKind::Peek(id) => self.serve_reading(id, false),
            CallKind::Keep => self.serve_keep(is_last_attempt),
        }
    }

    fn mark_copying(&mut self) {
        if let Some(call) = &mut self.call {
            call.is_copying = true;
        }
    }

    fn serve_push(&mut self, id: StateId, is_last_attempt: bool) {
        let Some(bytes) = self.states.get(id).map(|state| state.bytes.raw) else { return };
        let mut levels = (0..self.levels.len()).filter(|&level| self.levels[level].bytes() >= bytes);
        let levels: Vec<usize> = if is_last_attempt { levels.collect() } else { levels.next().into_iter().collect() };
        for level in levels {
            if let Some(extent) = self.room(level, bytes, None) {
                self.arrive(id, level, extent);
                let target = Location::Level { level, start: extent.start };
                let work = TapeWork::Copy { source: Location::Program, target, bytes, room_bytes: bytes };
                self.begin(Purpose::Store { id, level }, work);
                self.mark_copying();
                return;
            }
        }
        if is_last_attempt {
            self.states.remove(id);
            self.reply(Err(PlaceError::Full { bytes }));
        }
    }

    /// Gives a state from the fastest level that has it, unless it is on its way to a faster one.
    fn serve_reading(&mut self, id: StateId, is_last: bool) {
        let Some(state) = self.states.get(id) else { return };
        let Some(level) = state.nearest() else { return };
        if state.comes_nearer(level) {
            return;
        }
        let room_bytes = state.bytes.raw;
        let bytes = self.levels[level].needed(state.bytes);
        let Some(source) = self.read(id, level) else { return };
        let work = TapeWork::Copy { source, target: Location::Program, bytes, room_bytes };
        self.begin(Purpose::Give { id, level, is_last }, work);
        self.mark_copying();
    }

    /// Answers when the last level has all states, or when nothing is under way that could bring
    /// the missing ones there.
    fn serve_keep(&mut self, is_last_attempt: bool) {
        let last = self.levels.len() - 1;
        let live = || self.states.iter().filter(|(_, state)| !state.is_consumed);
        let newest = live().next_back().map_or(StateId(0), |(id, _)| id);
        let missing = live().find(|(_, state)| !state.is_whole_at(last)).map(|(id, state)| (id, state.bytes.raw));
        match missing {
            None => self.reply(Ok(newest)),
            Some((id, bytes)) if is_last_attempt => self.reply(Err(PlaceError::Kept { id, bytes })),
            Some(_) => {}
        }
    }

    /// Copies a state from `level` to the next one: one that must leave, or, on the way forward,
    /// the oldest.
    fn drain(&mut self, level: usize) {
        if self.is_busy(level, true) {
            return;
        }
        let next = level + 1;
        let wants = |id: &StateId| {
            let fits = |bytes: StateBytes| self.levels[next].fits(bytes);
            self.states.get(*id).is_some_and(|state| state.wants_drain(level) && fits(state.bytes))
        };
        let urgent = self.urgent[level].iter().copied().find(wants);
        let forward = || self.states.iter().map(|(id, _)| id).find(wants);
        let is_kept = self.call.is_some_and(|call| call.kind == CallKind::Keep);
        let is_forward = self.pass == TapePass::Forward || is_kept;
        let Some(id) = urgent.or_else(|| if is_forward { forward() } else { None }) else { return };
        let Some([bytes, room_bytes]) = self.bytes_at(id, [level, next]) else { return };
        let Some(extent) = self.room(next, room_bytes, None) else { return };
        if self.levels[next].waits_for_pages(extent) {
            return;
        }
        // The time of a copy that is coded is the codec's.
        let is_plain = self.levels[level].is_coded() == self.levels[next].is_coded();
        let measures = self.rate_of_copy(next, extent).filter(|_| is_plain);
        let Some(source) = self.read(id, level) else { return };
        self.arrive(id, next, extent);
        let target = Location::Level { level: next, start: extent.start };
        let work = TapeWork::Copy { source, target, bytes, room_bytes };
        self.begin(Purpose::Drain { id, level, measures }, work);
    }

    /// Copies the state that is popped next, of those that are not there, from the next level to
    /// this one. It takes the room of none that is popped before it.
    fn fetch(&mut self, level: usize) {
        if self.pass == TapePass::Forward || self.is_busy(level, false) {
            return;
        }
        let popped = self.call.and_then(|call| call.kind.reads());
        let wants = |id: &StateId| {
            let fits = |bytes: StateBytes| self.levels[level].fits(bytes);
            self.states.get(*id).is_some_and(|state| state.wants_fetch(level) && fits(state.bytes))
        };
        let next = self.states.upcoming().enumerate().find(|(_, id)| Some(*id) != popped && wants(id));
        let Some((distance, id)) = next else { return };
        let Some([room_bytes, bytes]) = self.bytes_at(id, [level, level + 1]) else { return };
        let Some(extent) = self.room(level, room_bytes, Some(distance)) else { return };
        let Some(source) = self.read(id, level + 1) else { return };
        self.arrive(id, level, extent);
        let target = Location::Level { level, start: extent.start };
        self.begin(Purpose::Fetch { id, level }, TapeWork::Copy { source, target, bytes, room_bytes });
    }

    /// Starts the next steps with which levels grow.
    fn grow(&mut self) {
        for level in 0..self.levels.len() {
            let is_copying = level > 0 && (self.is_busy(level - 1, true) || self.is_busy(level - 1, false));
            let moment = GrowthMoment { is_copying, is_called: self.call.is_some() };
            while let Some(step) = self.levels[level].next_step(moment) {
                let work = match step {
                    GrowthStep::Extend(to) => TapeWork::Extend { level, to },
                    GrowthStep::Touch(to) => TapeWork::Touch { level, to },
                    GrowthStep::Pin(to) => TapeWork::Pin { level, to },
                };
                self.begin(Purpose::Grow { level, step, is_disturbed: is_copying }, work);
            }
        }
    }

    /// Returns free bytes of a level. States leave for them if the level is complete and full,
    /// those that are popped within `distance` excepted. Otherwise they are drained first.
    fn room(&mut self, level: usize, bytes: u64, distance: Option<usize>) -> Option<Extent> {
        let usable = self.levels[level].usable();
        let free = self.levels[level].ring.fit(bytes, usable);
        if free.is_some() || !self.levels[level].is_complete() || level + 1 == self.levels.len() {
            return free;
        }
        let scores = self.scores(level, distance);
        let victims = self.levels[level].ring.window(bytes, usable, |id| scores.get(&id).copied())?;
        // A drained state that is being read has no score.
        if victims.iter().all(|id| self.states.get(*id).is_some_and(|state| state.is_drained(level))) {
            victims.iter().for_each(|&id| self.evict(id, level));
            return self.levels[level].ring.fit(bytes, usable);
        }
        self.urgent[level] = victims.into_iter().collect();
        None
    }

    /// Scores of the states that may leave a level; the least leaves first.
    fn scores(&self, level: usize, distance: Option<usize>) -> BTreeMap<StateId, f64> {
        let distances = self.states.distances();
        let mut undrained_bytes = 0;
        let mut scores = BTreeMap::new();
        for (id, state) in self.states.iter() {
            let Some(residence) = state.residences[level] else { continue };
            let is_drained = state.is_drained(level);
            let is_moving = !residence.is_whole || (residence.n_readers > 0 && is_drained);
            let can_drain = is_drained || (state.can_drain() && self.levels[level + 1].fits(state.bytes));
            let position = distances.get(&id).copied().unwrap_or(usize::MAX);
            if is_moving || !can_drain || distance.is_some_and(|needed| position <= needed) {
                continue;
            }
            let bytes = residence.extent.bytes;
            undrained_bytes += if is_drained { 0 } else { bytes };
            let waiting = if is_drained { 0.0 } else { undrained_bytes as f64 };
            let score = match self.eviction {
                Eviction::Fifo => id.0 as f64,
                Eviction::KnownOrder => waiting + bytes as f64 / (position as f64 + 1.0),
            };
            scores.insert(id, score);
        }
        scores
    }

    fn evict(&mut self, id: StateId, level: usize) {
        self.urgent[level].remove(&id);
        let residence = self.states.get_mut(id).and_then(|state| state.residences[level].take());
        if let Some(Residence { extent, .. }) = residence {
            self.levels[level].ring.free(extent);
            self.actions.push(TapeAction::Discard { level, extent });
        }
    }

    /// Reserves the place of a copy that begins.
    fn arrive(&mut self, id: StateId, level: usize, extent: Extent) {
        self.levels[level].take(id, extent);
        if let Some(state) = self.states.get_mut(id) {
            state.residences[level] = Some(Residence { extent, is_whole: false, n_readers: 0 });
        }
    }

    /// Returns the bytes of a state in two levels: at most, where it was not coded so far.
    fn bytes_at(&self, id: StateId, levels: [usize; 2]) -> Option<[u64; 2]> {
        let state = self.states.get(id)?;
        Some(levels.map(|level| self.levels[level].needed(state.bytes)))
    }

    /// Notes a copy that reads a state from a level, and returns from where.
    fn read(&mut self, id: StateId, level: usize) -> Option<Location> {
        let residence = self.states.get_mut(id)?.residences[level].as_mut()?;
        residence.n_readers += 1;
        Some(Location::Level { level, start: residence.extent.start })
    }

    fn begin(&mut self, purpose: Purpose, work: TapeWork) {
        let id = WorkId(self.n_works);
        self.n_works += 1;
        self.under_way.insert(id, purpose);
        self.actions.push(TapeAction::Start { id, work });
    }

    /// Returns whether a copy between `level` and the next one is under way: down or up.
    fn is_busy(&self, level: usize, is_down: bool) -> bool {
        self.under_way.values().any(|purpose| match purpose {
            Purpose::Drain { level: from, .. } => is_down && *from == level,
            Purpose::Fetch { level: to, .. } => !is_down && *to == level,
            _ => false,
        })
    }

    fn end(&mut self, work: WorkId, failure: Option<String>, written_bytes: Option<u64>, seconds: f64) {
        let is_done = failure.is_none();
        let outcome = |id: StateId| failure.map_or(Ok(id), |reason| Err(PlaceError::Copy { id, reason }));
        let purpose = self.under_way.remove(&work);
        assert!(purpose.is_some(), "{work:?} is not under way");
        match purpose {
            Some(Purpose::Grow { level, step, is_disturbed }) => {
                self.learn_touching(level, step, is_disturbed, seconds);
                self.levels[level].end_step(step, is_done);
            }
            Some(Purpose::Store { id, level }) => {
                self.take_back(id, level, written_bytes.filter(|_| is_done));
                self.end_arrival(id, level, is_done);
                if !is_done {
                    self.states.remove(id);
                }
                self.reply(outcome(id));
            }
            Some(Purpose::Give { id, level, is_last }) => {
                if let Some(state) = self.states.get_mut(id) {
                    state.is_consumed |= is_done && is_last;
                }
                self.end_reading(id, level);
                if is_done || !self.gives_up(id, level) {
                    self.reply(outcome(id));
                }
            }
            Some(Purpose::Drain { id, level, measures }) => {
                self.learn_copy(id, level + 1, measures, seconds);
                self.end_move(id, is_done, true);
                self.take_back(id, level + 1, written_bytes.filter(|_| is_done));
                self.end_arrival(id, level + 1, is_done);
                self.end_reading(id, level);
            }
            Some(Purpose::Fetch { id, level }) => {
                self.end_move(id, is_done, false);
                self.end_arrival(id, level, is_done);
                self.end_reading(id, level + 1);
            }
            None => {}
        }
    }

    fn end_move(&mut self, id: StateId, is_done: bool, is_down: bool) {
        if let Some(state) = self.states.get_mut(id).filter(|_| !is_done) {
            state.count_failure(is_down);
        }
    }

    /// Gives up the copy of a state that could not be given to the program, if a level below has
    /// the state: the call continues from there. Returns whether it does.
    fn gives_up(&mut self, id: StateId, level: usize) -> bool {
        let is_below = self.states.get(id).is_some_and(|state| {
            let is_idle = state.residences[level].is_some_and(|residence| residence.n_readers == 0);
            is_idle && state.is_drained(level)
        });
        if let Some(call) = self.call.as_mut().filter(|_| is_below) {
            call.is_copying = false;
            self.evict(id, level);
        }
        is_below
    }

    /// Takes back what a coded state does not need of its place.
    fn take_back(&mut self, id: StateId, level: usize, written_bytes: Option<u64>) {
        let level_of = &mut self.levels[level];
        let written_bytes = written_bytes.filter(|_| level_of.is_coded());
        let (Some(state), Some(bytes)) = (self.states.get_mut(id), written_bytes) else { return };
        if let Some(residence) = &mut state.residences[level] {
            residence.extent = level_of.ring.shrink(residence.extent, bytes);
            state.bytes.coded = Some(bytes);
        }
    }

    /// Makes a copy that arrived whole, or gives its place back.
    fn end_arrival(&mut self, id: StateId, level: usize, is_done: bool) {
        let Some(state) = self.states.get_mut(id) else { return };
        let Some(residence) = state.residences[level].as_mut() else { return };
        residence.is_whole = true;
        let extent = residence.extent;
        if is_done {
            self.levels[level].note_written(extent);
            self.urgent[..level].iter_mut().for_each(|urgent| _ = urgent.remove(&id));
        } else {
            self.evict(id, level);
        }
        self.release(id);
    }

    fn end_reading(&mut self, id: StateId, level: usize) {
        let residence = self.states.get_mut(id).and_then(|state| state.residences[level].as_mut());
        if let Some(residence) = residence {
            residence.n_readers -= 1;
        }
        self.release(id);
    }

    /// Frees the places of a consumed state that nothing uses, and forgets it after the last.
    fn release(&mut self, id: StateId) {
        let Some(state) = self.states.get(id).filter(|state| state.is_consumed) else { return };
        let is_idle = |residence: &Residence| residence.is_whole && residence.n_readers == 0;
        let levels = 0..self.levels.len();
        let idle: Vec<usize> = levels.filter(|&level| state.residences[level].as_ref().is_some_and(is_idle)).collect();
        idle.into_iter().for_each(|level| self.evict(id, level));
        let is_gone = self.states.get(id).is_some_and(|state| state.residences.iter().all(Option::is_none));
        if is_gone {
            self.states.remove(id);
        }
    }

    fn reply(&mut self, result: Result<StateId, PlaceError>) {
        self.call = None;
        self.actions.push(TapeAction::Reply(result));
    }

    /// Names the rate that a copy to an extent will show, if it shows one.
    fn rate_of_copy(&self, level: usize, extent: Extent) -> Option<MeasuredRate> {
        let level = &self.levels[level];
        if level.is_pinned(extent) {
            None
        } else if level.is_touched(extent) {
            Some(if level.is_touching() { MeasuredRate::SharedCopy } else { MeasuredRate::Copy })
        } else {
            let is_untouched = extent.start >= level.touched() && !level.is_touching();
            is_untouched.then_some(MeasuredRate::UntouchedCopy)
        }
    }

    /// Learns from a copy that was disturbed throughout, or not at all.
    fn learn_copy(&mut self, id: StateId, level: usize, measures: Option<MeasuredRate>, seconds: f64) {
        let is_touching = self.levels[level].is_touching();
        let measures = measures.filter(|rate| is_touching == (*rate == MeasuredRate::SharedCopy));
        let bytes = self.bytes_at(id, [level; 2]).map_or(0, |[bytes, _]| bytes);
        if let (Some(rate), Some(model)) = (measures, self.levels[level].model()) {
            model.learn(rate, bytes as f64 / seconds);
        }
    }

    fn learn_touching(&mut self, level: usize, step: GrowthStep, was_disturbed: bool, seconds: f64) {
        let GrowthStep::Touch(to) = step else { return };
        let is_disturbed = level > 0 && (self.is_busy(level - 1, true) || self.is_busy(level - 1, false));
        let bytes = to.saturating_sub(self.levels[level].touched());
        let rate = if is_disturbed { MeasuredRate::SharedTouch } else { MeasuredRate::Touch };
        if let Some(model) = self.levels[level].model().filter(|_| is_disturbed == was_disturbed) {
            model.learn(rate, bytes as f64 / seconds);
        }
    }
}
