//! How long a checkpoint blocks the solver on several ranks, beside a plain copy of the same bytes
//! in the same run.
//!
//! `cargo bench -p recoup --bench blocking` starts itself under `mpirun` on 2, 4 and
//! 8 ranks. A vector of 256 MB, shared among the ranks, is saved to shared memory with a copy on a
//! partner; encoding, verifying, writing and the partner's copy come behind the solver, and are
//! shown beside what blocks it. Medians over rounds of the slowest rank.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use recoup::SystemClock;
use recoup::cache::{NodeStore, Partners, Protection, Tiers};
use recoup::comm::MpiJob;
use recoup::core::{
    Clock, CodecId, Comm, Distribution, Operator, Plan, Progress, Registered, Resume, Role, Scheme, Tier, Values,
    ValuesMut, Variable, VariableMut, gather_json,
};
use recoup::pipeline::{Codecs, Outcome, Reference, Session, SessionConfig};
use recoup::solvers::{DistributedPoisson3d, Pool};
use recoup_testkit::{SavesAt, mpirun};

/// Says to a process that it is one of the job, and where its memory is.
const MEMORY: &str = "RECOUP_BENCH_MEMORY";
/// Side of the cube: 8 n^3 bytes are 262 MB.
const SIDE: usize = 320;
/// Rounds that warm up buffers, and rounds that count.
const ROUNDS: (usize, usize) = (3, 7);

fn main() {
    match std::env::var_os(MEMORY) {
        Some(memory) => rank(Path::new(&memory)),
        None => launch(),
    }
}

fn launch() {
    println!(
        "{:>5} {:>10} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9}",
        "ranks", "versions", "copy", "blocked", "ratio", "encode", "verify", "write"
    );
    for ranks in [2, 4, 8] {
        let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let program = std::env::current_exe().unwrap();
        let job = mpirun::job(ranks, |command| {
            command.arg(program).env(MEMORY, memory.path());
        });
        assert!(job.success(), "{ranks} ranks: {job}");
        print!("{}", job.stdout);
    }
}

/// This rank's rows of the iterate.
struct Iterate {
    values: Vec<f64>,
    grid: [usize; 3],
    distribution: Distribution,
}

impl Registered for Iterate {
    fn variables(&self) -> Vec<Variable<'_>> {
        let variable = Variable::new("x", Role::Iterate, Values::F64(&self.values), self.distribution);
        vec![Variable { dims: self.grid, ..variable }]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("x", ValuesMut::F64(&mut self.values))]
    }
}

fn rank(memory: &Path) {
    let job = MpiJob::start().unwrap();
    {
        let comm = job.comm().unwrap();
        let operator = DistributedPoisson3d::new(comm.dup().unwrap(), SIDE, Arc::new(Pool::new(1)));
        let wave = |row: usize| (row as f64 * 1e-4).sin() + (row as f64 * 3e-3).cos();
        let first = operator.first_row();
        let iterate = Iterate {
            values: (0..operator.rows()).map(|row| wave(first as usize + row)).collect(),
            grid: operator.grid(),
            distribution: Distribution::Rows { first, global: operator.global_rows() },
        };
        for (name, scheme) in [("raw", Scheme::Traditional), ("lossy", Scheme::Lossy)] {
            measure(name, plan(scheme), &iterate, &operator, memory, &comm);
        }
    }
    job.end(0);
}

fn plan(scheme: Scheme) -> Plan {
    let codec = if scheme == Scheme::Lossy { CodecId::Qb } else { CodecId::Raw };
    Plan::new(scheme, codec, Resume::Restarted)
}

fn session(name: &str, operator: &DistributedPoisson3d, memory: &Path, comm: &dyn Comm) -> Session {
    let node = memory.join(name).join(format!("node-{}", comm.rank()));
    let store = NodeStore::new(node, comm.rank()).guarded(Protection::Partner(Partners::Ring(1)), 1);
    let tier = Tier { name: "memory".to_owned(), store: Arc::new(store), every: 1, keep: 1, max_bytes: None };
    let store = Arc::new(Tiers::new(vec![tier], comm.rank()));
    let codecs = Codecs::shared(recoup::compress::codec, comm.size());
    // The session's policy is never asked: every round takes its checkpoint by plan.
    let policy = SavesAt::no_iteration(plan(Scheme::None));
    let config = SessionConfig::new(name, store, codecs, policy, Arc::new(SystemClock::new()));
    let rhs = vec![0.0; operator.rows()].into();
    let reference = Some(Reference::new(Arc::new(operator.over(comm.dup().unwrap())), rhs));
    let config = SessionConfig { keep: 1, checks_corruption: true, reference, ..config };
    Session::open(config, comm).unwrap()
}

/// The median of what the slowest rank took.
fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn measure(name: &str, plan: Plan, iterate: &Iterate, operator: &DistributedPoisson3d, memory: &Path, comm: &dyn Comm) {
    let clock = SystemClock::new();
    let slowest = |seconds: f64| gather_json(comm, &seconds).unwrap().into_iter().fold(0.0, f64::max);
    let mut residual = vec![0.0; operator.rows()];
    operator.apply(&iterate.values, &mut residual).unwrap();
    let mut square = [residual.iter().map(|r| r * r).sum::<f64>()];
    comm.sum(&mut square).unwrap();
    let mut session = session(name, operator, memory, comm);
    let mut target = residual;
    let mut copies = Vec::new();
    let mut blocked = Vec::new();
    for round in 0..ROUNDS.0 + ROUNDS.1 {
        comm.barrier().unwrap();
        let start = clock.now();
        target.copy_from_slice(black_box(&iterate.values));
        black_box(&mut target);
        copies.push(slowest((clock.now() - start).as_secs_f64()));
        let progress = Progress::running(round as u64 + 1, square[0].sqrt(), square[0].sqrt());
        comm.barrier().unwrap();
        blocked.push(slowest(session.checkpoint(plan, progress, &[iterate]).unwrap().blocking_seconds));
        session.wait().unwrap();
    }
    let spent: Vec<_> = session
        .take_outcomes()
        .into_iter()
        .skip(ROUNDS.0)
        .map(|outcome| match outcome {
            Outcome::Saved(saved) => saved.spent,
            other => panic!("{other:?}"),
        })
        .collect();
    let behind = |part: fn(&recoup::pipeline::Spent) -> f64| slowest(median(spent.iter().map(part).collect()));
    let [encode, verify, write] =
        [behind(|s| s.encode_seconds), behind(|s| s.verify_seconds), behind(|s| s.write_seconds)];
    let copy = median(copies.split_off(ROUNDS.0));
    let blocked = median(blocked.split_off(ROUNDS.0));
    if comm.rank() == 0 {
        let ms = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
        println!(
            "{:>5} {name:>10} {:>9} {:>9} {:>7.2} {:>9} {:>9} {:>9}",
            comm.size(),
            ms(copy),
            ms(blocked),
            blocked / copy,
            ms(encode),
            ms(verify),
            ms(write)
        );
    }
}
