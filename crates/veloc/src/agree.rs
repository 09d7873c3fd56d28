//! One verdict on all ranks: what one rank cannot do, none has done.

use recoup_core::{Comm, gather_json};
use serde::{Deserialize, Serialize};

use crate::Error;

/// A rank's word on a collective call.
#[derive(Serialize, Deserialize)]
struct CallReport {
    /// The call, which must be the same everywhere.
    call: String,
    error: Option<String>,
}

/// Returns `Ok` if all ranks made `call` and passed `Ok`; otherwise each rank gets its own error,
/// or the first of another's.
///
/// # Errors
/// `mine`, [`Error::Rank`], [`Error::Disagree`], [`Error::Comm`].
pub(crate) fn agree<T>(comm: &dyn Comm, call: &str, mine: Result<T, Error>) -> Result<T, Error> {
    let report = CallReport { call: call.to_owned(), error: mine.as_ref().err().map(ToString::to_string) };
    let reports: Vec<CallReport> = gather_json(comm, &report)?;
    let mine = mine?;
    if let Some((rank, other)) = reports.iter().enumerate().find(|(_, report)| report.call != call) {
        return Err(Error::Disagree { mine: call.to_owned(), other: other.call.clone(), rank });
    }
    let failed = reports.into_iter().enumerate().find_map(|(rank, report)| Some((rank, report.error?)));
    failed.map_or(Ok(mine), |(rank, message)| Err(Error::Rank { rank, message }))
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
