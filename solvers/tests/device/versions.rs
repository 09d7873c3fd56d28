//! Versions of solves on a device that are frozen without a copy: the bits that a copy would have
//! had, whatever the solve does next, in every order of the device's work.

use recoup_comm::Solo;
use recoup_core::{Borrowed, DeviceSnapshot, DeviceValuesErrorKind, SolveError, Status, ValuesMut, mix};
use recoup_cuda_double::{CudaStatus, DoubleReport, Settings};
use recoup_device::{Device, FreezeSettings, FreezeWay, device_values_error};
use recoup_solvers::{Csr, JacobiPreconditioner, Method, Pool, System};
use recoup_testkit::doubles;

use super::lockstep::{Case, convection};
use super::support::{compare, double, on_device, wave};

/// Orders in which the double does its work, drawn from as many seeds.
const SEEDS: u64 = 100;
/// Steps of a solve in which versions are taken.
const STEPS: u64 = 12;
/// Side of the cube of the problem.
const SIDE: usize = 4;
/// Zones and slots of a vector of 64 rows: 8 zones, of which a slot takes two.
const SMALL: FreezeSettings = FreezeSettings { way: FreezeWay::Zones, zone_bytes: 64, slot_bytes: 128, slots: 2 };

/// A frozen variable of a solve, and the values that a copy of it would have.
struct FrozenVariable {
    name: String,
    held: Box<dyn DeviceSnapshot>,
    expected: Vec<f64>,
}

/// The frozen variables of a solve.
struct FrozenVersion {
    variables: Vec<FrozenVariable>,
}

impl FrozenVersion {
    /// Freezes what a version of `there` would hold. `here` is the same solve on the host.
    fn of(there: &dyn Method, here: &dyn Method) -> Result<Self, SolveError> {
        let mut variables = Vec::new();
        for (frozen, copied) in there.variables().into_iter().zip(here.variables()) {
            let Borrowed::Device(on_device) = frozen.values else { continue };
            let held = on_device.snapshot(on_device.len() + 5, None)?;
            let name = frozen.name.to_owned();
            variables.push(FrozenVariable { name, held, expected: doubles(copied.values) });
        }
        Ok(Self { variables })
    }

    /// Fetches all values in two parts, and compares them with those of the host.
    fn check(&self, label: &str) -> Result<(), SolveError> {
        for FrozenVariable { name, held, expected } in &self.variables {
            let mut found = vec![0.0; held.len()];
            let (first, rest) = found.split_at_mut(expected.len() / 3);
            held.fetch(first.len(), ValuesMut::F64(rest))?;
            held.fetch(0, ValuesMut::F64(first))?;
            let [values, padding] = [&found[..expected.len()], &found[expected.len()..]];
            compare(&format!("{label}: {name}"), values, expected);
            compare(&format!("{label}: padding of {name}"), padding, &[expected[expected.len() - 1]; 5]);
        }
        Ok(())
    }
}

/// Runs `test` for a case of each method that runs on a device.
fn for_each_method(test: impl Fn(&str, Case<'_>)) {
    let pool = Pool::new(1);
    for name in ["cg", "jacobi", "gmres", "bicgstab"] {
        let a = if name == "bicgstab" { convection(SIDE) } else { Csr::poisson3d(SIDE) };
        let b = wave(a.n(), 0);
        let m = JacobiPreconditioner::new(&a).unwrap();
        test(name, Case::new(name, System { a: &a, b: &b, comm: &Solo, pool: &pool }, &m));
    }
}

/// Takes versions of a solve at random steps, of which at most two are kept, and fetches each when
/// the next but one is taken, or at the end.
fn solve_with_versions(label: &str, case: Case<'_>, device: &Device, seed: u64) -> Result<(), SolveError> {
    let mut there = case.there_freezing(device, SMALL)?;
    let mut here = case.here();
    let mut versions: Vec<FrozenVersion> = Vec::new();
    for step in 0..STEPS {
        if here.progress().status != Status::Running {
            break;
        }
        if mix(seed.wrapping_mul(STEPS) + step).is_multiple_of(3) {
            versions.push(FrozenVersion::of(&*there, &*here)?);
        }
        if versions.len() > 2 {
            versions.remove(0).check(&format!("{label}, step {step}"))?;
        }
        here.step()?;
        there.step()?;
    }
    compare(label, &there.iterate()?, &here.iterate()?);
    // The last versions outlive their solver.
    drop(there);
    versions.iter().try_for_each(|version| version.check(label))
}

#[test]
fn versions_of_every_method_have_the_hosts_bits_in_every_order_of_the_devices_work() {
    for seed in 0..SEEDS {
        let report = on_device(&Settings { seed, ..Settings::default() }, |device| {
            for_each_method(|name, case| {
                solve_with_versions(&format!("{name}, seed {seed}"), case, device, seed).unwrap();
            });
        });
        if report.is_none() {
            return;
        }
    }
}

/// Two steps of CG, a version, two more steps, and the version fetched.
fn scenario() -> Result<(), SolveError> {
    let device = Device::open(0).map_err(device_values_error)?;
    let a = Csr::poisson3d(SIDE);
    let pool = Pool::new(1);
    let b = wave(a.n(), 0);
    let m = JacobiPreconditioner::new(&a)?;
    let case = Case::new("cg", System { a: &a, b: &b, comm: &Solo, pool: &pool }, &m);
    let [mut there, mut here] = [case.there_freezing(&device, SMALL)?, case.here()];
    let mut step = || {
        here.step()?;
        there.step()
    };
    step()?;
    step()?;
    let version = FrozenVersion::of(&*there, &*here);
    let mut step = || {
        here.step()?;
        there.step()
    };
    step()?;
    step()?;
    // A version that failed has cost the solve nothing.
    compare("cg after a version", &there.iterate()?, &here.iterate()?);
    version?.check("cg")
}

/// Runs the scenario once for each of its calls, with a fault there. Each run ends well, or with an
/// error of the kind; returns which, and the accounts.
fn fail_each_call(fault: impl Fn(u64) -> (Settings, DeviceValuesErrorKind)) -> Vec<(bool, DoubleReport)> {
    let Some(double) = double() else { return Vec::new() };
    let run = |settings: &Settings| {
        double.reset(settings);
        (scenario(), double.report())
    };
    let (whole, report) = run(&Settings::default());
    whole.unwrap();
    let calls = report.total_calls();
    let each = |call| {
        let (settings, kind) = fault(call);
        let (result, report) = run(&settings);
        match &result {
            Ok(()) => (),
            Err(SolveError::Device(error)) => {
                let is_driver = error.message.starts_with("no CUDA here: driver");
                assert!(is_driver || error.kind == kind, "call {call}: {error:?}");
            }
            Err(other) => panic!("call {call}: {other}"),
        }
        (result.is_err(), report)
    };
    let runs: Vec<(bool, DoubleReport)> = (1..=calls).map(each).collect();
    let told = runs.iter().filter(|(is_told, _)| *is_told).count() as u64;
    assert!(calls > 300 && 3 * told > calls, "{told} of {calls} calls");
    run(&Settings::default()).0.unwrap();
    runs
}

#[test]
fn every_call_that_fails_costs_a_version_or_the_solve_and_changes_no_bit() {
    let faults = [
        (CudaStatus::OutOfMemory, DeviceValuesErrorKind::NoRoom),
        (CudaStatus::Unknown, DeviceValuesErrorKind::Failed),
    ];
    let runs = fail_each_call(|call| {
        let (error, kind) = faults[call as usize % 2];
        (Settings { fail_call: Some(call), error, ..Settings::default() }, kind)
    });
    // A call that gives something back is made again, and told to no one.
    for (call, (_, report)) in (1..).zip(&runs) {
        assert!(report.is_clean(), "call {call}: {report}");
    }
}

#[test]
fn a_device_lost_at_any_call_is_an_error_that_says_so_and_changes_no_bit() {
    let lost = |call| Settings { lost_at: Some(call), ..Settings::default() };
    let runs = fail_each_call(|call| (lost(call), DeviceValuesErrorKind::Lost));
    for (call, (_, report)) in (1..).zip(&runs) {
        assert!(report.faults.is_empty() && report.races.is_empty(), "call {call}: {report}");
    }
    // Only a loss after the last result goes unnoticed.
    assert!(runs.is_sorted_by_key(|(is_told, _)| !is_told));
}
