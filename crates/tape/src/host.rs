//! The mover of a machine without a device: memory of the host, and a spill directory below it.
//!
//! Copies between levels, touching and locking are done by threads of its own. A copy from or to
//! the program is done by the thread that calls, which takes it with
//! [`HostMover::take_program_copy`].

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::Clock;
use recoup_io::SystemClock;
use recoup_pages::PageRegion;

use crate::bell::Bell;
use crate::mover::{EndedMove, MoveError, MoveTicket, Mover};
use crate::spill::SpillDirectory;
use crate::threads::MoverThreads;
use crate::turns::PinTurns;
use crate::work::{Extent, Location, TapeWork};

/// Threads of a mover: for a copy down, a copy up, touching and locking.
const THREADS: usize = 4;

/// A level of a [`HostMover`].
#[derive(Clone, Debug)]
pub(crate) enum HostLevel {
    Memory(Arc<PageRegion>),
    Spill(Arc<SpillDirectory>),
}

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
    levels: Vec<HostLevel>,
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
    level: HostLevel,
    pub(crate) extent: Extent,
    ended: Arc<EndedWork>,
}

/// The side of the program in a copy.
pub(crate) enum ProgramSide<'a> {
    /// Fills a record.
    Push(&'a mut dyn FnMut(&mut [u8])),
    /// Reads a record.
    Pop(&'a mut dyn FnMut(&[u8]) -> Result<(), String>),
}

impl HostMover {
    pub(crate) fn new(levels: Vec<HostLevel>, turns: Option<PinTurns>, bell: Arc<Bell>) -> std::io::Result<Self> {
        Ok(Self {
            marks: vec![GrowthMarks::default(); levels.len()],
            levels,
            turns: turns.map(Arc::new),
            threads: MoverThreads::start(THREADS)?,
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
        let end = move |result: Result<(), String>| ended.end(ticket, work, result);
        match work {
            // Its memory exists as addresses.
            TapeWork::Extend { .. } => self.threads.run(|| Ok(()), end),
            TapeWork::Touch { level, to } => {
                let from = std::mem::replace(&mut self.marks[level].touched, to);
                let level = self.levels[level].clone();
                self.threads.run(move || level.touch(from..to), end);
            }
            TapeWork::Pin { level, to } => {
                let from = std::mem::replace(&mut self.marks[level].locked, to);
                let level = self.levels[level].clone();
                let turns = self.turns.clone();
                self.threads.run(move || level.pin(from..to, turns.as_deref()), end);
            }
            TapeWork::Copy { source, target, bytes } => {
                let (Location::Level { level: from, start }, Location::Level { level: to, start: place }) =
                    (source, target)
                else {
                    unreachable!("the calling thread does the copies of the program");
                };
                let source = PlaceOfLevel { level: self.levels[from].clone(), extent: Extent { start, bytes } };
                let target = PlaceOfLevel { level: self.levels[to].clone(), extent: Extent { start: place, bytes } };
                self.threads.run(move || source.copy_to(&target), end);
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
            TapeWork::Copy { source: Location::Program, target: Location::Level { level, start }, bytes }
            | TapeWork::Copy { source: Location::Level { level, start }, target: Location::Program, bytes } => {
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
        if let HostLevel::Spill(directory) = &self.levels[level] {
            directory.discard(extent.start);
        }
    }

    fn now_seconds(&self) -> f64 {
        self.clock.now().as_secs_f64()
    }
}

impl EndedWork {
    fn end(&self, ticket: MoveTicket, work: TapeWork, result: Result<(), String>) {
        let result = result.map_err(|reason| MoveError { work, reason });
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(EndedMove { ticket, result });
        self.bell.ring();
    }
}

impl ProgramCopy {
    /// Does the copy, and ends its work.
    pub(crate) fn run(self, side: &mut ProgramSide<'_>) {
        let result = self.copy(side);
        self.ended.end(self.ticket, self.work, result);
    }

    fn copy(&self, side: &mut ProgramSide<'_>) -> Result<(), String> {
        let Extent { start, bytes } = self.extent;
        match (side, &self.level) {
            (ProgramSide::Push(fill), HostLevel::Memory(region)) => {
                fill(&mut region.write(range(self.extent)));
                Ok(())
            }
            (ProgramSide::Pop(take), HostLevel::Memory(region)) => take(&region.read(range(self.extent))),
            (ProgramSide::Push(fill), HostLevel::Spill(directory)) => {
                let mut record = vec![0; bytes as usize];
                fill(&mut record);
                directory.write(start, &record)
            }
            (ProgramSide::Pop(take), HostLevel::Spill(directory)) => {
                let mut record = vec![0; bytes as usize];
                directory.read(start, &mut record).and_then(|()| take(&record))
            }
        }
    }
}

/// A place of a level.
struct PlaceOfLevel {
    level: HostLevel,
    extent: Extent,
}

impl PlaceOfLevel {
    fn copy_to(&self, target: &Self) -> Result<(), String> {
        match (&self.level, &target.level) {
            (HostLevel::Memory(source), HostLevel::Spill(directory)) => {
                directory.write(target.extent.start, &source.read(range(self.extent)))
            }
            (HostLevel::Spill(directory), HostLevel::Memory(region)) => {
                directory.read(self.extent.start, &mut region.write(range(target.extent)))
            }
            (HostLevel::Memory(source), HostLevel::Memory(region)) => {
                region.write(range(target.extent)).copy_from_slice(&source.read(range(self.extent)));
                Ok(())
            }
            (HostLevel::Spill(source), HostLevel::Spill(directory)) => {
                let mut record = vec![0; self.extent.bytes as usize];
                source.read(self.extent.start, &mut record)?;
                directory.write(target.extent.start, &record)
            }
        }
    }
}

impl HostLevel {
    fn touch(&self, bytes: Range<u64>) -> Result<(), String> {
        if let Self::Memory(region) = self {
            region.touch(bytes.start as usize..bytes.end as usize);
        }
        Ok(())
    }

    fn pin(&self, bytes: Range<u64>, turns: Option<&PinTurns>) -> Result<(), String> {
        let Self::Memory(region) = self else { return Ok(()) };
        let _turn = turns.map(PinTurns::take).transpose()?;
        let locked = region.lock(bytes.start as usize..bytes.end as usize);
        locked.map_err(|error| format!("lock {} bytes in memory: {error}", bytes.end - bytes.start))
    }
}

fn range(extent: Extent) -> Range<usize> {
    extent.start as usize..extent.end() as usize
}
