//! `recoup exec`: programs in plain PETSc, killed and started again by the same line.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program in plain PETSc, and a folder to run it in.
struct Plain {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Plain {
    /// Compiles a source, by its path from tests/exec, against a package that pkg-config knows.
    /// `None`, with a line that says so, where PETSc or MPI is missing.
    fn of(source: &str, package: &str) -> Option<Self> {
        let flags = Command::new("pkg-config").args(["--cflags", "--libs", package]).output().ok();
        let Some(flags) = flags.filter(|flags| flags.status.success()) else {
            eprintln!("SKIPPED: pkg-config knows no {package}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let compiler = if source.ends_with(".F90") { "mpif90" } else { "mpicc" };
        let mut command = Command::new(compiler);
        command.current_dir(folder.path()).arg("-O2").arg(sources().join(source)).arg("-o").arg(&program);
        command.args(String::from_utf8(flags.stdout).unwrap().split_whitespace());
        let Ok(made) = command.output() else {
            eprintln!("SKIPPED: {compiler} is not installed");
            return None;
        };
        assert!(made.status.success(), "{source}: {}", String::from_utf8_lossy(&made.stderr));
        Some(Self { folder, program })
    }

    fn heat() -> Option<Self> {
        Self::of("../../../../../examples/exec/heat.c", "PETSc")
    }

    /// Runs without recoup, on one rank.
    fn plain(&self, arguments: &str) -> String {
        let output = self.run(1, arguments, None);
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    }

    /// Runs on some ranks; below `recoup exec`, with these options, if any are given.
    fn run(&self, ranks: u32, arguments: &str, options: Option<&str>) -> Output {
        let mut words = vec!["timeout".to_owned(), "-k".to_owned(), "5".to_owned(), "200".to_owned()];
        if let Some(options) = options {
            words.push(env!("CARGO_BIN_EXE_recoup").to_owned());
            words.extend(["exec", "--dir", "log"].map(str::to_owned));
            words.extend(options.split_whitespace().map(str::to_owned));
            words.push("--".to_owned());
        }
        if ranks > 1 {
            words.extend(["mpirun".to_owned(), "-n".to_owned(), ranks.to_string()]);
        }
        words.push(self.program.display().to_string());
        words.extend(arguments.split_whitespace().map(str::to_owned));
        self.command(&words).output().unwrap()
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        // What Open MPI wants to be told in a container.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none").env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        command
    }

    /// Runs to a good end below `recoup exec`, where every call is saved: what the program printed,
    /// and the line recoup ends with.
    fn finish(&self, ranks: u32, arguments: &str) -> (String, Counts) {
        let output = self.run(ranks, arguments, Some("--share 1"));
        assert!(output.status.success(), "{output:?}");
        assert!(!self.log().exists(), "the log of a finished program is removed");
        (stdout(&output), Counts::of(&output))
    }

    /// Runs until it kills itself.
    fn killed(&self, ranks: u32, arguments: &str) {
        let output = self.run(ranks, arguments, Some("--share 1"));
        assert_eq!(output.status.code(), Some(137), "{output:?}");
        assert!(stderr(&output).contains("the same command continues"), "{output:?}");
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// The numbers of recoup's last line.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    calls: u32,
    replayed: u32,
    resumed: u32,
    guessed: u32,
    saved: u32,
}

impl Counts {
    fn of(output: &Output) -> Self {
        let text = stderr(output);
        let line = text.lines().find(|line| line.contains(" calls: ")).unwrap_or_else(|| panic!("{output:?}"));
        let mut numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().unwrap();
        Self { calls: next(), replayed: next(), resumed: next(), guessed: next(), saved: next() }
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exec")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const CG: &str = "-n 40 -steps 12 -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8";

/// The norms of all steps, which end their lines.
fn norms(text: &str) -> Vec<f64> {
    text.lines().filter_map(|line| line.split_whitespace().last()?.parse().ok()).collect()
}

fn assert_near(found: &str, expected: &str, relative: f64) {
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
    for shown in ["-ksp_monitor -ksp_converged_reason", "-ksp_view", "-ksp_monitor_true_residual", bcgsl] {
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
        "-ksp_type preonly -pc_type lu",
        "-ksp_guess_type fischer -ksp_guess_fischer_model 1,5",
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

#[test]
fn petsc_program_killed_within_a_solve_continues_in_there() {
    let Some(heat) = Plain::heat() else { return };
    let arguments = format!("{CG} -steps 1 -n 100");
    let expected = heat.plain(&arguments);
    let options = ["--after", "0", "--options", "interval=20it scheme=lossless sync"].map(str::to_owned);
    for ranks in [1, 2] {
        let run = |more: &str| {
            let mut words = vec![env!("CARGO_BIN_EXE_recoup").to_owned()];
            words.extend(["exec", "--dir", "log"].map(str::to_owned));
            words.extend(options.clone());
            words.extend(["--", "mpirun", "-n"].map(str::to_owned));
            words.extend([ranks.to_string(), heat.program.display().to_string()]);
            words.extend(format!("{arguments} {more}").split_whitespace().map(str::to_owned));
            heat.command(&words).output().unwrap()
        };
        assert_eq!(run("-kill_after 70").status.code(), Some(137));
        let output = run("");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(Counts::of(&output).resumed, 1, "{output:?}");
        assert_near(&stdout(&output), &expected, 1e-8);
        let its = |text: &str| text.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap();
        // State x+p: at most 2 % more iterations than undisturbed.
        assert!(its(&stdout(&output)) <= 1.02 * its(&expected) + 1.0, "{output:?}\n{expected}");
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
        let run = |more: &str| {
            let mut words = vec![env!("CARGO_BIN_EXE_recoup").to_owned()];
            words.extend(["exec", "--dir", "log", "--after", "0", "--options"].map(str::to_owned));
            words.extend(["interval=5it scheme=lossless sync", "--"].map(str::to_owned));
            words.push(heat.program.display().to_string());
            words.extend(format!("{arguments} {more}").split_whitespace().map(str::to_owned));
            heat.command(&words).output().unwrap()
        };
        assert_eq!(run("-kill_after 30").status.code(), Some(137), "{method}");
        let output = run("");
        assert!(output.status.success(), "{method}: {output:?}");
        assert_eq!(Counts::of(&output).resumed, 1, "{method}: {output:?}");
        assert_near(&stdout(&output), &expected, 1e-7);
    }
}

#[test]
fn petsc_of_complex_numbers_has_an_engine_of_its_own() {
    let package = "/usr/lib/petscdir/petsc-complex/lib/pkgconfig/PETSc.pc";
    let Some(heat) =
        Path::new(package).exists().then(|| Plain::of("../../../../../examples/exec/heat.c", package)).flatten()
    else {
        eprintln!("SKIPPED: no {package}");
        return;
    };
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

/// Fortran's stub is in libpetsc itself.
#[test]
fn petsc_program_in_fortran_is_caught() {
    let Some(program) = Plain::of("loop.F90", "PETSc") else { return };
    let expected = program.plain("");
    program.killed(1, "-kill_at 3");
    let (found, counts) = program.finish(1, "");
    assert_eq!(found, expected);
    assert_eq!((counts.calls, counts.replayed), (5, 3));
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
    let explained = heat.run(1, &format!("{CG} -steps 1"), Some("--explain"));
    assert!(stderr(&explained).contains("recoup: call 0 of 0000000000000000: solved, saved"), "{explained:?}");
    let output = heat.command(&["bash", "-c", script].map(str::to_owned)).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Counts::of(&output), Counts { calls: 20, replayed: 15, resumed: 0, guessed: 0, saved: 5 });
    assert!(page.contains("`20 calls: 15 answered from the log, ..`"));
}

/// Damage costs calls, which are solved again, and never a digit.
#[test]
fn petsc_log_that_is_damaged_costs_calls_alone() {
    let Some(heat) = Plain::heat() else { return };
    let arguments = format!("{CG} -n 8 -steps 4");
    let expected = heat.plain(&arguments);
    heat.killed(1, &format!("{arguments} -kill_at 3"));
    let log = heat.log().join("calls").join("0000000000000000-1-0.log");
    let bytes = std::fs::read(&log).unwrap();
    // An eighth of an entry apart: in headers, facts and values.
    for place in (0..bytes.len()).step_by(bytes.len() / 24) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        std::fs::write(&log, damaged).unwrap();
        let (found, counts) = heat.finish(1, &arguments);
        assert_eq!(found, expected, "byte {place}");
        assert!(counts.replayed < 3, "byte {place}: {counts:?}");
    }
}

/// Kills by the clock: in a solve, in a save, in a start.
#[test]
#[ignore = "minutes: part of make soak"]
fn petsc_program_survives_a_hundred_kills() {
    let Some(heat) = Plain::heat() else { return };
    let arguments = format!("{CG} -n 100 -steps 60");
    let expected = heat.plain(&arguments);
    let mut state = 20_261_128_u64;
    let mut kills = 0;
    while kills < 100 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let seconds = format!("{:.3}", 0.3 + 1.5 * (state >> 33) as f64 / f64::from(1_u32 << 31));
        let mut words = vec!["timeout", "-s", "KILL", &seconds, env!("CARGO_BIN_EXE_recoup"), "exec", "--dir", "log"];
        words.extend(["--share", "1", "--", heat.program.to_str().unwrap()]);
        words.extend(arguments.split_whitespace());
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let output = heat.command(&words).output().unwrap();
        if output.status.success() {
            assert_eq!(stdout(&output), expected, "seed state {state}");
        } else {
            kills += 1;
        }
    }
}

/// The program runs as without recoup, with its own exit code, and a line says what is missing.
#[test]
fn petsc_program_runs_where_nothing_can_be_saved() {
    let Some(heat) = Plain::heat() else { return };
    let expected = heat.plain(CG);
    let check = |what: &str, change: &dyn Fn(&mut Command)| {
        let words = ["exec", "--dir", "log", "--"].map(str::to_owned);
        let mut all = vec![env!("CARGO_BIN_EXE_recoup").to_owned()];
        all.extend(words);
        all.push(heat.program.display().to_string());
        all.extend(CG.split_whitespace().map(str::to_owned));
        let mut command = heat.command(&all);
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected.clone()), "{output:?}");
        assert!(stderr(&output).contains(what), "{what}: {output:?}");
    };
    check("nothing is saved: /dev/null/recoup/engine", &|command| {
        command.env("XDG_CACHE_HOME", "/dev/null");
    });
    std::fs::write(heat.log(), "a file").unwrap();
    check("nothing is saved: log cannot be made", &|_| {});
    std::fs::remove_file(heat.log()).unwrap();
    std::fs::create_dir(heat.log()).unwrap();
    let lock = std::fs::File::create(heat.log().join("exec.lock")).unwrap();
    lock.lock().unwrap();
    check("nothing is saved: another job has log", &|_| {});
}

#[test]
fn petsc_engine_is_not_reached_from_a_static_program_which_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("end.c"), "int main(void) { return 3; }").unwrap();
    let made = Command::new("cc").args(["-static", "end.c", "-o", "end"]).current_dir(folder.path()).status();
    if !made.is_ok_and(|made| made.success()) {
        eprintln!("SKIPPED: cc makes no static programs");
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args(["exec", "--dir", "log", "--", "./end"]).current_dir(folder.path());
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(said.contains("linked statically") || said.contains("nothing is saved"), "{said}");
}
