//! Do values gathered from all ranks and broadcast from one arrive, and is a rank named that fails
//! or sends something else?

use recoup_comm::Threads;
use recoup_core::{
    CommError, CommonError, ErrorKind, FullCause, KindedError, RankFailure, StoreError, agreed, broadcast_json,
    broadcast_words, by_rank_0, each, from_rank_0, gather_json, gather_words, gathered, summed,
};
use serde::{Deserialize, Serialize, Serializer};

const RANKS: usize = 3;

/// The error that rank 1 alone has.
fn of_rank_1(rank: usize) -> Result<usize, StoreError> {
    if rank == 1 { Err(StoreError::Full { path: "/disk".to_owned(), cause: FullCause::Quota }) } else { Ok(rank) }
}

#[test]
fn values_come_in_rank_order_and_rank_0_alone_makes_what_is_broadcast() {
    let seen = Threads::launch(RANKS, |comm| {
        use recoup_core::Comm;
        let rank = comm.rank();
        assert_eq!(gather_json(&comm, &vec![rank; rank]), Ok(vec![vec![], vec![1], vec![2, 2]]));
        assert_eq!(gather_words(&comm, [rank as u64, u64::MAX]), Ok(vec![[0, u64::MAX], [1, u64::MAX], [2, u64::MAX]]));
        let mine = || if rank == 0 { Some("words".to_owned()) } else { panic!("rank {rank} was asked") };
        assert_eq!(broadcast_json(&comm, mine), Ok(Some("words".to_owned())));
        assert_eq!(broadcast_words(&comm, [7 + rank as u64]), Ok([7]));
        let nothing: Result<Option<u64>, CommonError<StoreError>> = from_rank_0(&comm, || Ok(None));
        assert_eq!(nothing.unwrap(), None);
        let sums: Result<[f64; 2], CommonError<StoreError>> = summed(&comm, Ok([1.0, rank as f64]));
        sums.unwrap()
    });
    assert_eq!(seen, [[3.0, 3.0]; RANKS]);
}

#[test]
fn what_one_rank_cannot_do_fails_on_all_in_its_words() {
    let seen = Threads::launch(RANKS, |comm| {
        use recoup_core::Comm;
        let rank = comm.rank();
        let mine = || of_rank_1(rank);
        let all = [
            gathered(&comm, mine()).map(drop),
            agreed(&comm, mine().map(drop)),
            each(&comm, mine()).map(drop),
            summed(&comm, mine().map(|rank| [rank as f64])).map(drop),
        ];
        let errors = all.map(|result| result.unwrap_err().into_inner());
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::QuotaExceeded), "rank {rank}: {errors:?}");
        let told = errors.map(|error| error.to_string());
        let by_first: Result<(), CommonError<StoreError>> =
            by_rank_0(&comm, || Err(StoreError::Missing { version: 40 }));
        assert!(by_first.unwrap_err().to_string().contains("40"), "rank {rank}");
        told
    });
    for (rank, told) in seen.iter().enumerate() {
        let full = StoreError::Full { path: "/disk".to_owned(), cause: FullCause::Quota };
        let expected = if rank == 1 { full } else { RankFailure::of(1, &full).into() };
        assert!(told.iter().all(|words| *words == expected.to_string()), "rank {rank}: {told:?}");
    }
}

/// Something that reads as a number on rank 0 and as text elsewhere, or has no form at all.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Odd(u64);

impl Serialize for Odd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            0 => serializer.serialize_u64(0),
            1 => serializer.serialize_str("one"),
            _ => Err(serde::ser::Error::custom("no form")),
        }
    }
}

/// A default value took the place of such bytes, and a restore said that there was nothing to tell.
#[test]
fn bytes_that_are_not_understood_are_an_error_that_names_their_rank_on_every_rank() {
    for other in [1, 2] {
        let seen = Threads::launch(RANKS, |comm| {
            use recoup_core::Comm;
            let mine = Odd(if comm.rank() == 2 { other } else { 0 });
            let gathered_here: Result<Vec<Odd>, CommonError<StoreError>> = gathered(&comm, Ok(mine.clone()));
            assert!(gathered_here.is_err(), "{other}");
            gather_json(&comm, &mine).map(drop)
        });
        let named = |result: &Result<(), CommError>| matches!(result, Err(CommError::Undecodable { rank: 2, .. }));
        assert!(seen.iter().all(named), "{seen:?}");
    }
    let seen = Threads::launch(RANKS, |comm| broadcast_json(&comm, || Odd(2)).map(drop));
    assert!(seen.iter().all(|result| matches!(result, Err(CommError::Undecodable { rank: 0, .. }))), "{seen:?}");
}
