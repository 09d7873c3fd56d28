//! examples/embed with PETSc: the counts of attached solves, killed ones and restarted ones.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recoup_testkit::folders::{entries, newest_version};

use crate::build::{compile, has, holds_memory, run, strict};

/// What a solve printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Solve {
    pub(crate) from: u32,
    pub(crate) iterations: u32,
    /// The rest of the line: of heat.c the norm of the state, in full.
    pub(crate) rest: String,
}

/// A compiled example, and a folder for its versions.
pub(crate) struct Example {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Example {
    /// `None`, with a line that says so, where PETSc or MPI is missing.
    pub(crate) fn of(source: &str) -> Option<Self> {
        Self::with(source, &[])
    }

    /// Compiles with more flags than those of PETSc.
    pub(crate) fn with(source: &str, more: &[String]) -> Option<Self> {
        Self::against("PETSc", source, more)
    }

    /// As [`Self::of`], with a PETSc of complex numbers.
    fn complex(source: &str) -> Option<Self> {
        let Some(package) = complex_package() else {
            eprintln!("SKIPPED: no PETSc of complex numbers below /usr/lib/petscdir");
            return None;
        };
        Self::against(package.to_str().unwrap(), source, &[])
    }

    /// Compiles against a package that pkg-config knows by its name or by its file.
    fn against(package: &str, source: &str, more: &[String]) -> Option<Self> {
        let flags = Command::new("pkg-config").args(["--cflags", "--libs", package]).output().ok();
        let Some(flags) = flags.filter(|flags| flags.status.success()) else {
            eprintln!("SKIPPED: pkg-config knows no {package}");
            return None;
        };
        let is_cpp = source.ends_with(".cpp");
        let compiler = if is_cpp { "mpicxx" } else { "mpicc" };
        if !has(compiler) || !has("mpirun") {
            return None;
        }
        let flags = String::from_utf8(flags.stdout).unwrap();
        let mut all = strict(if is_cpp { "-std=c++17" } else { "-std=c11" });
        all.push("-D_POSIX_C_SOURCE=200809L".to_owned());
        all.extend(flags.split_whitespace().map(str::to_owned));
        all.extend_from_slice(more);
        let folder = tempfile::tempdir().unwrap();
        let program = compile(compiler, source, &all, folder.path());
        Some(Self { folder, program })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs on some ranks; what it printed.
    pub(crate) fn start(&self, ranks: u32, arguments: &str, options: Option<&str>) -> Output {
        let ranks = ranks.to_string();
        let mut words = vec!["mpirun", "-n", &ranks, self.program.to_str().unwrap()];
        words.extend(arguments.split_whitespace());
        match options {
            Some(options) => words.extend(["-ckpt", options]),
            None => words.push("-plain"),
        }
        run(&words)
    }

    /// Runs on some ranks; `None` when it was killed.
    pub(crate) fn run(&self, ranks: u32, arguments: &str, options: Option<&str>) -> Option<Solve> {
        let output = self.start(ranks, arguments, options);
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with("from "))?;
        let [from, iterations, rest] = line.splitn(3, ',').collect::<Vec<_>>().try_into().ok()?;
        let number = |text: &str| text.split_whitespace().last()?.parse().ok();
        Some(Solve { from: number(from)?, iterations: number(iterations)?, rest: rest.to_owned() })
    }

    /// Runs the solve on `ranks.0`, killed after `after` iterations, then again on `ranks.1`.
    pub(crate) fn killed(&self, name: &str, ranks: (u32, u32), arguments: &str, after: u32, options: &str) -> Solve {
        let options = format!("dir={} sync {options}", self.dir(name).display());
        let killed = self.run(ranks.0, &format!("{arguments} -kill_after {after}"), Some(&options));
        assert_eq!(killed, None, "{name}: not killed");
        self.run(ranks.1, arguments, Some(&options)).expect("the restarted solve ends well")
    }
}

/// The file of pkg-config of a PETSc of complex numbers, where Debian puts it.
fn complex_package() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/petscdir").into_iter().flatten().flatten();
    let builds = versions.filter_map(|version| std::fs::read_dir(version.path()).ok()).flatten().flatten();
    let complex = builds.filter(|build| build.file_name().to_string_lossy().ends_with("-complex"));
    complex.map(|build| build.path().join("lib/pkgconfig/PETSc.pc")).find(|file| file.exists())
}

fn attached(dir: &Path) -> String {
    format!("dir={} interval=20it", dir.display())
}

pub(crate) const CG: &str = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-6 -random";
const GMRES: &str = "-ksp_type gmres -pc_type jacobi -ksp_rtol 1e-6 -random";

#[test]
fn attached_cg_takes_the_same_iterations_and_a_killed_one_hardly_more() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    let cg = format!("-n 64 {CG}");
    let plain = ksp.run(1, &cg, None).unwrap();
    for ranks in [1, 2] {
        let options = attached(&ksp.dir(&format!("attached{ranks}")));
        assert_eq!(ksp.run(ranks, &cg, Some(&options)).unwrap().iterations, plain.iterations);
    }
    let third = plain.iterations / 3;
    for ranks in [(1, 1), (2, 2), (2, 1)] {
        let resumed = ksp.killed(&format!("x+p{}{}", ranks.0, ranks.1), ranks, &cg, third, "interval=20it");
        assert_eq!(resumed.from, third / 20 * 20);
        // State x+p: at most 2 % more iterations than undisturbed.
        assert!(f64::from(resumed.iterations) <= 1.02 * f64::from(plain.iterations), "{resumed:?}, {plain:?}");
    }
}

#[test]
fn a_solve_ends_with_a_version_before_the_end_of_its_job() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    // A version of KSPCG holds the way to the next iteration, one of GMRES a whole cycle.
    for (method, from) in [(CG, 2), (GMRES, 30)] {
        let solve = format!("-n 32 {method}");
        let plain = ksp.run(1, &solve, None).unwrap();
        let options = format!("dir={} scheme=lossless interval=1000it", ksp.dir(&format!("end{from}")).display());
        let stopped = ksp.start(2, &format!("{solve} -recoup_stop"), Some(&format!("{options} time_limit=0.001")));
        assert_eq!(stopped.status.code(), Some(75), "{}", String::from_utf8_lossy(&stopped.stderr));
        let resumed = ksp.run(1, &solve, Some(&options)).unwrap();
        assert_eq!(resumed.from, from, "{method}");
        assert!(resumed.iterations <= plain.iterations + 1, "{method}: {resumed:?}, {plain:?}");
    }
}

/// KSPSolve formed its guess over the x that was restored: CG, deflated for that x, stopped with an
/// indefinite preconditioner, and GMRES began from nothing.
#[test]
fn a_guess_of_the_ksp_takes_no_restored_x_away() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    for (method, from) in [(CG, 40), (GMRES, 30)] {
        for guess in ["guess_type fischer", "guess_type pod", "knoll"] {
            let arguments = format!("-n 24 {method} -ksp_{guess}");
            let plain = ksp.run(1, &arguments, None).unwrap();
            let options = "interval=20it scheme=lossless";
            let resumed = ksp.killed(&format!("{}{from}", guess.replace(' ', "-")), (1, 1), &arguments, 45, options);
            assert_eq!(resumed.from, from);
            // As without a guess: CG has its direction, and GMRES is at the end of a cycle.
            assert!(
                f64::from(resumed.iterations) <= 1.02 * f64::from(plain.iterations) + 1.0,
                "{resumed:?}, {plain:?}"
            );
            let residual = resumed.rest.trim_start().trim_start_matches("relative residual ");
            assert!(residual.split(',').next().unwrap().parse::<f64>().unwrap() <= 1e-5, "{resumed:?}");
        }
    }
}

#[test]
fn a_killed_solve_of_complex_numbers_goes_on_as_a_real_one_does() {
    let Some(ksp) = Example::complex("examples/embed/ksp.c") else { return };
    let cg = format!("-n 24 {CG}");
    let plain = ksp.run(1, &cg, None).unwrap();
    let options = attached(&ksp.dir("attached"));
    assert_eq!(ksp.run(1, &cg, Some(&options)).unwrap().iterations, plain.iterations);
    for (ranks, what) in [((1, 1), ""), ((2, 1), ""), ((1, 1), "state=x")] {
        let name = format!("killed{}{}", ranks.0, what.len());
        let resumed = ksp.killed(&name, ranks, &cg, plain.iterations / 2, &format!("interval=5it {what}"));
        assert!(resumed.from > 0, "{resumed:?}");
        // The direction wins back nearly all that a restart forgets, which here is up to a half.
        let most = if what.is_empty() { 1.05 } else { 1.5 };
        assert!(f64::from(resumed.iterations) <= most * f64::from(plain.iterations) + 1.0, "{resumed:?}, {plain:?}");
    }
    let gmres = format!("-n 16 {GMRES}");
    let plain = ksp.run(1, &gmres, None).unwrap();
    let resumed = ksp.killed("gmres", (1, 1), &gmres, 31, "interval=5it");
    assert_eq!(resumed.from, 30, "the end of a cycle");
    assert!(resumed.iterations <= plain.iterations + 30, "{resumed:?}, {plain:?}");
}

/// The number that ends what a program printed.
fn last_number(text: &str) -> f64 {
    text.split_whitespace().last().unwrap().parse().unwrap()
}

/// A time loop that is killed in any of its steps, and continues in that step on another number of
/// ranks.
fn check_steps(steps: &Example, name: &str, arguments: &str) {
    let plain = steps.run(1, arguments, None).unwrap();
    let options = attached(&steps.dir(&format!("{name}-attached")));
    assert_eq!(steps.run(1, arguments, Some(&options)).unwrap(), plain);
    for (tenths, ranks, among) in [(1, (1, 1), 0..=0), (5, (2, 1), 1..=3), (9, (1, 2), 4..=4)] {
        let after = tenths * plain.iterations / 10;
        let resumed = steps.killed(&format!("{name}-{tenths}"), ranks, arguments, after, "interval=7it");
        let is_in = |step: &u32| resumed.rest.contains(&format!("step {step},"));
        assert!(among.clone().any(|step| is_in(&step)), "{among:?}: {resumed:?}, {plain:?}");
        assert!(resumed.from > 0, "{resumed:?}, {plain:?}");
        assert!(after + resumed.iterations <= plain.iterations + plain.iterations / 8, "{resumed:?}, {plain:?}");
        // Each of the five steps adds at most 1e-10 ||u|| in either run.
        let [heat, expected] = [&resumed, &plain].map(|solve| last_number(&solve.rest));
        assert!((heat - expected).abs() <= 10.0 * 1e-10 * expected, "{resumed:?}, {plain:?}");
    }
}

#[test]
fn a_killed_loop_of_systems_goes_on_in_the_system_it_was_in() {
    let Some(steps) = Example::of("examples/embed/ksp_steps.c") else { return };
    check_steps(&steps, "cg", "-n 32 -ksp_type cg -pc_type jacobi");
    check_steps(&steps, "gmres", "-n 32 -ksp_type gmres -ksp_gmres_restart 7 -pc_type jacobi");
}

#[test]
fn so_does_a_loop_of_complex_systems() {
    let Some(steps) = Example::complex("examples/embed/ksp_steps.c") else { return };
    check_steps(&steps, "cg", "-n 32 -ksp_type cg -pc_type jacobi");
}

/// No directory is written: versions are stored in memory that outlives the processes, with copies
/// on the other rank where there is one.
#[test]
fn killed_cg_goes_on_from_memory_alone() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    let memory = tempfile::tempdir().unwrap();
    let cg = format!("-n 32 {CG}");
    let third = ksp.run(1, &cg, None).unwrap().iterations / 3;
    for (ranks, tiers) in [(1, "memory"), (2, "memory,partner:ring1"), (2, "memory,rs:1+1")] {
        let name = format!("memory{ranks}{}", tiers.len());
        let options = format!("interval=20it tiers={tiers} memory-dir={}", memory.path().display());
        let resumed = ksp.killed(&name, (ranks, ranks), &cg, third, &options);
        assert_eq!(resumed.from, third / 20 * 20, "{tiers}");
        assert!(!ksp.dir(&name).exists(), "{tiers}: a directory was written");
        assert!(!holds_memory(memory.path()), "{tiers}: a solve that has converged leaves nothing in memory");
    }
}

/// recoup asked for its own tolerance, tighter than PETSc's, and versions stayed in memory.
#[test]
fn memory_is_freed_by_the_convergence_that_petsc_tests_and_by_no_other() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    for (name, more, stays) in [("loose", "-ksp_rtol 1e-3", false), ("early", "-ksp_rtol 1e-9 -ksp_max_it 30", true)] {
        let memory = tempfile::tempdir().unwrap();
        let both = format!("interval=5it sync tiers=memory,pfs memory-dir={}", memory.path().display());
        let options = format!("dir={} {both} pfs-every=100", ksp.dir(name).display());
        let solve = format!("-n 32 -ksp_type cg -pc_type jacobi -random {more}");
        assert_eq!(ksp.run(1, &solve, Some(&options)).unwrap().from, 0, "{name}");
        assert_eq!(holds_memory(memory.path()), stays, "{name}");
    }
}

/// Without the direction a restart forgets the Krylov space, whether x is exact or lossy: the
/// counts are those of PETSc's own restart, within the few iterations that the growth of the
/// residual by 1.5 may cost at the mean rate.
#[test]
fn cg_restarted_from_x_alone_costs_what_a_plain_restart_costs() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    let cg = format!("-n 32 {CG}");
    let plain = ksp.run(1, &cg, None).unwrap().iterations;
    let exact = ksp.killed("exact", (1, 1), &cg, plain / 3, "interval=10it scheme=lossless state=x").iterations;
    let lossy = ksp.killed("lossy", (1, 1), &cg, plain / 3, "interval=10it scheme=lossy state=x").iterations;
    let rate = f64::from(plain) / 1e6_f64.ln();
    assert!(exact > plain, "a restart costs something: {exact}, {plain}");
    assert!(f64::from(lossy.abs_diff(exact)) <= (rate * 1.5_f64.ln()).ceil(), "{lossy}, {exact}");
}

#[test]
fn gmres_killed_after_a_cycle_needs_no_more_iterations() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    let gmres = format!("-n 48 {GMRES}");
    let plain = ksp.run(1, &gmres, None).unwrap().iterations;
    let options = attached(&ksp.dir("attached"));
    assert_eq!(ksp.run(1, &gmres, Some(&options)).unwrap().iterations, plain);
    let resumed = ksp.killed("exact", (1, 1), &gmres, 91, "interval=20it scheme=lossless");
    assert_eq!((resumed.from, resumed.iterations), (90, plain));
    let resumed = ksp.killed("lossy", (2, 1), &gmres, 91, "interval=20it scheme=lossy");
    assert_eq!(resumed.from, 90);
    // Residuals of restarted GMRES fall by cycle; 1.5 times the residual is worth less than a
    // cycle's fraction.
    assert!(f64::from(resumed.iterations) <= 1.03 * f64::from(plain), "{resumed:?}, {plain}");
}

/// The state of a one-step method is u and the time; versions hold both exactly, so the end is the
/// same, bit for bit.
#[test]
fn killed_time_stepping_ends_in_the_same_state() {
    let Some(heat) = Example::of("examples/embed/heat.c") else { return };
    for ranks in [1, 2] {
        let plain = heat.run(ranks, "-n 12", None).unwrap();
        let resumed = heat.killed(&format!("heat{ranks}"), (ranks, ranks), "-n 12", 55, "interval=10it");
        assert_eq!(resumed, Solve { from: 50, ..plain });
    }
}

#[test]
fn killed_newton_ends_where_the_first_would_have() {
    let Some(heat) = Example::of("examples/embed/heat.c") else { return };
    let plain = heat.run(1, "-n 12 -nonlinear", None).unwrap();
    let resumed = heat.killed("newton", (1, 1), "-n 12 -nonlinear", 4, "interval=1it");
    assert_eq!(resumed, Solve { from: 4, ..plain });
}

/// Memory went before its versions had reached the directory, or stayed: TS has no residual, and
/// the tolerance of SNES may be looser than recoup's own.
#[test]
fn memory_of_time_steps_and_newton_is_freed_once_the_directory_has_the_last_version() {
    let Some(heat) = Example::of("examples/embed/heat.c") else { return };
    for (name, arguments, after, ranks, interval) in
        [("ts", "-n 12", 55, 2, 10), ("snes", "-n 12 -nonlinear -snes_rtol 1e-3", 2, 1, 1)]
    {
        let memory = tempfile::tempdir().unwrap();
        let plain = heat.run(ranks, arguments, None).unwrap();
        let tiers = format!("interval={interval}it tiers=memory,pfs memory-dir={}", memory.path().display());
        let check = |what: &str, solve: Solve, from: u32| {
            assert_eq!(solve, Solve { from, ..plain.clone() }, "{name}, {what}");
            let folder = heat.dir(&format!("{name}-{what}"));
            let newest = entries(&folder).iter().filter_map(|run| newest_version(run)).max();
            assert_eq!(newest, Some(u64::from(plain.iterations / interval * interval)), "{name}, {what}");
            assert!(!holds_memory(memory.path()), "{name}, {what}: versions stay in memory");
        };
        let whole = format!("dir={} {tiers}", heat.dir(&format!("{name}-whole")).display());
        check("whole", heat.run(ranks, arguments, Some(&whole)).unwrap(), 0);
        let resumed = heat.killed(&format!("{name}-killed"), (ranks, ranks), arguments, after, &tiers);
        check("killed", resumed, after / interval * interval);
    }
}

/// Another matrix of the same size used to be taken without a word: A + 50 I continued from
/// iterates of A, and took 77 iterations where 6 were due. The name of the change is that of
/// `other.c`.
#[test]
fn versions_of_another_problem_are_refused_and_rounding_makes_none() {
    let Some(other) = Example::of("crates/doors/capi/tests/c/other.c") else { return };
    let changes = [
        ("shift", "another operator"),
        ("scale", "another operator"),
        ("entry", "another operator"),
        ("coupling", "another operator"),
        ("rhs", "another right-hand side"),
    ];
    for (written_on, read_on, shell) in [(1, 1, ""), (1, 2, ""), (2, 1, " -shell")] {
        let name = format!("refused{written_on}{read_on}");
        let options = format!("dir={} interval=20it sync", other.dir(&name).display());
        let solved = other.run(written_on, shell, Some(&options)).unwrap();
        for (change, words) in changes {
            let refused = other.start(read_on, &format!("-change {change}{shell}"), Some(&options));
            let text = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success() && text.contains(words), "{change} on {read_on}: {text}");
            assert!(text.contains("same_operator=no"), "{text}");
        }
        // Products of the matrix itself are recognised in those of a shell.
        let again = other.run(read_on, "-change rounding", Some(&options)).unwrap();
        assert!(again.from > 0 && again.from <= solved.iterations, "{again:?}, {solved:?}");
    }
}

/// A time loop: where x of the problem before is worse than none, the solve starts from its own;
/// where it is near, fewer iterations are left.
#[test]
fn x_of_another_problem_is_a_verified_first_guess_where_that_is_asked_for() {
    let Some(other) = Example::of("crates/doors/capi/tests/c/other.c") else { return };
    let after_another = |ranks, change: &str| {
        let options =
            format!("dir={}{ranks} interval=5it sync same_operator=no", other.dir(&change.replace(' ', "")).display());
        other.run(1, "", Some(&options)).unwrap();
        [other.run(ranks, change, None).unwrap(), other.run(ranks, change, Some(&options)).unwrap()]
    };
    for ranks in [1, 2] {
        let [alone, guessed] = after_another(ranks, "-change shift -shift 50");
        assert_eq!(guessed, alone);
    }
    let [alone, guessed] = after_another(1, "-change shift -shift 1e-9");
    assert!(guessed.from == 0 && 2 * guessed.iterations < alone.iterations, "{guessed:?}, {alone:?}");
}

/// Where rows of a boundary make A other than symmetric, the deflation hid what r had along the
/// saved direction: the norm that PETSc tested fell to 1e-10, and that of b - A x to 4e-6. The norm
/// of b, to which the tolerance relates, was taken under the deflation, and that of b - A x ended
/// ten times above the tolerance.
#[test]
fn a_deflated_solve_ends_below_the_tolerance_of_an_undisturbed_one() {
    let Some(other) = Example::of("crates/doors/capi/tests/c/other.c") else { return };
    for (ranks, change) in [(1, "boundary"), (2, "boundary"), (1, "smooth"), (2, "smooth")] {
        let options =
            format!("dir={} interval=20it scheme=lossy sync", other.dir(&format!("{change}{ranks}")).display());
        let arguments = format!("-change {change}");
        other.run(ranks, &format!("{arguments} -max_it 50"), Some(&options)).unwrap();
        let resumed = other.run(ranks, &arguments, Some(&options)).unwrap();
        assert_eq!(resumed.from, 40);
        assert!(last_number(&resumed.rest) <= 1.1e-10, "{change}: {resumed:?}");
    }
}

/// A struct had the name of the pointer to it, which C++ refuses.
#[test]
fn headers_for_petsc_compile_as_cplusplus() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("headers.cpp");
    std::fs::write(&source, "#include <recoup_petsc.h>\nint main() { return 0; }\n").unwrap();
    let _compiled = Example::of(source.to_str().unwrap());
}

/// The program of the documentation compiles as it stands, and the loop beside it.
#[test]
fn program_of_the_petsc_page_compiles() {
    let page = std::fs::read_to_string(crate::build::root().join("crates/doors/capi/docs/petsc.md")).unwrap();
    let blocks = |page: &str| -> Vec<String> {
        page.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
    };
    let [program, march] = blocks(&page).try_into().unwrap();
    let embed = std::fs::read_to_string(crate::build::root().join("docs/embed.md")).unwrap();
    assert!(program.contains(&blocks(&embed)[0]), "the lines of docs/embed.md are not those of the page");
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    let assemble = "static PetscErrorCode assemble(Mat A, PetscInt step) { return MatShift(A, (PetscScalar)step); }";
    let declared = "PetscErrorCode march(KSP ksp, Mat A, Vec u, Vec b, Vec x, PetscInt steps);";
    std::fs::write(&source, format!("{program}\n{assemble}\n{declared}\n{march}")).unwrap();
    let Some(example) = Example::of(source.to_str().unwrap()) else { return };
    assert!(example.program.exists());
}
