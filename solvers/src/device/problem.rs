//! The products and sums that a pipeline measures with, on the device of a solve.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{DeviceSnapshot, DeviceValuesError, DeviceValuesErrorKind, ExactSum, ProblemOnDevice, SolveError};
use recoup_device::{DeviceVec, VectorSnapshot};

use super::error::solve_error;
use super::rows::DeviceRows;
use super::sys::{DevicePasses, Doubles};
use super::system::{DeviceSystem, SystemParts};

/// The problem of a [`DeviceSystem`], as the worker of a pipeline measures with it: in a stream of
/// its own, next to the solver's. It has two vectors of the device's memory.
pub struct DeviceProblem {
    there: Arc<SystemParts>,
    /// The rows of this rank, where other ranks have others.
    share: Option<DeviceRows>,
    workspace: Mutex<Workspace>,
}

/// The passes of one measure, and what they write.
struct Workspace {
    passes: DevicePasses,
    product: DeviceVec<f64>,
    difference: DeviceVec<f64>,
}

impl std::fmt::Debug for DeviceProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceProblem").field("rows", &self.there.operator.rows()).finish_non_exhaustive()
    }
}

impl DeviceProblem {
    /// The problem of `system`, with a communicator of its own. Collective.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost, [`SolveError::Device`] when the device fails or
    /// has no room. No rank waits for one that has an error.
    pub fn of(system: &DeviceSystem<'_>) -> Result<Self, SolveError> {
        let there = Arc::clone(system.parts());
        let device = there.passes.stream().device();
        let share = match &there.operator {
            DeviceRows::Whole(_) => None,
            DeviceRows::Share(share) => Some(DeviceRows::Share(Box::new(share.beside(system.host().comm, device)?))),
        };
        let rows = there.operator.rows();
        let make = || {
            let passes = DevicePasses::load(device)?.in_chunks(system.host().a.chunk_rows());
            let [product, difference] = [DeviceVec::new(device, rows), DeviceVec::new(device, rows)];
            Ok(Workspace { passes, product: product?, difference: difference? })
        };
        let workspace = Mutex::new(make().map_err(solve_error)?);
        Ok(Self { there, share, workspace })
    }

    fn operator(&self) -> &DeviceRows {
        self.share.as_ref().unwrap_or(&self.there.operator)
    }

    fn workspace(&self) -> MutexGuard<'_, Workspace> {
        // What a panic left half done is overwritten by the next measure.
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rows of a vector on this device, which later passes find there.
    fn rows_of<'v>(&self, passes: &DevicePasses, values: &'v dyn DeviceSnapshot) -> Result<Doubles<'v>, SolveError> {
        let rows = self.operator().rows();
        let held = values.as_any().downcast_ref::<VectorSnapshot<f64>>().filter(|_| self.is_beside(values));
        let held = held.filter(|held| held.view().len() >= rows).ok_or_else(|| DeviceValuesError {
            message: format!("a vector of {rows} rows on the device of the problem expected"),
            kind: DeviceValuesErrorKind::Failed,
        })?;
        let ordered = held.ticket().map_or(Ok(()), |ticket| passes.stream().wait_for(&ticket));
        ordered.map_err(solve_error)?;
        Ok(held.view().slice(0..rows))
    }

    /// Makes a product with `values`, or stands in for the ranks that need some of them.
    fn with_product<T>(
        &self,
        values: Result<T, SolveError>,
        product: impl FnOnce(T) -> Result<ExactSum, SolveError>,
    ) -> Result<ExactSum, SolveError> {
        match values {
            Ok(values) => product(values),
            Err(error) => self.operator().stand_in().and(Err(error)),
        }
    }
}

impl ProblemOnDevice for DeviceProblem {
    fn is_beside(&self, values: &dyn DeviceSnapshot) -> bool {
        let held = values.as_any().downcast_ref::<VectorSnapshot<f64>>();
        held.is_some_and(|held| held.is_on(self.there.passes.stream().device()))
    }

    fn squared_residual(&self, x: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        let Workspace { passes, product, .. } = &mut *self.workspace();
        self.with_product(self.rows_of(passes, x), |x| {
            self.operator().residual(passes, self.there.b.view(), x, &mut product.view_mut())
        })
    }

    fn squared_norm(&self, x: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        let Workspace { passes, .. } = &*self.workspace();
        let x = self.rows_of(passes, x)?;
        passes.dot(x, x).map_err(solve_error)
    }

    fn squared_energy(&self, v: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        let Workspace { passes, product, .. } = &mut *self.workspace();
        self.with_product(self.rows_of(passes, v), |v| self.operator().apply_dot(passes, v, &mut product.view_mut()))
    }

    fn squared_energy_of_error(&self, v: &dyn DeviceSnapshot, w: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        let Workspace { passes, product, difference } = &mut *self.workspace();
        let mut subtract = || {
            let [v, w] = [self.rows_of(passes, v)?, self.rows_of(passes, w)?];
            passes.copy(w, &mut difference.view_mut()).map_err(solve_error)?;
            // w - v, exactly as the host subtracts
            passes.axpy(-1.0, v, &mut difference.view_mut()).map_err(solve_error)
        };
        self.with_product(subtract(), |()| {
            self.operator().apply_dot(passes, difference.view(), &mut product.view_mut())
        })
    }
}
