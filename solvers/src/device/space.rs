//! The space of a device: its vectors, and the passes over them.

use recoup_core::{Lent, LentMut, SolveError};
use recoup_device::{DeviceView, DeviceViewMut};

use super::error::solve_error;
use super::sys::{BicgstabVectors, CgInverse, DeviceDirections, DeviceSweep, IterateStep};
use super::system::{DevicePreconditioner, DeviceSystem};
use super::vector::DeviceVector;
use crate::{
    BicgstabPasses, CgPasses, DeflatedParts, GmresPasses, HalfSteps, JacobiPasses, PreconditionedResidual,
    Preconditioner, Space, System,
};

/// The views of vectors.
fn views(vectors: &[DeviceVector]) -> Vec<DeviceView<'_, f64>> {
    vectors.iter().map(DeviceVector::view).collect()
}

impl Space for DeviceSystem<'_> {
    type Vector = DeviceVector;
    type Inverse<'m> = DevicePreconditioner;

    fn host(&self) -> &System<'_> {
        DeviceSystem::host(self)
    }

    fn inverse(&self, preconditioner: &dyn Preconditioner) -> Result<DevicePreconditioner, SolveError> {
        DevicePreconditioner::of(self, preconditioner)
    }

    fn zeros(&self, _slot: usize) -> Result<DeviceVector, SolveError> {
        DeviceVector::zeros(self.passes().stream(), self.operator().rows()).map_err(solve_error)
    }

    fn load(&self, source: &[f64], target: &mut DeviceVector) -> Result<(), SolveError> {
        self.passes().stream().upload(source, &mut target.view_mut()).map_err(solve_error)
    }

    fn fetch(&self, source: &DeviceVector, target: &mut [f64]) -> Result<(), SolveError> {
        self.passes().stream().download(source.view(), target).map_err(solve_error)
    }

    fn lend(vector: &DeviceVector) -> Lent<'_> {
        Lent::Afar(vector)
    }

    fn lend_mut(vector: &mut DeviceVector) -> LentMut<'_> {
        LentMut::Afar(vector)
    }

    fn multiply(&self, x: &DeviceVector, y: &mut DeviceVector) -> Result<(), SolveError> {
        self.operator().apply(self.passes(), x.view(), &mut y.view_mut()).map_err(solve_error)
    }

    fn multiply_dot(&self, x: &DeviceVector, y: &mut DeviceVector) -> Result<f64, SolveError> {
        self.operator().apply_dot(self.passes(), x.view(), &mut y.view_mut()).map_err(solve_error)
    }

    fn residual(&self, x: &DeviceVector, r: &mut DeviceVector) -> Result<f64, SolveError> {
        self.operator().residual(self.passes(), self.rhs(), x.view(), &mut r.view_mut()).map_err(solve_error)
    }

    fn precondition(
        &self,
        inverse: &DevicePreconditioner,
        r: &DeviceVector,
        z: &mut DeviceVector,
    ) -> Result<(), SolveError> {
        let z = &mut z.view_mut();
        let done = match inverse {
            DevicePreconditioner::Identity => self.passes().copy(r.view(), z),
            DevicePreconditioner::Diagonal(diagonal) => self.passes().divide(r.view(), diagonal.view(), z),
        };
        done.map_err(solve_error)
    }

    fn clear(&self, target: &mut DeviceVector) -> Result<(), SolveError> {
        self.passes().stream().fill_zero(&mut target.view_mut()).map_err(solve_error)
    }

    fn copy(&self, x: &DeviceVector, target: &mut DeviceVector) -> Result<(), SolveError> {
        self.passes().copy(x.view(), &mut target.view_mut()).map_err(solve_error)
    }

    fn axpy(&self, alpha: f64, x: &DeviceVector, y: &mut DeviceVector) -> Result<(), SolveError> {
        self.passes().axpy(alpha, x.view(), &mut y.view_mut()).map_err(solve_error)
    }

    fn xpay(&self, x: &DeviceVector, beta: f64, y: &mut DeviceVector) -> Result<(), SolveError> {
        self.passes().xpay(x.view(), beta, &mut y.view_mut()).map_err(solve_error)
    }

    fn divide(&self, divisor: f64, y: &mut DeviceVector) -> Result<(), SolveError> {
        self.passes().divide_by(divisor, &mut y.view_mut()).map_err(solve_error)
    }

    fn dot(&self, x: &DeviceVector, y: &DeviceVector) -> Result<f64, SolveError> {
        self.passes().dot(x.view(), y.view()).map_err(solve_error)
    }

    fn multi_dot(&self, w: &DeviceVector, basis: &[DeviceVector], h: &mut [f64]) -> Result<(), SolveError> {
        self.passes().multi_dot(w.view(), &views(basis), h).map_err(solve_error)
    }

    fn multi_axpy(
        &self,
        alpha: f64,
        basis: &[DeviceVector],
        h: &[f64],
        w: &mut DeviceVector,
    ) -> Result<f64, SolveError> {
        self.passes().multi_axpy(alpha, &views(basis), h, &mut w.view_mut()).map_err(solve_error)
    }
}

impl JacobiPasses for DeviceSystem<'_> {
    fn sweep(
        &self,
        inverse_diagonal: &DeviceVector,
        omega: f64,
        x: &mut DeviceVector,
        room: &mut DeviceVector,
    ) -> Result<f64, SolveError> {
        let sweep = DeviceSweep { b: self.rhs(), inverse_diagonal: inverse_diagonal.view(), omega, x: x.view() };
        let squared = self.operator().jacobi_sweep(self.passes(), sweep, &mut room.view_mut()).map_err(solve_error)?;
        std::mem::swap(x, room);
        Ok(squared)
    }
}

impl GmresPasses for DeviceSystem<'_> {
    fn reserve_sums(&self, sums: usize) -> Result<(), SolveError> {
        self.passes().reserve_sums(self.operator().rows(), sums).map_err(solve_error)
    }

    fn scaled_copy(&self, alpha: f64, x: &DeviceVector, target: &mut DeviceVector) -> Result<(), SolveError> {
        self.passes().scaled_copy(alpha, x.view(), &mut target.view_mut()).map_err(solve_error)
    }

    fn combine(&self, columns: &[Vec<f64>], basis: &mut [DeviceVector]) -> Result<(), SolveError> {
        let mut basis: Vec<DeviceViewMut<'_, f64>> = basis.iter_mut().map(DeviceVector::view_mut).collect();
        self.passes().combine(columns, &mut basis).map_err(solve_error)
    }
}

/// A vector, and the inverse that makes z of it.
fn source_of_z<'z>(
    z: &PreconditionedResidual<'z, DeviceVector, DevicePreconditioner>,
) -> (DeviceView<'z, f64>, CgInverse<'z>) {
    match z.stored {
        Some(z) => (z.view(), CgInverse::Identity),
        None => (z.r.view(), z.inverse.inverse()),
    }
}

impl CgPasses for DeviceSystem<'_> {
    fn residual_step(
        &self,
        alpha: f64,
        q: &DeviceVector,
        inverse: &DevicePreconditioner,
        u: &[DeviceVector],
        r: &mut DeviceVector,
        sums: &mut [f64],
    ) -> Result<(), SolveError> {
        let u = views(u);
        let done = self.passes().cg_residual_step(alpha, q.view(), inverse.inverse(), &u, &mut r.view_mut(), sums);
        done.map_err(solve_error)
    }

    fn iterate_step(
        &self,
        alpha: f64,
        beta: f64,
        z: &PreconditionedResidual<'_, DeviceVector, DevicePreconditioner>,
        deflated: &DeflatedParts<'_, DeviceVector>,
        x: &mut DeviceVector,
        p: &mut DeviceVector,
    ) -> Result<(), SolveError> {
        let vectors = views(deflated.directions);
        let directions = DeviceDirections { vectors: &vectors, parts: deflated.parts };
        let (source, inverse) = source_of_z(z);
        let step = IterateStep { alpha, beta };
        let done =
            self.passes().cg_iterate_step(step, source, inverse, directions, &mut x.view_mut(), &mut p.view_mut());
        done.map_err(solve_error)
    }

    fn first_direction(
        &self,
        z: &PreconditionedResidual<'_, DeviceVector, DevicePreconditioner>,
        deflated: &DeflatedParts<'_, DeviceVector>,
        p: &mut DeviceVector,
    ) -> Result<(), SolveError> {
        let vectors = views(deflated.directions);
        let directions = DeviceDirections { vectors: &vectors, parts: deflated.parts };
        let (source, inverse) = source_of_z(z);
        self.passes().cg_restart_direction(source, inverse, directions, &mut p.view_mut()).map_err(solve_error)
    }

    fn preconditioned_dot(
        &self,
        z: &PreconditionedResidual<'_, DeviceVector, DevicePreconditioner>,
    ) -> Result<f64, SolveError> {
        let r = z.r.view();
        let (source, inverse) = source_of_z(z);
        let sum = match inverse {
            CgInverse::Identity => self.passes().dot(r, source),
            CgInverse::Diagonal(diagonal) => self.passes().scaled_dot(diagonal, r),
        };
        sum.map_err(solve_error)
    }
}

impl BicgstabPasses for DeviceSystem<'_> {
    fn two_dots(&self, t: &DeviceVector, s: &DeviceVector) -> Result<[f64; 2], SolveError> {
        self.passes().bicgstab_products(t.view(), s.view()).map_err(solve_error)
    }

    fn iterate_step(
        &self,
        alpha: f64,
        omega: f64,
        half_steps: &HalfSteps<'_, DeviceVector>,
        x: &mut DeviceVector,
        r: &mut DeviceVector,
    ) -> Result<[f64; 2], SolveError> {
        let HalfSteps { p, s, t, shadow } = half_steps;
        let s = s.map(DeviceVector::view);
        let sources = BicgstabVectors { p: p.view(), s, t: t.view(), shadow: shadow.view() };
        let done = self.passes().bicgstab_iterate_step(alpha, omega, sources, &mut x.view_mut(), &mut r.view_mut());
        done.map_err(solve_error)
    }

    fn direction_step(
        &self,
        beta: f64,
        omega: f64,
        r: &DeviceVector,
        v: &DeviceVector,
        p: &mut DeviceVector,
    ) -> Result<(), SolveError> {
        let done = self.passes().bicgstab_direction_step(beta, omega, r.view(), v.view(), &mut p.view_mut());
        done.map_err(solve_error)
    }
}
