//! Can every version ever frozen still be read?
//!
//! `golden/v<format>/<case>/` holds a directory with one committed version, or with a chain of them
//! that ends in it, and in `expected/` what a restore gave when it was frozen:
//! `<rank>-<variable>.bin`, little-endian values. `cargo xtask golden` alone writes them, by
//! [`write_golden`]; the test compares, and takes everything it needs to know from the manifests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use recoup::comm::Threads;
use recoup::core::{CodecId, Comm, FORMAT_VERSION, Manifest, PARTS_FORMAT_VERSION, Scheme, Store, VariableRecord};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::Variables;
use recoup_testkit::OwnedValues;
use recoup_testkit::folders::{copy_tree, entries};

use crate::golden_cases::{self, VERSION};
use crate::support::{Problem, plan};

/// What a restore gives: file name in `expected/`, little-endian values.
type Expected = BTreeMap<String, Vec<u8>>;

fn manifest(case: &Path) -> Manifest {
    Hdf5Store::open(case, "solve", Access::Read).unwrap().manifest(VERSION).unwrap()
}

fn copy_versions(source: &Path, target: &Path) {
    let store = Hdf5Store::open(source, "solve", Access::Read).unwrap();
    for path in store.versions().unwrap().into_iter().map(|version| store.version_path(version)) {
        copy_tree(&path, &target.join("solve").join(path.file_name().unwrap()));
    }
}

/// What sessions on a copy of the directory restore, on as many ranks as wrote it.
fn restore(case: &Path) -> Expected {
    let dir = tempfile::tempdir().unwrap();
    copy_versions(case, dir.path());
    let manifest = manifest(dir.path());
    let parts = Threads::launch(manifest.ranks, |comm| {
        let records: Vec<_> = manifest.variables.iter().filter(|v| v.rank == comm.rank()).collect();
        let zeros = |record: &&VariableRecord| OwnedValues::zeros(record.element, record.len as usize);
        let mut values: Vec<OwnedValues> = records.iter().map(zeros).collect();
        let mut session = recoup::open(dir.path()).build_on(&comm).unwrap();
        let mut owner = Variables::new();
        for (record, values) in records.iter().zip(&mut values) {
            owner = owner.with(&record.name, record.role, values.lend_mut(), record.distribution);
        }
        let restored = session.restore_with(&mut [&mut owner]).unwrap().unwrap();
        assert_eq!((restored.version, restored.skipped.len()), (VERSION, 0), "{}", case.display());
        drop(owner);
        let name = |record: &VariableRecord| format!("{}-{}.bin", record.rank, record.name);
        records.iter().zip(&values).map(|(record, values)| (name(record), values.to_bytes())).collect::<Expected>()
    });
    parts.into_iter().flatten().collect()
}

fn expected(case: &Path) -> Expected {
    let entries = fs::read_dir(case.join("expected")).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

/// The directories of all frozen cases of all formats.
fn cases() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let directories = |path: PathBuf| entries(&path).into_iter().filter(|path| path.is_dir());
    directories(golden).flat_map(directories).collect()
}

#[test]
fn every_frozen_version_is_whole_and_restores_to_its_frozen_bits() {
    let cases = cases();
    for format in [FORMAT_VERSION, PARTS_FORMAT_VERSION] {
        assert!(cases.iter().any(|case| case.parent().unwrap().ends_with(format!("v{format}"))));
    }
    for case in cases {
        let name = case.display();
        let store = Hdf5Store::open(&case, "solve", Access::Read).unwrap();
        let versions = store.versions().unwrap();
        assert_eq!(versions.last(), Some(&VERSION), "{name}");
        versions.iter().for_each(|version| assert_eq!(store.inspect_damage(*version).unwrap(), [], "{name}"));
        assert!(restore(&case) == expected(&case), "{name}: other values than those frozen");
    }
}

/// The fingerprint of a matrix and a right-hand side is part of the format: a problem must know its
/// versions.
#[test]
fn every_frozen_version_of_a_solve_is_taken_for_its_problems() {
    let problem = Problem::poisson(4);
    // The block has a problem of its own, below.
    let is_solve = |manifest: &Manifest| manifest.fingerprint.is_some() && manifest.columns.is_empty();
    let solves: Vec<_> = cases().into_iter().filter(|case| is_solve(&manifest(case))).collect();
    assert!(!solves.is_empty());
    for case in solves {
        let dir = tempfile::tempdir().unwrap();
        copy_versions(&case, dir.path());
        let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
        let mut solver = problem.solver("jacobi").unwrap();
        assert_eq!(session.restore(solver.as_mut()).unwrap().unwrap().version, VERSION, "{}", case.display());
    }
}

#[test]
fn frozen_block_is_taken_for_its_problem_and_its_system() {
    let blocks: Vec<_> = cases().into_iter().filter(|case| !manifest(case).columns.is_empty()).collect();
    assert!(!blocks.is_empty());
    for case in blocks {
        let dir = tempfile::tempdir().unwrap();
        copy_versions(&case, dir.path());
        let open = || recoup::open(dir.path()).systems().build().unwrap();
        let mut session = open();
        session.begin_system(golden_cases::SYSTEM, golden_cases::block_problem()).unwrap();
        let restored = session.restore_with(&mut [&mut Variables::new()]).unwrap().unwrap();
        assert_eq!(
            (restored.version, restored.system.map(|system| system.index)),
            (VERSION, Some(golden_cases::SYSTEM))
        );
        drop(session);
        let mut session = open();
        session.begin_system(golden_cases::SYSTEM + 1, golden_cases::block_problem()).unwrap();
        assert!(session.restore_with(&mut [&mut Variables::new()]).is_err());
    }
}

/// Adds the cases that are not there yet, of the format this build writes. What is frozen stays:
/// another release of a compression library may write other bytes, and must still read these. To
/// replace a case, remove it first.
#[test]
#[ignore = "writes frozen files: run `cargo xtask golden`"]
fn write_golden() {
    let Some(golden) = std::env::var_os("RECOUP_GOLDEN") else { panic!("run `cargo xtask golden`") };
    for (name, plan, save) in golden_cases::cases() {
        let format = if name.contains("parts") { PARTS_FORMAT_VERSION } else { FORMAT_VERSION };
        let case = Path::new(&golden).join(format!("v{format}")).join(name);
        if case.exists() {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        save(dir.path(), plan);
        copy_versions(dir.path(), &case);
        let manifest = manifest(&case);
        assert_eq!(manifest.format, format, "{name}");
        let codec = if name.starts_with("chain-increment") { CodecId::Increment } else { plan.codec };
        assert!(manifest.frames.iter().any(|f| f.codec == codec), "{name}");
        assert_eq!(name.starts_with("chain"), !manifest.parents().is_empty(), "{name}");
        fs::create_dir(case.join("expected")).unwrap();
        for (file, bytes) in restore(&case) {
            fs::write(case.join("expected").join(file), bytes).unwrap();
        }
    }
}
