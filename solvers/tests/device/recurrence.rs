//! Conjugate gradients, written out over the passes: the host's bits at each step.

use recoup_comm::Solo;
use recoup_core::{Iteration, Lent, Operator, Registered, SolveError, Values};
use recoup_cuda_double::Settings;
use recoup_device::{Device, DeviceError, DeviceVec};
use recoup_solvers::device::{DeviceDirections, DevicePreconditioner, DeviceSystem, IterateStep, afar_error};
use recoup_solvers::{Cg, Csr, Identity, Ilu0, JacobiPreconditioner, Poisson3d, Pool, Preconditioner, Stop, System};

use super::support::{compare, on_device, wave};

/// Orders in which the double does its work, drawn from as many seeds.
const SEEDS: u64 = 20;

/// CG on a device, from zero.
pub(crate) struct DeviceCg<'a> {
    system: DeviceSystem<'a>,
    preconditioner: DevicePreconditioner,
    pub(crate) vectors: CgVectors,
    rho: f64,
}

/// The vectors of CG on a device.
pub(crate) struct CgVectors {
    pub(crate) x: DeviceVec<f64>,
    pub(crate) r: DeviceVec<f64>,
    pub(crate) p: DeviceVec<f64>,
    q: DeviceVec<f64>,
}

impl<'a> DeviceCg<'a> {
    pub(crate) fn new(
        system: &System<'a>,
        preconditioner: &dyn Preconditioner,
        device: &Device,
    ) -> Result<Self, SolveError> {
        let system = DeviceSystem::new(system, device)?;
        let preconditioner = DevicePreconditioner::of(&system, preconditioner)?;
        let zeros = || DeviceVec::zeros(system.passes().stream(), system.rhs().len());
        let vectors = || Ok(CgVectors { x: zeros()?, r: zeros()?, p: zeros()?, q: zeros()? });
        let vectors = vectors().map_err(|error| afar_error(&error))?;
        let mut cg = Self { system, preconditioner, vectors, rho: 0.0 };
        cg.start().map_err(|error| afar_error(&error))?;
        Ok(cg)
    }

    fn start(&mut self) -> Result<(), DeviceError> {
        let passes = self.system.passes();
        let CgVectors { x, r, p, .. } = &mut self.vectors;
        self.system.operator().residual(passes, self.system.rhs(), x.view(), &mut r.view_mut())?;
        self.rho = match &self.preconditioner {
            DevicePreconditioner::Identity => passes.dot(r.view(), r.view())?,
            DevicePreconditioner::Diagonal(diagonal) => passes.scaled_dot(diagonal.view(), r.view())?,
        };
        let inverse = self.preconditioner.inverse();
        passes.cg_restart_direction(r.view(), inverse, DeviceDirections::default(), &mut p.view_mut())
    }

    pub(crate) fn step(&mut self) -> Result<(), DeviceError> {
        let passes = self.system.passes();
        let CgVectors { x, r, p, q } = &mut self.vectors;
        let alpha = self.rho / self.system.operator().apply_dot(passes, p.view(), &mut q.view_mut())?;
        let inverse = self.preconditioner.inverse();
        let mut sums = [0.0; 2];
        passes.cg_residual_step(alpha, q.view(), inverse, &[], &mut r.view_mut(), &mut sums)?;
        let step = IterateStep { alpha, beta: sums[1] / self.rho };
        let directions = DeviceDirections::default();
        passes.cg_iterate_step(step, r.view(), inverse, directions, &mut x.view_mut(), &mut p.view_mut())?;
        self.rho = sums[1];
        Ok(())
    }

    pub(crate) fn fetch(&self, vector: &DeviceVec<f64>) -> Result<Vec<f64>, DeviceError> {
        let mut values = vec![0.0; vector.len()];
        self.system.passes().stream().download(vector.view(), &mut values)?;
        Ok(values)
    }
}

/// A variable of a solver on the host.
fn values<'s>(solver: &'s dyn Registered, name: &str) -> &'s [f64] {
    let variables = solver.variables();
    let found = variables.iter().find(|variable| variable.name == name).unwrap();
    match found.values {
        Lent::Near(Values::F64(values)) => values,
        _ => panic!("{name} is a vector of doubles"),
    }
}

/// Takes steps on both sides until the host has converged.
fn compare_steps(device: &Device, a: &dyn Operator, preconditioner: &dyn Preconditioner) {
    let b = wave(a.rows(), 0);
    let pool = Pool::new(1);
    let system = System { a, b: &b, comm: &Solo, pool: &pool };
    let mut here = Cg::new(system, preconditioner, &vec![0.0; b.len()], Stop::at(1e-6)).unwrap();
    let mut there = DeviceCg::new(&system, preconditioner, device).unwrap();
    for step in 0..6 {
        let CgVectors { x, r, p, .. } = &there.vectors;
        for (name, vector) in [("x", x), ("r", r), ("p", p)] {
            let found = there.fetch(vector).unwrap();
            compare(&format!("{name} after step {step}"), &found, values(&here, name));
        }
        here.step().unwrap();
        there.step().unwrap();
    }
}

#[test]
fn steps_over_the_passes_have_the_hosts_bits_in_every_order() {
    for seed in 0..SEEDS {
        let report = on_device(&Settings { seed, ..Settings::default() }, |device| {
            let stencil = Poisson3d::new(11);
            let matrix = Csr::poisson3d(6);
            let jacobi = JacobiPreconditioner::new(&matrix).unwrap();
            compare_steps(device, &stencil, &Identity);
            compare_steps(device, &matrix, &jacobi);
        });
        if report.is_none() {
            return;
        }
    }
}

#[test]
fn an_operator_or_preconditioner_without_a_form_on_a_device_is_refused_by_name() {
    struct Unknown;
    impl Operator for Unknown {
        fn rows(&self) -> usize {
            8
        }

        fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), recoup_core::CommError> {
            y.copy_from_slice(x);
            Ok(())
        }
    }
    on_device(&Settings::default(), |device| {
        let pool = Pool::new(1);
        let b = vec![1.0; 8];
        let system = System { a: &Unknown, b: &b, comm: &Solo, pool: &pool };
        let error = DeviceSystem::new(&system, device).unwrap_err().to_string();
        let expected = "a solve on a device needs all rows on one rank, as a matrix or a stencil, which this operator \
                        does not offer";
        assert_eq!(error, expected);
        let matrix = Csr::poisson3d(2);
        let system = DeviceSystem::new(&System { a: &matrix, ..system }, device).unwrap();
        let ilu = Ilu0::new(&matrix).unwrap();
        let error = DevicePreconditioner::of(&system, &ilu).unwrap_err().to_string();
        assert_eq!(error, "preconditioner ilu0 has no form on a device: use jacobi or none");
    });
}
