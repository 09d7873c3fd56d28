//! Does every rank learn of which kind the error is that cost a version or a run?

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use recoup::comm::Threads;
use recoup::core::{
    Bound, Codec, CodecError, CodecId, CodecResult, Comm, CommError, Context, Distribution, Draft, Encoded, ErrorKind,
    Frame, IncrementMode, KindedError, NextCall, Operator, Role, Scheme, Sealed, Store, StoreDecorator, StoreError,
    Values, ValuesMut, VariableRecord,
};
use recoup::io::{MemoryStore, SystemClock};
use recoup::pipeline::{CodecTable, Codecs, Outcome, PipelineError, Reference, Session, SessionConfig, Variables};
use recoup_testkit::{SavesAt, progress};

use crate::support::plan;

const RANKS: usize = 3;
/// The rank that fails.
const FAILING: usize = 1;
/// Values of a rank, enough to be encoded.
const N: usize = 10_000;

/// A store whose drafts of version 1 fail on one rank when they are written.
struct FailingStore {
    inner: MemoryStore,
    fail: fn() -> StoreError,
}

impl StoreDecorator for FailingStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn begin_draft(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        let inner = self.inner.begin(version, rank)?;
        Ok(if version == 1 && rank == FAILING { Box::new(FailingDraft(self.fail)) } else { inner })
    }
}

struct FailingDraft(fn() -> StoreError);

impl Draft for FailingDraft {
    fn write(&mut self, _: &VariableRecord, _: &mut [Frame], _: NextCall) -> Result<(), StoreError> {
        Err((self.0)())
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        Err((self.0)())
    }
}

/// An error number of the operating system.
fn refused<const NUMBER: i32>() -> StoreError {
    StoreError::of_io("write", Path::new("/disk"), std::io::Error::from_raw_os_error(NUMBER))
}

fn panics() -> StoreError {
    panic!("a store with a fault")
}

/// A codec that fails on the values of [`FAILING`].
struct FailingCodec;

impl Codec for FailingCodec {
    fn id(&self) -> CodecId {
        CodecId::Zstd
    }

    fn encode(&self, x: Values<'_>, _: Bound, _: &Context, _: &mut Vec<u8>) -> CodecResult {
        let Values::F64([first, ..]) = x else { panic!("doubles expected") };
        let message = "no encoder".to_owned();
        if *first == 0.0 {
            Ok(Encoded::under(Bound::Lossless))
        } else {
            Err(CodecError::Foreign { codec: self.id(), message })
        }
    }

    fn decode(&self, _: &[u8], _: Bound, _: &Context, _: ValuesMut<'_>) -> CodecResult<()> {
        Ok(())
    }
}

/// The identity, which panics from some time on.
struct Identity {
    first: u64,
    has_fault: AtomicBool,
}

impl Operator for Identity {
    fn rows(&self) -> usize {
        N
    }

    fn first_row(&self) -> u64 {
        self.first
    }

    fn global_rows(&self) -> u64 {
        (RANKS * N) as u64
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        assert!(!self.has_fault.load(Ordering::Acquire), "an operator with a fault");
        y.copy_from_slice(x);
        Ok(())
    }
}

fn open(store: Arc<dyn Store>, table: CodecTable, reference: Option<Reference>, comm: &dyn Comm) -> Session {
    let policy = SavesAt::no_iteration(plan(Scheme::Traditional));
    let config = SessionConfig::new("run", store, Codecs { table, threads: 1 }, policy, Arc::new(SystemClock::new()));
    let config = SessionConfig { keep: 9, increments: IncrementMode::Off, reference, ..config };
    Session::open(config, comm).unwrap()
}

/// Takes a version of a vector of zeros; of ones for the first version of [`FAILING`].
fn save(session: &mut Session, comm: &dyn Comm, scheme: Scheme, iteration: u64) -> Result<(), PipelineError> {
    let mut x = vec![if iteration == 1 && comm.rank() == FAILING { 1.0 } else { 0.0 }; N];
    let rows = Distribution::Rows { first: (comm.rank() * N) as u64, global: (comm.size() * N) as u64 };
    let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows);
    session.checkpoint(plan(scheme), progress(iteration), &[&owner]).map(drop)
}

/// The kind that each rank finds in the outcome of version 1; version 2 must count.
fn kinds(fail: fn() -> StoreError, scheme: Scheme) -> Vec<ErrorKind> {
    let versions = MemoryStore::new();
    Threads::launch(RANKS, |comm| {
        let store = Arc::new(FailingStore { inner: versions.clone(), fail });
        let mut session = open(store, |_| Ok(Arc::new(FailingCodec)), None, &comm);
        save(&mut session, &comm, scheme, 1).unwrap();
        save(&mut session, &comm, scheme, 2).unwrap();
        session.wait().unwrap();
        match &session.take_outcomes()[..] {
            [Outcome::Failed { version: 1, kind, message }, Outcome::Saved(_)] => {
                assert!(message.starts_with("rank 1: "), "{message}");
                *kind
            }
            other => panic!("{other:?}"),
        }
    })
}

/// The worker made a text of every error: a full disk and a store with a fault differed by words.
#[test]
fn a_version_that_one_rank_cannot_write_fails_with_its_kind_on_all_ranks() {
    let cases: [(fn() -> StoreError, ErrorKind); 5] = [
        (refused::<28>, ErrorKind::DiskFull),
        (refused::<122>, ErrorKind::QuotaExceeded),
        (refused::<30>, ErrorKind::ReadOnly),
        (refused::<5>, ErrorKind::DiskFault),
        (panics, ErrorKind::Panicked),
    ];
    for (fail, expected) in cases {
        assert_eq!(kinds(fail, Scheme::Traditional), [expected; RANKS]);
    }
    assert_eq!(kinds(refused::<28>, Scheme::Exact), [ErrorKind::Codec; RANKS]);
}

#[test]
fn a_lost_rank_is_told_from_every_other_error() {
    let kinds = Threads::launch(RANKS, |comm| {
        let mut session = open(Arc::new(MemoryStore::new()), recoup::compress::codec, None, &comm);
        if comm.rank() == FAILING {
            comm.lose();
            return None;
        }
        Some(save(&mut session, &comm, Scheme::Traditional, 2).unwrap_err().kind())
    });
    assert_eq!(kinds, [Some(ErrorKind::RankLost), None, Some(ErrorKind::RankLost)]);
}

/// The other ranks began a version with a rank whose worker was gone, and waited for it.
#[test]
fn a_worker_that_panics_ends_the_session_of_all_ranks_with_its_kind() {
    let versions = MemoryStore::new();
    let kinds = Threads::launch(RANKS, |comm| {
        let operator = Arc::new(Identity { first: (comm.rank() * N) as u64, has_fault: AtomicBool::new(false) });
        let reference = Reference::new(operator.clone(), vec![0.0; N].into());
        let mut session = open(Arc::new(versions.clone()), recoup::compress::codec, Some(reference), &comm);
        operator.has_fault.store(comm.rank() == FAILING, Ordering::Release);
        save(&mut session, &comm, Scheme::Lossy, 1).unwrap();
        if comm.rank() == FAILING {
            assert_eq!(session.wait().unwrap_err().kind(), ErrorKind::Panicked);
        }
        save(&mut session, &comm, Scheme::Lossy, 2).unwrap_err().kind()
    });
    assert_eq!(kinds, [ErrorKind::Panicked; RANKS]);
}
