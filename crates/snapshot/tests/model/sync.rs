//! The checker's own atomics and waiting, for the table.

pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Another thread is about to be done: its turn.
pub(crate) fn pause(_round: u32) {
    loom::thread::yield_now();
}
