//! The undisturbed solve: run, timed, and judged by its true residual; and the keys of its report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use recoup::SystemClock;
use recoup::core::{BreakdownReason, Clock, Progress, Status};
use serde::Serialize;

use crate::exit::Exit;
use crate::method::Setup;
use crate::observe::progress::Bar;
use crate::options::name_of;
use crate::options::protection::ProtectionArgs;
use crate::output::{TextTable, bytes, seconds};

/// Undisturbed solves at least this long are timed well by one.
pub(crate) const TIMED_WELL_SECONDS: f64 = 1.0;

/// Returns a note on overheads that are measured against a short solve.
pub(crate) fn too_short(protection: &ProtectionArgs, undisturbed_seconds: f64) -> Option<String> {
    let is_noise = !protection.is_virtual() && undisturbed_seconds < TIMED_WELL_SECONDS;
    let took = seconds(undisturbed_seconds);
    is_noise.then(|| {
        format!(
            "an undisturbed solve of {took} is too short to time, and overheads are noise: take a larger problem or \
             --virtual-time"
        )
    })
}

/// The report of `recoup solve`, also part of that of `recoup run`.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SolveReport {
    pub(crate) method: String,
    pub(crate) pc: String,
    pub(crate) n: u64,
    pub(crate) nnz: u64,
    pub(crate) iterations: u64,
    pub(crate) converged: bool,
    /// Reason why it did not converge.
    pub(crate) reason: Option<String>,
    /// `||b - A x|| / ||b||`, computed from x.
    pub(crate) relative_residual: f64,
    pub(crate) rtol: f64,
    pub(crate) ranks: usize,
    /// Threads of each rank.
    pub(crate) threads: usize,
    /// Name of the device that it computed on; `None` for the host.
    pub(crate) device: Option<String>,
    pub(crate) seconds_setup: f64,
    pub(crate) seconds_solve: f64,
    pub(crate) seconds_per_iteration: f64,
    pub(crate) bytes_per_iteration_model: f64,
}

impl SolveReport {
    /// The keys that do not depend on how the solve went. Collective.
    pub(crate) fn of(setup: &Setup<'_>) -> Result<Self> {
        let problem = setup.problem();
        let mut moved = [setup.make()?.bytes_per_iteration()];
        problem.comm().sum(&mut moved)?;
        Ok(Self {
            method: name_of(setup.args().method),
            pc: name_of(setup.args().pc),
            n: problem.unknowns(),
            nnz: problem.nonzeros,
            iterations: 0,
            converged: false,
            reason: None,
            relative_residual: f64::NAN,
            rtol: setup.args().rtol,
            ranks: problem.comm().size(),
            threads: problem.pool.threads(),
            device: setup.device_name().map(str::to_owned),
            seconds_setup: 0.0,
            seconds_solve: 0.0,
            seconds_per_iteration: 0.0,
            bytes_per_iteration_model: moved[0],
        })
    }

    /// Takes note of how the solve ended.
    pub(crate) fn judge(&mut self, progress: &Progress, relative_residual: f64) {
        self.iterations = progress.iteration;
        self.relative_residual = relative_residual;
        self.converged = progress.is_converged();
        self.reason = reason(progress);
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        if self.converged { Exit::Done } else { Exit::NotConverged }
    }

    /// Adds the rows people read.
    pub(crate) fn rows(&self, table: &mut TextTable) {
        let state = if self.converged { "converged" } else { "not converged" };
        table.row(["method".to_owned(), self.method.clone()]);
        table.row(["preconditioner".to_owned(), self.pc.clone()]);
        if let Some(device) = &self.device {
            table.row(["device".to_owned(), device.clone()]);
        }
        table.row(["unknowns".to_owned(), self.n.to_string()]);
        table.row(["nonzeros".to_owned(), self.nnz.to_string()]);
        table.row(["iterations".to_owned(), self.iterations.to_string()]);
        table.row(["ended".to_owned(), state.to_owned()]);
        table.row(["true relative residual".to_owned(), format!("{:.3e}", self.relative_residual)]);
        table.row(["setup".to_owned(), seconds(self.seconds_setup)]);
        table.row(["solve".to_owned(), seconds(self.seconds_solve)]);
        table.row(["per iteration".to_owned(), seconds(self.seconds_per_iteration)]);
        table.row(["moved per iteration".to_owned(), bytes(self.bytes_per_iteration_model)]);
        if let Some(reason) = &self.reason {
            table.note(reason);
        }
    }
}

fn reason(progress: &Progress) -> Option<String> {
    match progress.status {
        Status::Converged => None,
        Status::Running => Some("stopped above the tolerance".to_owned()),
        Status::Breakdown(reason @ BreakdownReason::Diverged { .. }) => {
            Some(format!("{reason}; --dtol inf takes the limit away"))
        }
        Status::Breakdown(reason @ BreakdownReason::Stagnated) => Some(reason.to_string()),
        Status::Breakdown(reason) => Some(format!("breakdown: {reason}")),
    }
}

/// An undisturbed solve.
pub(crate) struct Solved {
    pub(crate) report: SolveReport,
    /// The iterate it ended with.
    pub(crate) iterate: Vec<f64>,
    /// Relative residual after each iteration.
    pub(crate) history: Vec<(u64, f64)>,
}

/// Solves from the first guess to the tolerance or the iteration limit.
pub(crate) fn solve(setup: &Setup<'_>, label: &str, stop: Option<&AtomicBool>) -> Result<Solved> {
    solve_watched(setup, label, stop, &mut |_| {})
}

/// The same; `look` is called after every iteration.
pub(crate) fn solve_watched(
    setup: &Setup<'_>,
    label: &str,
    stop: Option<&AtomicBool>,
    look: &mut dyn FnMut(&Progress),
) -> Result<Solved> {
    let clock = SystemClock::new();
    let mut report = SolveReport::of(setup)?;
    let mut solver = setup.make()?;
    let setup_seconds = clock.now().as_secs_f64();
    let mut bar = Bar::new(label, setup.args().rtol);
    let mut progress = solver.progress();
    let mut history = vec![(progress.iteration, progress.relative_residual())];
    let start = clock.now();
    while progress.status == Status::Running && progress.iteration < setup.args().max_iterations {
        progress = solver.step()?;
        history.push((progress.iteration, progress.relative_residual()));
        bar.show(&progress, progress.iteration);
        look(&progress);
        // Ranks receive signals at different iterations: with several of them only the system ends
        // an undisturbed solve.
        if setup.problem().comm().size() == 1 && stop.is_some_and(|stop| stop.load(Ordering::Acquire)) {
            return Err(Exit::NotConverged.because("stopped during the undisturbed solve; nothing was saved"));
        }
    }
    let took = clock.now().saturating_sub(start);
    drop(bar);
    let iterate = solver.iterate()?;
    report.judge(&progress, setup.problem().relative_residual(&iterate)?);
    report.seconds_setup = setup_seconds;
    report.time(took, progress.iteration);
    Ok(Solved { report, iterate, history })
}

impl SolveReport {
    fn time(&mut self, took: Duration, iterations: u64) {
        self.seconds_solve = took.as_secs_f64();
        self.seconds_per_iteration = self.seconds_solve / iterations.max(1) as f64;
    }
}
