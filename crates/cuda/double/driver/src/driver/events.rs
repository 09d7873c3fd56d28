//! Events: places in streams.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::operation::StreamWork;
use super::state::{Driver, EventState};
use crate::Refusable;

/// The flag of events that are never asked for a time.
const DISABLE_TIMING: u32 = 2;
/// All flags.
const FLAGS: u32 = 7;

impl Driver {
    fn create_event(&mut self, flags: u32) -> Refusable<u64> {
        let context = self.context()?;
        if flags & !FLAGS != 0 {
            return Err(CudaStatus::InvalidValue);
        }
        let event = self.new_handle();
        let has_timing = flags & DISABLE_TIMING == 0;
        self.events.insert(event, EventState { context, has_timing, recorded: None, reached: None });
        Ok(event)
    }

    /// The context of an event, which is alive.
    fn context_of_event(&self, event: u64) -> Refusable<u64> {
        let context = self.events.get(&event).ok_or(CudaStatus::InvalidHandle)?.context;
        self.check_context(context)?;
        Ok(context)
    }

    /// Marks the end of a stream's work so far. Stream and event are of one context.
    fn record(&mut self, event: u64, number: u64) -> Refusable<()> {
        let stream = self.stream(number)?;
        if self.context_of_event(event)? != self.context_of(stream)? {
            self.fault("cuEventRecord: stream and event are of two contexts".to_owned());
            return Err(CudaStatus::InvalidHandle);
        }
        self.submit(stream, StreamWork::Record { event })?;
        let recorded = self.end_of(stream);
        if let Some(state) = self.events.get_mut(&event) {
            state.recorded = recorded;
            state.reached = None;
        }
        Ok(())
    }

    fn destroy_event(&mut self, event: u64) -> Refusable<()> {
        self.context_of_event(event)?;
        self.events.remove(&event);
        Ok(())
    }

    fn finish_event(&mut self, event: u64) -> Refusable<()> {
        let context = self.context_of_event(event)?;
        if let Some(record) = self.events.get(&event).and_then(|state| state.recorded.clone()) {
            self.finish_record(&record);
        }
        self.check_context(context)
    }

    fn query_event(&mut self, event: u64) -> Refusable<()> {
        let context = self.context_of_event(event)?;
        if let Some(record) = self.events.get(&event).and_then(|state| state.recorded.clone()) {
            self.query(&record)?;
        }
        self.check_context(context)
    }

    /// Milliseconds between two events, each operation that ran between them counted as one
    /// microsecond: there is no clock.
    fn elapsed(&self, start: u64, end: u64) -> Refusable<f32> {
        let reached = |event: u64| {
            let context = self.context_of_event(event)?;
            let state = self.events.get(&event).filter(|state| state.has_timing && state.recorded.is_some());
            let state = state.ok_or(CudaStatus::InvalidHandle)?;
            Ok((context, state.reached.ok_or(CudaStatus::NotReady)?))
        };
        let (start_context, start) = reached(start)?;
        let (end_context, end) = reached(end)?;
        if start_context != end_context {
            return Err(CudaStatus::InvalidHandle);
        }
        Ok((end as f32 - start as f32) * 1e-3)
    }
}
