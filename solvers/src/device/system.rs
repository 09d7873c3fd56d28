//! A linear system on a device, made from the host's.

use recoup_core::SolveError;
use recoup_device::{Device, DeviceError, DeviceVec, DeviceView, afar_error};

use super::sys::{CgInverse, DeviceOperator, DevicePasses};
use crate::{Preconditioner, System};

/// Rows that kernels can number, with those of thread blocks that reach beyond.
const ROWS_MAX: usize = (u32::MAX - (1 << 16)) as usize;

/// `A x = b` on a device: the passes over its vectors run there, one after the other in a stream.
///
/// Scalars are summed over ranks on the host. What needs the entries of A but no vector of the
/// solve, such as norms, is asked of the host's operator.
pub struct DeviceSystem<'a> {
    host: System<'a>,
    passes: DevicePasses,
    operator: DeviceOperator,
    b: DeviceVec<f64>,
}

impl std::fmt::Debug for DeviceSystem<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceSystem").field("operator", &self.operator).finish_non_exhaustive()
    }
}

impl<'a> DeviceSystem<'a> {
    /// Copies the operator and the right-hand side of `system` to `device`.
    ///
    /// # Errors
    /// [`SolveError::Operator`] for an operator that has no form on a device,
    /// [`SolveError::Parameter`] for more rows than kernels can number, [`SolveError::Afar`] when
    /// the device fails or has no room.
    pub fn new(system: &System<'a>, device: &Device) -> Result<Self, SolveError> {
        let rows = system.a.rows();
        if rows > ROWS_MAX {
            let what = "number of rows on a device";
            return Err(SolveError::Parameter { what, value: rows as f64, expected: "less than 2^32" });
        }
        let passes = DevicePasses::load(device).map_err(solve_error)?;
        let operator = DeviceOperator::of(passes.stream(), system.a).map_err(solve_error)?;
        let method = "a solve on a device";
        let needed = "all rows on one rank, as a matrix or a stencil";
        let operator = operator.ok_or(SolveError::Operator { method, needed })?;
        let b = DeviceVec::copy_of(passes.stream(), system.b).map_err(solve_error)?;
        Ok(Self { host: *system, passes, operator, b })
    }

    /// The system on the host.
    #[must_use]
    pub fn host(&self) -> &System<'a> {
        &self.host
    }

    /// The passes.
    #[must_use]
    pub fn passes(&self) -> &DevicePasses {
        &self.passes
    }

    /// The operator.
    #[must_use]
    pub fn operator(&self) -> &DeviceOperator {
        &self.operator
    }

    /// The right-hand side.
    #[must_use]
    pub fn rhs(&self) -> DeviceView<'_, f64> {
        self.b.view()
    }
}

/// A preconditioner on a device.
#[derive(Debug)]
pub enum DevicePreconditioner {
    /// z is r.
    Identity,
    /// `z = D^-1 r`.
    Diagonal(DeviceVec<f64>),
}

impl DevicePreconditioner {
    /// The form of `preconditioner` on the device of `system`.
    ///
    /// # Errors
    /// [`SolveError::Preconditioner`] for one that is no diagonal, [`SolveError::Afar`] when the
    /// device fails or has no room.
    pub fn of(system: &DeviceSystem<'_>, preconditioner: &dyn Preconditioner) -> Result<Self, SolveError> {
        if preconditioner.is_identity() {
            return Ok(Self::Identity);
        }
        let name = preconditioner.name();
        let diagonal =
            preconditioner.diagonal().ok_or(SolveError::Preconditioner { name, instead: "jacobi or none" })?;
        let copied = DeviceVec::copy_of(system.passes.stream(), diagonal);
        copied.map(Self::Diagonal).map_err(solve_error)
    }

    /// The inverse, as passes of CG take it.
    #[must_use]
    pub fn inverse(&self) -> CgInverse<'_> {
        match self {
            Self::Identity => CgInverse::Identity,
            Self::Diagonal(diagonal) => CgInverse::Diagonal(diagonal.view()),
        }
    }
}

/// Turns an error of a device into one of solvers.
pub(super) fn solve_error(error: DeviceError) -> SolveError {
    SolveError::Afar(afar_error(error))
}
