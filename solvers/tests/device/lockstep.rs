//! Whole solves on a device and on the host, step by step: every variable has the same bits.

use recoup_comm::Solo;
use recoup_core::{Operator, Registered, Resume, SolveError};
use recoup_cuda_double::Settings;
use recoup_device::Device;
use recoup_solvers::device::DeviceSystem;
use recoup_solvers::{
    Bicgstab, BicgstabPasses, Cg, CgPasses, Csr, Gmres, GmresOptions, GmresPasses, Identity, Jacobi, JacobiPasses,
    JacobiPreconditioner, Method, Poisson3d, Pool, Preconditioner, Side, Stop, System,
};

use recoup_testkit::{doubles, set_doubles};

use super::support::{compare, on_device, wave};

/// Orders in which the double does its work, drawn from as many seeds.
const SEEDS: u64 = 20;
/// Tolerance of every solve.
pub(crate) const TOLERANCE: f64 = 1e-8;
/// Steps of a solve that are compared.
const STEPS: u64 = 30;

/// A method, made in the same way in both spaces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made {
    Cg,
    CgRestarted,
    Jacobi,
    Gmres(Side),
    GmresDeflated,
    Bicgstab,
}

impl Made {
    /// The method in a space, from zero.
    pub(crate) fn solver<'a, S>(self, system: S, m: &'a dyn Preconditioner) -> Result<Box<dyn Method + 'a>, SolveError>
    where
        S: CgPasses + JacobiPasses + GmresPasses + BicgstabPasses + 'a,
    {
        let x0 = vec![0.0; system.host().a.rows()];
        let stop = Stop::at(TOLERANCE);
        let options = GmresOptions { restart: 7, side: Side::Left, stop };
        Ok(match self {
            Self::Cg => Box::new(Cg::new(system, m, &x0, stop)?),
            Self::CgRestarted => Box::new(Cg::new(system, m, &x0, stop)?.restarted_every(5)?),
            Self::Jacobi => Box::new(Jacobi::new(system, 0.9, &x0, stop)?),
            Self::Gmres(side) => Box::new(Gmres::new(system, m, &x0, GmresOptions { side, ..options })?),
            Self::GmresDeflated => Box::new(Gmres::new(system, m, &x0, options)?.deflated(3)?),
            Self::Bicgstab => Box::new(Bicgstab::new(system, m, &x0, stop)?),
        })
    }
}

/// The values of all variables, fetched from where they rest.
fn all_values(solver: &dyn Registered) -> Vec<(String, Vec<f64>)> {
    solver.variables().iter().map(|variable| (variable.name.to_owned(), doubles(variable.values))).collect()
}

/// Overwrites all variables where they rest.
fn overwrite_all(solver: &mut dyn Registered, saved: &[(String, Vec<f64>)]) {
    let names: Vec<&str> = saved.iter().map(|(name, _)| name.as_str()).collect();
    solver.make_room(&names);
    let targets = solver.variables_mut();
    assert_eq!(targets.len(), saved.len());
    for (mut target, (name, values)) in targets.into_iter().zip(saved) {
        assert_eq!(target.name, name);
        set_doubles(&mut target.values, values);
    }
}

/// Compares two solvers that have come to the same step.
fn compare_solvers(label: &str, there: &dyn Method, here: &dyn Method) {
    let [found, expected] = [there.progress(), here.progress()];
    assert_eq!(found.residual_norm.to_bits(), expected.residual_norm.to_bits(), "{label}");
    assert_eq!(found, expected, "{label}");
    let [found, expected] = [all_values(there), all_values(here)];
    assert_eq!(found.len(), expected.len(), "{label}");
    for ((found_name, found), (name, expected)) in found.iter().zip(&expected) {
        assert_eq!(found_name, name, "{label}");
        compare(&format!("{label}: {name}"), found, expected);
    }
}

/// Steps both until the host has stopped, at most `steps` times.
pub(crate) fn compare_steps(label: &str, there: &mut dyn Method, here: &mut dyn Method, steps: u64) {
    for step in 0..=steps {
        compare_solvers(&format!("{label}, step {step}"), there, here);
        if here.progress().status != recoup_core::Status::Running {
            return;
        }
        here.step().unwrap();
        there.step().unwrap();
    }
}

/// A matrix that is not symmetric, dominated by its diagonal, of 7 entries a row.
pub(crate) fn convection(side: usize) -> Csr {
    let laplacian = Csr::poisson3d(side);
    let mut row_starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for row in 0..laplacian.n() {
        let (row_columns, row_values) = laplacian.row(row);
        columns.extend_from_slice(row_columns);
        let upwind = |(column, value): (&u32, &f64)| match *column as usize {
            column if column == row => value + (row % 5) as f64 * 0.3,
            column if column > row => 0.6 * value,
            _ => *value,
        };
        values.extend(row_columns.iter().zip(row_values).map(upwind));
        row_starts.push(columns.len());
    }
    Csr::new(row_starts, columns, values).unwrap()
}

/// Operators, and the methods tried on each.
fn cases() -> Vec<(Box<dyn Operator>, Vec<Made>)> {
    let general = vec![Made::Gmres(Side::Left), Made::Gmres(Side::Right), Made::GmresDeflated, Made::Bicgstab];
    vec![
        (Box::new(Poisson3d::new(11)), vec![Made::Cg, Made::Jacobi]),
        (Box::new(Csr::poisson3d(5)), vec![Made::Cg, Made::CgRestarted, Made::Jacobi, Made::Bicgstab]),
        (Box::new(convection(5)), general),
    ]
}

/// Runs `test` for each operator, method and preconditioner, with a label.
fn for_each_case(test: impl Fn(&str, Made, &System<'_>, &dyn Preconditioner)) {
    let pool = Pool::new(1);
    for (a, methods) in cases() {
        let b = wave(a.rows(), 0);
        let system = System { a: &*a, b: &b, comm: &Solo, pool: &pool };
        let jacobi = JacobiPreconditioner::new(&*a).unwrap();
        for made in methods {
            for m in [&Identity as &dyn Preconditioner, &jacobi] {
                if matches!(made, Made::Jacobi) && !m.is_identity() {
                    continue;
                }
                test(&format!("{made:?} with {} on {} rows", m.name(), b.len()), made, &system, m);
            }
        }
    }
}

#[test]
fn whole_solves_have_the_hosts_bits_after_every_step() {
    on_device(&Settings::default(), |device| {
        for_each_case(|label, made, system, m| {
            let mut there = made.solver(DeviceSystem::new(system, device).unwrap(), m).unwrap();
            let mut here = made.solver(*system, m).unwrap();
            compare_steps(label, &mut *there, &mut *here, STEPS);
            compare(label, &there.iterate().unwrap(), &here.iterate().unwrap());
        });
    });
}

#[test]
fn solves_have_the_hosts_bits_in_every_order_of_the_devices_work() {
    for seed in 0..SEEDS {
        let report = on_device(&Settings { seed, ..Settings::default() }, |device| {
            let a = convection(4);
            let b = wave(a.rows(), 0);
            let pool = Pool::new(1);
            let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
            let m = JacobiPreconditioner::new(&a).unwrap();
            for made in [Made::Cg, Made::Jacobi, Made::Gmres(Side::Right), Made::Bicgstab] {
                let mut there = made.solver(DeviceSystem::new(&system, device).unwrap(), &m).unwrap();
                let mut here = made.solver(system, &m).unwrap();
                compare_steps(&format!("{made:?}, seed {seed}"), &mut *there, &mut *here, 8);
            }
        });
        if report.is_none() {
            return;
        }
    }
}

/// Resumes a solve on both sides from what the host had after some steps, twice.
fn compare_resumes(label: &str, made: Made, how: Resume, device: &Device, system: &System<'_>, m: &dyn Preconditioner) {
    let mut first = made.solver(*system, m).unwrap();
    let mut there = made.solver(DeviceSystem::new(system, device).unwrap(), m).unwrap();
    let mut here = made.solver(*system, m).unwrap();
    // A safe point of every method.
    while first.progress().iteration < 4 || !first.progress().is_safe_point {
        first.step().unwrap();
    }
    let mut saved = all_values(&*first);
    for _ in 0..2 {
        let iteration = first.progress().iteration;
        overwrite_all(&mut *there, &saved);
        overwrite_all(&mut *here, &saved);
        let resumed = there.resume(iteration, how);
        assert_eq!(resumed, here.resume(iteration, how), "{label}");
        if resumed.is_err() {
            return;
        }
        compare_steps(label, &mut *there, &mut *here, 3);
        // What the device has now is the next version.
        while !here.progress().is_safe_point {
            compare_steps(label, &mut *there, &mut *here, 1);
        }
        saved = all_values(&*there);
    }
}

#[test]
fn resumes_have_the_hosts_bits_and_go_on_where_a_host_began() {
    on_device(&Settings::default(), |device| {
        for_each_case(|label, made, system, m| {
            for how in [Resume::Restarted, Resume::Deflated, Resume::Traditional, Resume::Exact] {
                compare_resumes(&format!("{how} resume of {label}"), made, how, device, system, m);
            }
        });
    });
}
