//! Whole solves on a device and on the host, step by step: every variable has the same bits.

use recoup_comm::Solo;
use recoup_core::{Borrowed, Operator, Registered, Resume, SafePoint, SolveError, Status, ValuesMut};
use recoup_cuda_double::Settings;
use recoup_device::{Device, FreezeSettings};
use recoup_solvers::device::DeviceSystem;
use recoup_solvers::{
    BasisStorage, Csr, Identity, JacobiPreconditioner, METHODS, Method, MethodInputs, NamedMethod, Need, Poisson3d,
    Pool, Preconditioner, Setting, Side, Stop, System,
};
use recoup_testkit::{doubles, set_doubles};

use super::support::{compare, on_device, wave};

/// Orders in which the double does its work, drawn from as many seeds.
const SEEDS: u64 = 100;
/// Tolerance of every solve.
pub(crate) const TOLERANCE: f64 = 1e-8;
/// Steps of a solve that are compared.
const STEPS: u64 = 30;

/// A method of the table, and what it is made from.
#[derive(Clone, Copy)]
pub(crate) struct Case<'c> {
    method: &'static NamedMethod,
    inputs: MethodInputs<'c>,
}

impl<'c> Case<'c> {
    /// The method of this name, from zero, with short cycles.
    pub(crate) fn new(name: &str, system: System<'c>, preconditioner: &'c dyn Preconditioner) -> Self {
        static ZEROS: [f64; 2000] = [0.0; 2000];
        let method = METHODS.iter().find(|method| method.name == name).unwrap();
        let inputs = MethodInputs {
            system,
            rows: None,
            preconditioner,
            x0: &ZEROS[..system.a.rows()],
            stop: Stop::at(TOLERANCE),
            omega: 0.9,
            restart: 7,
            side: Side::Left,
            harvest: 3,
            basis: BasisStorage::Double,
        };
        Self { method, inputs }
    }

    /// The solver on the host.
    pub(crate) fn here(&self) -> Box<dyn Method + 'c> {
        (self.method.make)(&self.inputs).unwrap()
    }

    /// The solver on a device.
    pub(crate) fn there(&self, device: &Device) -> Result<Box<dyn Method + 'c>, SolveError> {
        (self.method.make_on_device.unwrap())(DeviceSystem::new(&self.inputs.system, device)?, &self.inputs)
    }

    /// The solver on a device whose vectors are frozen as `settings` say.
    pub(crate) fn there_freezing(
        &self,
        device: &Device,
        settings: FreezeSettings,
    ) -> Result<Box<dyn Method + 'c>, SolveError> {
        let system = DeviceSystem::new(&self.inputs.system, device)?.freezing(settings)?;
        (self.method.make_on_device.unwrap())(system, &self.inputs)
    }

    fn label(&self) -> String {
        let MethodInputs { system, preconditioner, side, .. } = &self.inputs;
        let rows = system.a.rows();
        format!("{} with {} on the {side:?}, {rows} rows", self.method.name, preconditioner.name())
    }
}

/// The values of all variables, fetched from where they rest by way of one frozen copy.
fn all_values(solver: &dyn Registered) -> Vec<(String, Vec<f64>)> {
    let mut copy = None;
    let mut fetched = |lent: Borrowed<'_>| {
        let Borrowed::Device(on_device) = lent else { return doubles(lent) };
        let held = on_device.snapshot(on_device.len(), copy.take()).unwrap();
        let mut values = vec![0.0; on_device.len()];
        held.fetch(0, ValuesMut::F64(&mut values)).unwrap();
        copy = Some(held);
        values
    };
    solver.variables().iter().map(|variable| (variable.name.to_owned(), fetched(variable.values))).collect()
}

/// Overwrites all variables where they are stored.
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
        if here.progress().status != Status::Running {
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

/// Runs `test` for every method of the table that runs on a device, on operators it is meant for,
/// with each preconditioner on each side it can be given.
fn for_each_case(test: impl Fn(Case<'_>)) {
    let symmetric: [Box<dyn Operator>; 2] = [Box::new(Poisson3d::new(11)), Box::new(Csr::poisson3d(5))];
    let general: [Box<dyn Operator>; 2] = [Box::new(convection(5)), Box::new(Poisson3d::new(5))];
    let pool = Pool::new(1);
    let methods = METHODS.iter().filter(|method| method.make_on_device.is_some());
    for method in methods {
        let operators = if method.needs == Some(Need::Symmetry) { &symmetric } else { &general };
        for a in operators {
            let b = wave(a.rows(), 0);
            let system = System { a: &**a, b: &b, comm: &Solo, pool: &pool };
            let jacobi = JacobiPreconditioner::new(&**a).unwrap();
            test(Case::new(method.name, system, &Identity));
            if method.takes(Setting::Preconditioner) {
                test(Case::new(method.name, system, &jacobi));
            }
            if method.takes(Setting::Side) {
                let case = Case::new(method.name, system, &jacobi);
                test(Case { inputs: MethodInputs { side: Side::Right, ..case.inputs }, ..case });
            }
        }
    }
}

#[test]
fn whole_solves_have_the_hosts_bits_after_every_step() {
    on_device(&Settings::default(), |device| {
        for_each_case(|case| {
            let mut there = case.there(device).unwrap();
            let mut here = case.here();
            compare_steps(&case.label(), &mut *there, &mut *here, STEPS);
            compare(&case.label(), &there.iterate().unwrap(), &here.iterate().unwrap());
        });
    });
}

#[test]
fn solves_have_the_hosts_bits_in_every_order_of_the_devices_work() {
    for seed in 0..SEEDS {
        let report = on_device(&Settings { seed, ..Settings::default() }, |device| {
            let a = Csr::poisson3d(4);
            let b = wave(a.rows(), 0);
            let pool = Pool::new(1);
            let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
            let m = JacobiPreconditioner::new(&a).unwrap();
            for name in ["cg", "jacobi", "gmres", "bicgstab"] {
                let case = Case::new(name, system, &m);
                let label = format!("{}, seed {seed}", case.label());
                compare_steps(&label, &mut *case.there(device).unwrap(), &mut *case.here(), 8);
            }
        });
        if report.is_none() {
            return;
        }
    }
}

/// Resumes a solve on both sides from what the host had after some steps, then from what the device
/// had.
fn compare_resumes(case: Case<'_>, how: Resume, device: &Device) {
    let label = format!("{how} resume of {}", case.label());
    let mut first = case.here();
    let mut there = case.there(device).unwrap();
    let mut here = case.here();
    while first.progress().iteration < 4 || first.progress().safe_point != SafePoint::Any {
        first.step().unwrap();
    }
    let iteration = first.progress().iteration;
    let mut saved = all_values(&*first);
    for _ in 0..2 {
        overwrite_all(&mut *there, &saved);
        overwrite_all(&mut *here, &saved);
        let resumed = there.resume(iteration, how);
        assert_eq!(resumed, here.resume(iteration, how), "{label}");
        if resumed.is_err() {
            return;
        }
        compare_solvers(&label, &*there, &*here);
        let mut steps = 0;
        while here.progress().status == Status::Running && (steps < 3 || here.progress().safe_point != SafePoint::Any) {
            assert_eq!(there.step(), here.step(), "{label}");
            steps += 1;
        }
        compare_solvers(&label, &*there, &*here);
        saved = all_values(&*there);
    }
}

#[test]
fn resumes_have_the_hosts_bits_and_go_on_where_a_host_began() {
    on_device(&Settings::default(), |device| {
        for_each_case(|case| {
            for how in [Resume::Restarted, Resume::Deflated, Resume::Traditional, Resume::Exact] {
                compare_resumes(case, how, device);
            }
        });
    });
}
