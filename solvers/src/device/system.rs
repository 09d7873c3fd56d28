//! A linear system on a device, made from the host's.

use std::sync::Arc;

use recoup_core::SolveError;
use recoup_device::{Device, DeviceVec, FreezeSettings, FreezeWay, ZoneRing};

use super::error::solve_error;
use super::rows::DeviceRows;
use super::sys::{CgInverse, DevicePasses, Doubles};
use crate::{Preconditioner, System};

/// Rows that kernels can number, with those of thread blocks that reach beyond.
const ROWS_MAX: usize = (u32::MAX - (1 << 16)) as usize;

/// `A x = b` on a device: the passes over its vectors run there, one after the other in a stream.
///
/// Scalars are summed over ranks on the host. What needs the entries of A but no vector of the
/// solve, such as norms, is asked of the host's operator. A clone shares all that is on the device:
/// A and b are copied there once, however often a solver is made.
#[derive(Clone)]
pub struct DeviceSystem<'a> {
    host: System<'a>,
    there: Arc<SystemParts>,
    /// The road of what versions need of vectors that are overwritten.
    zones: Arc<ZoneRing>,
}

/// The parts of a system that are on the device.
pub(super) struct SystemParts {
    pub(super) passes: DevicePasses,
    pub(super) operator: DeviceRows,
    pub(super) b: DeviceVec<f64>,
}

impl std::fmt::Debug for DeviceSystem<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceSystem").field("rows", &self.operator().rows()).finish_non_exhaustive()
    }
}

impl<'a> DeviceSystem<'a> {
    /// Copies the operator and the right-hand side of `system` to `device`. Collective.
    ///
    /// # Errors
    /// [`SolveError::Operator`] for an operator that has no form on a device, [`SolveError::Comm`]
    /// when a rank is lost, [`SolveError::Parameter`] for more rows than kernels can number,
    /// [`SolveError::Device`] when the device fails or has no room.
    pub fn new(system: &System<'a>, device: &Device) -> Result<Self, SolveError> {
        let rows = system.a.rows();
        if rows > ROWS_MAX {
            let what = "number of rows on a device";
            return Err(SolveError::Parameter { what, value: rows as f64, expected: "less than 2^32" });
        }
        let passes = DevicePasses::load(device).map_err(solve_error)?.in_chunks(system.a.chunk_rows());
        let operator = DeviceRows::of(&passes, system)?;
        let b = DeviceVec::copy_of(passes.stream(), system.b).map_err(solve_error)?;
        let zones = Arc::new(ZoneRing::new(device, FreezeSettings::default()));
        Ok(Self { host: *system, there: Arc::new(SystemParts { passes, operator, b }), zones })
    }

    /// Freezes the vectors of later solvers for versions as `settings` say. Memory for
    /// [`FreezeWay::Zones`] is made now.
    ///
    /// # Errors
    /// [`SolveError::Device`] when the device has no room for it.
    pub fn freezing(self, settings: FreezeSettings) -> Result<Self, SolveError> {
        let zones = ZoneRing::new(self.passes().stream().device(), settings);
        if settings.way == FreezeWay::Zones {
            zones.reserve().map_err(solve_error)?;
        }
        Ok(Self { zones: Arc::new(zones), ..self })
    }

    /// The road of what versions need of vectors that are overwritten.
    pub(super) fn zones(&self) -> &Arc<ZoneRing> {
        &self.zones
    }

    /// The system on the host.
    #[must_use]
    pub fn host(&self) -> &System<'a> {
        &self.host
    }

    /// All that is on the device.
    pub(super) fn parts(&self) -> &Arc<SystemParts> {
        &self.there
    }

    /// The passes.
    #[must_use]
    pub fn passes(&self) -> &DevicePasses {
        &self.there.passes
    }

    /// The operator.
    #[must_use]
    pub fn operator(&self) -> &DeviceRows {
        &self.there.operator
    }

    /// The right-hand side.
    #[must_use]
    pub fn rhs(&self) -> Doubles<'_> {
        self.there.b.view()
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
    /// [`SolveError::Preconditioner`] for one that is no diagonal, [`SolveError::Device`] when the
    /// device fails or has no room.
    pub fn of(system: &DeviceSystem<'_>, preconditioner: &dyn Preconditioner) -> Result<Self, SolveError> {
        if preconditioner.is_identity() {
            return Ok(Self::Identity);
        }
        let name = preconditioner.name();
        let diagonal =
            preconditioner.diagonal().ok_or(SolveError::Preconditioner { name, instead: "jacobi or none" })?;
        let copied = DeviceVec::copy_of(system.passes().stream(), diagonal);
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
