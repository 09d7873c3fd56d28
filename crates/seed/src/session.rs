//! A solve with versions: ranks, tiers, worker and drain, until it has converged and memory is
//! cleared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::cache::{RunPlace, TierList};
use recoup::core::{
    BoundRule, BoundScale, CodecId, Comm, Iteration, Operator, Plan, Registered as _, Resume, Scheme, Status, Store,
    StoreError, Values, each,
};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{Outcome, Session};
use recoup::solvers::{Cg, Csr, DistributedPoisson3d, Identity, Pool, RightHandSide, Stop, System};
use recoup::{Builder, Drain, Error, PfsEvery, TierCosts, TierOptions};

use crate::choices::Chance;
use crate::disk::{Promise, PromiseKind};
use crate::live::promise;
use crate::other_process::{inspect, prune, unless_in_use};
use crate::ranks::{AnyError, EarlyEnd, launch};
use crate::run_story::{RankState, SharedStory, told};

/// The directory of versions.
const DIRECTORY: &str = "/seed/ckpt";
const RUN: &str = "solve";
/// The versions of the run, from the top of the disk.
pub(crate) const VERSIONS: &str = "ckpt/solve";
/// The folder that stands for the memory of the node.
pub(crate) const MEMORY: &str = "memory";
/// Points along each side of the grid, at least: each rank has a plane.
const EDGE: usize = 4;
const RTOL: f64 = 1e-8;
pub(crate) const THETA: f64 = 0.5;

/// A solve, as a seed chooses it.
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
    /// Times that another process reads all versions while the run goes on.
    reads: u64,
    /// Times that another process prunes the directory, or tries to.
    prunes: u64,
    /// Ranks that share a file, each with its part of the manifest, where they do.
    ranks_per_file: Option<usize>,
}

impl SessionChoices {
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        // Drawn apart: what else a seed decides is as it was before ranks shared files.
        let mut apart = Chance::new(chance.clone().next(), 1);
        let ranks =
            if chance.is_in(1 << 10) { 5 + chance.below(12) as usize } else { chance.one_of(&[1, 1, 2, 2, 3, 4]) };
        let guards = ["memory,partner:ring1,pfs", "memory,rs:2+1,pfs"];
        let guarded = if ranks > 1 { chance.one_of(&guards) } else { "memory,pfs" };
        let choices = Self {
            ranks,
            tiers: chance.one_of(&["pfs", "memory,pfs", guarded]),
            scheme: chance.one_of(&[Scheme::Lossy, Scheme::Lossless, Scheme::Exact]),
            every: 1 + chance.below(4),
            keep: 1 + chance.below(3) as usize,
            key_every: 1 + chance.below(4) as usize,
            pfs_every: 1 + chance.below(3),
            drain: chance.one_of(&[Some(Drain::Skip), Some(Drain::Wait), Some(Drain::Off), None]),
            is_synchronous: chance.is_in(16 << 10),
            reads: chance.one_of(&[0, 0, 0, 4, 16]),
            prunes: chance.one_of(&[0, 0, 0, 4, 16]),
            ranks_per_file: if ranks > 1 { apart.one_of(&[None, Some(2), Some(3)]) } else { None },
        };
        match choices.tiers.strip_suffix(",pfs").filter(|_| apart.is_in(8 << 10)) {
            // There is no directory for other processes to look at.
            Some(tiers) => Self { tiers, reads: 0, prunes: 0, ranks_per_file: None, ..choices },
            None => choices,
        }
    }

    /// Returns whether each rank's part survives the loss of one node.
    pub(crate) fn has_guard(&self) -> bool {
        self.tiers.contains("partner") || self.tiers.contains("rs")
    }

    fn has_memory(&self) -> bool {
        self.tiers != "pfs"
    }

    fn has_directory(&self) -> bool {
        self.tiers.ends_with("pfs")
    }

    /// Names that the directory may hold once all is over: the lock, the versions that the library
    /// promises, and one that a killed process had not retired when the last version was drained
    /// past retention. None where memory is all.
    pub(crate) fn names_max(&self) -> usize {
        if self.has_directory() { self.keep + self.key_every + 2 } else { 0 }
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

    fn options(&self) -> TierOptions {
        let list: TierList = self.tiers.parse().expect("words of tiers");
        TierOptions {
            memory_dir: PathBuf::from("/seed").join(MEMORY),
            pfs_every: PfsEvery::Given(self.pfs_every),
            drain: self.drain,
            ..TierOptions::from(list)
        }
    }

    /// Opens the session. Where ranks share files, the manifest is in parts however few they are.
    /// Collective.
    fn open(&self, builder: Builder, comm: &dyn Comm) -> Result<Session, Error> {
        let Some(ranks_per_file) = self.ranks_per_file else { return builder.build_on(comm) };
        let open = |access| {
            let store = Hdf5Store::open(DIRECTORY, RUN, access)?;
            Ok::<_, StoreError>(store.with_ranks_per_file(ranks_per_file).with_parts_from(2))
        };
        let first = if comm.rank() == 0 { open(Access::Write).map(Some) } else { Ok(None) };
        let first = each(comm, first)?;
        let mut store: Arc<dyn Store> = Arc::new(each(comm, first.map_or_else(|| open(Access::Join), Ok))?);
        if self.has_memory() {
            let place = RunPlace { dir: Some(Path::new(DIRECTORY)), name: RUN };
            let costs = TierCosts {
                mtti_seconds: 3600.0,
                bytes: None,
                pfs_bytes_per_second: None,
                keep: self.keep,
                max_bytes: None,
                synchronous: self.is_synchronous,
            };
            store = self.options().open(Some(store), place, costs, comm)?;
        }
        builder.build_with(store, comm)
    }

    fn builder(&self, reference: Arc<DistributedPoisson3d>, b: Arc<[f64]>) -> Builder {
        let builder = recoup::open(DIRECTORY).system(reference, b).plan(self.plan()).every(self.every).keep(self.keep);
        // The threads of a codec outlive a run, and so a world.
        let builder = builder.threads(1);
        builder.key_every(self.key_every).synchronous(self.is_synchronous).tier_options(self.options())
    }
}

/// Runs a job: it continues from what it finds, until it has converged and memory is cleared, or
/// stops after some iterations. What it went through is in `story` even when it does not come to an
/// end.
pub(crate) fn run(choices: &SessionChoices, end: EarlyEnd, story: &SharedStory) -> Result<(), String> {
    let stops_after = end.stops_after;
    // A run that stops soon is looked at less often.
    let times = |whole: u64| if stops_after.is_some() { whole / 4 } else { whole };
    let run_rank = |comm: Box<dyn Comm>| Rank { choices, comm: comm.as_ref(), story, stops_after }.run();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..times(choices.reads)).try_for_each(|_| inspect(story, DIRECTORY, RUN)));
        scope.spawn(|| (0..times(choices.prunes)).for_each(|_| prune(story, DIRECTORY, RUN, choices.keep)));
        launch(choices.ranks, end.loss, run_rank)
    })?;
    if let Some(loss) = end.loss {
        let words = loss.words(choices.ranks);
        told(story).failures.retain(|failure| !failure.contains(&words));
    }
    inspect(story, DIRECTORY, RUN).map_err(|error| error.to_string())
}

/// One rank of a run.
struct Rank<'a> {
    choices: &'a SessionChoices,
    comm: &'a dyn Comm,
    story: &'a SharedStory,
    stops_after: Option<u64>,
}

/// The means of a rank to compute.
struct Problem {
    pool: Arc<Pool>,
    a: DistributedPoisson3d,
    b: Arc<[f64]>,
    /// The operator as a session has it: its messages are not the solver's.
    reference: Arc<DistributedPoisson3d>,
}

impl Problem {
    fn new(comm: &dyn Comm) -> Result<Self, AnyError> {
        let pool = Arc::new(Pool::new(1));
        let edge = EDGE.max(comm.size());
        let a = DistributedPoisson3d::new(comm.dup()?, edge, pool.clone());
        let global = RightHandSide::Random { seed: 7 }.build(&Csr::poisson3d(edge))?;
        let b = global[a.first_row() as usize..][..a.rows()].into();
        let reference = Arc::new(a.over(comm.dup()?));
        Ok(Self { pool, a, b, reference })
    }

    /// Returns the state of a solver. Collective.
    fn state(&self, solver: &Cg<'_>) -> Result<RankState, AnyError> {
        let variables = solver.variables();
        let Some(Values::F64(x)) = variables[0].values.host() else { return Err("x is the first variable".into()) };
        let residual_squared = self.a.residual(&self.b, x, &mut vec![0.0; x.len()])?.rounded();
        Ok(RankState { x: x.iter().map(|x| x.to_bits()).collect(), residual_squared })
    }
}

impl Rank<'_> {
    fn run(&self) -> Result<(), AnyError> {
        let problem = Problem::new(self.comm)?;
        let system = System { a: &problem.a, b: &problem.b, comm: self.comm, pool: &problem.pool };
        let mut solver = Cg::new(system, &Identity, &vec![0.0; problem.b.len()], Stop::at(RTOL))?;
        let builder = || self.choices.builder(problem.reference.clone(), problem.b.clone());
        let mut session = unless_in_use(|| self.choices.open(builder(), self.comm))?;
        let restored = session.restore(&mut solver)?.map(|restored| restored.version);
        let state = restored.map(|version| problem.state(&solver).map(|state| (version, state))).transpose()?;
        told(self.story).restored.insert(self.comm.rank(), state);
        // It is guarded again, so that another node may be lost.
        restored.into_iter().for_each(|version| self.promise(PromiseKind::Saved, version));
        let first = solver.progress().iteration;
        if restored.is_none() && first > 0 {
            told(self.story).untrue.push(format!("nothing was restored, and the run begins at {first}"));
        }
        let is_stopped = |iteration| self.stops_after.is_some_and(|after| iteration >= first + after);
        let mut newest = restored;
        while solver.progress().status == Status::Running && !is_stopped(solver.progress().iteration) {
            let iteration = solver.step()?.iteration;
            let reached = problem.state(&solver)?;
            told(self.story).states.entry((iteration, self.comm.rank())).or_default().push(reached);
            session.step(&solver)?;
            newest = newest.max(self.hear(&mut session));
        }
        if solver.progress().status == Status::Running {
            return Ok(());
        }
        session.wait()?;
        newest = newest.max(self.hear(&mut session));
        if newest != Some(solver.progress().iteration) {
            session.checkpoint_last(self.choices.plan(), solver.progress(), &[&solver])?;
        }
        let notes = session.finish()?;
        newest = newest.max(self.hear(&mut session));
        told(self.story).failures.extend(notes.iter().map(ToString::to_string));
        drop(session);
        if !self.choices.has_directory() {
            // Memory is not freed: no version of the solution would be left.
            return Ok(());
        }
        unless_in_use(|| builder().forget_memory(self.comm))?;
        newest.into_iter().for_each(|newest| self.promise(PromiseKind::Durable, newest));
        Ok(())
    }

    /// Takes what the session promises. Returns the newest version that it says is saved.
    fn hear(&self, session: &mut Session) -> Option<u64> {
        let mut newest = None;
        for outcome in session.take_outcomes() {
            match outcome {
                Outcome::Saved(saved) => {
                    let kind = if self.choices.has_memory() { PromiseKind::Saved } else { PromiseKind::Durable };
                    self.promise(kind, saved.version);
                    newest = Some(saved.version);
                }
                other => told(self.story).failures.push(format!("{other:?}")),
            }
        }
        newest
    }

    fn promise(&self, kind: PromiseKind, version: u64) {
        if self.comm.rank() == 0 {
            promise(Promise { kind, version });
        }
    }
}
