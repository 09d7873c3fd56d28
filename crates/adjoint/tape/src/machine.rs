//! A tape at work: the driver, shared by the calls of the program and by a thread that
//! attends to what ends meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::bell::Bell;
use crate::driver::TapeDriver;
use crate::event::AdoptedState;
use crate::host::{HostMover, ProgramSide};
use crate::payload::{RecordSource, RecordTarget};
use crate::settings::TapeSettings;
use crate::storage::LevelStorage;
use crate::turns::PinTurns;
use crate::work::{PlaceError, StateBytes, StateId};

/// A driver, and the bell that its mover rings.
#[derive(Debug)]
struct SharedDriver {
    driver: Mutex<TapeDriver<HostMover>>,
    bell: Arc<Bell>,
    is_closed: AtomicBool,
}

/// A tape of records. One thread calls at a time.
#[derive(Debug)]
pub(crate) struct TapeMachine {
    shared: Arc<SharedDriver>,
    attendant: Option<JoinHandle<()>>,
}

impl TapeMachine {
    pub(crate) fn start(
        settings: TapeSettings,
        levels: Vec<LevelStorage>,
        turns: Option<PinTurns>,
    ) -> std::io::Result<Self> {
        let bell = Arc::new(Bell::default());
        let mover = HostMover::new(levels, turns, Arc::clone(&bell))?;
        let driver = Mutex::new(TapeDriver::new(settings, mover));
        let shared = Arc::new(SharedDriver { driver, bell, is_closed: AtomicBool::new(false) });
        let attended = Arc::clone(&shared);
        let attendant = std::thread::Builder::new().name("recoup-tape".to_owned()).spawn(move || attended.attend())?;
        Ok(Self { shared, attendant: Some(attendant) })
    }

    /// Pushes a record to a place of `bytes` bytes.
    pub(crate) fn push(&mut self, bytes: usize, source: &mut RecordSource<'_>) -> Result<StateId, PlaceError> {
        self.shared.lock().begin_push(bytes as u64);
        self.finish(&mut ProgramSide::Push(source))
    }

    /// Pops a state.
    pub(crate) fn pop(&mut self, id: StateId, target: &mut RecordTarget<'_>) -> Result<StateId, PlaceError> {
        self.shared.lock().begin_pop(id);
        self.finish(&mut ProgramSide::Pop(target))
    }

    /// Reads a state, which stays.
    pub(crate) fn peek(&mut self, id: StateId, target: &mut RecordTarget<'_>) -> Result<StateId, PlaceError> {
        self.shared.lock().begin_peek(id);
        self.finish(&mut ProgramSide::Pop(target))
    }

    /// Waits until the last level has all states.
    pub(crate) fn keep(&mut self) -> Result<StateId, PlaceError> {
        self.shared.lock().begin_keep();
        self.finish(&mut ProgramSide::Nothing)
    }

    pub(crate) fn forget(&mut self, id: StateId) {
        self.shared.lock().forget(id);
    }

    pub(crate) fn announce(&mut self, order: Vec<StateId>) {
        self.shared.lock().announce(order);
    }

    /// Begins to fetch what is popped next.
    pub(crate) fn turn(&mut self) {
        self.shared.lock().turn();
    }

    pub(crate) fn adopt(&mut self, bytes: StateBytes) -> Result<AdoptedState, PlaceError> {
        self.shared.lock().adopt(bytes)
    }

    /// Bytes that the states take.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.shared.lock().policy().stored_bytes()
    }

    /// Returns the state that is popped next if the program continues as announced.
    pub(crate) fn next_pop(&self) -> Option<StateId> {
        self.shared.lock().policy().next_pop()
    }

    /// Waits for the answer to the call, and does the copy that is the program's part in it.
    fn finish(&mut self, side: &mut ProgramSide<'_, '_>) -> Result<StateId, PlaceError> {
        loop {
            let heard = self.shared.bell.heard();
            let mut driver = self.shared.lock();
            if let Some(reply) = driver.pump() {
                return reply;
            }
            let copy = driver.mover().take_program_copy();
            drop(driver);
            match copy {
                Some(copy) => copy.run(side),
                None => _ = self.shared.bell.wait(heard),
            }
        }
    }
}

impl Drop for TapeMachine {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.bell.ring();
        if let Some(attendant) = self.attendant.take() {
            // Its panic would be one of ours, and was printed.
            let _ = attendant.join();
        }
        // A state that was popped while it was fetched has its file until the fetch has ended.
        self.shared.lock().close();
    }
}

impl SharedDriver {
    /// Starts work as soon as other work ends, until the tape is dropped.
    fn attend(&self) {
        let mut heard = 0;
        while !self.is_closed.load(Ordering::Acquire) {
            self.lock().attend();
            heard = self.bell.wait(heard);
        }
    }

    fn lock(&self) -> MutexGuard<'_, TapeDriver<HostMover>> {
        // A panic under the lock is a mistake of the policy, which later calls must not hide.
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
