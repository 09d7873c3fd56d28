//! Verdicts: what one rank finds out, or fails to do, becomes what all ranks know.
//!
//! A rank that returned early from its own part of a collective step would leave the others waiting. These helpers take
//! the result of that part, its error too, into the collective call. Promises: all ranks return `Ok`, or all return `Err`.

use std::fmt;

use crate::{Comm, CommError, StoreError};

/// Values that [`summed`] takes at most.
const SUMS_MAX: usize = 4;
/// What a message that is no error begins with.
const IS_FINE: u8 = 0;
const IS_ERROR: u8 = 1;

/// An error that one rank can report to the others.
pub trait RankError: fmt::Display + From<CommError> {
    /// The error of another rank, in its own words.
    fn of_rank(rank: usize, message: String) -> Self;
}

impl RankError for StoreError {
    fn of_rank(rank: usize, message: String) -> Self {
        Self::Rank { rank, message }
    }
}

/// Returns `Ok` only if every rank passed `Ok`. Collective.
///
/// # Errors
/// This rank's own error, or [`RankError::of_rank`] of the first other that failed.
pub fn agreed<E: RankError>(comm: &dyn Comm, mine: Result<(), E>) -> Result<(), E> {
    let words = mine.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let all = comm.gather(words.as_bytes())?;
    mine?;
    match all.iter().position(|words| !words.is_empty()) {
        None => Ok(()),
        Some(rank) => Err(E::of_rank(rank, String::from_utf8_lossy(&all[rank]).into_owned())),
    }
}

/// Returns the value of this rank if every rank has one. Collective.
///
/// # Errors
/// As [`agreed`].
pub fn each<T, E: RankError>(comm: &dyn Comm, mine: Result<T, E>) -> Result<T, E> {
    let (value, verdict) = match mine {
        Ok(value) => (Some(value), Ok(())),
        Err(error) => (None, Err(error)),
    };
    agreed(comm, verdict)?;
    value.ok_or_else(|| E::of_rank(comm.rank(), "no value".to_owned()))
}

/// Returns the bytes of every rank, in rank order. Collective.
///
/// # Errors
/// This rank's own error, or [`RankError::of_rank`] of the first other that failed.
pub fn gathered<E: RankError>(comm: &dyn Comm, mine: Result<Vec<u8>, E>) -> Result<Vec<Vec<u8>>, E> {
    let all = comm.gather(&framed(&mine))?;
    mine?;
    all.into_iter().enumerate().map(|(rank, message)| unframed(rank, message)).collect()
}

/// Returns what rank 0 made, on every rank; the others make nothing. An empty message travels as one. Collective.
///
/// # Errors
/// Rank 0's own error, and on the others [`RankError::of_rank`] with its words.
pub fn from_rank_0<E: RankError>(comm: &dyn Comm, make: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
    let mine = if comm.rank() == 0 { make() } else { Ok(Vec::new()) };
    let mut message = framed(&mine);
    comm.broadcast(0, &mut message)?;
    if comm.rank() == 0 { mine } else { unframed(0, message) }
}

/// Has rank 0 act for all. Collective.
///
/// # Errors
/// As [`from_rank_0`].
pub fn by_rank_0<E: RankError>(comm: &dyn Comm, act: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    from_rank_0(comm, || act().map(|()| Vec::new())).map(drop)
}

/// Returns the sums over all ranks, each added in rank order. Collective.
///
/// # Errors
/// As [`agreed`].
///
/// # Panics
/// For more than three values.
pub fn summed<const N: usize, E: RankError>(comm: &dyn Comm, mine: Result<[f64; N], E>) -> Result<[f64; N], E> {
    assert!(N < SUMS_MAX, "{N} values");
    let mut sums = [0.0; SUMS_MAX];
    match &mine {
        Ok(values) => sums[..N].copy_from_slice(values),
        Err(_) => sums[N] = 1.0,
    }
    comm.sum(&mut sums[..=N])?;
    if sums[N] > 0.0 {
        // Every rank sees the same count, so all come here or none.
        agreed(comm, mine.map(drop))?;
    }
    Ok(std::array::from_fn(|i| sums[i]))
}

/// A result as a message; a value without bytes is the empty one.
fn framed<E: fmt::Display>(result: &Result<Vec<u8>, E>) -> Vec<u8> {
    let with = |first: u8, rest: &[u8]| [&[first], rest].concat();
    match result {
        Ok(bytes) if bytes.is_empty() => Vec::new(),
        Ok(bytes) => with(IS_FINE, bytes),
        Err(error) => with(IS_ERROR, error.to_string().as_bytes()),
    }
}

fn unframed<E: RankError>(rank: usize, mut message: Vec<u8>) -> Result<Vec<u8>, E> {
    match message.first() {
        None => Ok(message),
        Some(&IS_FINE) => {
            message.remove(0);
            Ok(message)
        }
        Some(_) => Err(E::of_rank(rank, String::from_utf8_lossy(&message[1..]).into_owned())),
    }
}
