//! Time that a version takes from a CG solve where its vectors are copied and where they are
//! frozen, in one run: what the solver waits for, and what its iterations lose until the version is
//! drained. Both are ratios to a plain copy of the same bytes by one thread.
//!
//! `cargo bench -p recoup --bench snapshot` solves with one thread, so that the worker needs one
//! more core that is idle.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

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
const ROUNDS: (usize, usize) = (1, 5);

fn main() {
    let rows = SIDE * SIDE * SIDE;
    let operator = Poisson3d::new(SIDE);
    let pool = Pool::new(1);
    let b = vec![1.0; rows];
    let system = System { a: &operator, b: &b, comm: &Solo, pool: &pool };
    let copy_seconds = 3.0 * copy_seconds(rows);
    println!("plain copy of x, r and p: {:.1} ms", copy_seconds * 1e3);
    println!("{:>8} {:>12} {:>12} {:>12}", "staging", "waits", "loses", "frozen");
    for (name, mode) in StagingMode::ALL {
        let mut cg = Cg::new(system, &Identity, &vec![0.0; rows], Stop::at(1e-30)).unwrap();
        let mut waits = Vec::new();
        let mut losses = Vec::new();
        let mut session = session(mode);
        for _ in 0..ROUNDS.0 + ROUNDS.1 {
            let Round { waited, lost } = round(&mut cg, &mut session);
            waits.push(waited / copy_seconds);
            losses.push(lost / copy_seconds);
        }
        let frozen = session.take_outcomes().iter().fold(0, |frozen, outcome| match outcome {
            Outcome::Saved(saved) => frozen + saved.frozen_bytes,
            other => panic!("{other:?}"),
        });
        let [waits, losses] = [waits, losses].map(|mut ratios| median(&mut ratios.split_off(ROUNDS.0)));
        println!("{name:>8} {waits:>12.4} {losses:>12.3} {:>9} MB", frozen / 1_000_000);
    }
}

/// What one version took from the solver, in seconds.
struct Round {
    waited: f64,
    lost: f64,
}

fn round(cg: &mut Cg<'_, System<'_>>, session: &mut Session) -> Round {
    let clock = SystemClock::new();
    let mut quiet: Vec<f64> = (0..QUIET).map(|_| step(cg, session, &clock)).collect();
    let quiet = median(&mut quiet);
    let waited = session.checkpoint(PLAN, cg.progress(), &[&*cg]).unwrap().blocking_seconds;
    session.computing();
    let mut lost = 0.0;
    while session.outstanding().unwrap() > 0 {
        lost += step(cg, session, &clock) - quiet;
    }
    Round { waited, lost }
}

/// Makes one iteration, which the session measures as well, and returns its seconds.
fn step(cg: &mut Cg<'_, System<'_>>, session: &mut Session, clock: &SystemClock) -> f64 {
    let start = clock.now();
    cg.step().unwrap();
    let seconds = (clock.now() - start).as_secs_f64();
    assert!(session.step(cg).unwrap().is_none(), "versions are taken by the rounds");
    seconds
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

/// Returns the median time of a copy of one vector by one thread.
fn copy_seconds(rows: usize) -> f64 {
    let clock = SystemClock::new();
    let source = vec![1.0; rows];
    let mut target = vec![0.0; rows];
    let mut seconds: Vec<f64> = (0..ROUNDS.1)
        .map(|_| {
            let start = clock.now();
            target.copy_from_slice(black_box(&source));
            black_box(&mut target);
            (clock.now() - start).as_secs_f64()
        })
        .collect();
    median(&mut seconds)
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
