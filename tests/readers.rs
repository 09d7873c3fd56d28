//! Do other tools see the numbers recoup restores?

use std::path::Path;
use std::process::Command;

use recoup::core::{CodecId, Plan, Registered, Scheme, Values};

use crate::support::{Problem, fixed, plan};

/// A Python with h5py and hdf5plugin; `make test` names it in the environment.
fn python() -> Option<String> {
    let python = std::env::var("RECOUP_PYTHON").ok();
    if python.is_none() {
        eprintln!("SKIPPED: RECOUP_PYTHON names no Python with h5py and hdf5plugin");
    }
    python
}

/// Saves version 5 and returns what a restore of it gives.
fn save_and_restore(problem: &Problem, dir: &Path, plan: Plan) -> Vec<f64> {
    let mut session = problem.builder(dir, plan, 5).build().unwrap();
    let mut solver = problem.solver("jacobi").unwrap();
    for _ in 0..5 {
        solver.step().unwrap();
        session.step(solver.as_ref()).unwrap();
    }
    drop(session);
    let mut session = problem.builder(dir, plan, 5).build().unwrap();
    let mut solver = problem.solver("jacobi").unwrap();
    assert_eq!(session.restore(solver.as_mut()).unwrap().unwrap().version, 5);
    iterate(solver.as_ref())
}

fn iterate(owner: &dyn Registered) -> Vec<f64> {
    match owner.variables()[0].values {
        Values::F64(v) => v.to_vec(),
        other => panic!("doubles expected, {other:?} found"),
    }
}

/// h5py reads `/variables/x` of `version.h5` through the virtual dataset, `/ranks/0/x` of the rank's
/// file, and both equal the restored iterate bit for bit.
#[test]
fn h5py_reads_what_restore_restores() {
    let Some(python) = python() else { return };
    let problem = Problem::poisson(24);
    let raw = plan(Scheme::Traditional);
    let zstd = plan(Scheme::Exact);
    for (name, plan) in [("raw", raw), ("zstd", zstd), ("zfp", fixed(CodecId::Zfp, 1e-6))] {
        let dir = tempfile::tempdir().unwrap();
        let restored = save_and_restore(&problem, dir.path(), plan);
        let expected = dir.path().join("expected.bin");
        std::fs::write(&expected, restored.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>()).unwrap();
        let version = dir.path().join("solve/v000000000005");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("h5py_check.py");
        let output = Command::new(&python).arg(script).arg(&version).arg("x").arg(&expected).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
}
