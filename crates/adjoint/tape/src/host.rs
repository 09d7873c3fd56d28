//! The mover of this machine: memory of a device if there is one, memory of the host, and a spill
//! directory below it.
//!
//! Copies between levels, mapping, touching and registering are done by threads of its own. A
//! thread that copies to or from a device sleeps until the ticket of its copy is due. A copy from
//! or to the program is done by the thread that calls, which takes it with
//! [`HostMover::take_program_copy`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::Clock;
use recoup_io::SystemClock;

use crate::bell::Bell;
use crate::mover::{EndedMove, MoveError, MoveTicket, Mover};
use crate::payload::{RecordSource, RecordTarget};
use crate::storage::LevelStorage;
use crate::threads::MoverThreads;
use crate::turns::PinTurns;
use crate::work::{Extent, Location, TapeWork};

/// Threads of a level: for a copy down, a copy up, touching, and mapping or registering. No work
/// waits for other work to end.
const THREADS_OF_LEVEL: usize = 4;

/// Bytes of a level, from the first, that were asked to be touched and locked.
#[derive(Clone, Copy, Debug, Default)]
struct GrowthMarks {
    touched: u64,
    locked: u64,
}

/// Work that has ended, and the bell that tells of it.
#[derive(Debug, Default)]
struct EndedWork {
    queue: Mutex<VecDeque<EndedMove>>,
    bell: Arc<Bell>,
}

/// The mover.
#[derive(Debug)]
pub(crate) struct HostMover {
    levels: Vec<LevelStorage>,
    /// Watermarks of touching and of locking, for each level.
    marks: Vec<GrowthMarks>,
    turns: Option<Arc<PinTurns>>,
    threads: MoverThreads,
    ended: Arc<EndedWork>,
    n_under_way: usize,
    n_tickets: u64,
    program_copy: Option<ProgramCopy>,
    clock: SystemClock,
}

/// A copy between the program and a level, to be done by the calling thread.
#[derive(Clone, Debug)]
pub(crate) struct ProgramCopy {
    work: TapeWork,
    ticket: MoveTicket,
    level: LevelStorage,
    extent: Extent,
    ended: Arc<EndedWork>,
}

/// The side of the program in a copy.
pub(crate) enum ProgramSide<'a, 'b> {
    /// Pushes a record.
    Push(&'a mut RecordSource<'b>),
    /// Pops or reads a record.
    Pop(&'a mut RecordTarget<'b>),
    /// Has none.
    Nothing,
}

impl HostMover {
    pub(crate) fn new(levels: Vec<LevelStorage>, turns: Option<PinTurns>, bell: Arc<Bell>) -> std::io::Result<Self> {
        let n_growing = levels.iter().filter(|level| level.is_memory()).count();
        Ok(Self {
            marks: vec![GrowthMarks::default(); levels.len()],
            levels,
            turns: turns.map(Arc::new),
            threads: MoverThreads::start(THREADS_OF_LEVEL * n_growing.max(1))?,
            ended: Arc::new(EndedWork { queue: Mutex::default(), bell }),
            n_under_way: 0,
            n_tickets: 0,
            program_copy: None,
            clock: SystemClock::new(),
        })
    }

    /// Returns the copy that the calling thread has to do.
    pub(crate) fn take_program_copy(&mut self) -> Option<ProgramCopy> {
        self.program_copy.take()
    }

    fn run(&mut self, work: TapeWork, ticket: MoveTicket) {
        let ended = Arc::clone(&self.ended);
        let end = move |result: Result<Option<u64>, String>| ended.end(ticket, work, result);
        match work {
            TapeWork::Extend { level, to } => {
                let level = self.levels[level].clone();
                self.threads.run(move || level.extend(to).map(|()| None), end);
            }
            TapeWork::Touch { level, to } => {
                let from = std::mem::replace(&mut self.marks[level].touched, to);
                let level = self.levels[level].clone();
                let touch = move || {
                    level.touch(from..to);
                    Ok(None)
                };
                self.threads.run(touch, end);
            }
            TapeWork::Pin { level, to } => {
                let from = std::mem::replace(&mut self.marks[level].locked, to);
                let level = self.levels[level].clone();
                let turns = self.turns.clone();
                self.threads.run(move || level.pin(from..to, turns.as_deref()).map(|()| None), end);
            }
            TapeWork::Copy { source, target, bytes, room_bytes } => {
                let (Location::Level { level: from, start }, Location::Level { level: to, start: place }) =
                    (source, target)
                else {
                    unreachable!("the calling thread does the copies of the program");
                };
                let extent = Extent { start, bytes };
                let place = Extent { start: place, bytes: room_bytes };
                let [source, target] = [from, to].map(|level| self.levels[level].clone());
                self.threads.run(move || source.copy(extent, &target, place).map(Some), end);
            }
        }
    }
}

impl Mover for HostMover {
    fn start(&mut self, work: TapeWork) -> Result<MoveTicket, MoveError> {
        let ticket = MoveTicket(self.n_tickets);
        self.n_tickets += 1;
        self.n_under_way += 1;
        let place = match work {
            TapeWork::Copy { source: Location::Program, target: Location::Level { level, start }, bytes, .. }
            | TapeWork::Copy { source: Location::Level { level, start }, target: Location::Program, bytes, .. } => {
                Some((level, Extent { start, bytes }))
            }
            _ => None,
        };
        match place {
            Some((level, extent)) => {
                let level = self.levels[level].clone();
                let ended = Arc::clone(&self.ended);
                self.program_copy = Some(ProgramCopy { work, ticket, level, extent, ended });
            }
            None => self.run(work, ticket),
        }
        Ok(ticket)
    }

    fn poll(&mut self) -> Option<EndedMove> {
        let ended = self.ended.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        self.n_under_way -= usize::from(ended.is_some());
        ended
    }

    fn wait(&mut self) -> Option<EndedMove> {
        while self.n_under_way > 0 {
            let heard = self.ended.bell.heard();
            let ended = self.poll();
            if ended.is_some() {
                return ended;
            }
            self.ended.bell.wait(heard);
        }
        None
    }

    fn discard(&mut self, level: usize, extent: Extent) {
        self.levels[level].discard(extent);
    }

    fn now_seconds(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }
}

impl Drop for HostMover {
    fn drop(&mut self) {
        // Its threads are waited for next.
        if let Some(turns) = &self.turns {
            turns.close();
        }
    }
}

impl EndedWork {
    fn end(&self, ticket: MoveTicket, work: TapeWork, result: Result<Option<u64>, String>) {
        let written_bytes = result.as_ref().ok().copied().flatten();
        let result = result.map(|_| ()).map_err(|reason| MoveError { work, reason });
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(EndedMove {
            ticket,
            written_bytes,
            result,
        });
        self.bell.ring();
    }
}

impl ProgramCopy {
    /// Does the copy, and ends its work.
    pub(crate) fn run(self, side: &mut ProgramSide<'_, '_>) {
        let result = match side {
            ProgramSide::Push(source) => self.level.store(self.extent, source).map(Some),
            ProgramSide::Pop(target) => self.level.give(self.extent, target).map(|()| None),
            ProgramSide::Nothing => Ok(None),
        };
        self.ended.end(self.ticket, self.work, result);
    }
}
