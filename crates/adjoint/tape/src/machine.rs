//! A tape at work: the driver, shared by the calls of the program and by a thread that
//! attends to what ends meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::bell::Bell;
use crate::driver::TapeDriver;
use crate::event::TapeEvent;
use crate::host::{HostMover, ProgramSide};
use crate::settings::TapeSettings;
use crate::storage::LevelStorage;
use crate::turns::PinTurns;
use crate::work::{PlaceError, StateId};

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

    /// Returns the driver, for whatever the program need not wait for.
    pub(crate) fn driver(&self) -> MutexGuard<'_, TapeDriver<HostMover>> {
        self.shared.lock()
    }

    /// Makes a call of the program: does the copy that is its part in it, and waits for the answer.
    pub(crate) fn call(&mut self, call: TapeEvent, side: &mut ProgramSide<'_, '_>) -> Result<StateId, PlaceError> {
        self.driver().tell(call);
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
