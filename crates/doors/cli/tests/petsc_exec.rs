//! `recoup exec`: programs in plain PETSc, killed and started again by the same line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program in plain PETSc, and a folder to run it in.
pub(crate) struct Plain {
    pub(crate) folder: tempfile::TempDir,
    /// The program, and the words it always has.
    pub(crate) program: String,
    /// What it needs of the environment.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Plain {
    /// Compiles a source, by its path from tests/exec, against a package that pkg-config knows.
    /// `None`, with a line that says so, where PETSc or MPI is missing.
    pub(crate) fn of(source: &str, package: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(source, package, &folder.path().join("program"))?;
        Some(Self { folder, program, variables: Vec::new() })
    }

    pub(crate) fn heat() -> Option<Self> {
        Self::of(HEAT, "PETSc")
    }

    /// A script, by its path from tests/exec, where its interpreter has all that it imports.
    pub(crate) fn script(interpreter: &str, source: &str, module: &str) -> Option<Self> {
        let program = format!("{interpreter} {}", sources().join(source).display());
        let plain = Self { folder: tempfile::tempdir().unwrap(), program, variables: Vec::new() };
        let words = [interpreter, "-c", &format!("import {module}")].map(str::to_owned);
        let has_module = plain.command(&words).output().is_ok_and(|output| output.status.success());
        if !has_module {
            eprintln!("SKIPPED: {interpreter} has no {module}");
        }
        has_module.then_some(plain)
    }

    /// Runs without recoup, on one rank.
    pub(crate) fn plain(&self, arguments: &str) -> String {
        let output = self.start(1, arguments, None).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    }

    /// A run on some ranks; below `recoup exec`, with these options, if any are given.
    pub(crate) fn start(&self, ranks: usize, arguments: &str, options: Option<&[&str]>) -> Command {
        let mut words: Vec<String> = ["timeout", "-k", "5", "200"].map(str::to_owned).into();
        if let Some(options) = options {
            words.extend([env!("CARGO_BIN_EXE_recoup"), "exec", "--dir", "log"].map(str::to_owned));
            words.extend(options.iter().map(|option| (*option).to_owned()));
            words.push("--".to_owned());
        }
        if ranks > 1 {
            words.extend(["mpirun".to_owned(), "-n".to_owned(), ranks.to_string()]);
        }
        words.extend(self.program.split_whitespace().chain(arguments.split_whitespace()).map(str::to_owned));
        self.command(&words)
    }

    pub(crate) fn run(&self, ranks: usize, arguments: &str, options: &[&str]) -> Output {
        self.start(ranks, arguments, Some(options)).output().unwrap()
    }

    pub(crate) fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        // What Open MPI wants to be told in a container.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none").env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs to a good end below `recoup exec`, where every call is saved: what the program printed,
    /// and the line recoup ends with.
    pub(crate) fn finish(&self, ranks: usize, arguments: &str) -> (String, Counts) {
        let output = self.run(ranks, arguments, &["--share", "1"]);
        assert!(output.status.success(), "{output:?}");
        assert!(!self.log().exists(), "the log of a finished program is removed");
        (stdout(&output), Counts::of(&output))
    }

    /// Runs until it kills itself.
    pub(crate) fn killed(&self, ranks: usize, arguments: &str) {
        let output = self.run(ranks, arguments, &["--share", "1"]);
        assert_eq!(output.status.code(), Some(137), "{output:?}");
        assert!(stderr(&output).contains("the same command continues"), "{output:?}");
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// The numbers of recoup's last line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    calls: u32,
    pub(crate) replayed: u32,
    pub(crate) resumed: u32,
    guessed: u32,
    pub(crate) saved: u32,
}

impl Counts {
    pub(crate) fn of(output: &Output) -> Self {
        let text = stderr(output);
        let line = text.lines().find(|line| line.contains(" calls: ")).unwrap_or_else(|| panic!("{output:?}"));
        let mut numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().unwrap();
        Self { calls: next(), replayed: next(), resumed: next(), guessed: next(), saved: next() }
    }
}

/// Compiles a source, by its path from tests/exec, as a program or, with a name of one, a library.
pub(crate) fn compiled(source: &str, package: &str, target: &Path) -> Option<String> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", package]).output().ok();
    let Some(flags) = flags.filter(|flags| flags.status.success()) else {
        eprintln!("SKIPPED: pkg-config knows no {package}");
        return None;
    };
    let compiler = match source.rsplit('.').next() {
        Some("F90") => "mpif90",
        Some("cpp") => "mpicxx",
        _ => "mpicc",
    };
    let mut command = Command::new(compiler);
    command
        .current_dir(target.parent().unwrap())
        .args(["-O2", "-Wl,--as-needed"])
        .arg(sources().join(source))
        .arg("-o")
        .arg(target);
    if target.extension().is_some() {
        command.args(["-shared", "-fPIC"]);
    }
    command.arg("-I").arg(sources().join("../../../capi/include")).arg(librecoup()).arg("-Wl,-rpath,$ORIGIN");
    command.args(String::from_utf8(flags.stdout).unwrap().split_whitespace()).arg("-ldl");
    let Ok(made) = command.output() else {
        eprintln!("SKIPPED: {compiler} is not installed");
        return None;
    };
    assert!(made.status.success(), "{source}: {}", String::from_utf8_lossy(&made.stderr));
    Some(target.display().to_string())
}

/// The library that cargo has built with the tests.
fn librecoup() -> PathBuf {
    let folders = Path::new(env!("CARGO_BIN_EXE_recoup")).ancestors().skip(1);
    let mut files = folders.flat_map(|folder| ["", "deps"].map(|within| folder.join(within).join("librecoup_c.so")));
    files.find(|file| file.exists()).expect("librecoup is built")
}

pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) const HEAT: &str = "../../../../../examples/exec/heat.c";
pub(crate) const COMPLEX: &str = "/usr/lib/petscdir/petsc-complex/lib/pkgconfig/PETSc.pc";
pub(crate) const CG: &str = "-n 40 -steps 12 -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8";

/// The norms of all steps, which end their lines.
fn norms(text: &str) -> Vec<f64> {
    text.lines().filter_map(|line| line.split_whitespace().last()?.parse().ok()).collect()
}

/// A number by the name that examples/embed/ksp.c gives it.
fn number(output: &Output, name: &str) -> f64 {
    let text = stdout(output);
    let word = text.split(name).nth(1).and_then(|rest| rest.split(',').next());
    word.and_then(|word| word.trim().parse().ok()).unwrap_or_else(|| panic!("{output:?}"))
}

pub(crate) fn assert_near(found: &str, expected: &str, relative: f64) {
    let found = norms(found);
    let expected = norms(expected);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= relative * expected, "{found} {expected}");
    }
}

#[test]
fn petsc_program_killed_in_a_step_prints_what_it_would_have_printed() {
    let Some(heat) = Plain::heat() else { return };
    let expected = heat.plain(CG);
    for step in [3, 3, 8] {
        heat.killed(1, &format!("{CG} -kill_at {step}"));
    }
    let told = |command: &str| {
        let words = [env!("CARGO_BIN_EXE_recoup"), command, "log"].map(str::to_owned);
        let output = heat.command(&words).output().unwrap();
        stdout(&output) + &stderr(&output)
    };
    assert!(told("status").contains("recoup has saved 8 calls"), "{}", told("status"));
    assert!(told("inspect").contains("recoup has saved 8 calls"), "{}", told("inspect"));
    let (found, counts) = heat.finish(1, CG);
    assert_eq!(found, expected);
    assert_eq!(counts, Counts { calls: 12, replayed: 8, resumed: 0, guessed: 0, saved: 4 });
}

#[test]
fn petsc_ranks_find_the_rows_that_others_have_saved() {
    let Some(heat) = Plain::heat() else { return };
    let expected = heat.plain(CG);
    heat.killed(2, &format!("{CG} -kill_at 4"));
    heat.killed(1, &format!("{CG} -kill_at 6"));
    let (found, counts) = heat.finish(2, CG);
    // Each of 12 solves leaves a residual of 1e-8 ||b||, and no eigenvalue of A is below 1.
    assert_near(&found, &expected, 12.0 * 1e-8);
    assert_eq!((counts.calls, counts.replayed), (12, 6));
}

/// What a solve prints is printed, although it is skipped: norms, reasons, views.
#[test]
fn petsc_monitors_of_a_skipped_solve_print_as_before() {
    let Some(heat) = Plain::heat() else { return };
    // BCGSL shows the norms of some iterations, which are not kept.
    let bcgsl = "-ksp_type bcgsl -ksp_monitor";
    let factors = "-ksp_type preonly -pc_type lu -ksp_monitor";
    for shown in ["-ksp_monitor -ksp_converged_reason", "-ksp_view", "-ksp_monitor_true_residual", bcgsl, factors] {
        let arguments = format!("{CG} -steps 3 {shown}");
        let expected = heat.plain(&arguments);
        heat.killed(1, &format!("{arguments} -kill_at 2"));
        let (found, counts) = heat.finish(1, &arguments);
        assert_eq!(found, expected, "{shown}");
        // A monitor that looks at the iterate has the call solved again.
        let is_solved = shown.contains("true") || shown == bcgsl;
        assert_eq!(counts.replayed, if is_solved { 0 } else { 2 }, "{shown}");
    }
}

/// Solves within a preconditioner are none of the program.
#[test]
fn petsc_nested_solves_are_no_calls() {
    let Some(heat) = Plain::heat() else { return };
    for pc in [
        "-pc_type bjacobi -sub_ksp_type gmres -sub_pc_type ilu",
        "-pc_type ksp -ksp_ksp_type cg -ksp_ksp_max_it 5 -ksp_type fgmres",
        "-pc_type gamg",
        "-pc_type fieldsplit -pc_fieldsplit_block_size 2 -pc_fieldsplit_type schur -ksp_type fgmres",
        "-ksp_type preonly -pc_type lu",
        "-ksp_guess_type fischer -ksp_guess_fischer_model 1,5",
        "-ksp_guess_type pod",
        "-ksp_knoll",
        "-ksp_type gmres -ksp_gmres_restart 7",
        // A monitor would keep Richardson from leaving its iterations to SOR.
        "-ksp_type richardson -pc_type sor -ksp_max_it 50",
    ] {
        let arguments = format!("{CG} {pc}");
        let expected = heat.plain(&arguments);
        heat.killed(1, &format!("{arguments} -kill_at 6"));
        let (found, counts) = heat.finish(1, &arguments);
        assert_eq!(found, expected, "{pc}");
        assert_eq!((counts.calls, counts.replayed), (12, 6), "{pc}");
    }
}

/// Another tolerance, size or method: no kept x is returned as it is.
#[test]
fn petsc_calls_of_another_problem_are_solved() {
    let Some(heat) = Plain::heat() else { return };
    for (other, guessed) in [("-ksp_rtol 1e-10", 6), ("-n 41", 0), ("-ksp_type bcgs", 6)] {
        let arguments = format!("{CG} {other}");
        let expected = heat.plain(&arguments);
        heat.killed(1, &format!("{CG} -kill_at 6"));
        let (found, counts) = heat.finish(1, &arguments);
        assert_near(&found, &expected, 2.0 * 12.0 * 1e-8);
        assert_eq!((counts.replayed, counts.guessed), (0, guessed), "{other}");
    }
}

/// examples/embed/ksp.c attaches versions on its own, unless it is told to be a plain program.
#[test]
fn petsc_program_killed_within_a_solve_takes_the_iterations_of_an_attached_one() {
    let Some(ksp) = Plain::of("../../../../../examples/embed/ksp.c", "PETSc") else { return };
    let name = concat!("librecoup.so.", env!("CARGO_PKG_VERSION_MAJOR"));
    std::os::unix::fs::symlink(librecoup(), ksp.folder.path().join(name)).unwrap();
    let versions = "interval=20it scheme=lossless sync";
    let solve = "-n 32 -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8 -random";
    let plain = number(&ksp.start(1, &format!("{solve} -plain"), None).output().unwrap(), "iterations");
    for (ranks, part) in [(1, 1.0), (1, 2.0), (2, 1.0), (2, 2.0)] {
        let attached = |more: &str| {
            let mut command = ksp.start(ranks, &format!("{solve} {more}"), None);
            command.args(["-ckpt", &format!("dir=attached-{ranks}-{part} {versions}")]).output().unwrap()
        };
        let below = |more: &str| {
            let arguments = format!("{solve} -plain {more}");
            ksp.run(ranks, &arguments, &["--after", "0", "--options", versions])
        };
        // After one or two thirds of its iterations.
        let kill = format!("-kill_after {}", (part * plain / 3.0).round());
        assert_eq!([attached(&kill), below(&kill)].map(|killed| killed.status.success()), [false; 2]);
        let output = below("");
        assert_eq!(Counts::of(&output).resumed, 1, "{output:?}");
        let iterations = number(&output, "iterations");
        assert_eq!(iterations, number(&attached(""), "iterations"), "{ranks} ranks: {output:?}");
        // State x+p: at most 2 % more iterations than undisturbed.
        assert!(iterations <= 1.02 * plain + 1.0 && number(&output, "residual") <= 1.01e-8, "{output:?}");
    }
}

/// PETSc hands out no iterate of a method that is preconditioned from the right without a vector
/// for it, and a wrong one of those that update x itself: the save ended the program.
#[test]
fn petsc_methods_preconditioned_from_the_right_are_saved_and_resumed() {
    let Some(heat) = Plain::heat() else { return };
    let methods = ["fbcgs", "fbcgsr", "qmrcgs", "pipebcgs", "bcgs -ksp_pc_side right"];
    for method in methods {
        let arguments = format!("{CG} -steps 1 -n 100 -ksp_type {method}");
        let expected = heat.plain(&arguments);
        let options = ["--after", "0", "--options", "interval=5it scheme=lossless sync"];
        let run = |more: &str| heat.run(1, &format!("{arguments} {more}"), &options);
        assert_eq!(run("-kill_after 30").status.code(), Some(137), "{method}");
        let output = run("");
        assert!(output.status.success(), "{method}: {output:?}");
        assert_eq!(Counts::of(&output).resumed, 1, "{method}: {output:?}");
        assert_near(&stdout(&output), &expected, 1e-7);
    }
}

#[test]
fn petsc_of_complex_numbers_has_an_engine_of_its_own() {
    let Some(heat) = Plain::of(HEAT, COMPLEX) else { return };
    let expected = heat.plain(CG);
    heat.killed(1, &format!("{CG} -kill_at 6"));
    let (found, counts) = heat.finish(1, CG);
    assert_eq!(found, expected);
    assert_eq!(counts.replayed, 6);
}

/// The linear solves of Newton and of time steps are the calls: all else runs as before.
#[test]
fn petsc_time_stepper_killed_in_a_step_prints_what_it_would_have_printed() {
    let Some(steps) = Plain::of("steps.c", "PETSc") else { return };
    for kind in ["-ts_type beuler", "-ts_type rosw -ts_adapt_type none", "-ts_type beuler -snes_ksp_ew"] {
        let arguments =
            format!("{kind} -ts_monitor -snes_monitor -ksp_monitor_short -snes_converged_reason -snes_view");
        let expected = steps.plain(&arguments);
        steps.killed(1, &format!("{arguments} -kill_at 4"));
        let (found, counts) = steps.finish(1, &arguments);
        assert_eq!(found, expected, "{kind}");
        assert!(counts.replayed >= 4 && counts.saved > 0, "{kind}: {counts:?}");
    }
}

/// A restored u is tested by nothing: another start is refused by the name of what differs.
#[test]
fn petsc_time_stepper_that_is_attached_continues_at_its_step_from_the_same_start_alone() {
    let Some(steps) = Plain::of("steps.c", "PETSc") else { return };
    let options = ["--ts", "attach", "--options", "interval=1it sync"];
    for (other, named) in [
        ("", ""),
        ("-start 0.2", "norm of u 1.41421356237 expected, 2.82842712475 found"),
        ("-ts_dt 0.02", "dt 0.01 expected, 0.02 found"),
        ("-ts_max_time 3", "end time"),
        ("-ts_type cn", "type beuler expected, cn found"),
    ] {
        let arguments = format!("-ts_type beuler {other}");
        let expected = steps.plain(&arguments);
        let killed = steps.run(1, "-ts_type beuler -kill_at 5", &options);
        assert_eq!(killed.status.code(), Some(137), "{killed:?}");
        let output = steps.run(1, &format!("{arguments} -ts_monitor"), &options);
        assert!(output.status.success(), "{output:?}");
        let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
        assert_eq!(lines.last().map(String::as_str), Some(expected.trim()), "{other}");
        let steps_done = if named.is_empty() { 5 } else { 0 };
        assert!(lines[0].starts_with(&format!("{steps_done} TS")), "{other}: {output:?}");
        assert!(stderr(&output).contains(named), "{other}: {output:?}");
    }
}

/// PETSc loads the library where nothing may be preloaded.
#[test]
fn petsc_loads_the_library_that_is_appended() {
    let Some(heat) = Plain::heat() else { return };
    let options = ["--append", "--share", "1"];
    let nested = "-pc_type bjacobi -sub_ksp_type gmres -sub_pc_type ilu -ksp_view";
    for shown in
        ["-ksp_monitor -ksp_converged_reason", nested, "-ksp_guess_type fischer", "-ksp_type preonly -pc_type lu"]
    {
        let arguments = format!("{CG} {shown}");
        let expected = heat.plain(&arguments);
        let killed = heat.run(1, &format!("{arguments} -kill_at 6"), &options);
        assert_eq!(killed.status.code(), Some(137), "{killed:?}");
        let output = heat.run(1, &arguments, &options);
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected), "{shown}: {output:?}");
        let counts = Counts::of(&output);
        assert_eq!((counts.calls, counts.replayed, counts.saved), (12, 6, 6), "{shown}");
    }
}

/// Fortran's stub is in libpetsc itself.
#[test]
fn petsc_programs_in_fortran_and_cpp_are_caught() {
    for source in ["loop.F90", "heat.cpp"] {
        let Some(program) = Plain::of(source, "PETSc") else { continue };
        let steps = "-steps 5 -n 40";
        let expected = program.plain(steps);
        program.killed(1, &format!("{steps} -kill_at 3"));
        let (found, counts) = program.finish(1, steps);
        assert_eq!(found, expected);
        assert_eq!((counts.calls, counts.replayed), (5, 3), "{source}");
    }
}

/// Two libraries of PETSc in one process have a log each.
#[test]
fn petsc_of_real_and_of_complex_numbers_in_one_process_are_both_brought_back() {
    let Some(mut both) = Plain::of("both.c", "PETSc") else { return };
    for (library, package) in [("real.so", "PETSc"), ("complex.so", COMPLEX)] {
        let Some(library) = compiled(HEAT, package, &both.folder.path().join(library)) else { return };
        both.program = format!("{} {library}", both.program);
    }
    let expected = both.plain(CG);
    both.killed(1, &format!("{CG} -kill_at 6"));
    let (found, counts) = both.finish(1, CG);
    assert_eq!(found, expected);
    assert_eq!((counts.calls, counts.replayed), (24, 18));
}

/// libpetsc is loaded for petsc4py alone: that of real numbers, or that of complex ones.
#[test]
fn petsc4py_script_is_brought_back_on_any_number_of_ranks() {
    let Some(mut heat) = Plain::script("/usr/bin/python3", "heat.py", "petsc4py.PETSc") else { return };
    for (build, numbers) in [("real", "float64"), ("complex", "complex128")] {
        let packages = format!("/usr/lib/petscdir/petsc-{build}/lib/python3/dist-packages");
        heat.variables = vec![("PYTHONPATH", packages)];
        let expected = heat.plain(CG);
        if !expected.starts_with(numbers) {
            eprintln!("SKIPPED: no petsc4py of {build} numbers");
            continue;
        }
        heat.killed(2, &format!("{CG} -kill_at 4"));
        heat.killed(1, &format!("{CG} -kill_at 6"));
        let (found, counts) = heat.finish(1, CG);
        assert_near(&found, &expected, 12.0 * 1e-8);
        assert_eq!((counts.calls, counts.replayed), (12, 6), "{build}");
    }
}

/// PETSc makes A and b from a DM, and the set-up that the program calls solves within.
#[test]
fn petsc_systems_of_a_dm_are_brought_back_and_others_solved() {
    let Some(cases) = Plain::of("cases.c", "PETSc") else { return };
    let usual = "-ksp_type cg -pc_type gamg -ksp_rtol 1e-8 -ksp_norm_type unpreconditioned";
    for (first, other, replayed) in [("", "", 4), ("-random", "-random", 0), ("", "-diagonal 2.02", 0)] {
        let arguments = format!("{usual} {other}");
        let expected = cases.plain(&arguments);
        cases.killed(1, &format!("{usual} {first} -kill_at 4"));
        let (found, counts) = cases.finish(1, &arguments);
        assert!(found.lines().all(|line| line.split(' ').nth(1) == Some("1")), "{other}: {found}");
        // No eigenvalue of A is below 0.01.
        assert_near(&found, &expected, 2.0 * 1e-8 * 4.02 / 0.01);
        assert_eq!((counts.calls, counts.replayed), (6, replayed), "{other}");
    }
}

/// Solves of an eigenvalue solver are its own.
#[test]
fn petsc_solves_of_slepc_are_no_calls() {
    let Some(eigen) = Plain::of("eigen.c", "SLEPc") else { return };
    let arguments = "-eps_target 0 -st_type sinvert -eps_nev 3 -st_ksp_type cg -st_pc_type jacobi -st_ksp_rtol 1e-10";
    let expected = eigen.plain(arguments);
    let output = eigen.run(1, arguments, &["--share", "1"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected));
    assert!(stderr(&output).contains("no call was caught"), "{output:?}");
}

/// A resumed solve that did not converge showed its reason, before that of the solve from the
/// program's own x, and was an error where the program wants one.
#[test]
fn petsc_resume_that_fails_is_neither_shown_nor_an_error() {
    let Some(heat) = Plain::heat() else { return };
    // MINRES begins again from x, and the iterations that are left are too few for that.
    let minres = "-ksp_type minres -ksp_converged_reason -ksp_error_if_not_converged";
    let arguments = format!("{CG} -steps 1 {minres}");
    let whole = heat.plain(&arguments);
    let iterations: u32 = whole.split_whitespace().rev().nth(1).unwrap().parse().unwrap();
    let arguments = format!("{arguments} -ksp_max_it {iterations}");
    assert_eq!(heat.plain(&arguments), whole);
    let options = ["--after", "0", "--options", "interval=5it scheme=lossless sync"];
    let killed = heat.run(1, &format!("{arguments} -kill_after {}", iterations * 3 / 4), &options);
    assert_eq!(killed.status.code(), Some(137), "{killed:?}");
    assert!(stderr(&killed).contains("the same command continues"), "{killed:?}");
    let output = heat.run(1, &arguments, &options);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), whole), "{output:?}");
    assert_eq!(Counts::of(&output).resumed, 0, "{output:?}");
}

/// A KSP that guesses has no versions, or its guess makes way for the x of one.
#[test]
fn petsc_solves_that_begin_from_a_guess_of_the_ksp_converge_killed_or_not() {
    let Some(heat) = Plain::heat() else { return };
    for (guess, resumed) in [("guess_type fischer", 0), ("guess_type pod", 0), ("knoll", 1)] {
        let arguments = format!("{CG} -steps 2 -n 100 -ksp_{guess}");
        let expected = heat.plain(&arguments);
        let options = ["--after", "0", "--options", "interval=20it scheme=lossless sync"];
        let run = |more: &str| heat.run(1, &format!("{arguments} {more}"), &options);
        assert_eq!(run("-kill_after 70").status.code(), Some(137), "{guess}");
        let output = run("");
        assert!(output.status.success(), "{guess}: {output:?}");
        assert_eq!(Counts::of(&output).resumed, resumed, "{guess}: {output:?}");
        assert_near(&stdout(&output), &expected, 2.0 * 1e-8);
    }
}

/// Keys of rows are among what is saved here. The method has vectors to lend.
#[test]
fn petsc_log_takes_the_memory_of_one_vector() {
    const PEAK: &str = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True, stdout=-3)\n\
                        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let Some(heat) = Plain::heat() else { return };
    let arguments = "-ksp_type cg -pc_type jacobi -ksp_rtol 0.2 -steps 2 -n 700";
    let peak = |share: &str| -> f64 {
        let run = heat.start(1, arguments, Some(&["--share", share]));
        let words = ["python3", "-c", PEAK].map(str::to_owned).into_iter();
        let run = run.get_args().map(|word| word.to_str().unwrap().to_owned());
        let output =
            heat.command(&words.chain(["timeout".to_owned()]).chain(run).collect::<Vec<_>>()).output().unwrap();
        let saved = if share == "1" { 2 } else { 0 };
        assert_eq!(Counts::of(&output).saved, saved, "{output:?}");
        1024.0 * stdout(&output).trim().parse::<f64>().unwrap()
    };
    heat.finish(1, "-n 5 -steps 1"); // the engine is compiled
    let vector = 8.0 * 700.0 * 700.0;
    let taken = peak("1") - peak("0");
    assert!(taken < 1.5 * vector, "{taken} bytes of vectors of {vector}");
}

#[test]
fn petsc_tutorial_of_exec_runs_as_printed() {
    let Some(heat) = Plain::heat() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = std::fs::read_to_string(root.join("docs/start/exec.md")).unwrap();
    let script =
        page.split("```bash\n").nth(1).and_then(|rest| rest.split_once("```")).expect("the page has a script").0;
    std::os::unix::fs::symlink(root.join("examples"), heat.folder.path().join("examples")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_recoup")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    // Each call is explained on demand.
    let explained = heat.run(1, &format!("{CG} -steps 1"), &["--explain"]);
    assert!(stderr(&explained).contains("recoup: call 0 of 0000000000000000: solved, saved"), "{explained:?}");
    let output = heat.command(&["bash", "-c", script].map(str::to_owned)).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Counts::of(&output), Counts { calls: 20, replayed: 15, resumed: 0, guessed: 0, saved: 5 });
    assert!(page.contains("`20 calls: 15 answered from the log, ..`"));
}
