//! Preconditioners by their options: block Jacobi and point block Jacobi, and versions under them.

use recoup::solvers::{METHODS, Need};

use crate::support::{each_refused, told};

#[test]
fn options_of_blocks_belong_to_their_preconditioner() {
    let dir = tempfile::tempdir().unwrap();
    let zero = "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 4.0\n1 2 1.0\n2 1 1.0\n";
    std::fs::write(dir.path().join("zero.mtx"), zero).unwrap();
    let cube = [
        ("--pc jacobi --sub-pc icc", 2, "describe the blocks of --pc bjacobi"),
        ("--pc ic0 --pc-blocks 2", 2, "describe the blocks of --pc bjacobi"),
        ("--pc pbjacobi", 2, "--pc pbjacobi needs --pc-block-size B"),
        ("--pc bjacobi --pc-block-size 2", 2, "no other --pc takes it"),
        ("--pc pbjacobi --pc-block-size 1025", 2, "1025"),
        ("--pc bjacobi --pc-blocks 0", 2, "--pc-blocks"),
        ("--pc bjacobi --pc-blocks -3", 2, "-3"),
        ("--pc bjacobi --pc-blocks 9", 2, "--pc-blocks 9: expected at most 8, a block for each row"),
        ("--pc bjacobi --operator stencil", 2, "--pc bjacobi needs assembled rows: --operator csr"),
        ("--pc bjacobi --sub-pc ssor --omega 2.5", 2, "--omega"),
    ];
    let matrix = [("bjacobi --pc-blocks 2", 1, "row 2 has 0"), ("pbjacobi --pc-block-size 1", 1, "row 2 has 0")];
    each_refused("solve --poisson3d 2 --method cg", &cube, dir.path());
    each_refused("solve --matrix zero.mtx --method gmres --pc", &matrix, dir.path());
}

#[test]
fn every_method_takes_blocks_by_default_with_the_same_bits_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    for method in METHODS.iter().filter(|method| method.needs != Some(Need::Rows) && method.name != "jacobi") {
        let solve = format!("solve --poisson3d 21 --rhs-kind random --method {} --rtol 1e-8", method.name);
        let (plain, _) = told(&solve, dir.path(), 0);
        let of = |threads: usize| told(&format!("{solve} --pc bjacobi --threads {threads}"), dir.path(), 0).0;
        let alone = of(1);
        for threads in [2, 3] {
            let shared = of(threads);
            assert_eq!(alone["relative_residual"], shared["relative_residual"], "{}: {threads}", method.name);
            assert_eq!(alone["iterations"], shared["iterations"], "{}: {threads}", method.name);
        }
        let [blocks, none] = [&alone, &plain].map(|report| report["iterations"].as_u64().unwrap());
        assert!(blocks < none, "{}: {blocks} iterations with blocks, {none} without", method.name);
    }
}

#[test]
fn a_shift_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/bcsstk14.mtx.gz");
    for (pc, times) in [("ic0", 1), ("bjacobi", 1), ("bjacobi --sub-pc ssor", 0)] {
        let (_, err) = told(&format!("solve --matrix {data} --method cg --rtol 1e-6 --pc {pc}"), dir.path(), 0);
        assert_eq!(err.matches("pivots that are not positive: those of A + 0.").count(), times, "{pc}\n{err}");
    }
}

/// An exact resume of CG or BiCGSTAB continued silently with the directions of the preconditioner
/// that the version was saved under, when another one was given. A basis in other bits was refused
/// with the names of its variables.
#[test]
fn versions_under_another_preconditioner_or_basis_give_the_iterate_alone() {
    let dir = tempfile::tempdir().unwrap();
    let run = |method: &str, pc: &str| {
        let problem = format!("--poisson3d 12 --rhs-kind random --method {method} --rtol 1e-8 --threads 1");
        format!("run {problem} --scheme exact --interval 3it --sync --no-save-last --pc {pc}")
    };
    let points = "pbjacobi --pc-block-size 64";
    for (method, first, second, words) in [
        ("cg", points, "bjacobi", "9 was saved by cg with pbjacobi: cg with bjacobi starts from its iterate alone"),
        ("cg", "bjacobi", points, "version 9 was saved by cg with bjacobi: cg with pbjacobi starts from its iterate"),
        ("cg", "none", "jacobi", "version 9 was saved by cg: cg with jacobi starts from its iterate alone"),
        ("pipecg", "ssor", "none", "version 9 was saved by pipecg with ssor: pipecg starts from its iterate alone"),
        ("bicgstab", "ilu0", "ssor", "saved by bicgstab with ilu0: bicgstab with ssor starts from its iterate alone"),
        ("gmres", "none", "none --basis auto", "9 was saved by gmres: gmres in few bits starts from its iterate alone"),
        ("gmres", "ilu0 --basis auto", "ilu0 --basis float", "by gmres in few bits with ilu0: gmres in floats with"),
        ("gmres", "none", "none", "resuming from version 9"),
        ("cg", "bjacobi", "bjacobi", "resuming from version 9"),
        ("bicgstab", "jacobi", "jacobi", "resuming from version 9"),
    ] {
        told(&format!("{} --dir d --fresh --max-iterations 10", run(method, first)), dir.path(), 3);
        let (report, err) = told(&format!("{} --dir d", run(method, second)), dir.path(), 0);
        assert!(err.contains(words), "{method}: {first}, {second}\n{err}");
        if first == second {
            let (undisturbed, _) = told(&format!("{} --dir one --fresh", run(method, second)), dir.path(), 0);
            assert!(!err.contains("iterate alone"), "{err}");
            for key in ["iterations", "relative_residual"] {
                assert_eq!(report[key], undisturbed[key], "{method}: {key}");
            }
        }
    }
}

/// Of b = 0 only x = 0 has a residual of 0: CG took 200,000 iterations for it from another guess.
#[test]
fn a_zero_right_hand_side_is_solved_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let vector = |value: &str| format!("%%MatrixMarket matrix array real general\n27 1\n{}", value.repeat(27));
    std::fs::write(dir.path().join("b.mtx"), vector("0.0\n")).unwrap();
    std::fs::write(dir.path().join("x0.mtx"), vector("3.0\n")).unwrap();
    for method in METHODS {
        let solve = format!("solve --poisson3d 3 --rhs b.mtx --x0 x0.mtx --method {}", method.name);
        let (report, _) = told(&format!("{solve} --solution x.npy"), dir.path(), 0);
        assert_eq!((&report["converged"], &report["iterations"]), (&true.into(), &0.into()), "{report}");
        let bytes = std::fs::read(dir.path().join("x.npy")).unwrap();
        assert!(bytes[bytes.len() - 27 * 8..].iter().all(|&byte| byte == 0), "{}", method.name);
    }
}
