//! Programs of examples/embed without PETSc: killed by SIGKILL, and resumed.

use std::path::{Path, PathBuf};
use std::process::Command;

use recoup::model::Rng;

use crate::build::{compile, has, holds_memory, library_folder, output, root, run, strict};

/// The number behind a word of what a program printed.
pub(crate) fn number(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("no {word:?} in {text:?}"));
    let token = rest.trim_start().split([',', ' ', '\n']).next().unwrap_or_default();
    token.parse().unwrap_or_else(|_| panic!("{token:?} behind {word:?} is no number: {text:?}"))
}

/// Runs a solver undisturbed, then killed after 35 iterations and again; what the first and the
/// last printed.
fn killed_and_resumed(program: &Path, options: &str) -> [String; 2] {
    let folder = tempfile::tempdir().unwrap();
    let solve = |name: &str, killed_after: &str| {
        let options = format!("dir={}/{name} interval=10it sync {options}", folder.path().display());
        run(&[program.to_str().unwrap(), &options, "24", killed_after])
    };
    let printed = |output: std::process::Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let undisturbed = printed(solve("undisturbed", "0"));
    assert!(!solve("killed", "35").status.success(), "it was not killed");
    [undisturbed, printed(solve("killed", "0"))]
}

/// A lossless version holds the whole recurrence: the same count. A lossy one restarts the method.
pub(crate) fn check(program: &Path) {
    let [undisturbed, resumed] = killed_and_resumed(program, "scheme=lossless");
    assert_eq!((number(&undisturbed, "starts at"), number(&resumed, "starts at")), (0.0, 30.0));
    assert_eq!(number(&undisturbed, "iterations"), number(&resumed, "iterations"));
    let [undisturbed, resumed] = killed_and_resumed(program, "scheme=lossy");
    assert_eq!(number(&resumed, "starts at"), 30.0);
    // From the iterate alone, with at most 1.5 times its residual, no more than all iterations
    // again.
    assert!(number(&resumed, "iterations") <= number(&undisturbed, "iterations") + 30.0);
    assert!(number(&resumed, "relative residual") <= 1.1e-8);
}

/// A program in C, compiled in a folder of its own.
fn built(source: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("cc", source, &strict("-std=c11"), folder.path());
    (folder, program)
}

/// The same in Fortran; `None` where there is no compiler.
fn built_in_fortran(source: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    if !has("gfortran") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut flags = strict("-std=f2008");
    flags.push(root().join(source).display().to_string());
    let program = compile("gfortran", "crates/doors/capi/include/recoup.f90", &flags, folder.path());
    Some((folder, program))
}

#[test]
fn killed_c_solver_goes_on_from_its_newest_version() {
    let (_folder, program) = built("examples/embed/cg.c");
    check(&program);
}

/// A time loop continues in the step it was killed in: bit for bit under `exact`, and within the
/// tolerance of its solves under `lossy`.
#[test]
fn killed_c_time_loop_goes_on_in_its_step() {
    let (folder, program) = built("examples/embed/steps.c");
    let run_as = |name: &str, scheme: &str, killed_after: &str| {
        let options = format!("dir={}/{name} interval=7it scheme={scheme}", folder.path().display());
        let output = run(&[program.to_str().unwrap(), &options, "48", killed_after]);
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (_, undisturbed) = run_as("undisturbed", "exact", "0");
    let total = number(&undisturbed, "iterations");
    for scheme in ["exact", "lossy"] {
        let killed_after = (0.6 * total) as u64;
        let name = format!("killed-{scheme}");
        assert!(!run_as(&name, scheme, &killed_after.to_string()).0, "{scheme}: it was not killed");
        let (has_ended, resumed) = run_as(&name, scheme, "0");
        assert!(has_ended && number(&resumed, "step") > 0.0 && number(&resumed, "starts at") > 0.0, "{resumed}");
        assert!(number(&resumed, "iterations") < 0.75 * total, "{scheme}: {resumed}, {total} in all");
        let heat = [&undisturbed, &resumed].map(|text| number(text, "heat"));
        // Each of the five steps adds at most 1e-10 ||u|| in either run.
        let most = if scheme == "exact" { 0.0 } else { 1e-8 * heat[0] };
        assert!((heat[0] - heat[1]).abs() <= most, "{scheme}: {heat:?}");
    }
}

/// No directory is written: versions are stored in memory that outlives the process, and a solve
/// that has converged leaves nothing there.
#[test]
fn killed_c_solver_goes_on_from_memory_alone() {
    let (folder, program) = built("examples/embed/cg.c");
    let memory = tempfile::tempdir().unwrap();
    let dir = folder.path().join("ckpt");
    let options = format!(
        "dir={} interval=10it sync scheme=lossless tiers=memory memory-dir={} rtol=1e-8",
        dir.display(),
        memory.path().display()
    );
    let solve = |killed_after: &str| run(&[program.to_str().unwrap(), &options, "24", killed_after]);
    assert!(!solve("35").status.success(), "it was not killed");
    assert!(holds_memory(memory.path()), "versions are in memory");
    let resumed = solve("0");
    let text = String::from_utf8(resumed.stdout).unwrap();
    assert_eq!(number(&text, "starts at"), 30.0);
    assert!(!dir.exists(), "a directory was written");
    assert!(!holds_memory(memory.path()), "a solve that has converged leaves nothing in memory");
}

/// A gradient by its adjoint, killed in the forward pass: the states that were spilled are not
/// computed again, and the gradient is the same to the last bit.
#[test]
fn killed_c_adjoint_goes_on_from_the_states_it_has_spilled() {
    let (folder, program) = built("examples/embed/adjoint.c");
    for (name, codec) in [("raw", ""), ("coded", "codec=zstd"), ("chained", "codec=qb key-every=8 threads=2")] {
        let pass = |directory: &str, killed_after: &str| {
            let spill = folder.path().join(format!("{name}-{directory}"));
            // Room for four states as they are: the others are in files.
            let options = format!("spill=\"{}\" host=33k reopen=yes {codec}", spill.display());
            (run(&[program.to_str().unwrap(), &options, "200", killed_after]), spill)
        };
        let printed = |output: std::process::Output| {
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let undisturbed = printed(pass("undisturbed", "0").0);
        assert_eq!((number(&undisturbed, "starts at"), number(&undisturbed, "reversed")), (0.0, 200.0), "{name}");
        // Differences of J, of step 1e-6, are right to half of the digits.
        assert!(number(&undisturbed, "off by") < 1e-6, "{name}: {undisturbed}");
        assert!(!pass("killed", "120").0.status.success(), "{name}: it was not killed");
        let (resumed, spill) = pass("killed", "0");
        let resumed = printed(resumed);
        let first = number(&resumed, "starts at");
        assert!((1.0..=120.0).contains(&first), "{name}: {resumed}");
        let result = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(result(&resumed), result(&undisturbed), "{name}");
        assert_eq!(std::fs::read_dir(spill).unwrap().count(), 0, "{name}: popped states leave no file");
    }
}

/// A program that is killed after any step continues from its newest version, by positioned writes
/// and by a map, and its last state is that of an undisturbed run to the last bit.
#[test]
fn killed_c_program_goes_on_from_its_newest_version_in_one_file() {
    let seed = 23;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let program = compile("cc", "examples/embed/front.c", &strict("-std=c99"), folder.path());
    for medium in ["file", "map"] {
        let pass = |name: &str, killed_after: u64| {
            let file = folder.path().join(format!("{name}-{medium}"));
            let options = format!("file=\"{}\" medium={medium} block=4KiB keep=3 interval=7it", file.display());
            let output = run(&[program.to_str().unwrap(), &options, "400", &killed_after.to_string()]);
            (output.status.success(), String::from_utf8(output.stdout).unwrap())
        };
        let (is_whole, undisturbed) = pass("undisturbed", 0);
        assert!(is_whole && number(&undisturbed, "starts at") == 0.0);
        let mut reached = 0;
        for _ in 0..8 {
            let killed_after = (reached + 1 + rng.next_u64() % 45).min(399);
            let (is_whole, text) = pass("killed", killed_after);
            assert!(!is_whole, "it was not killed: {text}");
            assert_eq!(number(&text, "starts at"), reached as f64);
            // A version is made after each seventh step of a run.
            reached += (killed_after - reached) / 7 * 7;
        }
        let (is_whole, resumed) = pass("killed", 0);
        assert!(is_whole && number(&resumed, "starts at") == reached as f64 && reached > 100, "{resumed}");
        let result = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(result(&resumed), result(&undisturbed));
    }
}

#[test]
fn fortran_program_pops_what_it_pushed() {
    let Some((folder, program)) = built_in_fortran("crates/doors/capi/tests/c/tape.f90") else { return };
    let options = format!("host=100k spill=\"{}/states\"", folder.path().display());
    assert_eq!(output(&[program.to_str().unwrap(), &options]).trim(), "50 states");
}

#[test]
fn fortran_blocks_keep_their_bounds_and_time_loops_find_their_system() {
    let Some((folder, program)) = built_in_fortran("crates/doors/capi/tests/c/many.f90") else { return };
    let words = [program.to_str().unwrap(), folder.path().to_str().unwrap()];
    assert_eq!(output(&words), "0 failures\n");
}

#[test]
fn killed_fortran_solver_goes_on_from_its_newest_version() {
    let Some((_folder, program)) = built_in_fortran("examples/embed/cg.f90") else { return };
    check(&program);
}

#[test]
fn fortran_constants_are_those_of_the_header() {
    let read = |name: &str| std::fs::read_to_string(root().join("crates/doors/capi/include").join(name)).unwrap();
    let header = read("recoup.h");
    let module = read("recoup.f90");
    let constants = header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
    let mut n_compared = 0;
    for (name, value) in constants.filter(|(name, value)| value.parse::<i32>().is_ok() && !name.contains("_COMM_ANY")) {
        let assignment = format!("{name} = {value}");
        let found = module.find(&assignment).map(|at| &module[at + assignment.len()..]);
        assert!(found.is_some_and(|rest| rest.starts_with([',', '\n', ' '])), "{assignment} is not in recoup.f90");
        n_compared += 1;
    }
    assert!(n_compared > 25, "{n_compared}");
}

#[test]
fn address_sanitizer_finds_nothing_in_the_c_solver() {
    let folder = tempfile::tempdir().unwrap();
    let mut flags = strict("-std=c11");
    flags.extend(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"].map(str::to_owned));
    check(&compile("cc", "examples/embed/cg.c", &flags, folder.path()));
}

#[test]
fn valgrind_finds_nothing_in_the_c_solver() {
    if !has("valgrind") {
        return;
    }
    let (folder, program) = built("examples/embed/cg.c");
    for scheme in ["lossless", "lossy"] {
        let options = format!("dir={}/ckpt interval=5it scheme={scheme}", folder.path().display());
        let valgrind =
            ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"];
        let words: Vec<&str> = valgrind.into_iter().chain([program.to_str().unwrap(), &options, "10"]).collect();
        output(&words);
    }
}

/// Programs in the pages of the documentation compile as they stand.
#[test]
fn programs_of_the_documentation_compile() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(root().join("crates/doors/capi/docs/c.md")).unwrap();
    let programs: Vec<&str> = page.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!programs.is_empty());
    for (index, program) in programs.iter().enumerate() {
        let source = folder.path().join(format!("program{index}.c"));
        std::fs::write(&source, program).unwrap();
        let program = compile("cc", source.to_str().unwrap(), &strict("-std=c11"), folder.path());
        let printed = std::process::Command::new(program).current_dir(folder.path()).output().unwrap();
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    }
}

#[test]
fn library_links_no_mpi_and_no_hdf5() {
    let needed = output(&["ldd", library_folder().join("librecoup_c.so").to_str().unwrap()]);
    assert!(!needed.contains("hdf5") && !needed.contains("mpi"), "{needed}");
}

/// A struct with a field of each kind, and a call that announces a write.
const VERSIONED_STRUCT: &str = "
#include <recoup_mem.h>
#define FIELDS(ARRAY, POINTER, VALUE) VALUE(uint64_t, n) POINTER(double, heat, self->n) ARRAY(uint8_t, cells, 64)
RECOUP_VERSIONED(rod, FIELDS)
int32_t written(recoup_memory memory, struct rod *rod);
int32_t written(recoup_memory memory, struct rod *rod)
{
    rod->heat[7] = rod->cells[3];
    return rod_lend(memory, rod) == RECOUP_OK ? RECOUP_TOUCH(memory, rod, heat, 7, 1) : RECOUP_E_ARGUMENT;
}
";

#[test]
fn headers_are_c99_and_cplusplus() {
    let folder = tempfile::tempdir().unwrap();
    let include = root().join("crates/doors/capi/include");
    let versioned = folder.path().join("versioned.c");
    std::fs::write(&versioned, VERSIONED_STRUCT).unwrap();
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11")] {
        for source in
            [&include.join("recoup.h"), &include.join("recoup_mem.h"), &include.join("recoup_annotate.h"), &versioned]
        {
            let mut command = Command::new(compiler);
            command.args(["-x", language, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]);
            let output = command.arg("-I").arg(&include).arg(source).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
