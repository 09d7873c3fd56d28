//! The numbers of handles, tapes, memories, views and logs, and what they stand for.
//!
//! Promises: a number tells the process that opened it, so a call in a process forked from it is an
//! error before it takes a lock that no thread there gives back. A thread has one call of a number
//! at a time: a signal handler that comes in between gets an error, and takes no memory for it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::status::{CallFailure, RECOUP_E_HANDLE};

/// Bits of a number that count; those above them are the process.
const COUNT_BITS: u32 = 32;
/// Calls of a thread in each other, by callbacks, that are marked.
const CALLS_MOST: usize = 4;

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The numbers whose calls are under way in this thread; 0 for none.
    static UNDER_WAY: Cell<[u64; CALLS_MOST]> = const { Cell::new([0; CALLS_MOST]) };
}

/// The open things of one kind, by their numbers.
pub(crate) struct Numbered<T> {
    /// The name of such a thing in messages.
    kind: &'static str,
    open: Mutex<BTreeMap<u64, Arc<T>>>,
}

impl<T> Numbered<T> {
    pub(crate) const fn new(kind: &'static str) -> Self {
        Self { kind, open: Mutex::new(BTreeMap::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<T>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self, number: u64) -> CallFailure {
        CallFailure::new(RECOUP_E_HANDLE, format!("{number} is not an open {}", self.kind))
    }

    /// Returns a number for it that nothing else has had in this process.
    pub(crate) fn insert(&self, thing: T) -> u64 {
        let number = u64::from(std::process::id()) << COUNT_BITS | NEXT.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, Arc::new(thing));
        number
    }

    pub(crate) fn get(&self, number: u64) -> Result<Arc<T>, CallFailure> {
        check_process(number)?;
        self.lock().get(&number).cloned().ok_or_else(|| self.unknown(number))
    }

    pub(crate) fn remove(&self, number: u64) -> Result<Arc<T>, CallFailure> {
        check_process(number)?;
        self.lock().remove(&number).ok_or_else(|| self.unknown(number))
    }
}

/// Things that their calls take turns with; `None` once they are closed.
impl<T> Numbered<Mutex<Option<T>>> {
    /// Runs `body` alone on one of them.
    pub(crate) fn with<R>(
        &self,
        number: u64,
        body: impl FnOnce(&mut T) -> Result<R, CallFailure>,
    ) -> Result<R, CallFailure> {
        let _call = NumberedCall::begin(number)?;
        let shared = self.get(number)?;
        let mut open = shared.lock().unwrap_or_else(PoisonError::into_inner);
        body(open.as_mut().ok_or_else(|| self.unknown(number))?)
    }

    /// Closes one of them, and returns it unless another call has closed it first.
    pub(crate) fn close(&self, number: u64) -> Result<Option<T>, CallFailure> {
        let _call = NumberedCall::begin(number)?;
        let shared = self.remove(number)?;
        Ok(shared.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

/// Refuses a number that the process has from the one it was forked from.
fn check_process(number: u64) -> Result<(), CallFailure> {
    let opener = number >> COUNT_BITS;
    let here = std::process::id();
    let count = number & ((1 << COUNT_BITS) - 1);
    let was_given = count > 0 && count < NEXT.load(Ordering::Relaxed);
    if opener == 0 || opener == u64::from(here) || !was_given {
        return Ok(());
    }
    let what = format!("process {opener} opened it, process {here} was forked from it: open one of its own");
    Err(CallFailure::new(RECOUP_E_HANDLE, what))
}

/// A call of a number that is under way in this thread, until it is dropped.
struct NumberedCall {
    number: u64,
}

impl NumberedCall {
    /// Begins a call.
    fn begin(number: u64) -> Result<Self, CallFailure> {
        check_process(number)?;
        let under_way = UNDER_WAY.get();
        if number > 0 && under_way.contains(&number) {
            return Err(CallFailure::interrupted());
        }
        replace(0, number);
        Ok(Self { number })
    }
}

impl Drop for NumberedCall {
    fn drop(&mut self) {
        replace(self.number, 0);
    }
}

/// Puts a number in the first place that has another. Calls in each other beyond the places are not
/// marked.
fn replace(before: u64, after: u64) {
    let mut under_way = UNDER_WAY.get();
    if let Some(place) = under_way.iter_mut().find(|place| **place == before) {
        *place = after;
        UNDER_WAY.set(under_way);
    }
}
