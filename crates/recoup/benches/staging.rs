//! How long a version blocks the solver: the first one beside the tenth, and by the threads that
//! copy.
//!
//! `cargo bench -p recoup --bench staging` saves a vector of 256 MiB every tenth iteration of a
//! program that reads and writes another one meanwhile. Staging memory is made behind the first
//! iterations; "unprepared" is a run that saves after its first one, and has no time for that. A
//! plain copy of the same bytes by one thread is timed next to each tenth version. Medians over
//! rounds, interleaved.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use recoup::SystemClock;
use recoup::comm::Solo;
use recoup::core::{Clock, CodecId, Plan, Resume, Scheme};
use recoup::io::MemoryStore;
use recoup::pipeline::{Codecs, Session, SessionConfig, Variables};
use recoup_testkit::{SavesAt, progress};

const LEN: usize = 32 << 20;
const VERSIONS: u64 = 10;
const ROUNDS: usize = 7;
/// Ways to run: name, iterations before the first version, and threads that copy.
const WAYS: [Way; 3] = [
    Way { name: "1 thread", before: 40, threads: 1 },
    Way { name: "2 threads", before: 40, threads: 2 },
    Way { name: "unprepared", before: 0, threads: 1 },
];

struct Way {
    name: &'static str,
    /// Iterations before the first version.
    before: u64,
    /// Threads that copy.
    threads: usize,
}

/// Seconds of one run.
struct StagingTimes {
    first: f64,
    tenth: f64,
    /// A plain copy by one thread.
    copy: f64,
}

fn main() {
    let rounds: Vec<Vec<StagingTimes>> = (0..ROUNDS).map(|_| WAYS.iter().map(run).collect()).collect();
    println!("{:>12} {:>12} {:>12} {:>12} {:>13}", "", "first", "tenth", "first/tenth", "tenth/copy");
    for (index, way) in WAYS.iter().enumerate() {
        let of = |time: fn(&StagingTimes) -> f64| median(rounds.iter().map(|round| time(&round[index])).collect());
        let first = of(|times| times.first);
        let tenth = of(|times| times.tenth);
        let to_copy = of(|times| times.tenth / times.copy);
        let name = way.name;
        println!("{name:>12} {:>9.1} ms {:>9.1} ms {:>12.2} {to_copy:>13.2}", first * 1e3, tenth * 1e3, first / tenth);
    }
}

fn run(way: &Way) -> StagingTimes {
    let mut x: Vec<f64> = (0..LEN).map(|i| (i as f64 * 1e-4).sin()).collect();
    let mut work = vec![1.0; LEN];
    let plan = Plan::new(Scheme::Traditional, CodecId::Raw, Resume::Restarted);
    let codecs = Codecs { threads: way.threads, ..Codecs::shared(recoup::compress::codec, 1) };
    let store = Arc::new(MemoryStore::new());
    let config = SessionConfig::new("first", store, codecs, SavesAt::no_iteration(plan), Arc::new(SystemClock::new()));
    let mut session = Session::open(SessionConfig { keep: 1, ..config }, &Solo).unwrap();
    let mut iteration = 0;
    let mut blocked = Vec::new();
    for version in 0..VERSIONS {
        for _ in 0..if version == 0 { way.before } else { 10 } {
            iteration += 1;
            work.iter_mut().zip(&x).for_each(|(w, x)| *w = 0.5 * *w + x);
            let owner = Variables::new().iterate("x", &mut x);
            session.step_with(progress(iteration), &[&owner]).unwrap();
        }
        black_box(&mut work);
        iteration += 1;
        let owner = Variables::new().iterate("x", &mut x);
        blocked.push(session.checkpoint(plan, progress(iteration), &[&owner]).unwrap().blocking_seconds);
        session.wait().unwrap();
    }
    let clock = SystemClock::new();
    let start = clock.now();
    work.copy_from_slice(black_box(&x));
    black_box(&mut work);
    let copy = (clock.now() - start).as_secs_f64();
    StagingTimes { first: blocked[0], tenth: blocked[VERSIONS as usize - 1], copy }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
