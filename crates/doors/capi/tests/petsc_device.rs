//! examples/embed with PETSc whose vectors are stored on a device: the counts and bits are those of
//! vectors of the host. The device is the double of the driver, and `c/vectors_on_device.h` stands
//! in for the part of PETSc that lends arrays there.

use crate::build::{driver, root};
use crate::petsc::{CG, Example, Solve};

/// A program whose vectors are stored on a device, and the same one with vectors of the host.
struct Pair {
    device: Example,
    host: Example,
    _driver: tempfile::TempDir,
}

impl Pair {
    fn of(source: &str, setting: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let driver = driver(folder.path()).display().to_string();
        let included = root().join("crates/doors/capi/tests/c/vectors_on_device.h").display().to_string();
        let mut flags = vec!["-include".to_owned(), included, format!("-L{driver}"), "-lcuda".to_owned()];
        flags.push(format!("-Wl,-rpath,{driver}"));
        flags.extend((!setting.is_empty()).then(|| setting.to_owned()));
        Some(Self { device: Example::with(source, &flags)?, host: Example::of(source)?, _driver: folder })
    }

    /// Solves on both, each killed after the same iterations, and expects the same end.
    fn killed(&self, name: &str, arguments: &str, after: u32, options: &str) -> Solve {
        let device = self.device.killed(name, (1, 1), arguments, after, options);
        let host = self.host.killed(name, (1, 1), arguments, after, options);
        assert_eq!((device.from, device.iterations), (host.from, host.iterations), "{name}");
        assert!(device.from > 0, "{name}: {device:?}");
        device
    }
}

/// Arrays that were lent to be read and to be written, as the program says at its end.
fn lent(example: &Example, arguments: &str, options: &str) -> [u32; 2] {
    let output = example.start(1, arguments, Some(options));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("lent by the device: ")).expect(&text);
    let counts: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    counts.try_into().unwrap()
}

#[test]
fn killed_time_stepping_on_a_device_ends_in_the_same_bits() {
    let Some(heat) = Pair::of("examples/embed/heat.c", "") else { return };
    let plain = heat.host.run(1, "-n 12", None).unwrap();
    let resumed = heat.killed("march", "-n 12", 55, "interval=10it");
    assert_eq!(resumed, Solve { from: 50, ..plain });
    let newton = heat.host.run(1, "-n 12 -nonlinear", None).unwrap();
    let resumed = heat.killed("newton", "-n 12 -nonlinear", 4, "interval=1it");
    assert_eq!(resumed, Solve { from: 4, ..newton });
}

/// A lossless version and a lossy one: the direction and the iterate are staged on the device, and
/// the products that verify them are made from copies.
#[test]
fn killed_cg_on_a_device_takes_the_iterations_of_the_host() {
    let Some(ksp) = Pair::of("examples/embed/ksp.c", "") else { return };
    let cg = format!("-n 24 {CG}");
    let third = ksp.host.run(1, &cg, None).unwrap().iterations / 3;
    // Without a name, the codec of a lossy version follows from measured times.
    ksp.killed("lossless", &cg, third, "interval=10it scheme=lossless");
    ksp.killed("lossy", &cg, third, "interval=10it scheme=lossy codec=qb");
    // The iterate and the direction: at the attachment to be read, at the restore to be written,
    // and to be read for each version.
    let options = format!("dir={} interval=10it scheme=lossless sync", ksp.device.dir("counted").display());
    let [read, written] = lent(&ksp.device, &cg, &options);
    assert!(read > 2 && read % 2 == 0, "{read}");
    assert_eq!(written, 2);
}

/// No driver of CUDA knows the memory of another maker's device: PETSc's copy on the host is saved.
#[test]
fn vectors_on_a_device_that_is_not_of_cuda_are_saved_from_the_host() {
    let Some(heat) = Pair::of("examples/embed/heat.c", "-DVECTORS_REST_IN=PETSC_MEMTYPE_HIP") else { return };
    let plain = heat.host.run(1, "-n 12", None).unwrap();
    let resumed = heat.killed("march", "-n 12", 55, "interval=10it");
    assert_eq!(resumed, Solve { from: 50, ..plain });
}
