//! Atomics and waiting for the zone table. A model checker brings its own in place of these.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Looks at the same value again before a thread gives up its core.
const SPINS: u32 = 64;

/// Passes the time of one round of waiting for another thread, which is about to be done.
pub(crate) fn pause(round: u32) {
    if round < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
}
