//! States on their way to a codec: copied while the program waits, coded behind it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::coded::CodedShelf;
use crate::error::TapeError;
use crate::owned::StateValues;
use crate::payload::PayloadSource;

/// States that may wait for the codec; the program waits before it pushes another.
const STAGED_MAX: usize = 2;

/// A state that waits for the codec.
#[derive(Debug)]
struct StagedState {
    step: u64,
    values: StateValues,
    /// Extents of its grid.
    dims: [usize; 3],
}

/// Work for the thread.
#[derive(Debug, Default)]
struct StageQueue {
    staged: VecDeque<StagedState>,
    free: Vec<StateValues>,
    /// The thread works.
    is_busy: bool,
    /// The next state to be popped shall be decoded.
    looks_ahead: bool,
    is_closed: bool,
    /// The first error since the last call.
    failure: Option<TapeError>,
}

#[derive(Debug)]
struct SharedStage {
    queue: Mutex<StageQueue>,
    changed: Condvar,
    shelf: Arc<Mutex<CodedShelf>>,
}

/// A thread that codes states.
#[derive(Debug)]
pub(crate) struct CodingStage {
    shared: Arc<SharedStage>,
    thread: Option<JoinHandle<()>>,
}

impl CodingStage {
    pub(crate) fn start(shelf: &Arc<Mutex<CodedShelf>>) -> std::io::Result<Self> {
        let free = (0..STAGED_MAX).map(|_| StateValues::new()).collect();
        let queue = Mutex::new(StageQueue { free, ..StageQueue::default() });
        let shared = Arc::new(SharedStage { queue, changed: Condvar::new(), shelf: Arc::clone(shelf) });
        let thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("recoup-tape".to_owned()).spawn(move || thread.work())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Copies a state, which is encoded and pushed behind the program. An error of a state before
    /// is returned here, and the state is not pushed.
    pub(crate) fn push(&self, step: u64, mut source: PayloadSource<'_>, dims: [usize; 3]) -> Result<(), TapeError> {
        let mut queue = self.wait_while(|queue| queue.free.is_empty() && queue.failure.is_none())?;
        if let Some(failure) = queue.failure.take() {
            return Err(failure);
        }
        let mut room = queue.free.pop().unwrap_or_else(StateValues::new);
        queue.looks_ahead = false;
        drop(queue);
        let copied = source.copy_to(&mut room);
        let mut queue = self.shared.queue();
        match copied {
            Ok(()) => queue.staged.push_back(StagedState { step, values: room, dims }),
            Err(_) => queue.free.push(room),
        }
        drop(queue);
        self.shared.changed.notify_all();
        copied.map_err(|source| TapeError::DeviceValues { step, source })
    }

    /// Waits until all states are coded, and returns the first error.
    pub(crate) fn settle(&self) -> Result<(), TapeError> {
        let mut queue = self.wait_while(|queue| !queue.staged.is_empty() || queue.is_busy)?;
        queue.failure.take().map_or(Ok(()), Err)
    }

    /// Decodes the next state behind the program.
    pub(crate) fn look_ahead(&self) {
        self.shared.queue().looks_ahead = true;
        self.shared.changed.notify_all();
    }

    fn wait_while(&self, condition: impl Fn(&StageQueue) -> bool) -> Result<MutexGuard<'_, StageQueue>, TapeError> {
        let queue = self.shared.changed.wait_while(self.shared.queue(), |queue| !queue.is_closed && condition(queue));
        let queue = queue.unwrap_or_else(PoisonError::into_inner);
        if queue.is_closed { Err(TapeError::Stopped) } else { Ok(queue) }
    }
}

impl Drop for CodingStage {
    fn drop(&mut self) {
        let settled = self.settle();
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // Its panic was printed.
            let _ = thread.join();
        }
        drop(settled);
    }
}

impl SharedStage {
    fn queue(&self) -> MutexGuard<'_, StageQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.queue().is_closed = true;
        self.changed.notify_all();
    }

    /// Codes states until the stage is closed.
    fn work(&self) {
        let _closing = Closing(self);
        loop {
            let idle = |queue: &mut StageQueue| queue.staged.is_empty() && !queue.looks_ahead && !queue.is_closed;
            let queue = self.changed.wait_while(self.queue(), idle);
            let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
            if queue.is_closed {
                return;
            }
            queue.is_busy = true;
            let state = queue.staged.pop_front();
            queue.looks_ahead &= state.is_some();
            drop(queue);
            let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
            let result = match &state {
                Some(state) => shelf.push(state.step, PayloadSource::Values(state.values.values()), state.dims),
                None => shelf.look_ahead(),
            };
            drop(shelf);
            self.end(state, result);
        }
    }

    /// Gives the room of a state back, and keeps the first error. One of looking ahead comes again
    /// when the state is popped.
    fn end(&self, state: Option<StagedState>, result: Result<(), TapeError>) {
        let mut queue = self.queue();
        queue.is_busy = false;
        if let Some(state) = state {
            queue.free.push(state.values);
            queue.failure = queue.failure.take().or(result.err());
        }
        drop(queue);
        self.changed.notify_all();
    }
}

/// Closes the stage when its thread ends, by a panic too, so that no call waits for it.
struct Closing<'a>(&'a SharedStage);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
