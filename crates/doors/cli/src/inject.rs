//! Failures that are made on purpose: struck inside the process or by killing it, in real time or
//! in virtual time, and the lives that a killed run comes to.

pub(crate) mod agreed;
pub(crate) mod failures;
pub(crate) mod heartbeat;
pub(crate) mod kill;
pub(crate) mod last_words;
pub(crate) mod lives;
pub(crate) mod planned;
pub(crate) mod spares;
pub(crate) mod virtual_time;
