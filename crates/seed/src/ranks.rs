//! The ranks of a run: threads, one of which may be lost on its way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use recoup::comm::Threads;
use recoup::core::{Comm, CommError, ExactSum};

use crate::choices::Chance;

pub(crate) type AnyError = Box<dyn std::error::Error>;

/// The way a run ends before it is over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EarlyEnd {
    /// Iterations after which the program stops of its own; `None` for one that goes on to the end.
    pub(crate) stops_after: Option<u64>,
    /// The rank that is lost.
    pub(crate) loss: Option<LostRank>,
}

/// A rank that is gone at one of its calls to others, on whichever of its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostRank {
    /// Its number, of as many ranks as there are.
    number: usize,
    /// Calls that it makes before.
    calls: u64,
    /// Time in which it is silent before others are told.
    silence: Duration,
}

impl LostRank {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        let number = chance.below(16) as usize;
        // Most runs make a few hundred calls.
        let calls = 1 << chance.below(10);
        let silence = Duration::from_millis(chance.one_of(&[0, 0, 10, 60_000]));
        Self { number, calls: calls + chance.below(calls), silence }
    }
}

/// Runs `run` on all ranks. The loss of a rank ends them all, and is no error of the run.
pub(crate) fn launch(
    ranks: usize,
    loss: Option<LostRank>,
    run: impl Fn(Box<dyn Comm>) -> Result<(), AnyError> + Sync,
) -> Result<(), String> {
    let run_rank = |comm| loss_of(comm, loss, ranks).and_then(&run).map_err(|error| error.to_string());
    let ends = Threads::launch_each(ranks, run_rank);
    let is_loss = |error: &str| loss.is_some_and(|loss| error.contains(&loss.words(ranks)));
    for (rank, end) in ends.into_iter().enumerate() {
        let end = end.map_err(|panic| format!("rank {rank} panicked: {}", words_of(panic.as_ref())))?;
        end.or_else(|error| if is_loss(&error) { Ok(()) } else { Err(format!("rank {rank}: {error}")) })?;
    }
    Ok(())
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}

impl LostRank {
    /// Returns the words that tell of it.
    pub(crate) fn words(&self, ranks: usize) -> String {
        CommError::RankLost { rank: self.number % ranks }.to_string()
    }
}

/// Returns the communicator of a rank: one that loses it, if it is the lost one.
fn loss_of(comm: Threads, loss: Option<LostRank>, ranks: usize) -> Result<Box<dyn Comm>, AnyError> {
    let Some(loss) = loss else { return Ok(Box::new(comm)) };
    // Its own communicator declares it lost while others wait in theirs.
    let inner = comm.dup()?;
    if loss.number % ranks != comm.rank() {
        return Ok(inner);
    }
    let calls = AtomicU64::new(loss.calls);
    Ok(Box::new(LosingComm { inner, end: Arc::new(RankEnd { calls, silence: loss.silence, rank: Mutex::new(comm) }) }))
}

/// The end of a rank, which all its communicators share.
struct RankEnd {
    /// Calls that are left.
    calls: AtomicU64,
    silence: Duration,
    rank: Mutex<Threads>,
}

/// A communicator whose rank is lost at one of its calls.
struct LosingComm {
    inner: Box<dyn Comm>,
    end: Arc<RankEnd>,
}

impl LosingComm {
    /// Makes a call, which fails on all ranks once this one is lost.
    fn call(&self) -> &dyn Comm {
        let left = self.end.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |calls| calls.checked_sub(1));
        if left.is_err() {
            std::thread::sleep(self.end.silence);
            self.end.rank.lock().unwrap_or_else(PoisonError::into_inner).lose();
        }
        self.inner.as_ref()
    }
}

impl Comm for LosingComm {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn sum_exact_while(&self, sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError> {
        self.call().sum_exact_while(sums, work)
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        self.call().min(value)
    }

    #[expect(clippy::disallowed_methods, reason = "passed on")]
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        self.call().broadcast(root, bytes)
    }

    #[expect(clippy::disallowed_methods, reason = "passed on")]
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.call().gather(bytes)
    }

    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError> {
        self.call().exchange(sends, receives)
    }

    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError> {
        self.call().exchange_bytes(sends, from)
    }

    fn exchange_bytes_into(
        &self,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
    ) -> Result<Vec<usize>, CommError> {
        self.call().exchange_bytes_into(sends, receives)
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.call().barrier()
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        Ok(Box::new(Self { inner: self.call().dup()?, end: self.end.clone() }))
    }
}
