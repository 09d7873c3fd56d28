//! The states of a tape by their steps, as records.

use std::collections::BTreeMap;
use std::sync::Arc;

use recoup_core::CodecId;

use crate::error::TapeError;
use crate::event::TapeEvent;
use crate::host::ProgramSide;
use crate::machine::TapeMachine;
use crate::payload::{PayloadSource, PayloadTarget, RecordSource, RecordTarget};
use crate::record::{StateHeader, StateLink};
use crate::record_coder::RecordCoder;
use crate::spill::{FoundState, SpillDirectory};
use crate::work::{PlaceError, StateBytes, StateId};

/// The end of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The state leaves the tape.
    Pop,
    /// The state stays.
    Peek,
}

/// Records in levels of memory, by the steps of the program.
#[derive(Debug)]
pub(crate) struct StateShelf {
    machine: TapeMachine,
    spill: Option<Arc<SpillDirectory>>,
    /// Works between levels, if some of them are coded.
    coder: Option<Arc<RecordCoder>>,
    headers: BTreeMap<StateId, StateHeader>,
    ids: BTreeMap<u64, StateId>,
    /// Number of the next push.
    number: u64,
    /// Coded states of an earlier run whose checksum was not compared yet, and their places.
    unchecked: BTreeMap<StateId, u64>,
}

/// A file of the spill directory that holds no whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedState {
    /// The file.
    pub path: std::path::PathBuf,
    /// The finding.
    pub reason: String,
}

impl StateShelf {
    pub(crate) fn new(
        machine: TapeMachine,
        spill: Option<Arc<SpillDirectory>>,
        coder: Option<Arc<RecordCoder>>,
    ) -> Self {
        let headers = BTreeMap::new();
        Self { machine, spill, coder, headers, ids: BTreeMap::new(), number: 0, unchecked: BTreeMap::new() }
    }

    /// Takes in the states that the spill directory holds, and returns the damaged ones.
    pub(crate) fn reopen(&mut self) -> Result<Vec<DamagedState>, TapeError> {
        let Some(spill) = self.spill.clone() else { return Ok(Vec::new()) };
        let found = spill.found().map_err(|reason| TapeError::Spill { reason })?;
        // No new file takes the name of one that is there, whole or not.
        self.number = found.iter().map(|state| state.number.saturating_add(1)).max().unwrap_or(0);
        let headers = found.iter().filter_map(|state| state.header.as_ref().ok());
        let newest: BTreeMap<u64, u64> = headers.map(|header| (header.step, header.number)).collect();
        let mut damaged = Vec::new();
        for FoundState { name, header, .. } in found {
            let path = spill.path_of(&name);
            let kept = match header {
                Ok(header) if newest[&header.step] == header.number => Ok(header),
                // The step was popped and pushed again before the system removed this file.
                Ok(_) => match spill.discard_superseded(name.clone()) {
                    Ok(()) => continue,
                    Err(reason) => Err(reason),
                },
                Err(reason) => Err(reason),
            };
            let header = match kept {
                Ok(header) => header,
                Err(reason) => {
                    damaged.push(DamagedState { path, reason });
                    continue;
                }
            };
            let step = header.step;
            let adopted = self.machine.driver().adopt(self.bytes_of(&header));
            let adopted = adopted.map_err(|source| TapeError::Place { step, source })?;
            spill.adopt(adopted.extent.start, name);
            if header.codec != CodecId::Raw {
                self.unchecked.insert(adopted.id, adopted.extent.start);
            }
            self.note(adopted.id, header);
        }
        Ok(damaged)
    }

    /// Returns the bytes of a state that the spill directory holds.
    fn bytes_of(&self, header: &StateHeader) -> StateBytes {
        let here = header.place_bytes() as u64;
        match self.coder {
            Some(_) => StateBytes { raw: header.as_raw().place_bytes() as u64, coded: Some(here) },
            None => StateBytes::uncoded(here),
        }
    }

    /// Returns the header that a state has in a level that is not coded.
    fn header_above(&self, id: StateId) -> StateHeader {
        let header = self.headers[&id];
        if self.coder.is_some() { header.as_raw() } else { header }
    }

    /// Returns the codec between levels.
    pub(crate) fn coder(&self) -> Option<&RecordCoder> {
        self.coder.as_deref()
    }

    /// Returns the directory that states are spilled to.
    pub(crate) fn spill_directory(&self) -> Option<Arc<SpillDirectory>> {
        self.spill.clone()
    }

    fn note(&mut self, id: StateId, header: StateHeader) {
        self.headers.insert(id, header);
        self.ids.insert(header.step, id);
        self.number = self.number.max(header.number.saturating_add(1));
    }

    /// Pushes a record: a header, whose number is set here, and its payload.
    pub(crate) fn push(&mut self, header: StateHeader, payload: PayloadSource<'_>) -> Result<(), TapeError> {
        let step = header.step;
        self.check_new(step)?;
        let header = StateHeader { number: self.number, ..header };
        let mut source = RecordSource { header, payload, coder: self.coder.clone() };
        let push = self.machine.driver().push_event(header.place_bytes() as u64);
        let pushed = self.machine.call(push, &mut ProgramSide::Push(&mut source));
        let id = pushed.map_err(|source| TapeError::Place { step, source })?;
        self.note(id, header);
        Ok(())
    }

    /// Returns an error if the step is on the tape.
    pub(crate) fn check_new(&self, step: u64) -> Result<(), TapeError> {
        if self.ids.contains_key(&step) { Err(TapeError::Duplicate { step }) } else { Ok(()) }
    }

    /// Reads a state.
    pub(crate) fn read(&mut self, step: u64, payload: PayloadTarget<'_>, reading: Reading) -> Result<(), TapeError> {
        let id = self.id(step)?;
        let header = self.header_above(id);
        let mut target = RecordTarget { header, payload, coder: self.coder.clone() };
        let call = match reading {
            Reading::Pop => TapeEvent::Pop { id },
            Reading::Peek => TapeEvent::Peek { id },
        };
        let read = self.machine.call(call, &mut ProgramSide::Pop(&mut target));
        read.map_err(|source| TapeError::Place { step, source })?;
        if reading == Reading::Pop {
            self.remove(step, id);
        }
        Ok(())
    }

    /// Drops a state unread.
    pub(crate) fn forget(&mut self, step: u64) -> Result<(), TapeError> {
        let id = self.id(step)?;
        self.machine.driver().tell(TapeEvent::Forget { id });
        self.remove(step, id);
        Ok(())
    }

    fn remove(&mut self, step: u64, id: StateId) {
        self.headers.remove(&id);
        self.ids.remove(&step);
    }

    /// Announces the next pops.
    pub(crate) fn announce(&mut self, steps: &[u64]) -> Result<(), TapeError> {
        let order = steps.iter().map(|step| self.id(*step)).collect::<Result<_, _>>()?;
        self.machine.driver().tell(TapeEvent::Announce(order));
        Ok(())
    }

    /// Begins to fetch what is popped next.
    pub(crate) fn turn(&mut self) {
        self.machine.driver().tell(TapeEvent::Turn);
    }

    /// Waits until the spill directory has all states, and makes them durable.
    pub(crate) fn save(&mut self) -> Result<(), TapeError> {
        let spill = self.spill.clone().ok_or(TapeError::NothingKept)?;
        let kept = self.machine.call(TapeEvent::Keep, &mut ProgramSide::Nothing);
        kept.map_err(|source| self.named(source))?;
        spill.sync().map_err(|reason| TapeError::Spill { reason })
    }

    /// Names the step of an error about a state.
    fn named(&self, source: PlaceError) -> TapeError {
        let id = match &source {
            PlaceError::Copy { id, .. } | PlaceError::Kept { id, .. } | PlaceError::Unknown { id } => Some(*id),
            PlaceError::TooLarge { .. } | PlaceError::Full { .. } => None,
        };
        let step = id.and_then(|id| self.headers.get(&id)).map_or(0, |header| header.step);
        TapeError::Place { step, source }
    }

    /// Returns the step that is popped next if the program continues as announced.
    pub(crate) fn next_step(&self) -> Option<u64> {
        let id = self.machine.driver().policy().next_pop()?;
        self.headers.get(&id).map(|header| header.step)
    }

    /// Returns the header of a state, once the checksum of its file held. Room is made by it: that
    /// of a payload that is not coded is not larger than the file, any other may be.
    pub(crate) fn checked_header(&mut self, step: u64) -> Result<StateHeader, TapeError> {
        let id = self.id(step)?;
        if let (Some(start), Some(spill)) = (self.unchecked.get(&id), &self.spill) {
            let refused = |reason| TapeError::Place { step, source: PlaceError::Copy { id, reason } };
            spill.check(*start).map_err(refused)?;
            self.unchecked.remove(&id);
        }
        self.header(step)
    }

    /// Returns the header of a state.
    pub(crate) fn header(&self, step: u64) -> Result<StateHeader, TapeError> {
        Ok(self.headers[&self.id(step)?])
    }

    /// Returns the state that was pushed just before `step`, if it is on the tape.
    pub(crate) fn before(&self, step: u64) -> Option<StateHeader> {
        let id = self.ids.get(&step)?;
        let number = self.headers.get(id)?.number.checked_sub(1)?;
        let before = self.headers.range(..*id).next_back()?.1;
        (before.number == number).then_some(*before)
    }

    /// Returns whether a state on the tape was coded against this one.
    pub(crate) fn is_followed(&self, step: u64) -> bool {
        let Some(id) = self.ids.get(&step) else { return false };
        let after = self.headers.range(*id..).nth(1).map(|(_, header)| header);
        after.is_some_and(|header| header.link == StateLink::Follows && header.number == self.headers[id].number + 1)
    }

    /// Returns the step that was pushed last, of those on the tape.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.headers.values().next_back().map(|header| header.step)
    }

    /// Returns the steps in the order of their pushes.
    pub(crate) fn steps(&self) -> Vec<u64> {
        self.headers.values().map(|header| header.step).collect()
    }

    /// Bytes that the states take.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.machine.driver().policy().stored_bytes()
    }

    fn id(&self, step: u64) -> Result<StateId, TapeError> {
        self.ids.get(&step).copied().ok_or(TapeError::Unknown { step })
    }
}
