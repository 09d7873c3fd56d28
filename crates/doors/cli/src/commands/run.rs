//! `recoup run`: one solve, protected, under failures.

mod last;
mod page;
mod printed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use recoup::cache::{Dispensable, RunPlace};
use recoup::comm::Solo;
use recoup::core::{Clock, Comm, Progress, Store};
use recoup::pipeline::{Ended, RunReport};
use recoup::{SystemClock, TierCosts};

use crate::account::{Baseline, FlipsJson, RunConditions, RunCosts, RunJson, ended_name};
use crate::directory;
use crate::execute::{
    Executed, Execution, WriteOptions, failures_to_save, memory, open_directory, stop_on_signals, throttle,
};
use crate::exit::Exit;
use crate::inject::heartbeat::Heartbeat;
use crate::inject::kill::{self, ChildResult};
use crate::inject::lives::LifeHistory;
use crate::inject::planned;
use crate::inject::spares::{KillSchedule, ScheduledKill, failure_groups, job_processes, survive_losses};
use crate::inject::virtual_time::{self, Machine, SolveMeasurement};
use crate::method::Setup;
use crate::observe::observers::{ObservedRun, Observers, StopSignals, seen};
use crate::observe::residual_log::ResidualLog;
use crate::observe::saves::Saves;
use crate::observe::status_file;
use crate::options::PcKind;
use crate::options::protection::{MTTI_SECONDS, SchemeChoice};
use crate::options::run::RunArgs as Args;
use crate::options::tiers::refused;
use crate::output::{Output, check_folder};
use crate::problem::LinearProblem;
use crate::ranks::{self, agree, is_first};
use crate::solved::{SolveReport, Solved, solve_watched, too_short};
use crate::tell::tell;
use last::{RunDocument, RunEnd, last_note, solution_note, unkept_note};

/// Runs and reports.
///
/// # Errors
/// By the exit codes of the program.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    args.check()?;
    let signals = StopSignals { stop: stop_on_signals()?, end: args.end.end() };
    args.end.check(signals.end.as_ref())?;
    if let Some(path) = &args.child {
        return child(args, path, &signals);
    }
    check_memory(args)?;
    args.results.check(args.problem.mpi)?;
    check_folder("--report", args.report.as_deref())?;
    let outcome = if args.protection.kills() && !args.kills_nodes() {
        Some(killed(args, &signals)?)
    } else if args.spares.is_some() || args.kills_ranks() {
        surviving(args, &signals)?
    } else {
        Some(in_process(args, signals, None)?)
    };
    let Some(RunEnd { report, note }) = outcome else { return Ok(Exit::Done) };
    output.emit(&report, |report| printed::result(&report.run, args.details))?;
    if let Some(note) = note.filter(|_| is_first()) {
        tell(note);
    }
    if let Some(page) = report.report.as_ref().filter(|_| is_first()) {
        tell(format_args!("the page of the run is {page}"));
    }
    report.results.told()?;
    let is_stopped = report.run.ended == ended_name(Ended::Stopped);
    Ok(if is_stopped { Exit::Stopped } else { report.run.solve.exit() })
}

/// Refuses memory that another user may reach, before anything long is done. The ranks of a job do
/// so at their first collective call.
fn check_memory(args: &Args) -> Result<()> {
    let is_kept = args.protection.tiers.has_memory() && !args.protection.is_in_process_memory();
    if is_kept && !args.problem.mpi && args.scheme != SchemeChoice::None {
        args.protection.tiers.memory(run_of(args))?.open().map_err(refused)?;
    }
    Ok(())
}

/// Runs the solve among processes that may be lost; returns nothing for a spare that was not
/// needed.
fn surviving(args: &Args, signals: &StopSignals) -> Result<Option<RunEnd>> {
    if args.method.pc == PcKind::Amg {
        let text = "--pc amg does not survive a lost rank, for which hypre waits: take another one, or restart the job";
        return Err(Exit::Usage.because(text));
    }
    let spares = args.spares.unwrap_or(0);
    let tiers = &args.protection.tiers;
    let job_processes = job_processes(ranks::comm(true)?.as_ref(), ranks::node(tiers.node_ranks))?;
    let place = ranks::keep_spares(spares)?;
    let schedule = KillSchedule {
        mtti_seconds: args.protection.mtti_seconds().unwrap_or(f64::INFINITY),
        seed: args.protection.seed,
        spares,
        failure_groups: failure_groups(&job_processes[..place.places], args.kills_nodes()),
    };
    if args.fresh && ranks::is_spare() && tiers.has_memory() {
        tiers.node_memory(run_of(args))?.remove(&Dispensable::given_up()).map_err(refused)?;
    }
    let memory = if args.kills_nodes() { Some(tiers.node_memory(run_of(args))?) } else { None };
    let kill = args.kills_ranks().then(|| ScheduledKill::start(&schedule, place.process, &job_processes, memory));
    let kill = kill.transpose()?;
    survive_losses(kill.as_ref(), |lives| {
        // Later lives continue from what the first one saved.
        let later = Args { fresh: args.fresh && !ranks::was_repaired(), ..args.clone() };
        in_process(&later, signals.clone(), Some(lives))
    })
}

/// Runs the solve in this process, which may lose state on request; one of several lives if ranks
/// may be lost.
fn in_process(args: &Args, signals: StopSignals, mut lives: Option<&mut LifeHistory>) -> Result<RunEnd> {
    let clock = SystemClock::new();
    let problem = LinearProblem::load(&args.problem)?;
    args.end.warn_without(signals.end.as_ref());
    let setup = Setup::new(&problem, &args.method)?.starting_at(args.results.start(&problem)?);
    setup.examine()?;
    let mut solve = SolveReport::of(&setup)?;
    solve.seconds_setup = if args.protection.is_virtual() { 0.0 } else { clock.now().as_secs_f64() };
    planned::check(&args.protection, &setup)?;
    let undisturbed = undisturbed(args, &setup, &signals)?;
    let machine = machine(args, &setup, undisturbed.as_ref())?;
    let baseline = baseline(args, undisturbed.as_ref(), &machine);
    let heartbeat = lives.as_mut().map(|lives| lives.begin(problem.comm())).transpose()?;
    let drains = Arc::default();
    let store = tiered(args, store(args, &machine, problem.comm())?, &problem, &drains)?;
    let observed_run = ObservedRun { store: store.as_deref(), drains, clock: machine.clock.clone() };
    let observers = Observers::of(args, &setup, &observed_run, &signals)?;
    let executed = Execution {
        setup: &setup,
        protection: &args.protection,
        scheme: args.scheme,
        name: &args.name,
        store,
        machine: machine.clone(),
        seed: args.protection.seed,
        baseline_iterations: baseline.iterations,
        stop: signals.stop,
        heartbeat,
        observers,
        origin: origin(args),
    }
    .run()?;
    planned::tell_missed(&args.protection, &executed.report);
    if args.scheme != SchemeChoice::None {
        planned::tell_unsaved(&args.protection, &args.method, &executed.report);
    }
    solve.judge(&executed.report.progress, executed.relative_residual);
    let results = last::results(args, &executed, problem.comm())?;
    let account = all_ranks(account(&executed.report), problem.comm())?;
    let account = if let Some(lives) = lives { lives.finish(account) } else { account };
    forget(args, &executed, problem.comm());
    let terms = terms(args, known_baseline(baseline, &account), &machine, executed.report.ended);
    let note = last_note(args, &executed, &results);
    let run = noted(args, RunJson::new(solve, account, &terms));
    let mut report = RunDocument { run, results, report: None };
    if problem.comm().rank() == 0 {
        page::write(args, &mut report, Some(&executed.report));
    }
    Ok(RunEnd { report, note })
}

/// Returns the sums of one process, and the reasons why versions failed, each once.
fn account(report: &RunReport) -> RunCosts {
    let mut account = RunCosts::of(report);
    account.notes.extend(failures_to_save(&report.failed));
    account
}

/// Sums the bytes of all ranks. Collective.
fn all_ranks(mut account: RunCosts, comm: &dyn Comm) -> Result<RunCosts> {
    let RunCosts { raw_bytes, payload_bytes, frozen_bytes, device_frames, device_bytes, .. } = account;
    let mut sums = [raw_bytes, payload_bytes, frozen_bytes, device_frames, device_bytes].map(|count| count as f64);
    comm.sum(&mut sums)?;
    let sums = sums.map(|sum| sum as u64);
    [account.raw_bytes, account.payload_bytes, account.frozen_bytes, account.device_frames, account.device_bytes] =
        sums;
    Ok(account)
}

/// Takes an undisturbed run as its own baseline.
fn known_baseline(baseline: Baseline, account: &RunCosts) -> Baseline {
    let is_undisturbed = account.failures == 0 && account.flips == FlipsJson::default() && account.recoveries == 0;
    Baseline { iterations: baseline.iterations.or(is_undisturbed.then_some(account.executed)), ..baseline }
}

fn terms(args: &Args, baseline: Baseline, machine: &Machine, ended: Ended) -> RunConditions {
    RunConditions {
        scheme: args.scheme,
        baseline,
        mtti_seconds: args.protection.mtti_seconds(),
        has_arrivals: args.protection.has_arrivals(),
        synchronous: args.protection.is_synchronous(),
        seed: args.protection.seed,
        rates: machine.rates,
        ended,
    }
}

/// Adds a note to the report if its overheads mean nothing.
fn noted(args: &Args, mut run: RunJson) -> RunJson {
    let undisturbed = run.baseline_seconds.filter(|_| run.overhead_fraction.is_some() && !args.is_undisturbed());
    run.noise = undisturbed.and_then(|undisturbed| too_short(&args.protection, undisturbed));
    run.account.notes.extend(run.noise.clone());
    run
}

/// Runs the undisturbed solve, if something depends on it.
fn undisturbed(args: &Args, setup: &Setup<'_>, signals: &StopSignals) -> Result<Option<Solved>> {
    let protection = &args.protection;
    let measures_time = protection.virtual_time && protection.t_iter.is_none();
    let measures_codec = protection.is_virtual() && protection.codec_rate.is_none();
    let counts = protection.baseline_iterations.is_none() && (!args.is_undisturbed() || protection.is_virtual());
    if !(counts || measures_time || measures_codec) {
        return Ok(None);
    }
    if ranks::is_first() {
        tell(format_args!("solving without failures first, to compare (--baseline-iterations N skips it)"));
    }
    let stop_in_time = &mut |_: &Progress| {
        if signals.end.as_ref().is_some_and(|end| args.end.is_near(end)) {
            signals.stop.store(true, Ordering::Release);
        }
    };
    let solved = solve_watched(setup, "undisturbed", Some(&signals.stop), stop_in_time)?;
    if !solved.report.converged {
        let reason = solved.report.reason.as_deref().unwrap_or_default();
        tracing::warn!("the undisturbed solve did not converge, so extra iterations are not known: {reason}");
    }
    Ok(Some(solved))
}

fn baseline(args: &Args, undisturbed: Option<&Solved>, machine: &Machine) -> Baseline {
    let converged = undisturbed.filter(|solved| solved.report.converged);
    Baseline {
        iterations: args.protection.baseline_iterations.or(converged.map(|s| s.report.iterations)),
        iteration_seconds: match &machine.rates {
            Some(rates) => Some(rates.iteration_seconds),
            None => args.protection.paced_seconds(undisturbed.map(|s| s.report.seconds_per_iteration)),
        },
    }
}

fn machine(args: &Args, setup: &Setup<'_>, undisturbed: Option<&Solved>) -> Result<Machine> {
    if !args.protection.is_virtual() {
        return Ok(Machine::real());
    }
    let iterations = args.protection.baseline_iterations.or(undisturbed.map(|s| s.report.iterations)).unwrap_or(1);
    let n = setup.problem().n();
    let product_share = setup.product_share()?;
    let measured = SolveMeasurement { n, iterations, product_share, solved: undisturbed };
    let codec = args.protection.codec_of(args.scheme);
    Ok(Machine::of(virtual_time::rates(&args.protection, codec, &measured)?))
}

/// Opens the store of the versions. Versions of an earlier run are set aside if asked. Collective.
fn store(args: &Args, machine: &Machine, comm: &dyn Comm) -> Result<Option<Arc<dyn Store>>> {
    if args.scheme == SchemeChoice::None {
        return Ok(None);
    }
    let throttle = throttle(&args.protection, machine, comm.size());
    let dir = args.dir.as_ref().filter(|_| !args.protection.tiers.is_memory_alone());
    let Some(dir) = dir else { return Ok(Some(memory(throttle))) };
    let writing = WriteOptions { throttle, ranks_per_file: args.protection.tiers.ranks_per_file(comm)? };
    let store = open_directory(dir, &args.name, writing, comm)?;
    let prepared = if comm.rank() == 0 { prepare(args, store.as_ref()) } else { Ok(()) };
    agree(comm, prepared)?;
    Ok(Some(store))
}

/// Sets versions of an earlier run aside if asked.
fn prepare(args: &Args, store: &dyn Store) -> Result<()> {
    if args.fresh {
        let aside = store.set_aside_newer(None)?;
        if !aside.is_empty() {
            tracing::warn!("{} versions set aside; recoup prune removes them", aside.len());
        }
    }
    Ok(())
}

/// Returns the place of the versions that the first life resumes from, for people, and what does
/// without them.
fn origin(args: &Args) -> Option<String> {
    let is_first_life = !ranks::was_repaired();
    let place = args.dir.as_ref().map_or_else(|| "memory".to_owned(), |dir| dir.display().to_string());
    let unused = if args.results.x0.is_some() { "; --x0 is not used" } else { "" };
    is_first_life.then(|| format!("{place}{unused} (--fresh starts from the beginning)"))
}

/// Returns the place of the run's memory.
fn run_of(args: &Args) -> RunPlace<'_> {
    RunPlace { dir: args.dir.as_deref(), name: &args.name }
}

/// Opens the tiers over the directory's store, if memory that survives the process is asked for.
/// Collective.
fn tiered(
    args: &Args,
    pfs: Option<Arc<dyn Store>>,
    problem: &LinearProblem,
    drains: &Arc<Saves>,
) -> Result<Option<Arc<dyn Store>>> {
    let protection = &args.protection;
    let tiers = &protection.tiers;
    if pfs.is_none() || !tiers.has_memory() || (protection.is_in_process_memory() && problem.comm().size() == 1) {
        return Ok(pfs);
    }
    if args.fresh && args.child.is_none() {
        tiers.clear(run_of(args), &Dispensable::given_up(), problem.comm())?;
    }
    let costs = TierCosts {
        mtti_seconds: protection.mtti_seconds().unwrap_or(MTTI_SECONDS),
        bytes: Some(8.0 * problem.unknowns() as f64),
        pfs_bytes_per_second: protection.pfs_bandwidth,
        keep: usize::from(protection.keep),
        max_bytes: protection.max_bytes,
        synchronous: protection.is_synchronous(),
    };
    let pfs = seen(pfs.filter(|_| !tiers.is_memory_alone()), drains);
    tiers.over(pfs, run_of(args), costs, problem.comm()).map(Some)
}

/// Removes the memory of a run that has converged, once its newest version is in the directory.
fn forget(args: &Args, executed: &Executed, comm: &dyn Comm) {
    if executed.report.ended == Ended::Converged
        && args.protection.tiers.has_memory()
        && let Some(Ok(proof)) = &executed.drained
        && let Err(error) = args.protection.tiers.clear(run_of(args), proof, comm)
    {
        tracing::warn!(%error, "versions are left over in memory");
    }
}

/// Runs the parent of a run that is killed: the undisturbed solve, then life after life.
fn killed(args: &Args, signals: &StopSignals) -> Result<RunEnd> {
    let (mut solve_report, baseline) = {
        let clock = SystemClock::new();
        let problem = LinearProblem::load(&args.problem)?;
        let setup = Setup::new(&problem, &args.method)?.starting_at(args.results.start(&problem)?);
        setup.examine()?;
        let mut report = SolveReport::of(&setup)?;
        report.seconds_setup = clock.now().as_secs_f64();
        let undisturbed = undisturbed(args, &setup, signals)?;
        (report, baseline(args, undisturbed.as_ref(), &Machine::real()))
    };
    if args.fresh && args.scheme != SchemeChoice::None {
        store(args, &Machine::real(), &Solo)?;
        args.protection.tiers.clear(run_of(args), &Dispensable::given_up(), &Solo)?;
    }
    let memory = args.protection.tiers.memory(run_of(args))?;
    begin_files(args, memory.open().map_err(refused)?.is_some())?;
    let lives = kill::lives(&args.protection, baseline.iteration_seconds, &memory, &signals.stop)?;
    solve_report.iterations = lives.last.iterations;
    solve_report.converged = lives.last.converged;
    solve_report.reason = lives.last.reason;
    solve_report.relative_residual = lives.last.relative_residual;
    let ended = match lives.exit {
        Exit::Done => Ended::Converged,
        Exit::Stopped => Ended::Stopped,
        _ => Ended::NotConverged,
    };
    let terms = terms(args, baseline, &Machine::real(), ended);
    let results = lives.last.results;
    let solution = args.dir.as_deref().zip(results.solution_version).map(|(dir, version)| solution_note(dir, version));
    let note = match ended {
        Ended::Stopped => Some("stopped; the same command resumes".to_owned()),
        Ended::Converged => solution.or_else(|| unkept_note(args, &results)),
        _ => solution,
    };
    let run = noted(args, RunJson::new(solve_report, lives.account, &terms));
    let mut report = RunDocument { run, results, report: None };
    page::write(args, &mut report, None);
    Ok(RunEnd { report, note })
}

/// Starts the files that all lives append to, unless the run resumes an earlier one.
fn begin_files(args: &Args, is_in_memory: bool) -> Result<()> {
    let folder = args.dir.as_ref().map(|dir| dir.join(&args.name));
    if let Some(folder) = folder.as_ref().filter(|_| args.fresh) {
        status_file::forget(folder);
    }
    let versions = |dir: &PathBuf| directory::open(dir, &args.name).and_then(|store| Ok(store.versions()?));
    let goes_on = is_in_memory || args.dir.as_ref().is_some_and(|dir| versions(dir).is_ok_and(|v| !v.is_empty()));
    if goes_on && args.results.x0.is_some() {
        tell("--x0 is not used: the run continues from versions of an earlier one");
    }
    if let Some(path) = &args.results.residual_log {
        ResidualLog::open(path, Arc::new(SystemClock::new()), goes_on)?;
    }
    Ok(())
}

/// Runs one life: a run without failures of its own, which reports to its parent through files.
fn child(args: &Args, path: &Path, signals: &StopSignals) -> Result<Exit> {
    kill::die_with_parent();
    let heartbeat = Arc::new(Heartbeat::create(path)?);
    let problem = LinearProblem::load(&args.problem)?;
    let setup = Setup::new(&problem, &args.method)?.starting_at(args.results.start(&problem)?);
    let mut solve = SolveReport::of(&setup)?;
    let machine = Machine::real();
    let throttle = throttle(&args.protection, &machine, 1);
    let writing = WriteOptions { throttle, ranks_per_file: 1 };
    let store = match &args.dir {
        _ if args.scheme == SchemeChoice::None => None,
        _ if args.protection.tiers.is_memory_alone() => Some(memory(None)),
        Some(dir) => Some(open_directory(dir, &args.name, writing, problem.comm())?),
        None => None,
    };
    let drains = Arc::default();
    let store = tiered(args, store, &problem, &drains)?;
    let observed_run = ObservedRun { store: store.as_deref(), drains, clock: machine.clock.clone() };
    let observers = Observers::of(args, &setup, &observed_run, signals)?;
    let executed = Execution {
        setup: &setup,
        protection: &args.protection,
        scheme: args.scheme,
        name: &args.name,
        store,
        machine,
        seed: args.protection.seed,
        baseline_iterations: args.protection.baseline_iterations,
        stop: signals.stop.clone(),
        heartbeat: Some(heartbeat),
        observers,
        origin: None,
    }
    .run()?;
    let report = &executed.report;
    solve.judge(&report.progress, executed.relative_residual);
    let results = last::results(args, &executed, problem.comm())?;
    forget(args, &executed, problem.comm());
    let is_stopped = report.ended == Ended::Stopped;
    ChildResult::new(&solve, results, account(report)).write(path)?;
    Ok(if is_stopped { Exit::Stopped } else { solve.exit() })
}
