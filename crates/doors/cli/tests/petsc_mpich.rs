//! `recoup exec` with the PETSc of PyPI, which is built with the MPICH of its wheel.

use std::path::{Path, PathBuf};
use std::process::Command;

use recoup_testkit::mpirun::mpich;

use super::petsc_exec::{CG, Counts, HEAT, Plain, assert_near, sources, stderr, stdout};

/// The folder of PETSc in the environment of MPICH: `scripts/bootstrap.sh long` makes it.
fn petsc(mpich: &Path) -> Option<PathBuf> {
    let pythons = std::fs::read_dir(mpich.join("lib")).into_iter().flatten().flatten();
    pythons.map(|python| python.path().join("site-packages/petsc")).find(|petsc| petsc.join("lib/pkgconfig").exists())
}

/// The heat loop compiled with MPICH's PETSc, and the variables that find both.
fn heat() -> Option<Plain> {
    let Some((mpich, petsc)) = mpich().and_then(|mpich| Some((mpich.clone(), petsc(&mpich)?))) else {
        println!("SKIPPED: no PETSc over MPICH; scripts/bootstrap.sh long makes it in .venv-mpich");
        return None;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("heat");
    let library = petsc.join("lib");
    let mut compiler = Command::new(mpich.join("bin/mpicc"));
    compiler.arg("-O2").arg(sources().join(HEAT)).arg("-o").arg(&program).arg("-I").arg(petsc.join("include"));
    compiler.arg("-L").arg(&library).arg("-lpetsc").arg(format!("-Wl,-rpath,{}", library.display()));
    let made = compiler.output().expect("the compiler of MPICH is started");
    assert!(made.status.success(), "{made:?}");
    let path = std::env::var("PATH").unwrap_or_default();
    let variables =
        vec![("PETSC_DIR", petsc.display().to_string()), ("PATH", format!("{}/bin:{path}", mpich.display()))];
    Some(Plain { folder, program: program.display().to_string(), variables })
}

#[test]
#[ignore = "takes a PETSc that is built for minutes: part of make soak"]
fn petsc_over_mpich_is_brought_back() {
    let Some(heat) = heat() else { return };
    let within = format!("{CG} -steps 1 -n 100");
    let options = ["--after", "0", "--options", "interval=20it scheme=lossless sync"];
    for ranks in [1, 2] {
        let expected = stdout(&heat.start(ranks, CG, None).output().expect("mpirun is started"));
        // MPICH's mpirun has an exit code of its own.
        let killed = heat.run(ranks, &format!("{CG} -kill_at 8"), &["--share", "1"]);
        assert!(!killed.status.success() && stderr(&killed).contains("the same command continues"), "{killed:?}");
        let (found, counts) = heat.finish(ranks, CG);
        assert_eq!(found, expected);
        assert_eq!((counts.replayed, counts.saved), (8, 4), "{ranks} ranks");
        // This PETSc names unused options, as those of a preconditioner that is never set up.
        let all_answered = format!("{CG} -pc_type bjacobi -sub_pc_type icc -steps 8");
        let expected = stdout(&heat.start(ranks, &all_answered, None).output().expect("mpirun is started"));
        let killed = heat.run(ranks, &format!("{all_answered} -steps 12 -kill_at 8"), &["--share", "1"]);
        assert!(!killed.status.success(), "{killed:?}");
        let (found, counts) = heat.finish(ranks, &all_answered);
        assert_eq!((found, counts.replayed), (expected, 8), "{ranks} ranks");
        let expected = heat.plain(&within);
        let killed = heat.run(ranks, &format!("{within} -kill_after 70"), &options);
        assert!(!killed.status.success(), "{killed:?}");
        let output = heat.run(ranks, &within, &options);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(Counts::of(&output).resumed, 1, "{output:?}");
        assert_near(&stdout(&output), &expected, 1e-8);
    }
}
