//! `recoup exec`: programs whose rows have other numbers in each start.

use super::petsc_exec::{COMPLEX, Counts, Plain, assert_near, stderr, stdout};

const SOLVER: &str = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-8";
/// Each of 12 solves leaves a residual of 1e-8 ||b||, and no eigenvalue of A is below 1.
const RELATIVE: f64 = 12.0 * 1e-8;
/// Versions within calls, after every 20 iterations, and keys of their rows whatever these cost.
const VERSIONS: [&str; 6] = ["--share", "1", "--after", "0", "--options", "interval=20it scheme=lossless sync"];

fn numbers() -> Option<Plain> {
    Plain::of("numbers.c", "PETSc")
}

/// Iterations of the first step.
fn iterations(text: &str) -> f64 {
    text.split_whitespace().nth(1).unwrap_or_default().parse().unwrap_or(f64::NAN)
}

/// Programs of finite elements started from nothing on another number of ranks: each numbers its
/// rows by the partition of the mesh.
#[test]
fn petsc_rows_with_other_numbers_are_found_again() {
    let Some(program) = numbers() else { return };
    let expected = program.plain(&format!("{SOLVER} -seed 1"));
    for (before, ranks) in [(2, 1), (1, 2), (2, 2)] {
        program.killed(before, &format!("{SOLVER} -seed 1 -kill_at 6"));
        let (found, counts) = program.finish(ranks, &format!("{SOLVER} -seed 2"));
        assert_near(&found, &expected, RELATIVE);
        assert_eq!((counts.replayed, counts.saved), (6, 6), "{before} to {ranks} ranks");
    }
}

#[test]
fn petsc_rows_are_found_again_in_each_of_many_starts() {
    let Some(program) = numbers() else { return };
    let expected = program.plain(SOLVER);
    for start in 1..=5 {
        program.killed(1 + start % 2, &format!("{SOLVER} -seed {start} -kill_at {}", 2 * start));
    }
    let (found, counts) = program.finish(2, &format!("{SOLVER} -seed 6"));
    assert_near(&found, &expected, RELATIVE);
    assert_eq!(counts.replayed, 10);
}

#[test]
fn petsc_rows_of_complex_numbers_are_found_again() {
    let Some(program) = Plain::of("numbers.c", COMPLEX) else { return };
    let expected = program.plain(SOLVER);
    program.killed(2, &format!("{SOLVER} -seed 1 -kill_at 4"));
    let (found, counts) = program.finish(1, &format!("{SOLVER} -seed 2"));
    assert_near(&found, &expected, RELATIVE);
    assert_eq!(counts.replayed, 4);
}

/// With a constant b, rows that are far from the boundary have equal keys. A wrong pair of them
/// fails by the residual, and x of the first solve then tells them apart.
#[test]
fn petsc_rows_with_equal_keys_are_told_apart_by_the_first_solve() {
    let Some(program) = numbers() else { return };
    let flat = format!("{SOLVER} -source flat -n 80");
    let expected = program.plain(&flat);
    program.killed(2, &format!("{flat} -seed 1 -kill_at 6"));
    let (found, counts) = program.finish(1, &format!("{flat} -seed 2"));
    assert_near(&found, &expected, RELATIVE);
    assert_eq!(counts.replayed, 5);
}

/// The same b and another A, with its rows in another order: no x passes the test, and the program
/// runs as without recoup.
#[test]
fn petsc_rows_of_another_problem_are_not_found() {
    let Some(program) = numbers() else { return };
    let arguments = format!("{SOLVER} -seed 2 -other");
    let expected = program.plain(&arguments);
    program.killed(1, &format!("{SOLVER} -seed 1 -kill_at 6"));
    let (found, counts) = program.finish(1, &arguments);
    assert_eq!(found, expected);
    assert_eq!(counts.replayed, 0);
    // Nor of a version.
    let arguments = format!("{arguments} -steps 1 -n 100");
    let expected = program.plain(&arguments);
    let killed = program.run(2, &format!("{SOLVER} -seed 1 -steps 1 -n 100 -kill_after 90"), &VERSIONS);
    assert_eq!(killed.status.code(), Some(137), "{killed:?}");
    let output = program.run(1, &arguments, &VERSIONS);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected), "{output:?}");
    assert_eq!(Counts::of(&output).resumed, 0, "{output:?}");
}

/// x, and of CG its direction: a restart from x alone takes as many iterations as there were.
#[test]
fn petsc_version_whose_rows_have_other_numbers_is_continued_from() {
    let Some(program) = numbers() else { return };
    let arguments = format!("{SOLVER} -steps 1 -n 100");
    let expected = program.plain(&arguments);
    // Each start in another numbering; the second and the third continue from the start before.
    for (ranks, seed) in [(2, 1), (1, 2), (2, 3)] {
        let killed = program.run(ranks, &format!("{arguments} -seed {seed} -kill_after 70"), &VERSIONS);
        assert_eq!(killed.status.code(), Some(137), "{killed:?}");
        assert_eq!(stderr(&killed).contains("continues from a version"), seed > 1, "{killed:?}");
    }
    let output = program.run(1, &format!("{arguments} -seed 4"), &VERSIONS);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Counts::of(&output).resumed, 1, "{output:?}");
    assert_near(&stdout(&output), &expected, 1e-8);
    // Three starts of 60 iterations at least, each of which costs 2 % more.
    assert!(iterations(&stdout(&output)) <= 1.06 * iterations(&expected) - 3.0 * 60.0, "{output:?}\n{expected}");
}

/// Where keys do not tell rows apart, the version is not used, and the program's own x is.
#[test]
fn petsc_version_whose_rows_cannot_be_told_apart_is_refused() {
    let Some(program) = numbers() else { return };
    let arguments = format!("{SOLVER} -steps 1 -n 100 -source flat");
    let expected = program.plain(&format!("{arguments} -seed 2"));
    let killed = program.run(2, &format!("{arguments} -seed 1 -kill_after 70"), &VERSIONS);
    assert_eq!(killed.status.code(), Some(137), "{killed:?}");
    let output = program.run(1, &format!("{arguments} -seed 2"), &VERSIONS);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected), "{output:?}");
    assert_eq!(Counts::of(&output).resumed, 0, "{output:?}");
}

/// dolfinx numbers rows by the partition of its mesh: alike on as many ranks, and otherwise another
/// way, unless its partitions are left to chance.
#[test]
#[ignore = "compiles forms: part of make soak"]
fn petsc_program_of_finite_elements_is_brought_back_on_any_number_of_ranks() {
    let Some(poisson) = Plain::script("/usr/bin/python3", "poisson.py", "dolfinx") else { return };
    let arguments = "-ksp_type cg -pc_type jacobi -ksp_rtol 1e-10";
    let expected = poisson.plain(arguments);
    for (before, ranks, deterministic) in [(1, 2, "1"), (2, 1, "1"), (2, 2, "1"), (2, 2, "0")] {
        let run = |ranks, more: &str| {
            let mut command = poisson.start(ranks, &format!("{arguments} {more}"), Some(&["--share", "1"]));
            command.env("SCOTCH_DETERMINISTIC", deterministic).output().expect("recoup is started")
        };
        assert_eq!(run(before, "-kill_at 6").status.code(), Some(137));
        let output = run(ranks, "");
        assert!(output.status.success(), "{output:?}");
        // Each of 12 solves leaves 1e-10 ||b||, and no eigenvalue of A is below a ten-thousandth of
        // the largest.
        assert_near(&stdout(&output), &expected, 12.0 * 1e-10 * 1e4);
        assert_eq!(Counts::of(&output).replayed, 6, "{before} to {ranks} ranks: {output:?}");
    }
}
