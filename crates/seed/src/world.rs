//! One world: threads, clock and disk of a run, and what it answers to calls.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::call::{CallAnswer, Met, SystemCall, Until};
use crate::choices::{Chance, ChoiceList, ChoiceStream};
use crate::disk::{Disk, Happened, JournalLine, Promise};
use crate::schedule::{NextThread, ThreadSchedule};
use crate::sys::{ThreadContext, kernel};
use crate::tree::Tree;

/// A mistake that a world makes on purpose: what looks for it must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mistake {
    /// Nothing that is synced becomes durable by that.
    ForgetsSyncs,
    /// Some threads that wait are not woken.
    LosesWakes,
}

/// The habits of a world, drawn for each seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Time that passes at each call.
    pub(crate) tick: Duration,
    /// Share of calls, of 65536, after which another thread goes on.
    pub(crate) switches: u64,
    /// Share of changing calls, of 65536, that fail.
    pub(crate) faults: u64,
    /// Number of the process.
    pub(crate) process: isize,
    /// Cores that the process may use.
    pub(crate) cores: u8,
    pub(crate) mistake: Option<Mistake>,
}

impl Habits {
    /// Draws the share of calls that fail: none in most runs.
    pub(crate) fn draw_faults(&mut self, chance: &mut Chance) {
        self.faults = chance.one_of(&[0, 0, 0, 64, 1 << 10]);
    }

    /// Draws habits without faults.
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        Self {
            tick: Duration::from_nanos(1 << (8 + chance.below(12))),
            switches: chance.one_of(&[0, 64, 1 << 10, 8 << 10, 32 << 10]),
            faults: 0,
            process: 2 + chance.below(1 << 15) as isize,
            cores: 1 + chance.below(4) as u8,
            mistake: None,
        }
    }
}

/// Calls of one run, at most: no run of a scenario comes near it.
const CALLS_MAX: u64 = 2_000_000;

/// The remains of a world.
#[derive(Debug)]
pub(crate) struct WorldPast<T> {
    /// The result of the first thread; or why threads wait without end.
    pub(crate) result: Result<T, String>,
    /// All changes of the disk, in order.
    pub(crate) journal: Vec<JournalLine>,
    /// The disk at the end.
    pub(crate) tree: Tree,
    /// Names of the threads that are in the journal.
    pub(crate) threads: Vec<String>,
    /// The choices that were made.
    pub(crate) choices: ChoiceList,
}

/// A world, shared by its threads.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<WorldState>,
    root: Vec<u8>,
    habits: Habits,
    /// Given once no thread can go on.
    end: AtomicU32,
    /// All threads have ended.
    is_over: AtomicBool,
}

#[derive(Debug)]
struct WorldState {
    schedule: ThreadSchedule,
    disk: Disk,
    choices: ChoiceStream,
    /// Numbers that the program draws.
    chance: Chance,
    /// A thread that has ended in the world, whose stack is in use until the next one runs.
    ended: Option<Arc<ThreadContext>>,
}

/// A thread of a world.
#[derive(Debug)]
pub(crate) struct Task {
    world: Arc<World>,
    number: usize,
    context: Arc<ThreadContext>,
}

impl World {
    /// A world that begins with the disk `tree`.
    ///
    /// # Errors
    /// When the files of the disk cannot be made.
    pub(crate) fn new(tree: Tree, habits: Habits, choices: ChoiceStream) -> std::io::Result<Arc<Self>> {
        let disk = Disk::new(tree)?;
        let root = disk.root();
        let schedule = ThreadSchedule::new(habits.tick, habits.switches, CALLS_MAX);
        let state = Mutex::new(WorldState {
            schedule,
            disk,
            choices,
            chance: Chance::new(habits.process as u64, 1),
            ended: None,
        });
        Ok(Arc::new(Self { state, root, habits, end: AtomicU32::new(0), is_over: AtomicBool::new(false) }))
    }

    /// Takes the past of a world, in which a program ended with `result`, or without one.
    pub(crate) fn past<T>(&self, result: Option<T>) -> WorldPast<T> {
        let mut state = self.state();
        let (journal, tree) = state.disk.take();
        let result = result.ok_or_else(|| state.schedule.waits());
        let threads = state.disk.take_threads();
        WorldPast { result, journal, tree, threads, choices: state.choices.made().clone() }
    }

    fn state(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread that has not begun. The first one carries all others.
    pub(crate) fn task(self: &Arc<Self>) -> Arc<Task> {
        let context = Arc::new(ThreadContext::default());
        let number = self.state().schedule.add(context.clone());
        Arc::new(Task { world: self.clone(), number, context })
    }

    /// Waits for the end. Returns whether all threads have ended.
    pub(crate) fn await_end(&self) -> bool {
        kernel::await_turn(&self.end);
        self.is_over.load(Ordering::Acquire)
    }

    fn end(&self, is_over: bool) {
        self.is_over.store(is_over, Ordering::Release);
        kernel::give_turn(&self.end);
    }

    /// Ends a world whose threads wait without end, and waits with them.
    fn stop(&self) -> ! {
        self.end(false);
        loop {
            kernel::await_turn(&AtomicU32::new(0));
        }
    }
}

impl Task {
    /// Writes down a promise that the program was made.
    pub(crate) fn promise(&self, promise: Promise) {
        self.world.state().disk.write_down(self.number, Happened::Promised(promise));
    }

    pub(crate) fn root(&self) -> &[u8] {
        &self.world.root
    }

    pub(crate) fn context(&self) -> &ThreadContext {
        &self.context
    }

    pub(crate) fn set_name(&self, name: &CStr) {
        self.world.state().disk.name_thread(self.number, name.to_string_lossy().into_owned());
    }

    /// Answers a call, or lets it enter the kernel.
    pub(crate) fn before(&self, call: &mut SystemCall<'_>) -> CallAnswer {
        CallAnswer::Done(match call {
            SystemCall::Known(answer) => *answer,
            SystemCall::Write { file: libc::STDERR_FILENO, parts, .. } => self.say(&parts.concat()),
            SystemCall::Process => self.world.habits.process,
            SystemCall::Other => return CallAnswer::Enter(Met::default()),
            SystemCall::Random { target } => self.random(target),
            SystemCall::Cores { target } => self.cores(target),
            SystemCall::Yield => self.go_on(0),
            SystemCall::Sleep { until } => self.sleep(*until),
            SystemCall::Wait { address, expected, until } => {
                if !kernel::is_as_expected(*address, *expected) {
                    return CallAnswer::Done(-(libc::EAGAIN as isize));
                }
                self.wait(*address, *until)
            }
            SystemCall::Wake { address, count } => self.wake(*address, *count),
            _ => return self.before_disk(call),
        })
    }

    /// Lets other threads go on before a call that others could see, and draws whether it fails.
    fn before_disk(&self, call: &SystemCall<'_>) -> CallAnswer {
        let Some(met) = self.world.state().disk.meet(call) else { return CallAnswer::Enter(Met::default()) };
        let has_switched = self.let_others();
        let mut state = self.world.state();
        if let Some((call, error)) = self.fault(&mut state, call) {
            state.disk.write_down(self.number, Happened::Failed { call, error });
            return CallAnswer::Done(-(error as isize));
        }
        // Others may have changed names meanwhile.
        CallAnswer::Enter(if met.node.is_some() || !has_switched {
            met
        } else {
            state.disk.meet(call).unwrap_or_default()
        })
    }

    fn fault(&self, state: &mut WorldState, call: &SystemCall<'_>) -> Option<(&'static str, i32)> {
        let name = match call {
            SystemCall::Open { flags, .. } if flags & (libc::O_CREAT | libc::O_TMPFILE) & !libc::O_DIRECTORY != 0 => {
                "open"
            }
            SystemCall::Write { .. } => "write",
            SystemCall::Sync { .. } => "sync",
            SystemCall::MakeDirectory { .. } => "make a directory",
            SystemCall::Rename { .. } => "rename",
            _ => return None,
        };
        const ERRORS: [i32; 3] = [libc::ENOSPC, libc::EIO, libc::EDQUOT];
        let chosen = state.choices.choose(self.world.habits.faults, ERRORS.len() as u64);
        (chosen > 0).then(|| (name, ERRORS[chosen as usize - 1]))
    }

    /// Writes down what a call has done.
    pub(crate) fn after(&self, call: &SystemCall<'_>, met: Met, result: isize) {
        let forgets = self.world.habits.mistake == Some(Mistake::ForgetsSyncs);
        let is_forgotten = forgets && matches!(call, SystemCall::Sync { .. });
        if result >= 0 && !is_forgotten {
            self.world.state().disk.record(self.number, call, met, result);
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.go_on(0);
        self.world.state().schedule.now()
    }

    fn say(&self, text: &[u8]) -> isize {
        self.world.state().disk.hear(self.number, &String::from_utf8_lossy(text));
        text.len() as isize
    }

    fn random(&self, target: &mut [u8]) -> isize {
        let chance = &mut self.world.state().chance;
        target.iter_mut().for_each(|byte| *byte = chance.next() as u8);
        target.len() as isize
    }

    fn cores(&self, target: &mut [u8]) -> isize {
        target.fill(0);
        if let Some(first) = target.first_mut() {
            *first = ((1_u16 << self.world.habits.cores) - 1) as u8;
        }
        target.len().min(8) as isize
    }

    fn until(&self, until: Until) -> Duration {
        match until {
            Until::After(time) => self.world.state().schedule.now() + time,
            Until::CallPlace(time) => time,
        }
    }

    fn sleep(&self, until: Until) -> isize {
        let until = self.until(until);
        self.world.state().schedule.sleep(self.number, until);
        self.go_on(0)
    }

    fn wait(&self, address: usize, until: Option<Until>) -> isize {
        let until = until.map(|until| self.until(until));
        self.world.state().schedule.wait(self.number, address, until);
        self.go_on(0);
        if self.world.state().schedule.is_late(self.number) { -(libc::ETIMEDOUT as isize) } else { 0 }
    }

    fn wake(&self, address: usize, count: usize) -> isize {
        let mut state = self.world.state();
        let WorldState { schedule, choices, .. } = &mut *state;
        let is_lost = self.world.habits.mistake == Some(Mistake::LosesWakes) && choices.choose(1 << 10, 1) > 0;
        let woken = if is_lost { count } else { schedule.wake(address, count, choices) };
        drop(state);
        self.go_on(woken as isize)
    }

    fn next(&self) -> NextThread {
        let mut state = self.world.state();
        let WorldState { schedule, choices, .. } = &mut *state;
        schedule.next(self.number, choices)
    }

    /// Lets the next thread go on, and returns `answer` when it is this one's turn again.
    fn go_on(&self, answer: isize) -> isize {
        self.let_others();
        answer
    }

    /// Lets the next thread go on. Returns whether that is another one, when it is this one's turn
    /// again.
    fn let_others(&self) -> bool {
        match self.next() {
            NextThread::Same => false,
            NextThread::Other(next) => {
                self.context.switch_to(&next);
                self.world_continues();
                true
            }
            NextThread::Stuck | NextThread::Over => self.world.stop(),
        }
    }

    /// Lets the thread end whose stack was in use until this one ran.
    pub(crate) fn world_continues(&self) {
        if let Some(ended) = self.world.state().ended.take() {
            ended.let_end();
        }
    }

    /// A new thread of the same world, which has not begun.
    pub(crate) fn fork(&self) -> Arc<Self> {
        self.world.task()
    }

    /// Takes note that the system has started a thread.
    pub(crate) fn started(&self, task: &Self, handle: usize) {
        self.world.state().schedule.set_handle(task.number, handle);
        task.context.await_parked();
        self.go_on(0);
    }

    /// Ends a thread that the system has not started.
    pub(crate) fn end_unborn(&self) {
        self.world.state().schedule.end(self.number);
    }

    /// Waits for the end of a thread.
    pub(crate) fn join(&self, handle: usize) {
        if self.world.state().schedule.join(self.number, handle) {
            self.go_on(0);
        }
    }

    /// Ends this thread, and lets another one go on.
    pub(crate) fn end(&self) {
        self.world.state().schedule.end(self.number);
        let is_first = self.number == 0;
        let next = match self.next() {
            NextThread::Other(next) => next,
            NextThread::Over if is_first => return self.world.end(true),
            NextThread::Over => self.world.state().schedule.first(),
            NextThread::Same | NextThread::Stuck => self.world.stop(),
        };
        self.world.state().ended = Some(self.context.clone());
        self.context.switch_to(&next);
        // The first one carried all others, until none is left.
        if is_first {
            self.world_continues();
            self.world.end(true);
        }
    }
}
