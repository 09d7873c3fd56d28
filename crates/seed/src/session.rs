//! A solve with versions: ranks, tiers, worker and drain, until it has converged and memory is
//! cleared.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use recoup::cache::TierList;
use recoup::comm::Threads;
use recoup::core::{
    BoundRule, BoundScale, CodecId, Comm, Iteration, Operator, Plan, Registered as _, Resume, Scheme, Status,
    Store as _, Values,
};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{Outcome, Session};
use recoup::solvers::{Cg, Csr, DistributedPoisson3d, Identity, Pool, RightHandSide, Stop, System};
use recoup::{Builder, Drain, PfsEvery, TierOptions};

use crate::choices::Chance;
use crate::disk::{Promise, PromiseKind};
use crate::world::promise;

/// The directory of versions.
const DIRECTORY: &str = "/seed/ckpt";
/// The folder that stands for the memory of the node.
pub(crate) const MEMORY: &str = "memory";
/// Points along each side of the grid.
const EDGE: usize = 4;
const RTOL: f64 = 1e-8;
pub(crate) const THETA: f64 = 0.5;

/// What a seed chooses of a run.
#[derive(Clone, Debug)]
pub(crate) struct SessionChoices {
    pub(crate) ranks: usize,
    pub(crate) tiers: &'static str,
    pub(crate) scheme: Scheme,
    every: u64,
    pub(crate) keep: usize,
    key_every: usize,
    pfs_every: u64,
    drain: Option<Drain>,
    is_synchronous: bool,
}

impl SessionChoices {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        Self {
            ranks: chance.one_of(&[1, 1, 2, 2, 3]),
            tiers: chance.one_of(&["pfs", "memory,pfs", "memory,pfs"]),
            scheme: chance.one_of(&[Scheme::Lossy, Scheme::Lossless, Scheme::Exact]),
            every: 1 + chance.below(4),
            keep: 1 + chance.below(3) as usize,
            key_every: 1 + chance.below(4) as usize,
            pfs_every: 1 + chance.below(3),
            drain: chance.one_of(&[Some(Drain::Skip), Some(Drain::Wait), Some(Drain::Off), None]),
            is_synchronous: chance.is_in(16 << 10),
        }
    }

    pub(crate) fn has_memory(&self) -> bool {
        self.tiers != "pfs"
    }

    /// Versions that the directory may hold once all is over: those that the library promises, and
    /// one that a killed process had not retired when the last version was drained past retention.
    pub(crate) fn versions_max(&self) -> usize {
        self.keep + self.key_every + 1
    }

    fn plan(&self) -> Plan {
        let (codec, resume) = match self.scheme {
            Scheme::Lossy => (CodecId::Qb, Resume::Restarted),
            Scheme::Exact => (CodecId::Zstd, Resume::Exact),
            _ => (CodecId::Zstd, Resume::Traditional),
        };
        let rule = BoundRule::Verified;
        Plan { scheme: self.scheme, codec, rule, theta: THETA, delta: 0.05, resume, grain: BoundScale::Usual }
    }

    fn builder(&self, reference: Arc<DistributedPoisson3d>, b: Arc<[f64]>) -> Builder {
        let list: TierList = self.tiers.parse().expect("words of tiers");
        let options = TierOptions {
            memory_dir: PathBuf::from("/seed").join(MEMORY),
            pfs_every: PfsEvery::Given(self.pfs_every),
            drain: self.drain,
            ..TierOptions::from(list)
        };
        let builder = recoup::open(DIRECTORY).system(reference, b).plan(self.plan()).every(self.every).keep(self.keep);
        // The threads of a codec outlive a run, and so a world.
        let builder = builder.threads(1);
        builder.key_every(self.key_every).synchronous(self.is_synchronous).tier_options(options)
    }
}

/// The state of the solve on one rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankState {
    pub(crate) x: Vec<u64>,
    /// The local part of `||b - A x||^2`.
    pub(crate) residual_squared: f64,
}

/// What the ranks of a run went through, by iteration and rank.
pub(crate) type States = BTreeMap<(u64, usize), Vec<RankState>>;

/// What a run tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionStory {
    pub(crate) states: States,
    /// The version that each rank restored, and its state then.
    pub(crate) restored: BTreeMap<usize, Option<(u64, RankState)>>,
    /// Versions that failed, and why.
    pub(crate) failures: Vec<String>,
    /// Versions that are not whole in the directory at the end.
    pub(crate) damaged: Vec<String>,
    /// Ranks that came to the end of the solve.
    pub(crate) converged: usize,
}

type Shared = Arc<Mutex<SessionStory>>;

fn told(story: &Shared) -> std::sync::MutexGuard<'_, SessionStory> {
    story.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a job: it continues from what it finds, until it has converged and memory is cleared. What
/// it went through is in `story` even when it does not come to an end.
pub(crate) fn run(choices: &SessionChoices, story: &Shared) -> Result<(), String> {
    let ends =
        Threads::launch_each(choices.ranks, |comm| rank(choices, &comm, story).map_err(|error| error.to_string()));
    for (rank, end) in ends.into_iter().enumerate() {
        let end = end.map_err(|panic| format!("rank {rank} panicked: {}", words_of(panic.as_ref())))?;
        end.map_err(|error| format!("rank {rank}: {error}"))?;
    }
    inspect(story).map_err(|error| error.to_string())
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}

/// Reads all versions of the directory, as another process would.
fn inspect(story: &Shared) -> Result<(), recoup::core::StoreError> {
    let store = Hdf5Store::open(DIRECTORY, "solve", Access::Read)?;
    for version in store.versions()? {
        let damages = store.inspect_damage(version)?;
        told(story).damaged.extend(damages.iter().map(|damage| format!("version {version}: {damage}")));
    }
    Ok(())
}

type AnyError = Box<dyn std::error::Error>;

fn rank(choices: &SessionChoices, comm: &dyn Comm, story: &Shared) -> Result<(), AnyError> {
    let pool = Arc::new(Pool::new(1));
    let a = DistributedPoisson3d::new(comm.dup()?, EDGE, pool.clone());
    let global = RightHandSide::Random { seed: 7 }.build(&Csr::poisson3d(EDGE))?;
    let b: Arc<[f64]> = global[a.first_row() as usize..][..a.rows()].into();
    let reference = Arc::new(a.over(comm.dup()?));
    let system = System { a: &a, b: &b, comm, pool: &pool };
    let mut solver = Cg::new(system, &Identity, &vec![0.0; b.len()], Stop::at(RTOL))?;
    let state = |solver: &Cg<'_>| -> Result<RankState, AnyError> {
        let variables = solver.variables();
        let Some(Values::F64(x)) = variables[0].values.host() else { return Err("x is the first variable".into()) };
        let residual_squared = a.residual(&b, x, &mut vec![0.0; x.len()])?;
        Ok(RankState { x: x.iter().map(|x| x.to_bits()).collect(), residual_squared })
    };
    let mut session = choices.builder(reference.clone(), b.clone()).build_on(comm)?;
    let restored = session.restore(&mut solver)?;
    let first = restored.map(|restored| Ok::<_, AnyError>((restored.version, state(&solver)?))).transpose()?;
    told(story).restored.insert(comm.rank(), first);
    while solver.progress().status == Status::Running {
        let iteration = solver.step()?.iteration;
        let reached = state(&solver)?;
        told(story).states.entry((iteration, comm.rank())).or_default().push(reached);
        session.step(&solver)?;
        hear(&mut session, comm.rank(), choices, story);
    }
    if session.newest_version()? != Some(solver.progress().iteration) {
        session.checkpoint_last(choices.plan(), solver.progress(), &[&solver])?;
    }
    let notes = session.finish()?;
    hear(&mut session, comm.rank(), choices, story);
    told(story).failures.extend(notes.iter().map(ToString::to_string));
    drop(session);
    choices.builder(reference, b.clone()).forget_memory(comm)?;
    if comm.rank() == 0 {
        promise(Promise { kind: PromiseKind::Durable, version: solver.progress().iteration });
    }
    told(story).converged += 1;
    Ok(())
}

/// Writes down what the session promises.
fn hear(session: &mut Session, rank: usize, choices: &SessionChoices, story: &Shared) {
    for outcome in session.take_outcomes() {
        match outcome {
            Outcome::Saved(saved) if rank == 0 => {
                let kind = if choices.has_memory() { PromiseKind::Saved } else { PromiseKind::Durable };
                promise(Promise { kind, version: saved.version });
            }
            Outcome::Saved(_) => {}
            other => told(story).failures.push(format!("{other:?}")),
        }
    }
}
