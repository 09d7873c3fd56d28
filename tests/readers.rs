//! Do other tools see the numbers recoup restores?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use recoup::comm::Threads;
use recoup::core::{CodecId, Comm, Distribution, Plan, Role, Scheme, Storage, Store, Values, ValuesMut};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::Variables;

use recoup_testkit::{bytes_of, doubles, progress};

use crate::support::{Problem, fixed, plan, python, said};

/// Saves version 5 and returns what a restore of it gives.
fn save_and_restore(problem: &Problem, dir: &Path, plan: Plan) -> Vec<f64> {
    problem.save("jacobi", dir, plan, 5, 5);
    let mut session = problem.builder(dir, plan, 5).build().unwrap();
    let mut solver = problem.solver("jacobi").unwrap();
    assert_eq!(session.restore(solver.as_mut()).unwrap().unwrap().version, 5);
    doubles(solver.variables()[0].values)
}

/// Runs h5py over version 5 below `dir`, finding no plugin but those in the folder given.
fn h5py(python: &str, dir: &Path, plugins: &Path, variable: &str, expected: &[u8]) -> Output {
    let expected_path = dir.join("expected.bin");
    fs::write(&expected_path, expected).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("h5py_check.py");
    let mut command = Command::new(python);
    command.arg(script).arg(version_of(dir)).arg(variable).arg(&expected_path);
    command.env("HDF5_PLUGIN_PATH", plugins).output().unwrap()
}

fn version_of(dir: &Path) -> PathBuf {
    dir.join("solve/v000000000005")
}

/// A folder with the filter plugin alone, as `make install` leaves it: cargo puts the library
/// beside this program.
fn plugins() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("{}recoup_h5plugin{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let built = std::env::current_exe().unwrap().with_file_name(&name);
    fs::copy(&built, dir.path().join(&name)).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    dir
}

/// h5py reads `/variables/x` of `version.h5` through the virtual dataset, `/ranks/0/x` of the
/// rank's file, and both equal the restored iterate bit for bit.
#[test]
fn h5py_reads_what_restore_restores() {
    let Some(python) = python() else { return };
    let problem = Problem::poisson(24);
    let plugins = plugins();
    let raw = plan(Scheme::Traditional);
    let zstd = plan(Scheme::Exact);
    let lossy = [CodecId::Zfp, CodecId::Qb, CodecId::Pyramid].map(|id| (id.name(), fixed(id, 1e-6)));
    for (name, plan) in [("raw", raw), ("zstd", zstd)].into_iter().chain(lossy) {
        let dir = tempfile::tempdir().unwrap();
        let restored = save_and_restore(&problem, dir.path(), plan);
        let output = h5py(&python, dir.path(), plugins.path(), "x", &bytes_of(Values::F64(&restored)));
        assert!(output.status.success(), "{name}: {}", said(&output));
    }
}

/// Ranks that share a file, with uneven rows and several frames each, are one dataset to other
/// readers all the same.
#[test]
fn h5py_reads_files_that_ranks_share() {
    let Some(python) = python() else { return };
    let rows = [700_000, 1, 600_000, 250_000];
    let plugins = plugins();
    let global: u64 = rows.iter().sum();
    let value = |row: u64| (row as f64 * 1e-3).sin();
    let expected: Vec<f64> = (0..global).map(value).collect();
    let plans = [plan(Scheme::Exact), fixed(CodecId::Qb, 1e-6), plan(Scheme::Traditional)];
    for (per_file, parts_from, plan) in
        [(2, 5, plans[0]), (usize::MAX, 5, plans[1]), (3, 5, plans[2]), (2, 4, plans[1]), (3, 4, plans[2])]
    {
        let dir = tempfile::tempdir().unwrap();
        let open = |access| {
            let store = Hdf5Store::open(dir.path(), "solve", access).unwrap();
            store.with_ranks_per_file(per_file).with_parts_from(parts_from)
        };
        let parts = Threads::launch(rows.len(), |comm| {
            let first_store = (comm.rank() == 0).then(|| open(Access::Write));
            comm.barrier().unwrap();
            let store = Arc::new(first_store.unwrap_or_else(|| open(Access::Join)));
            let first = rows[..comm.rank()].iter().sum();
            let mut x: Vec<f64> = (first..first + rows[comm.rank()]).map(value).collect();
            let mut session = recoup::open("unused").plan(plan).every(5).build_with(store, &comm).unwrap();
            let spread = Distribution::Rows { first, global };
            let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), spread);
            session.checkpoint(plan, progress(5), &[&owner]).unwrap();
            session.wait().unwrap();
            let mut back = vec![0.0; x.len()];
            let mut owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut back), spread);
            assert_eq!(session.restore_with(&mut [&mut owner]).unwrap().unwrap().version, 5);
            back
        });
        let restored = parts.concat();
        let error = restored.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error <= 1e-6, "{error:e}");
        let output = h5py(&python, dir.path(), plugins.path(), "x", &bytes_of(Values::F64(&restored)));
        assert!(output.status.success(), "{per_file} to a file, parts from {parts_from} ranks: {}", said(&output));
        let damage = open(Access::Read).inspect_damage(5).unwrap();
        assert!(damage.is_empty(), "{damage:?}");
    }
}

/// Arcs of a parabola, then bits in no order, which no codec makes fewer: large numbers, and
/// finite, in single precision too.
fn half_coded(n: usize) -> Vec<f64> {
    let arc = |i: usize| (i % 1000) as f64 * (i % 1000) as f64 * 1e-6;
    let bits = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let scattered = |i: usize| f64::from_bits((bits(i) ^ bits(i + n) >> 29) & !(1 << 55) | 1 << 62);
    (0..n).map(|i| if i < n / 2 { arc(i) } else { scattered(i) }).collect()
}

/// Two variables of several frames, some of which are stored raw; what a restore gives of each.
fn save_half_coded(dir: &Path, n: usize) -> [(&'static str, Vec<u8>); 2] {
    let mut x = half_coded(n);
    let mut single: Vec<f32> = x.iter().map(|v| f32::from_bits((v.to_bits() >> 32) as u32)).collect();
    single[..n / 2].iter_mut().zip(&x).for_each(|(single, x)| *single = *x as f32);
    let plan = fixed(CodecId::Qb, 1e-6);
    let mut session = recoup::open(dir).plan(plan).every(5).build().unwrap();
    session.checkpoint(plan, progress(5), &[&spread(&mut x, &mut single)]).unwrap();
    session.wait().unwrap();
    let mut x = vec![0.0; n];
    let mut single = vec![0.0; n];
    session.restore_with(&mut [&mut spread(&mut x, &mut single)]).unwrap().unwrap();
    [("x", bytes_of(Values::F64(&x))), ("single", bytes_of(Values::F32(&single)))]
}

fn spread<'a>(x: &'a mut [f64], single: &'a mut [f32]) -> Variables<'a> {
    let rows = Distribution::Rows { first: 0, global: x.len() as u64 };
    let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(x), rows);
    owner.with("single", Role::Iterate, ValuesMut::F32(single), rows)
}

/// Several frames a variable, coded ones and ones that skip the filter, of both types, through the
/// plugin.
#[test]
fn h5py_and_h5dump_read_coded_and_raw_frames_of_qb_through_the_plugin() {
    let dir = tempfile::tempdir().unwrap();
    let plugins = plugins();
    let restored = save_half_coded(dir.path(), 4_500_000);
    let manifest = Hdf5Store::open(dir.path(), "solve", Access::Read).unwrap().manifest(5).unwrap();
    for (name, expected) in restored {
        let frames: Vec<_> = manifest.frames.iter().filter(|f| f.variable == name).collect();
        for storage in [Storage::Coded, Storage::Raw] {
            assert!(frames.iter().any(|f| f.storage == storage), "{name}: no frame is {storage:?}");
        }
        if let Some(python) = python() {
            let output = h5py(&python, dir.path(), plugins.path(), name, &expected);
            assert!(output.status.success() && said(&output).contains("53570"), "{name}: {}", said(&output));
        }
        let (output, dumped) = h5dump(dir.path(), plugins.path(), name);
        assert!(output.status.success(), "{name}: {}", said(&output));
        assert!(dumped == expected, "h5dump: other values of {name}");
    }
}

/// Runs h5dump over a variable of rank 0: what it said, and the little-endian values it wrote.
fn h5dump(dir: &Path, plugins: &Path, variable: &str) -> (Output, Vec<u8>) {
    let target = dir.join("dumped.bin");
    let mut command = Command::new("h5dump");
    command.args(["-d", &format!("/ranks/0/{variable}"), "-b", "LE", "-o"]).arg(&target);
    command.arg(version_of(dir).join("rank-000000.h5")).env("HDF5_PLUGIN_PATH", plugins);
    let output = command.output().expect("h5dump of HDF5's tools; scripts/bootstrap.sh test installs it");
    (output, fs::read(target).unwrap_or_default())
}

/// A filter sees one chunk; one coded against another version is refused, and the message says what
/// to do.
#[test]
fn frame_coded_against_a_parent_is_refused_by_the_plugin_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let plugins = plugins();
    let plan = fixed(CodecId::Qb, 1e-6);
    let mut session = recoup::open(dir.path()).plan(plan).keep(2).build().unwrap();
    let mut x = half_coded(20_000);
    x.truncate(10_000);
    for iteration in [4, 5] {
        x.iter_mut().for_each(|x| *x += 1e-5);
        session.checkpoint(plan, progress(iteration), &[&Variables::new().iterate("x", &mut x)]).unwrap();
        session.wait().unwrap();
    }
    let manifest = Hdf5Store::open(dir.path(), "solve", Access::Read).unwrap().manifest(5).unwrap();
    assert_eq!(manifest.parents().into_iter().collect::<Vec<_>>(), [4]);
    let (output, _) = h5dump(dir.path(), plugins.path(), "x");
    assert!(said(&output).contains("recoup export"), "{}", said(&output));
    if let Some(python) = python() {
        let output = h5py(&python, dir.path(), plugins.path(), "x", &bytes_of(Values::F64(&x)));
        assert!(!output.status.success() && said(&output).contains("recoup export"), "{}", said(&output));
    }
}
