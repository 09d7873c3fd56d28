//! A communicator that a program lends, where the program's calls end in ranks as threads. Does it
//! keep the promises of a communicator, on any thread and on the program's thread alone?
#![expect(clippy::disallowed_methods, reason = "the program behind a lent communicator")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use recoup_comm::{CommCallbacks, LentComm, Threads};
use recoup_core::{Clock, Comm, CommError};
use recoup_testkit::comm_suite;

const ANY_THREAD: Option<ThreadId> = None;

/// The clock of the system.
struct Wall(Instant);

impl Wall {
    fn start() -> Arc<dyn Clock> {
        #[expect(clippy::disallowed_methods, reason = "a clock, which this is")]
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for Wall {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep_until(&self, instant: Duration) {
        std::thread::sleep(instant.saturating_sub(self.now()));
    }
}

/// A program: one communicator for collective calls, and one for each tag.
struct Program {
    comm: Mutex<Box<dyn Comm>>,
    tags: Vec<Mutex<Box<dyn Comm>>>,
    /// The only thread that may call, if there is such a thread.
    only: Option<ThreadId>,
    /// Copies that were made and not freed yet.
    copies: Arc<AtomicUsize>,
    rank: usize,
    size: usize,
}

impl Program {
    fn lend(comm: &dyn Comm, only: Option<ThreadId>, copies: &Arc<AtomicUsize>) -> Result<Self, CommError> {
        let tags = (0..4).map(|_| comm.dup().map(Mutex::new)).collect::<Result<_, _>>()?;
        let rank = comm.rank();
        let size = comm.size();
        Ok(Self { comm: Mutex::new(comm.dup()?), tags, only, copies: Arc::clone(copies), rank, size })
    }

    fn check_thread(&self) {
        assert!(self.only.is_none_or(|only| only == std::thread::current().id()), "called on another thread");
    }
}

impl CommCallbacks for Program {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn is_free_threaded(&self) -> bool {
        self.only.is_none()
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError> {
        self.check_thread();
        let mut buffer = bytes.to_vec();
        self.comm.lock().expect("no rank panics").broadcast(root, &mut buffer)?;
        bytes.copy_from_slice(&buffer);
        Ok(())
    }

    fn gather(&self, mine: &[u8], lengths: &[u64], all: &mut [u8]) -> Result<(), CommError> {
        self.check_thread();
        assert_eq!(lengths[self.rank], mine.len() as u64);
        all.copy_from_slice(&self.comm.lock().expect("no rank panics").gather(mine)?.concat());
        Ok(())
    }

    fn exchange(&self, tag: i32, sends: &[(usize, &[u8])], receives: &mut [(usize, Vec<u8>)]) -> Result<(), CommError> {
        self.check_thread();
        let from: Vec<usize> = receives.iter().map(|(rank, _)| *rank).collect();
        let found = self.tags[tag as usize].lock().expect("no rank panics").exchange_bytes(sends, &from)?;
        for ((_, message), found) in receives.iter_mut().zip(found) {
            assert_eq!(message.len(), found.len(), "both sides know the length");
            *message = found;
        }
        Ok(())
    }

    fn dup(&self) -> Result<Box<dyn CommCallbacks>, CommError> {
        self.check_thread();
        let copy = Self::lend(self.comm.lock().expect("no rank panics").as_ref(), self.only, &self.copies)?;
        self.copies.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(copy))
    }

    fn free(self: Box<Self>) {
        self.check_thread();
        self.copies.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lends the communicator of a rank, runs `use_it`, and checks that every copy was freed.
fn with_lent(comm: &dyn Comm, only: Option<ThreadId>, use_it: impl FnOnce(&LentComm)) {
    let copies = Arc::new(AtomicUsize::new(0));
    let program = Program::lend(comm, only, &copies).expect("no rank is lost");
    let lent = LentComm::new(Some(Box::new(program)), Wall::start());
    use_it(&lent);
    drop(lent);
    assert_eq!(copies.load(Ordering::Relaxed), 0, "copies were not freed");
}

#[test]
fn calls_of_any_thread_pass_the_suite() {
    for ranks in 1..=4 {
        Threads::launch(ranks, |comm| with_lent(&comm, ANY_THREAD, |lent| comm_suite::run(lent.comm())));
    }
}

#[test]
fn calls_of_other_threads_are_served_on_the_programs_thread() {
    for ranks in 1..=3 {
        Threads::launch(ranks, |comm| {
            with_lent(&comm, Some(std::thread::current().id()), |lent| {
                let _inside = lent.enter();
                let theirs = [lent.comm().dup().unwrap(), lent.comm().dup().unwrap()];
                comm_suite::run(lent.comm());
                let done = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        theirs.into_iter().for_each(|comm| comm_suite::run(comm.as_ref()));
                        done.store(true, Ordering::Release);
                    });
                    lent.finish(|| done.load(Ordering::Acquire)).unwrap();
                });
            });
        });
    }
}

/// The product of an operator belongs to no communicator, and is served all the same.
#[test]
fn another_collective_call_is_served_by_calls_that_do_not_wait() {
    const RANKS: usize = 2;
    Threads::launch(RANKS, |comm| {
        with_lent(&comm, Some(std::thread::current().id()), |lent| {
            let program = std::thread::current().id();
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let ran_on = lent.thread().call(|| std::thread::current().id());
                    assert_eq!(ran_on, Ok(program));
                    done.store(true, Ordering::Release);
                });
                let mut n_calls = 0;
                loop {
                    let _inside = lent.enter();
                    if lent.advance(|| done.load(Ordering::Acquire)).unwrap() {
                        break;
                    }
                    n_calls += 1;
                    assert!(n_calls < 1_000_000, "the call is never served");
                }
            });
        });
    });
}

/// Rank 1 alone has work under way, and rank 0 alone no time: both get the same answer.
#[test]
fn a_wait_that_ends_too_early_ends_alike_on_all_ranks_and_can_be_made_again() {
    Threads::launch(2, |comm| {
        with_lent(&comm, Some(std::thread::current().id()), |lent| {
            let _inside = lent.enter();
            let timeout = if comm.rank() == 0 { Duration::ZERO } else { Duration::MAX };
            assert_eq!(lent.finish_within(timeout, || comm.rank() == 0), Ok(false));
            assert_eq!(lent.finish_within(timeout, || true), Ok(true));
        });
    });
}

#[test]
fn call_that_waits_fails_when_the_communicator_is_closed() {
    Threads::launch(2, |comm| {
        with_lent(&comm, Some(std::thread::current().id()), |lent| {
            let theirs = {
                let _inside = lent.enter();
                lent.comm().dup().unwrap()
            };
            std::thread::scope(|scope| {
                let worker = scope.spawn(move || theirs.barrier());
                lent.abandon();
                assert_eq!(worker.join().unwrap(), Err(CommError::Closed));
            });
        });
    });
}

/// A panic in a callback must not leave the thread that waits for it waiting.
#[test]
fn call_that_panics_fails_and_closes_the_communicator() {
    let program = std::thread::current().id();
    with_lent(&recoup_comm::Solo, Some(program), |lent| {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let first = lent.thread().call(|| assert_eq!(1, 2));
                [first, lent.thread().call(|| ())]
            });
            let _inside = lent.enter();
            lent.finish(|| worker.is_finished()).unwrap();
            assert_eq!(worker.join().unwrap(), [Err(CommError::Closed), Err(CommError::Closed)]);
        });
    });
}
