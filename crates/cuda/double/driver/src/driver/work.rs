//! Work: added to streams, forced, and run.

use std::collections::BTreeMap;

use recoup_cuda_double::CudaStatus;

use super::advance::Advance;
use super::backlog::Waiting;
use super::execute::{Reach, WorkFault, execute};
use super::operation::StreamWork;
use super::races::Turn;
use super::state::{Driver, Record, StreamState};
use crate::Refusable;

/// Numbers of streams that every context has.
const LEGACY: [u64; 2] = [0, 1];
const OF_THREAD: u64 = 2;

impl Driver {
    /// Adds a stream to a context; its handle.
    pub(crate) fn add_stream(&mut self, context: u64, is_blocking: bool, is_made: bool) -> u64 {
        let handle = self.new_handle();
        self.n_streams += 1;
        let stream = StreamState {
            context,
            is_blocking,
            is_made,
            place: self.n_streams,
            last: None,
            advance: Advance::default(),
            count: 0,
        };
        self.streams.insert(handle, stream);
        handle
    }

    /// Finds a stream by the number that a program passes.
    pub(crate) fn stream(&mut self, number: u64) -> Refusable<u64> {
        if !LEGACY.contains(&number) && number != OF_THREAD {
            let context = self.streams.get(&number).ok_or(CudaStatus::InvalidHandle)?.context;
            self.check_context(context)?;
            return Ok(number);
        }
        let context = self.context()?;
        let state = self.contexts.get(&context).ok_or(CudaStatus::InvalidContext)?;
        if LEGACY.contains(&number) {
            return Ok(state.legacy);
        }
        let thread = std::thread::current().id();
        if let Some(stream) = state.of_threads.get(&thread) {
            return Ok(*stream);
        }
        let stream = self.add_stream(context, true, false);
        if let Some(state) = self.contexts.get_mut(&context) {
            state.of_threads.insert(thread, stream);
        }
        Ok(stream)
    }

    /// The context of a stream that was found.
    pub(crate) fn context_of(&self, stream: u64) -> Refusable<u64> {
        Ok(self.streams.get(&stream).ok_or(CudaStatus::InvalidHandle)?.context)
    }

    /// Streams whose work so far comes before the next operation of `stream`, itself included.
    fn predecessors(&self, stream: u64) -> Refusable<Vec<u64>> {
        let own = self.streams.get(&stream).ok_or(CudaStatus::InvalidHandle)?;
        let legacy = self.contexts.get(&own.context).ok_or(CudaStatus::ContextIsDestroyed)?.legacy;
        if stream == legacy {
            let blocking = self.streams.iter().filter(|(_, other)| other.is_blocking && other.context == own.context);
            return Ok(blocking.map(|(handle, _)| *handle).collect());
        }
        Ok(if own.is_blocking { vec![stream, legacy] } else { vec![stream] })
    }

    /// Adds an operation to a stream that was found; its number.
    pub(crate) fn submit(&mut self, stream: u64, action: StreamWork) -> Refusable<u64> {
        self.submit_after(stream, action, None)
    }

    /// Adds an operation that waits for a record, too.
    pub(crate) fn submit_after(&mut self, stream: u64, action: StreamWork, record: Option<Record>) -> Refusable<u64> {
        let context = self.context_of(stream)?;
        self.check_context(context)?;
        let mut advance = self.backlog.host.clone();
        let mut after = Vec::new();
        for before in self.predecessors(stream)? {
            let state = self.streams.get(&before).ok_or(CudaStatus::InvalidHandle)?;
            advance.join(&state.advance);
            after.extend(state.last);
        }
        if let Some(record) = record {
            advance.join(&record.advance);
            after.push(record.operation);
        }
        let state = self.streams.get_mut(&stream).ok_or(CudaStatus::InvalidHandle)?;
        state.count += 1;
        let turn = Turn { stream: state.place, count: state.count };
        advance.set(turn.stream, turn.count);
        state.advance = advance.clone();
        let number = self.backlog.add(Waiting { action, context, turn, advance, after });
        if let Some(state) = self.streams.get_mut(&stream) {
            state.last = Some(number);
        }
        Ok(number)
    }

    /// Runs operations with all they wait for.
    pub(crate) fn force(&mut self, targets: &[u64]) {
        let mut batch = self.backlog.batch(targets);
        while let Some((number, waiting)) = self.backlog.take(&mut batch) {
            self.run(number, &waiting);
        }
    }

    fn run(&mut self, number: u64, waiting: &Waiting) {
        if self.check_context(waiting.context).is_err() {
            return;
        }
        self.backlog.note(waiting);
        let seed = match self.settings.seed {
            0 => 0,
            seed => seed.wrapping_add(self.backlog.trace.operations),
        };
        let mut reach = Reach { device: &mut self.memory, host: &self.host, seed };
        let result = execute(&waiting.action, &mut reach);
        match result {
            Ok(touched) => {
                let Turn { stream, count } = waiting.turn;
                let label = format!("{} (stream {stream}, operation {count})", waiting.action.describe());
                self.backlog.history.add(waiting.turn, &label, touched, &waiting.advance);
            }
            Err(fault) => self.break_off(waiting, fault),
        }
        if let StreamWork::Record { event } = waiting.action {
            self.reach_event(event, number);
        }
    }

    fn break_off(&mut self, waiting: &Waiting, fault: WorkFault) {
        let Turn { stream, count } = waiting.turn;
        let what = waiting.action.describe();
        self.fault(format!("{what} (stream {stream}, operation {count}): {}", fault.message));
        if let Some(context) = self.contexts.get_mut(&waiting.context) {
            context.error = Some(fault.status);
        }
    }

    fn reach_event(&mut self, event: u64, number: u64) {
        let reached = self.backlog.trace.operations;
        let is_own = |record: &Record| record.operation == number;
        if let Some(state) = self.events.get_mut(&event).filter(|state| state.recorded.as_ref().is_some_and(is_own)) {
            state.reached = Some(reached);
        }
    }

    /// Waits for all work of a stream that was found.
    pub(crate) fn finish_stream(&mut self, stream: u64) -> Refusable<()> {
        let streams = self.predecessors(stream)?;
        self.finish_streams(&streams)
    }

    /// Waits for all work of a context.
    pub(crate) fn finish_context(&mut self, context: u64) -> Refusable<()> {
        let own = self.streams.iter().filter(|(_, stream)| stream.context == context);
        let streams: Vec<u64> = own.map(|(handle, _)| *handle).collect();
        self.finish_streams(&streams)?;
        // Streams that are gone may have left work.
        let rest = self.backlog.select(|waiting| waiting.context == context);
        self.force(&rest);
        self.check_context(context)
    }

    fn finish_streams(&mut self, streams: &[u64]) -> Refusable<()> {
        let lasts: Vec<u64> = streams.iter().filter_map(|handle| self.streams.get(handle)?.last).collect();
        self.force(&lasts);
        let mut contexts = BTreeMap::new();
        for handle in streams {
            if let Some(state) = self.streams.get(handle) {
                contexts.insert(state.context, ());
                let advance = state.advance.clone();
                self.backlog.observe(&advance);
            }
        }
        contexts.keys().try_for_each(|context| self.check_context(*context))
    }

    /// Waits for an operation that was just added to a stream, as a copy does that waits.
    pub(crate) fn finish_record(&mut self, record: &Record) {
        self.force(&[record.operation]);
        self.backlog.observe(&record.advance);
    }

    /// Returns whether a record is reached. If it is not, a coin says whether it is now.
    pub(crate) fn query(&mut self, record: &Record) -> Refusable<()> {
        if self.backlog.is_waiting(record.operation) && !self.backlog.choices.coin() {
            return Err(CudaStatus::NotReady);
        }
        self.finish_record(record);
        Ok(())
    }

    /// The place in a stream that was found where its work so far ends.
    pub(crate) fn end_of(&self, stream: u64) -> Option<Record> {
        let state = self.streams.get(&stream)?;
        state.last.map(|operation| Record { operation, advance: state.advance.clone() })
    }
}
