//! State for the process that made it alone, in which one thread at a time may call.
//!
//! It is locked for the time of a call, by try only: two threads in one object are an error, never
//! a wait, because whoever waited would hold the interpreter that a worker may need. A process
//! forked from the one that made it has none of its threads, so every call there is an error.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;

use crate::refused;

pub(crate) struct OwnState<T> {
    state: Mutex<T>,
    /// The process that made it.
    process: u32,
}

impl<T> OwnState<T> {
    pub(crate) fn new(state: T) -> Self {
        Self { state: Mutex::new(state), process: std::process::id() }
    }

    /// Locks the state of the object that `what` names and its process `made`; another process is
    /// told what to do `instead`.
    pub(crate) fn locked(&self, what: &str, made: &str, instead: &str) -> PyResult<MutexGuard<'_, T>> {
        let maker = self.process;
        let here = std::process::id();
        if here != maker {
            let why = format!("process {maker} {made} this {what}, process {here} was forked from it");
            return Err(refused(format!("{why}: {instead}")));
        }
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(refused(format!("the {what} is in use by another thread"))),
        }
    }

    /// Drops what `take` takes, without the interpreter, which a worker may need. A forked process
    /// has no worker, and leaves all to the process that has one.
    pub(crate) fn end<R: Send>(&mut self, take: impl FnOnce(&mut T) -> Option<R>) {
        let is_own = self.process == std::process::id();
        let mut taken = take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !is_own {
            std::mem::forget(taken);
        } else if taken.is_some() {
            Python::try_attach(|py| py.detach(|| drop(taken.take())));
        }
    }
}
