//! Contexts: one for each device, made current by each thread.

mod sys;

use std::collections::HashMap;

use recoup_cuda_double::CudaStatus;

use super::state::{ContextState, Driver};
use crate::Refusable;

impl Driver {
    /// Adds a context.
    fn add_context(&mut self, device: u32) -> u64 {
        let context = self.new_handle();
        let legacy = self.add_stream(context, true, false);
        let state = ContextState { device, retains: 1, legacy, of_threads: HashMap::new(), error: None };
        self.contexts.insert(context, state);
        context
    }

    /// Returns the primary context of a device, and counts that it did.
    fn retain(&mut self, device: i32) -> Refusable<u64> {
        let device = self.device(device)?;
        if let Some(context) = self.primaries.get(&device).copied() {
            let state = self.contexts.get_mut(&context).ok_or(CudaStatus::InvalidContext)?;
            state.retains += 1;
            return Ok(context);
        }
        let context = self.add_context(device);
        self.primaries.insert(device, context);
        Ok(context)
    }

    /// Gives the primary context of a device back; the last time, it is destroyed.
    fn release_primary(&mut self, device: i32) -> Refusable<()> {
        let device = self.device(device)?;
        let context = self.primaries.get(&device).copied().ok_or(CudaStatus::InvalidContext)?;
        let state = self.contexts.get_mut(&context).ok_or(CudaStatus::InvalidContext)?;
        state.retains -= 1;
        if state.retains == 0 {
            self.destroy(context)?;
        }
        Ok(())
    }

    /// Ends a context with all that was made in it. What the program had not given back is a leak.
    fn destroy(&mut self, context: u64) -> Refusable<()> {
        if !self.contexts.contains_key(&context) {
            return Err(CudaStatus::InvalidContext);
        }
        // A fault was told to the calls before; now all is over.
        let is_whole = self.finish_context(context).is_ok();
        self.backlog.abandon(context);
        self.end_memory(context, is_whole);
        let streams = self.streams.values().filter(|own| own.context == context && own.is_made).count();
        let events = self.events.values().filter(|own| own.context == context).count();
        let modules = self.modules.values().filter(|own| own.context == context).count();
        for (n, what) in [(streams, "streams"), (events, "events"), (modules, "modules")] {
            if n > 0 && is_whole {
                self.leak(format!("{n} {what}, destroyed with their context"));
            }
        }
        self.streams.retain(|_, own| own.context != context);
        self.events.retain(|_, own| own.context != context);
        self.modules.retain(|_, own| own.context != context);
        let Self { functions, modules, .. } = self;
        functions.retain(|_, own| modules.contains_key(&own.module));
        self.contexts.remove(&context);
        self.primaries.retain(|_, primary| *primary != context);
        Ok(())
    }

    fn end_memory(&mut self, context: u64, is_whole: bool) {
        let of_modules: Vec<u64> = self.modules.values().flat_map(|module| module.globals.iter().copied()).collect();
        for (address, allocation) in self.memory.of_context(context) {
            if is_whole && !of_modules.contains(&address) {
                self.leak(format!("{} bytes at {address:#x}, destroyed with their context", allocation.bytes));
            }
            self.memory.end(address);
        }
        for piece in self.host.of_context(context) {
            if is_whole {
                self.leak(format!("{}, given back with their context", piece.describe()));
            }
            self.host.remove(piece.start);
        }
    }

    /// Makes a context current; `None` for none.
    fn make_current(&mut self, context: Option<u64>) -> Refusable<()> {
        if context.is_some_and(|context| !self.contexts.contains_key(&context)) {
            return Err(CudaStatus::InvalidContext);
        }
        self.bind(context);
        Ok(())
    }
}
