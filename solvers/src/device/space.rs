//! The space of a device: its vectors, and the passes over them.

use recoup_core::{Borrowed, BorrowedMut, ExactSum, SolveError};
use recoup_device::DeviceVec;

use super::error::solve_error;
use super::sys::{BicgstabVectors, CgInverse, DeviceSweep, Doubles, DoublesMut, IterateStep};
use super::system::{DevicePreconditioner, DeviceSystem};
use crate::{
    BicgstabPasses, CgPasses, DeflatedParts, GmresPasses, HalfSteps, JacobiPasses, PreconditionedResidual,
    Preconditioner, Space, System,
};

/// A vector on a device, and the stream of the passes over it.
type DeviceDoubles = recoup_device::DeviceVector<f64>;

/// Returns a vector, to be overwritten by the next pass.
fn write(vector: &mut DeviceDoubles) -> Result<DoublesMut<'_>, SolveError> {
    vector.write().map_err(solve_error)
}

impl Space for DeviceSystem<'_> {
    type Vector = DeviceDoubles;
    type Inverse<'m> = DevicePreconditioner;

    fn host(&self) -> &System<'_> {
        DeviceSystem::host(self)
    }

    fn inverse(&self, preconditioner: &dyn Preconditioner) -> Result<DevicePreconditioner, SolveError> {
        DevicePreconditioner::of(self, preconditioner)
    }

    fn zeros(&self, _slot: usize) -> Result<DeviceDoubles, SolveError> {
        let stream = self.passes().stream().clone();
        let values = DeviceVec::zeros(&stream, self.operator().rows()).map_err(solve_error)?;
        Ok(DeviceDoubles::zoned(values, stream, self.zones()))
    }

    fn load(&self, source: &[f64], target: &mut DeviceDoubles) -> Result<(), SolveError> {
        target.upload(source).map_err(solve_error)
    }

    fn fetch(&self, source: &DeviceDoubles, target: &mut [f64]) -> Result<(), SolveError> {
        source.download(target).map_err(solve_error)
    }

    fn lend(vector: &DeviceDoubles) -> Borrowed<'_> {
        Borrowed::Device(vector)
    }

    fn lend_mut(vector: &mut DeviceDoubles) -> BorrowedMut<'_> {
        BorrowedMut::Device(vector)
    }

    fn multiply(&self, x: &DeviceDoubles, y: &mut DeviceDoubles) -> Result<(), SolveError> {
        self.operator().apply(self.passes(), x.view(), &mut write(y)?)
    }

    fn multiply_dot(&self, x: &DeviceDoubles, y: &mut DeviceDoubles) -> Result<ExactSum, SolveError> {
        self.operator().apply_dot(self.passes(), x.view(), &mut write(y)?)
    }

    fn residual(&self, x: &DeviceDoubles, r: &mut DeviceDoubles) -> Result<ExactSum, SolveError> {
        self.operator().residual(self.passes(), self.rhs(), x.view(), &mut write(r)?)
    }

    fn precondition(
        &self,
        inverse: &DevicePreconditioner,
        r: &DeviceDoubles,
        z: &mut DeviceDoubles,
    ) -> Result<(), SolveError> {
        let z = &mut write(z)?;
        let done = match inverse {
            DevicePreconditioner::Identity => self.passes().copy(r.view(), z),
            DevicePreconditioner::Diagonal(diagonal) => self.passes().divide(r.view(), diagonal.view(), z),
        };
        done.map_err(solve_error)
    }

    fn clear(&self, target: &mut DeviceDoubles) -> Result<(), SolveError> {
        self.passes().stream().fill_zero(&mut write(target)?).map_err(solve_error)
    }

    fn copy(&self, x: &DeviceDoubles, target: &mut DeviceDoubles) -> Result<(), SolveError> {
        self.passes().copy(x.view(), &mut write(target)?).map_err(solve_error)
    }

    fn axpy(&self, alpha: f64, x: &DeviceDoubles, y: &mut DeviceDoubles) -> Result<(), SolveError> {
        self.passes().axpy(alpha, x.view(), &mut write(y)?).map_err(solve_error)
    }

    fn xpay(&self, x: &DeviceDoubles, beta: f64, y: &mut DeviceDoubles) -> Result<(), SolveError> {
        self.passes().xpay(x.view(), beta, &mut write(y)?).map_err(solve_error)
    }

    fn divide(&self, divisor: f64, y: &mut DeviceDoubles) -> Result<(), SolveError> {
        self.passes().divide_by(divisor, &mut write(y)?).map_err(solve_error)
    }

    fn dot(&self, x: &DeviceDoubles, y: &DeviceDoubles) -> Result<ExactSum, SolveError> {
        self.passes().dot(x.view(), y.view()).map_err(solve_error)
    }

    fn multi_dot(&self, w: &DeviceDoubles, basis: &[DeviceDoubles], h: &mut [ExactSum]) -> Result<(), SolveError> {
        self.passes().multi_dot(w.view(), basis, h).map_err(solve_error)
    }

    fn multi_axpy(
        &self,
        alpha: f64,
        basis: &[DeviceDoubles],
        h: &[f64],
        w: &mut DeviceDoubles,
    ) -> Result<(), SolveError> {
        self.passes().multi_axpy(alpha, basis, h, &mut write(w)?).map_err(solve_error)
    }

    fn multi_axpy_norm(
        &self,
        alpha: f64,
        basis: &[DeviceDoubles],
        h: &[f64],
        w: &mut DeviceDoubles,
    ) -> Result<ExactSum, SolveError> {
        self.passes().multi_axpy_norm(alpha, basis, h, &mut write(w)?).map_err(solve_error)
    }
}

impl JacobiPasses for DeviceSystem<'_> {
    fn sweep(
        &self,
        inverse_diagonal: &DeviceDoubles,
        omega: f64,
        x: &mut DeviceDoubles,
        room: &mut DeviceDoubles,
    ) -> Result<ExactSum, SolveError> {
        let sweep = DeviceSweep { b: self.rhs(), inverse_diagonal: inverse_diagonal.view(), omega, x: x.view() };
        let squared = self.operator().jacobi_sweep(self.passes(), sweep, &mut write(room)?)?;
        std::mem::swap(x, room);
        Ok(squared)
    }
}

impl GmresPasses for DeviceSystem<'_> {
    fn reserve_sums(&self, sums: usize) -> Result<(), SolveError> {
        self.passes().reserve_sums(self.operator().rows(), sums).map_err(solve_error)
    }

    fn scaled_copy(&self, alpha: f64, x: &DeviceDoubles, target: &mut DeviceDoubles) -> Result<(), SolveError> {
        self.passes().scaled_copy(alpha, x.view(), &mut write(target)?).map_err(solve_error)
    }

    fn combine(&self, columns: &[Vec<f64>], basis: &mut [DeviceDoubles]) -> Result<(), SolveError> {
        let mut basis = basis.iter_mut().map(write).collect::<Result<Vec<_>, _>>()?;
        self.passes().combine(columns, &mut basis).map_err(solve_error)
    }
}

/// A vector, and the inverse that makes z of it.
fn source_of_z<'z>(
    z: &PreconditionedResidual<'z, DeviceDoubles, DevicePreconditioner>,
) -> (Doubles<'z>, CgInverse<'z>) {
    match z.stored {
        Some(z) => (z.view(), CgInverse::Identity),
        None => (z.r.view(), z.inverse.inverse()),
    }
}

impl CgPasses for DeviceSystem<'_> {
    fn residual_step(
        &self,
        alpha: f64,
        q: &DeviceDoubles,
        inverse: &DevicePreconditioner,
        u: &[DeviceDoubles],
        r: &mut DeviceDoubles,
        sums: &mut [ExactSum],
    ) -> Result<(), SolveError> {
        let done = self.passes().cg_residual_step(alpha, q.view(), inverse.inverse(), u, &mut write(r)?, sums);
        done.map_err(solve_error)
    }

    fn iterate_step(
        &self,
        alpha: f64,
        beta: f64,
        z: &PreconditionedResidual<'_, DeviceDoubles, DevicePreconditioner>,
        deflated: &DeflatedParts<'_, DeviceDoubles>,
        x: &mut DeviceDoubles,
        p: &mut DeviceDoubles,
    ) -> Result<(), SolveError> {
        let (source, inverse) = source_of_z(z);
        let step = IterateStep { alpha, beta };
        let done = self.passes().cg_iterate_step(step, source, inverse, deflated, &mut write(x)?, &mut write(p)?);
        done.map_err(solve_error)
    }

    fn first_direction(
        &self,
        z: &PreconditionedResidual<'_, DeviceDoubles, DevicePreconditioner>,
        deflated: &DeflatedParts<'_, DeviceDoubles>,
        p: &mut DeviceDoubles,
    ) -> Result<(), SolveError> {
        let (source, inverse) = source_of_z(z);
        self.passes().cg_restart_direction(source, inverse, deflated, &mut write(p)?).map_err(solve_error)
    }

    fn preconditioned_dot(
        &self,
        z: &PreconditionedResidual<'_, DeviceDoubles, DevicePreconditioner>,
    ) -> Result<ExactSum, SolveError> {
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
    fn multiply_dots(
        &self,
        x: &DeviceDoubles,
        w: &DeviceDoubles,
        y: &mut DeviceDoubles,
    ) -> Result<[ExactSum; 2], SolveError> {
        self.multiply(x, y)?;
        self.passes().bicgstab_products(y.view(), w.view()).map_err(solve_error)
    }

    fn iterate_step(
        &self,
        alpha: f64,
        omega: f64,
        half_steps: &HalfSteps<'_, DeviceDoubles>,
        x: &mut DeviceDoubles,
        r: &mut DeviceDoubles,
    ) -> Result<[ExactSum; 2], SolveError> {
        let HalfSteps { p, s, t, shadow } = half_steps;
        let s = s.map(|s| s.view());
        let sources = BicgstabVectors { p: p.view(), s, t: t.view(), shadow: shadow.view() };
        let done = self.passes().bicgstab_iterate_step(alpha, omega, sources, &mut write(x)?, &mut write(r)?);
        done.map_err(solve_error)
    }

    fn direction_step(
        &self,
        beta: f64,
        omega: f64,
        r: &DeviceDoubles,
        v: &DeviceDoubles,
        p: &mut DeviceDoubles,
    ) -> Result<(), SolveError> {
        let done = self.passes().bicgstab_direction_step(beta, omega, r.view(), v.view(), &mut write(p)?);
        done.map_err(solve_error)
    }
}
