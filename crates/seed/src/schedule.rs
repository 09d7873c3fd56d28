//! The order of threads: one runs, and at each call a choice says who is next.

use std::sync::Arc;
use std::time::Duration;

use crate::choices::ChoiceStream;
use crate::sys::ThreadContext;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Runs, or would if it were its turn.
    Ready,
    Waiting {
        address: usize,
        until: Option<Duration>,
    },
    Sleeping {
        until: Duration,
    },
    Joining {
        thread: usize,
    },
    Ended,
}

#[derive(Debug)]
struct ScheduledThread {
    doing: Doing,
    context: Arc<ThreadContext>,
    /// The system's name of the thread.
    handle: usize,
    /// Its last wait ended by time.
    is_late: bool,
}

/// The thread that continues after a call.
#[derive(Debug)]
pub(crate) enum NextThread {
    /// The same thread.
    Same,
    /// The thread of this context.
    Other(Arc<ThreadContext>),
    /// No thread can go on, and some have not ended.
    Stuck,
    /// All threads have ended.
    Over,
}

/// Threads of a world, and its clock.
#[derive(Debug)]
pub(crate) struct ThreadSchedule {
    threads: Vec<ScheduledThread>,
    clock: Duration,
    /// Time that passes at each call.
    tick: Duration,
    /// Share of calls, of 65536, after which another thread goes on.
    switches: u64,
    /// Calls so far, and at most.
    calls: u64,
    calls_max: u64,
}

/// The time that a world begins at: no program sees a clock of 0.
const BEGIN: Duration = Duration::from_secs(1000);

impl ThreadSchedule {
    pub(crate) fn new(tick: Duration, switches: u64, calls_max: u64) -> Self {
        Self { threads: Vec::new(), clock: BEGIN, tick, switches, calls: 0, calls_max }
    }

    pub(crate) fn add(&mut self, context: Arc<ThreadContext>) -> usize {
        self.threads.push(ScheduledThread { doing: Doing::Ready, context, handle: 0, is_late: false });
        self.threads.len() - 1
    }

    /// Names a thread as the system does. A name that an ended thread had is its own now.
    pub(crate) fn set_handle(&mut self, thread: usize, handle: usize) {
        self.threads[thread].handle = handle;
    }

    /// Returns the context of the first thread.
    pub(crate) fn first(&self) -> Arc<ThreadContext> {
        self.threads[0].context.clone()
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock
    }

    pub(crate) fn wait(&mut self, thread: usize, address: usize, until: Option<Duration>) {
        self.threads[thread].is_late = false;
        self.threads[thread].doing = Doing::Waiting { address, until };
    }

    pub(crate) fn sleep(&mut self, thread: usize, until: Duration) {
        self.threads[thread].doing = Doing::Sleeping { until };
    }

    /// Returns whether the last wait of a thread ended by time.
    pub(crate) fn is_late(&self, thread: usize) -> bool {
        self.threads[thread].is_late
    }

    /// Lets `thread` wait for the end of the one that the system names so. Says `false` if it has
    /// ended or is not of this world.
    pub(crate) fn join(&mut self, thread: usize, handle: usize) -> bool {
        let awaited = self.threads.iter().rposition(|other| other.handle == handle);
        let Some(awaited) = awaited.filter(|&awaited| self.threads[awaited].doing != Doing::Ended) else {
            return false;
        };
        self.threads[thread].doing = Doing::Joining { thread: awaited };
        true
    }

    pub(crate) fn end(&mut self, thread: usize) {
        self.threads[thread].doing = Doing::Ended;
        for other in &mut self.threads {
            if other.doing == (Doing::Joining { thread }) {
                other.doing = Doing::Ready;
            }
        }
    }

    /// Wakes threads that wait at an address, `count` at most. Returns how many.
    pub(crate) fn wake(&mut self, address: usize, count: usize, choices: &mut ChoiceStream) -> usize {
        for woken in 0..count {
            let is_there = |thread: &ScheduledThread| matches!(thread.doing, Doing::Waiting { address: other, .. } if other == address);
            let waiting: Vec<usize> = (0..self.threads.len()).filter(|&i| is_there(&self.threads[i])).collect();
            if waiting.is_empty() {
                return woken;
            }
            let chosen = choices.choose(32 << 10, waiting.len() as u64 - 1);
            self.threads[waiting[chosen as usize]].doing = Doing::Ready;
        }
        count
    }

    /// Chooses who goes on after a call of `thread`.
    pub(crate) fn next(&mut self, thread: usize, choices: &mut ChoiceStream) -> NextThread {
        self.clock += self.tick;
        self.calls += 1;
        if self.calls > self.calls_max {
            return NextThread::Stuck;
        }
        self.wake_late();
        let mut ready = self.ready().count();
        if ready == 0 {
            let Some(first) = self.threads.iter().filter_map(|thread| until(thread.doing)).min() else {
                let is_over = self.threads.iter().all(|thread| thread.doing == Doing::Ended);
                return if is_over { NextThread::Over } else { NextThread::Stuck };
            };
            self.clock = self.clock.max(first);
            self.wake_late();
            ready = self.ready().count();
        }
        // The one that has just run comes first: choice 0 is that it goes on.
        let here = (self.threads[thread].doing == Doing::Ready).then_some(thread);
        let share = if here.is_some() { self.switches } else { 48 << 10 };
        let choice = choices.choose(share, ready as u64 - 1) as usize;
        match here.into_iter().chain(self.ready().filter(|&other| other != thread)).nth(choice) {
            Some(chosen) if chosen != thread => NextThread::Other(self.threads[chosen].context.clone()),
            _ => NextThread::Same,
        }
    }

    fn ready(&self) -> impl Iterator<Item = usize> {
        (0..self.threads.len()).filter(|&i| self.threads[i].doing == Doing::Ready)
    }

    /// Readies the threads whose time has come.
    fn wake_late(&mut self) {
        let clock = self.clock;
        for thread in &mut self.threads {
            if until(thread.doing).is_some_and(|until| until <= clock) {
                thread.is_late = true;
                thread.doing = Doing::Ready;
            }
        }
    }

    /// Says what each thread that has not ended waits for.
    pub(crate) fn waits(&self) -> String {
        let open = self.threads.iter().enumerate().filter(|(_, thread)| thread.doing != Doing::Ended);
        let words = open.map(|(number, thread)| match thread.doing {
            Doing::Joining { thread } => format!("thread {number} waits for the end of thread {thread}"),
            Doing::Waiting { .. } => format!("thread {number} waits to be woken"),
            _ => format!("thread {number} goes on without an end"),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

fn until(doing: Doing) -> Option<Duration> {
    match doing {
        Doing::Waiting { until, .. } => until,
        Doing::Sleeping { until } => Some(until),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::ChoiceList;

    const TICK: Duration = Duration::from_micros(1);

    fn schedule(threads: usize) -> (ThreadSchedule, ChoiceStream) {
        let mut schedule = ThreadSchedule::new(TICK, 0, 100);
        for _ in 0..threads {
            schedule.add(Arc::default());
        }
        (schedule, ChoiceStream::listed(ChoiceList::new()))
    }

    #[test]
    fn the_same_thread_goes_on_where_nothing_is_chosen() {
        let (mut schedule, mut choices) = schedule(3);
        assert!((0..50).all(|_| matches!(schedule.next(1, &mut choices), NextThread::Same)));
        assert!(choices.made().is_empty());
    }

    #[test]
    fn a_wait_that_no_thread_can_end_is_told_and_one_with_a_limit_ends_in_time() {
        let (mut schedule, mut choices) = schedule(2);
        schedule.end(0);
        let until = schedule.now() + Duration::from_secs(3600);
        schedule.wait(1, 64, Some(until));
        assert!(matches!(schedule.next(1, &mut choices), NextThread::Same));
        assert!(schedule.is_late(1) && schedule.now() == until);
        schedule.wait(1, 64, None);
        assert!(matches!(schedule.next(1, &mut choices), NextThread::Stuck));
        assert_eq!(schedule.waits(), "thread 1 waits to be woken");
    }

    #[test]
    fn threads_are_woken_at_their_address_and_by_an_end_they_wait_for() {
        let (mut schedule, mut choices) = schedule(3);
        schedule.set_handle(2, 77);
        schedule.wait(0, 64, None);
        assert!(schedule.join(1, 77));
        assert_eq!(schedule.wake(128, 1, &mut choices), 0);
        assert_eq!(schedule.wake(64, 5, &mut choices), 1);
        schedule.end(2);
        assert!(schedule.ready().eq([0, 1]));
        assert!(!schedule.join(1, 77), "it has ended");
    }

    #[test]
    fn a_run_without_an_end_is_stuck() {
        let (mut schedule, mut choices) = schedule(1);
        assert!((0..100).all(|_| matches!(schedule.next(0, &mut choices), NextThread::Same)));
        assert!(matches!(schedule.next(0, &mut choices), NextThread::Stuck));
    }
}
