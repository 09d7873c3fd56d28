//! Streams: made, waited for, asked, destroyed.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::operation::StreamWork;
use super::state::Driver;
use crate::Refusable;

/// The flag of streams that do not wait for the legacy stream.
const NON_BLOCKING: u32 = 1;

impl Driver {
    fn create_stream(&mut self, flags: u32) -> Refusable<u64> {
        let context = self.context()?;
        if flags > NON_BLOCKING {
            return Err(CudaStatus::InvalidValue);
        }
        Ok(self.add_stream(context, flags != NON_BLOCKING, true))
    }

    /// Takes a stream off the program's hands. Its work still waits: it runs when something else
    /// forces it.
    fn destroy_stream(&mut self, number: u64) -> Refusable<()> {
        let stream = self.stream(number)?;
        if !self.streams.get(&stream).is_some_and(|state| state.is_made) {
            return Err(CudaStatus::InvalidHandle);
        }
        let state = self.streams.get(&stream).ok_or(CudaStatus::InvalidHandle)?;
        let is_idle = state.last.is_none_or(|last| !self.backlog.is_waiting(last));
        match is_idle {
            true => drop(self.streams.remove(&stream)),
            // It orders the work that is left, and has no name any more.
            false => self.hide_stream(stream),
        }
        Ok(())
    }

    fn hide_stream(&mut self, stream: u64) {
        if let Some(mut state) = self.streams.remove(&stream) {
            state.is_made = false;
            let hidden = self.new_handle();
            self.streams.insert(hidden, state);
        }
    }

    /// Lets a stream wait for what an event has recorded, of whatever context.
    fn wait_event(&mut self, number: u64, event: u64) -> Refusable<()> {
        let stream = self.stream(number)?;
        let recorded = self.events.get(&event).ok_or(CudaStatus::InvalidHandle)?.recorded.clone();
        match recorded {
            Some(record) => self.submit_after(stream, StreamWork::Mark, Some(record)).map(|_| ()),
            None => Ok(()),
        }
    }
}
