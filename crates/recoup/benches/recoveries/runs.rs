//! One protected solve: a session in memory, failures, and a runner that brings the solver through
//! them.

use std::sync::Arc;
use std::time::Duration;

use recoup::comm::Solo;
use recoup::core::{Clock, FailureSource, Iteration, Operator, Resume, Scheme, SolveError, Status};
use recoup::io::MemoryStore;
use recoup::model::failures::{AtIterations, Exponential};
use recoup::model::interval::Interval;
use recoup::pipeline::{RunLimits, RunReport, Runner, Timing, VirtualCosts};
use recoup::solvers::{Csr, Method, Pool, System};
use recoup::{Builder, SystemClock, VirtualClock};

use crate::methods::Setup;
use crate::problems::Problem;

/// Iterations that an undisturbed solve may take.
const ITERATIONS_MAX: u64 = 6000;
/// Times as many may be executed in a disturbed one.
const EXECUTED_FACTOR: u64 = 8;
/// The published experiments: one raw vector takes 120 s to write, a failure strikes once an hour.
const VECTOR_SECONDS: f64 = 120.0;
const MTTI: Duration = Duration::from_secs(3600);
/// Part of an iteration that a product with the operator takes.
const PRODUCT_SHARE: f64 = 0.5;
/// Time to encode one raw vector, beside that to write it.
const ENCODE_SECONDS: f64 = 1.0;

/// What is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    Fixed(Scheme),
    /// Lossy versions that hold enough for this.
    Lossy(Resume),
    Auto,
}

impl Saving {
    /// The columns of the table of recoveries.
    pub(crate) const FIXED: [Self; 5] = [
        Self::Fixed(Scheme::Traditional),
        Self::Fixed(Scheme::Exact),
        Self::Fixed(Scheme::Lossy),
        Self::Lossy(Resume::Restarted),
        Self::Lossy(Resume::Traditional),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Fixed(scheme) => scheme.to_string(),
            Self::Lossy(Resume::Restarted) => "lossy x".to_owned(),
            Self::Lossy(Resume::Deflated) => "lossy x+p".to_owned(),
            Self::Lossy(_) => "lossy recurrence".to_owned(),
            Self::Auto => "auto".to_owned(),
        }
    }

    fn choose(self, builder: Builder) -> Builder {
        match self {
            Self::Fixed(scheme) => builder.scheme(scheme),
            Self::Lossy(resume) => builder.scheme(Scheme::Lossy).resume(resume),
            Self::Auto => builder,
        }
    }
}

/// A problem, ready to be solved again and again on one thread.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    a: Arc<Csr>,
    b: Arc<[f64]>,
    is_scaled: bool,
    pool: Pool,
}

/// A method on a problem, to a tolerance.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) method: &'static str,
    pub(crate) rtol: f64,
}

impl Bench {
    pub(crate) fn new(problem: Problem) -> Self {
        let name = problem.name;
        let kind = problem.kind.name();
        let is_scaled = problem.is_scaled;
        Self { name, kind, a: Arc::new(problem.matrix), b: problem.rhs.into(), is_scaled, pool: Pool::new(1) }
    }

    fn setup(&self) -> Setup<'_> {
        let system = System { a: &*self.a as &dyn Operator, b: &self.b, comm: &Solo, pool: &self.pool };
        Setup::new(system, &self.a, self.is_scaled)
    }
}

impl Case<'_> {
    /// Iterations of the undisturbed solve and what lossy versions hold enough for; `None` where it
    /// does not converge.
    pub(crate) fn undisturbed(&self) -> Option<(u64, Resume)> {
        let setup = self.bench.setup();
        let mut solver: Box<dyn Method + '_> = setup.make(self.method, self.rtol).ok()?;
        while solver.progress().status == Status::Running && solver.progress().iteration < ITERATIONS_MAX {
            solver.step().unwrap();
        }
        let lossy_resume = solver.profile().lossy_resume;
        solver.progress().is_converged().then_some((solver.progress().iteration, lossy_resume))
    }

    /// With a failure after iteration `at`, and a version every twentieth of the solve.
    pub(crate) fn struck_at(&self, saving: Saving, at: u64, iterations: u64) -> RunReport {
        let clock = Arc::new(SystemClock::new());
        let builder = saving.choose(self.builder()).every((iterations / 20).max(1));
        self.run(builder, Box::new(AtIterations::new(&[at])), (clock, Timing::Real), iterations)
    }

    /// Seconds of an undisturbed solve in the published experiments.
    pub(crate) fn productive_seconds(&self) -> f64 {
        match self.method {
            "cg" | "cg-restarted" | "pipecg" | "bicgstab" => 2100.0,
            "gmres" | "gmres-dr" => 7200.0,
            _ => 3000.0,
        }
    }

    /// On the machine of the published experiments, with failures of this seed.
    pub(crate) fn in_regime(&self, saving: Saving, interval: Interval, seed: u64, iterations: u64) -> RunReport {
        let bytes = 8.0 * self.bench.b.len() as f64;
        let iteration_seconds = self.productive_seconds() / iterations as f64;
        let costs = VirtualCosts {
            iteration_seconds,
            product_seconds: PRODUCT_SHARE * iteration_seconds,
            stage_bytes_per_second: 1e3 * bytes,
            encode_bytes_per_second: bytes / ENCODE_SECONDS,
            decode_bytes_per_second: bytes / ENCODE_SECONDS,
            store_bytes_per_second: bytes / VECTOR_SECONDS,
        };
        let builder = saving.choose(self.builder()).interval(interval).mtti(MTTI);
        let time = (Arc::new(VirtualClock::new()), Timing::Virtual(costs));
        self.run(builder, Box::new(Exponential::new(MTTI, seed)), (time.0, time.1), iterations)
    }

    fn builder(&self) -> Builder {
        recoup::open("memory").system(self.bench.a.clone(), self.bench.b.clone()).tolerance(self.rtol).synchronous(true)
    }

    fn run(
        &self,
        builder: Builder,
        failures: Box<dyn FailureSource>,
        time: (Arc<dyn Clock>, Timing),
        iterations: u64,
    ) -> RunReport {
        let (clock, timing) = time;
        let builder = builder.clock(clock.clone(), timing).threads(1);
        let session = builder.build_with(Arc::new(MemoryStore::new()), &Solo).unwrap();
        let setup = self.bench.setup();
        let most = EXECUTED_FACTOR * iterations + 100;
        let limits = RunLimits { iterations: most, executed: 4 * most };
        let mut runner = Runner { timing, ..Runner::new(Some(session), failures, clock, limits) };
        let mut make = || -> Result<Box<dyn Iteration + '_>, SolveError> { Ok(setup.make(self.method, self.rtol)?) };
        runner.run(&mut make).unwrap()
    }
}

/// Corruption found and directions healed, where no bit was flipped.
pub(crate) fn alarms(report: &RunReport) -> u64 {
    report.flips.caught + report.flips.rolled_back + report.flips.healed
}
