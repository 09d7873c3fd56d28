//! Collective calls that carry values: agreement on errors, values gathered from all ranks or
//! broadcast from one.
//!
//! A rank that returned early from its own part of a collective step would leave the others
//! waiting. These helpers take the result of that part, its error too, into the collective call.
//! Promises: all ranks return `Ok`, or all return `Err`; bytes that cannot be decoded are an error
//! that names their rank, never a default value. [`Comm::gather`] and [`Comm::broadcast`] are
//! called here alone.
//!
//! Their errors are [`CommonError`]s, and so are those of collective functions made of them: in
//! such a function a `?` on the result of one rank alone does not compile.

mod tree;

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::{Comm, CommError, ExactSum, KindedError, RankFailure, StoreError, mix};

pub use tree::{collect_bytes, hand_out_bytes};

/// A value that travels between ranks, as JSON.
pub trait Message: Serialize + for<'de> Deserialize<'de> {}

impl<T: Serialize + for<'de> Deserialize<'de>> Message for T {}

/// Values that [`summed`] takes at most.
const SUMS_MAX: usize = 4;
/// The first byte of a message that is no error.
const IS_FINE: u8 = 0;
const IS_ERROR: u8 = 1;

/// An error that one rank can report to the others: its kind and its words arrive.
pub trait RankError: KindedError + From<CommError> + From<RankFailure> {}

impl<E: KindedError + From<CommError> + From<RankFailure>> RankError for E {}

/// An error that comes with one on every other rank, each rank's own or in the words of another: no
/// rank continues to the next collective call.
///
/// [`each`], [`gathered`] and their like make it of the results of single ranks. The result of one
/// rank alone is none:
///
/// ```compile_fail,E0277
/// # use recoup_core::{CommonError, StoreError};
/// fn publish(mine: Result<(), StoreError>) -> Result<(), CommonError<StoreError>> {
///     mine?;
///     Ok(())
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CommonError<E>(E);

impl<E> CommonError<E> {
    /// Takes an error that follows from what all ranks know alike, and so occurs on all of them:
    /// there is nothing to agree on.
    #[must_use]
    pub fn alike(error: E) -> Self {
        Self(error)
    }

    /// Returns the same error as one of another kind.
    #[must_use]
    pub fn lift<F: From<E>>(self) -> CommonError<F> {
        CommonError(self.0.into())
    }

    /// Returns the error, for a function that promises nothing of other ranks.
    #[must_use]
    pub fn into_inner(self) -> E {
        self.0
    }
}

impl<E> Deref for CommonError<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0
    }
}

/// A communicator that fails serves no rank any more.
impl<E: From<CommError>> From<CommError> for CommonError<E> {
    fn from(error: CommError) -> Self {
        Self(error.into())
    }
}

impl<E> From<CommonError<E>> for StoreError
where
    Self: From<E>,
{
    fn from(error: CommonError<E>) -> Self {
        error.into_inner().into()
    }
}

/// Returns `Ok` only if every rank passed `Ok`. Collective.
///
/// # Errors
/// This rank's own error, or the [`RankFailure`] of the first other that failed.
pub fn agreed<E: RankError>(comm: &dyn Comm, mine: Result<(), E>) -> Result<(), CommonError<E>> {
    // Texts travel only where there is one.
    if comm.max(i64::from(mine.is_err()))? == 0 {
        return Ok(());
    }
    gathered(comm, mine).map(drop)
}

/// Returns the value of this rank if every rank has one. Collective.
///
/// # Errors
/// As [`agreed`].
pub fn each<T, E: RankError>(comm: &dyn Comm, mine: Result<T, E>) -> Result<T, CommonError<E>> {
    let mut value = None;
    agreed(comm, mine.map(|mine| value = Some(mine)))?;
    value.ok_or_else(|| CommonError(RankFailure::internal(comm.rank(), "no value").into()))
}

/// Returns the value of every rank, in rank order. Collective.
///
/// # Errors
/// This rank's own error, or the [`RankFailure`] of the first other that failed or sent
/// something else.
pub fn gathered<T: Message, E: RankError>(comm: &dyn Comm, mine: Result<T, E>) -> Result<Vec<T>, CommonError<E>> {
    let all = gather_bytes(comm, &framed(comm.rank(), &mine))?;
    mine.map_err(CommonError)?;
    all.iter().enumerate().map(|(rank, message)| unframed(rank, message)).collect()
}

/// Returns the value that rank 0 makes, on every rank; the others make nothing. Collective.
///
/// # Errors
/// Rank 0's own error, and on the others its [`RankFailure`].
pub fn from_rank_0<T: Message, E: RankError>(
    comm: &dyn Comm,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<T, CommonError<E>> {
    if comm.rank() > 0 {
        return unframed(0, &broadcast_bytes(comm, 0, Vec::new())?);
    }
    let mine = make();
    broadcast_bytes(comm, 0, framed(0, &mine))?;
    mine.map_err(CommonError)
}

/// Lets rank 0 act for all. Collective.
///
/// # Errors
/// As [`from_rank_0`].
pub fn by_rank_0<E: RankError>(comm: &dyn Comm, act: impl FnOnce() -> Result<(), E>) -> Result<(), CommonError<E>> {
    from_rank_0(comm, act)
}

/// Returns the sums over all ranks, each rounded once. Collective.
///
/// # Errors
/// As [`agreed`].
///
/// # Panics
/// For more than three values.
pub fn summed<const N: usize, E: RankError>(
    comm: &dyn Comm,
    mine: Result<[impl Into<ExactSum> + Copy; N], E>,
) -> Result<[f64; N], CommonError<E>> {
    assert!(N < SUMS_MAX, "{N} values");
    let mut sums = [ExactSum::ZERO; SUMS_MAX];
    match &mine {
        Ok(values) => sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum = value.into()),
        Err(_) => sums[N] += 1.0,
    }
    comm.sum_exact(&mut sums[..=N])?;
    if sums[N].rounded() > 0.0 {
        // Every rank sees the same count, so all come here or none.
        agreed(comm, mine.map(drop))?;
    }
    Ok(std::array::from_fn(|i| sums[i].rounded()))
}

/// Returns the value of every rank, in rank order. Collective.
///
/// # Errors
/// As [`Comm::gather`], and [`CommError::Undecodable`].
pub fn gather_json<T: Message>(comm: &dyn Comm, mine: &T) -> Result<Vec<T>, CommError> {
    // A value without a form travels as an empty message, which no rank can decode: none continues
    // alone.
    let all = gather_bytes(comm, &serde_json::to_vec(mine).unwrap_or_default())?;
    all.iter().enumerate().map(|(rank, bytes)| decoded(rank, bytes)).collect()
}

/// Returns the value that rank 0 makes, on every rank; the others make nothing. Collective.
///
/// # Errors
/// As [`Comm::broadcast`], and [`CommError::Undecodable`].
pub fn broadcast_json<T: Message>(comm: &dyn Comm, make: impl FnOnce() -> T) -> Result<T, CommError> {
    broadcast_json_from(comm, 0, make)
}

/// Returns the value that rank `root` makes, on every rank, as [`broadcast_json`] does. Collective.
///
/// # Errors
/// As [`broadcast_json`].
pub fn broadcast_json_from<T: Message>(comm: &dyn Comm, root: usize, make: impl FnOnce() -> T) -> Result<T, CommError> {
    let mine = if comm.rank() == root { serde_json::to_vec(&make()).unwrap_or_default() } else { Vec::new() };
    decoded(root, &broadcast_bytes(comm, root, mine)?)
}

/// Returns whether every rank passed an equal value, by a hash of its form: two numbers travel,
/// however many ranks there are. Collective.
///
/// # Errors
/// As [`Comm::min`].
pub fn are_alike<T: Serialize>(comm: &dyn Comm, mine: &T) -> Result<bool, CommError> {
    // Below 2^62, so that its negative is one, too.
    let number = (text_hash(&serde_json::to_vec(mine).unwrap_or_default()) >> 2) as i64;
    Ok(comm.min(number)? == comm.max(number)?)
}

/// Returns the values of all ranks, of equal ones at least one: they travel only where they are not
/// alike. Collective.
///
/// # Errors
/// As [`gather_json`].
pub fn gather_unlike<T: Message + Clone>(comm: &dyn Comm, mine: &T) -> Result<Vec<T>, CommError> {
    if are_alike(comm, mine)? { Ok(vec![mine.clone()]) } else { gather_json(comm, mine) }
}

/// Brings the values of all ranks to rank 0, in rank order, along a tree; the other ranks return
/// none. Collective.
///
/// # Errors
/// As [`collect_bytes`], and on all ranks [`CommError::Undecodable`].
pub fn collect_json<T: Message, E: RankError>(comm: &dyn Comm, mine: &T) -> Result<Option<Vec<T>>, CommonError<E>> {
    let all = collect_bytes(comm, &serde_json::to_vec(mine).unwrap_or_default())?;
    let decode = |all: Vec<Vec<u8>>| all.iter().enumerate().map(|(rank, bytes)| decoded(rank, bytes)).collect();
    let decoded: Option<Result<Vec<T>, CommError>> = all.map(decode);
    each(comm, decoded.transpose().map_err(E::from))
}

/// Sends each rank the value that rank 0 makes for it, along a tree; the others make nothing.
/// Collective.
///
/// # Errors
/// Rank 0's own error, and on the others its [`RankFailure`].
pub fn hand_out_json<T: Message, E: RankError>(
    comm: &dyn Comm,
    make: impl FnOnce() -> Result<Vec<T>, E>,
) -> Result<T, CommonError<E>> {
    if comm.rank() > 0 {
        return unframed(0, &hand_out_bytes(comm, &[])?);
    }
    let made = make();
    let all = match &made {
        Ok(all) => all.iter().map(|one| framed::<_, E>(0, &Ok(one))).collect(),
        Err(error) => vec![framed::<(), &E>(0, &Err(error)); comm.size()],
    };
    hand_out_bytes(comm, &all)?;
    made.and_then(|all| all.into_iter().next().ok_or_else(|| RankFailure::internal(0, "no value").into()))
        .map_err(CommonError)
}

/// Returns the sums of the numbers of all ranks, modulo 2^64. Collective.
///
/// # Errors
/// As [`Comm::sum`].
pub fn wrapping_sums<const N: usize>(comm: &dyn Comm, mine: [u64; N]) -> Result<[u64; N], CommError> {
    // The sums of halves are exact for up to 2^21 ranks.
    let mut halves: Vec<f64> =
        mine.iter().flat_map(|&number| [number >> 32, number & 0xffff_ffff]).map(|half| half as f64).collect();
    comm.sum(&mut halves)?;
    let (halves, _) = halves.as_chunks::<2>();
    Ok(std::array::from_fn(|index| {
        let [high, low] = halves[index].map(|half| half as u64);
        (high << 32).wrapping_add(low)
    }))
}

/// Returns a hash of a text, by which ranks compare what they have without sending it.
#[must_use]
pub fn text_hash(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    words.fold(text.len() as u64, |hash, word| mix(hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// Returns the numbers of every rank, in rank order. Collective.
///
/// # Errors
/// As [`Comm::gather`], and [`CommError::Length`] for another count of numbers.
pub fn gather_words<const N: usize>(comm: &dyn Comm, mine: [u64; N]) -> Result<Vec<[u64; N]>, CommError> {
    let all = gather_bytes(comm, mine.map(u64::to_le_bytes).as_flattened())?;
    all.iter().enumerate().map(|(rank, bytes)| words(rank, bytes)).collect()
}

/// Returns the numbers of rank 0, on every rank. Collective.
///
/// # Errors
/// As [`Comm::broadcast`], and [`CommError::Length`] for another count of numbers.
pub fn broadcast_words<const N: usize>(comm: &dyn Comm, mine: [u64; N]) -> Result<[u64; N], CommError> {
    words(0, &broadcast_bytes(comm, 0, mine.map(u64::to_le_bytes).as_flattened().to_vec())?)
}

/// Returns the bytes of every rank, in rank order. Collective.
///
/// # Errors
/// As [`Comm::gather`].
#[expect(clippy::disallowed_methods, reason = "the one place that gathers")]
pub fn gather_bytes(comm: &dyn Comm, mine: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
    comm.gather(mine)
}

/// Returns the bytes of rank `root`, on every rank; those of the others are dropped. Collective.
///
/// # Errors
/// As [`Comm::broadcast`].
#[expect(clippy::disallowed_methods, reason = "the one place that broadcasts")]
pub fn broadcast_bytes(comm: &dyn Comm, root: usize, mut mine: Vec<u8>) -> Result<Vec<u8>, CommError> {
    comm.broadcast(root, &mut mine)?;
    Ok(mine)
}

fn decoded<T: Message>(rank: usize, bytes: &[u8]) -> Result<T, CommError> {
    serde_json::from_slice(bytes).map_err(|error| CommError::Undecodable { rank, what: error.to_string() })
}

fn words<const N: usize>(rank: usize, bytes: &[u8]) -> Result<[u64; N], CommError> {
    let (words, rest) = bytes.as_chunks::<8>();
    let numbers: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let length = CommError::Length { rank, expected: N, found: numbers.len() };
    if rest.is_empty() { numbers.try_into().map_err(|_| length) } else { Err(length) }
}

/// A result as a message: one byte that tells an error from a value, then the form of either.
fn framed<T: Serialize, E: KindedError>(rank: usize, result: &Result<T, E>) -> Vec<u8> {
    let with = |first: u8, rest: &[u8]| [&[first], rest].concat();
    let failure = match result.as_ref().map(serde_json::to_vec) {
        Ok(Ok(bytes)) => return with(IS_FINE, &bytes),
        Ok(Err(error)) => RankFailure::internal(rank, error.to_string()),
        Err(error) => RankFailure::of(rank, error),
    };
    // A number, a name and a text always have a form.
    with(IS_ERROR, &serde_json::to_vec(&failure).unwrap_or_default())
}

fn unframed<T: Message, E: RankError>(rank: usize, message: &[u8]) -> Result<T, CommonError<E>> {
    match message.split_first() {
        Some((&IS_ERROR, bytes)) => Err(CommonError(decoded::<RankFailure>(rank, bytes)?.into())),
        Some((_, bytes)) => Ok(decoded(rank, bytes)?),
        None => Ok(decoded(rank, message)?),
    }
}
