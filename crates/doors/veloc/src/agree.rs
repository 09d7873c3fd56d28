//! One verdict on all ranks: what one rank cannot do, none has done.

use recoup_core::{Comm, CommonError, RankFailure, gathered};

use crate::Error;

/// Returns `Ok` if all ranks made `call` and passed `Ok`; otherwise each rank gets its own error,
/// or the first of another's.
///
/// # Errors
/// `mine`, [`Error::Rank`], [`Error::Disagree`], [`Error::Comm`].
pub(crate) fn agree<T>(comm: &dyn Comm, call: &str, mine: Result<T, Error>) -> Result<T, CommonError<Error>> {
    let mut value = None;
    let calls = gathered(comm, mine.map(|mine| value.insert(mine)).map(|_| call.to_owned()))?;
    // Where two calls differ, each rank finds one that is not its own.
    if let Some((rank, other)) = calls.into_iter().enumerate().find(|(_, other)| other != call) {
        return Err(CommonError::alike(Error::Disagree { mine: call.to_owned(), other, rank }));
    }
    value.ok_or_else(|| CommonError::alike(RankFailure::internal(comm.rank(), "no value").into()))
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
