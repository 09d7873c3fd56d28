//! Time that a version takes from a CG solve where its vectors are copied and where they are
//! frozen, in turns: what the solver waits for, what its iterations lose until the version is
//! drained, both together, and the processor time of the solver's thread. All are ratios to a plain
//! copy of the same bytes by one thread, and medians.
//!
//! `cargo bench -p recoup --bench snapshot` solves with one thread, so that the worker needs one
//! more core that is idle. On a busy machine processor time alone says something.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::{Arc, LazyLock};

use recoup::SystemClock;
use recoup::comm::Solo;
use recoup::core::{Clock, CodecId, Iteration, Plan, Resume, Scheme};
use recoup::io::MemoryStore;
use recoup::pipeline::{Codecs, Outcome, Session, SessionConfig, StagingMode};
use recoup::solvers::{Cg, Identity, Poisson3d, Pool, Stop, System};
use recoup_testkit::SavesAt;

/// Side of the cube: x, r and p are 402 MB.
const SIDE: usize = 256;
/// Iterations without a version before each round.
const QUIET: usize = 4;
/// Rounds that warm up buffers, and rounds that count.
const ROUNDS: (usize, usize) = (1, 9);

fn main() {
    let rows = SIDE * SIDE * SIDE;
    let operator = Poisson3d::new(SIDE);
    let pool = Pool::new(1);
    let b = vec![1.0; rows];
    let system = System { a: &operator, b: &b, comm: &Solo, pool: &pool };
    let solve = |(name, mode)| Solve {
        name,
        cg: Cg::new(system, &Identity, &vec![0.0; rows], Stop::at(1e-30)).unwrap(),
        session: session(mode),
        rounds: Vec::new(),
    };
    let mut solves = StagingMode::ALL.map(solve);
    let mut copies = Vec::new();
    let mut target = vec![0.0; rows];
    for _ in 0..ROUNDS.0 + ROUNDS.1 {
        let start = Times::now();
        for _ in 0..3 {
            target.copy_from_slice(black_box(&b));
            black_box(&mut target);
        }
        copies.push(start.passed());
        solves.iter_mut().for_each(Solve::round);
    }
    let copy = Times::median(copies.split_off(ROUNDS.0));
    println!("plain copy of x, r and p: {:.1} ms, {:.1} ms of processor time", copy.clock * 1e3, copy.processor * 1e3);
    println!("{:>8} {:>9} {:>9} {:>9} {:>10} {:>12}", "staging", "waits", "loses", "both", "processor", "frozen");
    for Solve { name, mut session, mut rounds, .. } in solves {
        let frozen = session.take_outcomes().iter().fold(0, |frozen, outcome| match outcome {
            Outcome::Saved(saved) => frozen + saved.frozen_bytes,
            other => panic!("{other:?}"),
        });
        let rounds = rounds.split_off(ROUNDS.0);
        let over = |part: fn(&Round) -> f64| median(rounds.iter().map(part).collect()) / copy.clock;
        let [waits, loses] = [over(|round| round.waits.clock), over(|round| round.loses.clock)];
        let both = over(|round| round.waits.clock + round.loses.clock);
        let processor = median(rounds.iter().map(|round| round.waits.processor + round.loses.processor).collect());
        let processor = processor / copy.processor;
        println!("{name:>8} {waits:>9.3} {loses:>9.3} {both:>9.3} {processor:>10.3} {:>9} MB", frozen / 1_000_000);
    }
}

static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::new);

/// Seconds on the clock, and of processor time of this thread.
#[derive(Clone, Copy, Default)]
struct Times {
    clock: f64,
    processor: f64,
}

impl Times {
    fn now() -> Self {
        let running = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanoseconds: f64 = running.split(' ').next().unwrap().parse().unwrap();
        Self { clock: CLOCK.now().as_secs_f64(), processor: nanoseconds * 1e-9 }
    }

    /// Returns the times since this.
    fn passed(self) -> Self {
        Self::now().less(self)
    }

    fn less(self, other: Self) -> Self {
        Self { clock: self.clock - other.clock, processor: self.processor - other.processor }
    }

    fn plus(self, other: Self) -> Self {
        Self { clock: self.clock + other.clock, processor: self.processor + other.processor }
    }

    fn median(times: Vec<Self>) -> Self {
        let of = |part: fn(&Self) -> f64| median(times.iter().map(part).collect());
        Self { clock: of(|times| times.clock), processor: of(|times| times.processor) }
    }
}

/// A solve whose versions are staged in one way.
struct Solve<'a> {
    name: &'static str,
    cg: Cg<'a, System<'a>>,
    session: Session,
    rounds: Vec<Round>,
}

/// What one version took from the solver.
struct Round {
    waits: Times,
    loses: Times,
}

impl Solve<'_> {
    fn round(&mut self) {
        let quiet = Times::median((0..QUIET).map(|_| self.step()).collect());
        let start = Times::now();
        self.session.checkpoint(PLAN, self.cg.progress(), &[&self.cg]).unwrap();
        let waits = start.passed();
        self.session.computing();
        let mut loses = Times::default();
        while self.session.outstanding().unwrap() > 0 {
            loses = loses.plus(self.step().less(quiet));
        }
        self.rounds.push(Round { waits, loses });
    }

    /// Makes one iteration, which the session measures as well.
    fn step(&mut self) -> Times {
        let start = Times::now();
        self.cg.step().unwrap();
        let times = start.passed();
        assert!(self.session.step(&self.cg).unwrap().is_none(), "versions are taken by the rounds");
        times
    }
}

/// Everything exactly, as it is.
const PLAN: Plan = Plan::new(Scheme::Exact, CodecId::Raw, Resume::Exact);

/// A session that saves when it is told to.
fn session(staging: StagingMode) -> Session {
    let codecs = Codecs { threads: 1, ..Codecs::shared(recoup::compress::codec, 1) };
    let store = Arc::new(MemoryStore::new());
    let config = SessionConfig::new("bench", store, codecs, SavesAt::no_iteration(PLAN), Arc::new(SystemClock::new()));
    Session::open(SessionConfig { keep: 1, staging, tolerance: 1e-30, ..config }, &Solo).unwrap()
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
