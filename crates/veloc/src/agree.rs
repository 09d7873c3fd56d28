//! One verdict on all ranks: what one rank cannot do, none has done.

use recoup_core::Comm;
use serde::{Deserialize, Serialize};

use crate::Error;

/// A rank's word on a collective call.
#[derive(Serialize, Deserialize)]
struct Word {
    /// The call, which must be the same everywhere.
    call: String,
    error: Option<String>,
}

/// Whether all ranks made `call` and could do their part; each rank gets its own error, or the first of another's.
///
/// # Errors
/// `mine`, [`Error::Rank`], [`Error::Disagree`], [`Error::Comm`].
pub(crate) fn agree<T>(comm: &dyn Comm, call: &str, mine: Result<T, Error>) -> Result<T, Error> {
    let word = Word { call: call.to_owned(), error: mine.as_ref().err().map(ToString::to_string) };
    let words: Vec<Word> = gather(comm, &word)?;
    let mine = mine?;
    if let Some((rank, other)) = words.iter().enumerate().find(|(_, word)| word.call != call) {
        return Err(Error::Disagree { mine: call.to_owned(), other: other.call.clone(), rank });
    }
    let failed = words.into_iter().enumerate().find_map(|(rank, word)| Some((rank, word.error?)));
    failed.map_or(Ok(mine), |(rank, message)| Err(Error::Rank { rank, message }))
}

/// What every rank has to say, in rank order.
///
/// # Errors
/// [`Error::Comm`], [`Error::Rank`] for a rank that says something else.
pub(crate) fn gather<T: Serialize + for<'a> Deserialize<'a>>(comm: &dyn Comm, mine: &T) -> Result<Vec<T>, Error> {
    let lie = |rank: usize, e: serde_json::Error| Error::Rank { rank, message: e.to_string() };
    let bytes = serde_json::to_vec(mine).map_err(|e| lie(comm.rank(), e))?;
    let all = comm.gather(&bytes)?;
    let word = |(rank, bytes): (usize, &Vec<u8>)| serde_json::from_slice(bytes).map_err(|e| lie(rank, e));
    all.iter().enumerate().map(word).collect()
}

/// What rank 0 says, on every rank.
///
/// # Errors
/// [`Error::Comm`], [`Error::Rank`] when it is not understood.
pub(crate) fn broadcast<T: Serialize + for<'a> Deserialize<'a>>(comm: &dyn Comm, mine: &T) -> Result<T, Error> {
    let lie = |e: serde_json::Error| Error::Rank { rank: 0, message: e.to_string() };
    let mut bytes = if comm.rank() == 0 { serde_json::to_vec(mine).map_err(lie)? } else { Vec::new() };
    comm.broadcast(0, &mut bytes)?;
    serde_json::from_slice(&bytes).map_err(lie)
}

#[cfg(test)]
mod tests {
    use recoup_comm::Threads;

    use super::*;

    #[test]
    fn one_failure_is_every_ranks_failure() {
        let verdicts = Threads::launch(3, |comm| {
            let mine = if comm.rank() == 1 { Err(Error::Order { call: "end", what: "nothing begun" }) } else { Ok(()) };
            agree(&comm, "end", mine).unwrap_err().to_string()
        });
        assert_eq!(verdicts, ["rank 1: end: nothing begun", "end: nothing begun", "rank 1: end: nothing begun"]);
    }

    #[test]
    fn different_calls_are_named() {
        let verdicts = Threads::launch(2, |comm| agree(&comm, &format!("begin {}", comm.rank()), Ok(())).is_err());
        assert_eq!(verdicts, [true, true]);
    }
}
