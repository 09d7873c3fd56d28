//! A small problem, its solvers, and a session on a fresh directory.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{
    Bound, BoundRule, CodecId, DeviceValuesError, DeviceValuesErrorKind, FailureSource, Iteration, MethodProfile,
    Operator, Plan, Progress, Registered, ResidualKind, Resume, Scheme, SolveError, Values, Variable, VariableMut,
};
use recoup::model::failures::Never;
use recoup::pipeline::{RunLimits, RunReport, Runner, Session};
use recoup::solvers::{
    BasisStorage, Csr, JacobiPreconditioner, METHODS, MethodInputs, NamedMethod, Pool, RightHandSide, Side, Stop,
    System,
};
use recoup::{Builder, SystemClock};

/// `A x = b` on a Poisson grid, and what computes with it.
pub(crate) struct Problem {
    pub(crate) a: Arc<Csr>,
    pub(crate) b: Arc<[f64]>,
    m: JacobiPreconditioner,
    x0: Vec<f64>,
    pool: Pool,
}

impl Problem {
    pub(crate) fn poisson(n: usize) -> Self {
        Self::poisson_with(n, RightHandSide::Random { seed: 7 })
    }

    pub(crate) fn poisson_with(n: usize, rhs: RightHandSide) -> Self {
        Self::of(Csr::poisson3d(n), rhs)
    }

    pub(crate) fn of(a: Csr, rhs: RightHandSide) -> Self {
        let a = Arc::new(a);
        let b: Arc<[f64]> = rhs.build(a.as_ref()).unwrap().into();
        let m = JacobiPreconditioner::new(a.as_ref()).unwrap();
        let x0 = vec![0.0; b.len()];
        Self { a, b, m, x0, pool: Pool::new(1) }
    }

    /// All that a method of the table is made from.
    pub(crate) fn inputs(&self, stop: Stop) -> MethodInputs<'_> {
        MethodInputs {
            system: System { a: self.a.as_ref(), b: &self.b, comm: &Solo, pool: &self.pool },
            rows: Some(&self.a),
            preconditioner: &self.m,
            x0: &self.x0,
            stop,
            omega: 1.0,
            restart: 30,
            side: Side::Right,
            harvest: 8,
            basis: BasisStorage::Double,
        }
    }

    /// A fresh solver of the named method, to a relative residual of 1e-8; of 1e-3 if it is
    /// stationary, as those take ten times the iterations.
    pub(crate) fn solver(&self, method: &str) -> Result<Box<dyn Iteration + '_>, SolveError> {
        let method = named(method);
        let rtol = if method.profile.is_stationary { 1e-3 } else { 1e-8 };
        let solver = (method.make)(&self.inputs(Stop::at(rtol)))?;
        Ok(solver)
    }

    /// `||b - A x|| / ||b||` of the solver's iterate.
    pub(crate) fn true_residual(&self, solver: &dyn Iteration) -> f64 {
        let variables = solver.variables();
        let Some(Values::F64(x)) = variables[0].values.host() else { panic!("x is the first variable") };
        let mut r = vec![0.0; x.len()];
        let squared = self.a.residual(&self.b, x, &mut r).unwrap();
        squared.sqrt() / self.b.iter().map(|b| b * b).sum::<f64>().sqrt()
    }

    /// A session on `dir` that saves every `every` iterations as `plan` says.
    pub(crate) fn builder(&self, dir: &Path, plan: Plan, every: u64) -> Builder {
        recoup::open(dir).system(self.a.clone(), self.b.clone()).plan(plan).every(every)
    }

    /// Runs a method to its end through the failures given.
    pub(crate) fn run<'a>(
        &'a self,
        method: &'a str,
        session: Option<Session>,
        failures: impl FailureSource + 'a,
    ) -> RunReport {
        self.run_within(RunLimits { iterations: 100_000, executed: 1_000_000 }, method, session, failures)
    }

    /// Steps a fresh solver, and a session after it, which saves as [`Self::builder`] says.
    pub(crate) fn save(&self, method: &str, dir: &Path, plan: Plan, every: u64, iterations: u64) {
        let mut session = self.builder(dir, plan, every).build().unwrap();
        let mut solver = self.solver(method).unwrap();
        steps(solver.as_mut(), &mut session, iterations);
    }

    /// A CG solve that is given up after `iterations`.
    pub(crate) fn run_to(&self, iterations: u64, session: Option<Session>) -> RunReport {
        self.run_within(RunLimits { iterations, executed: iterations }, "cg", session, Never)
    }

    fn run_within<'a>(
        &'a self,
        limits: RunLimits,
        method: &'a str,
        session: Option<Session>,
        failures: impl FailureSource + 'a,
    ) -> RunReport {
        runner(session, failures, limits).run(&mut || self.solver(method)).unwrap()
    }
}

/// A solver whose place fails at an iteration, or whose iterate outlives it.
pub(crate) struct Hooked<'a> {
    pub(crate) solver: Box<dyn Iteration + 'a>,
    pub(crate) fails: Option<(u64, DeviceValuesErrorKind)>,
    pub(crate) last: Option<&'a RefCell<Vec<f64>>>,
}

impl Drop for Hooked<'_> {
    fn drop(&mut self) {
        let Some(last) = self.last else { return };
        let variables = self.solver.variables();
        let Some(Values::F64(x)) = variables[0].values.host() else { panic!("x is the first variable") };
        *last.borrow_mut() = x.to_vec();
    }
}

impl Registered for Hooked<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.solver.variables()
    }

    fn revision(&self) -> u64 {
        self.solver.revision()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        self.solver.variables_mut()
    }
}

impl Iteration for Hooked<'_> {
    fn progress(&self) -> Progress {
        self.solver.progress()
    }

    fn step(&mut self) -> Result<Progress, SolveError> {
        match self.fails.filter(|(at, _)| *at == self.progress().iteration) {
            Some((_, kind)) => Err(DeviceValuesError { message: "device 0 is gone".to_owned(), kind }.into()),
            None => self.solver.step(),
        }
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        self.solver.resume(iteration, how)
    }

    fn residual_kind(&self) -> ResidualKind {
        self.solver.residual_kind()
    }

    fn profile(&self) -> MethodProfile {
        self.solver.profile()
    }

    fn tolerance(&self) -> Option<f64> {
        self.solver.tolerance()
    }

    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        self.solver.has_sound_directions()
    }
}

/// A runner in real time.
pub(crate) fn runner<'a>(session: Option<Session>, failures: impl FailureSource + 'a, limits: RunLimits) -> Runner<'a> {
    Runner::new(session, Box::new(failures), Arc::new(SystemClock::new()), limits)
}

/// Steps a solver, and a session after it.
pub(crate) fn steps(solver: &mut dyn Iteration, session: &mut Session, iterations: u64) {
    for _ in 0..iterations {
        solver.step().unwrap();
        session.step(solver).unwrap();
    }
}

/// The line of the table for a method.
pub(crate) fn named(method: &str) -> &'static NamedMethod {
    METHODS.iter().find(|known| known.name == method).unwrap_or_else(|| panic!("no method {method}"))
}

/// The codecs of this build.
pub(crate) fn built_codecs() -> Vec<CodecId> {
    CodecId::ALL.into_iter().filter(|&id| recoup::compress::codec(id).is_ok()).collect()
}

/// The lossy codecs of this build that can follow a parent, by themselves or through a difference.
pub(crate) fn following_codecs() -> Vec<CodecId> {
    let can_follow = |&id: &CodecId| recoup::compress::codec(id).is_ok_and(|codec| id.is_lossy() && codec.can_follow());
    CodecId::ALL.into_iter().filter(can_follow).collect()
}

/// A plan of each scheme, with its usual codec.
pub(crate) fn plan(scheme: Scheme) -> Plan {
    let (codec, resume) = match scheme {
        Scheme::Lossy => (CodecId::Pco, Resume::Restarted),
        Scheme::Exact => (CodecId::Zstd, Resume::Exact),
        Scheme::Lossless => (CodecId::Zstd, Resume::Traditional),
        Scheme::None | Scheme::Traditional => (CodecId::Raw, Resume::Traditional),
    };
    Plan::new(scheme, codec, resume)
}

/// A lossy plan under a fixed absolute bound.
pub(crate) fn fixed(codec: CodecId, e: f64) -> Plan {
    Plan { codec, rule: BoundRule::Fixed(Bound::Absolute(e)), ..plan(Scheme::Lossy) }
}

/// A Python with h5py and hdf5plugin; `make test` names it in the environment.
pub(crate) fn python() -> Option<String> {
    let python = std::env::var("RECOUP_PYTHON").ok();
    if python.is_none() {
        eprintln!("SKIPPED: RECOUP_PYTHON names no Python with h5py and hdf5plugin");
    }
    python
}

/// What a decoder of `tests/decoder` says of a folder. It is written from the page of the format,
/// and knows nothing of the Rust code.
pub(crate) fn decoded_by(python: &str, decoder: &str, folder: &Path) -> Output {
    let decoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("decoder").join(decoder);
    Command::new(python).arg("-B").arg(decoder).arg(folder).output().unwrap()
}

/// Any Python, for decoders that need no library.
pub(crate) fn plain_python() -> Option<String> {
    let python = std::env::var("RECOUP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if Command::new(&python).arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no {python}");
        return None;
    }
    Some(python)
}

/// What a program wrote, to both its outputs.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
