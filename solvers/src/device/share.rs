//! This rank's share of an operator on a device. Values of other ranks' rows come through the host.
//!
//! Promises: the bits of the host's operator on as many ranks. A rank whose device fails sends
//! zeros and returns the error: the others learn of it where all ranks agree next.

use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::{Comm, CommError, ExactSum, Operator, SolveError};
use recoup_device::{Device, DeviceError, DeviceVec, Stream};

use super::error::solve_error;
use super::sys::{
    DeviceBeyond, DeviceOperator, DevicePasses, DeviceRowList, DeviceSlab, DeviceSweep, Doubles, DoublesMut,
};
use crate::operators::Halo;
use crate::{DistributedCsr, DistributedPoisson3d, System};

/// A rank's rows of an operator, and the exchange of values with other ranks.
pub struct DeviceShare {
    rows: Arc<ShareRows>,
    halo: Halo,
    room: Mutex<HaloRoom>,
}

/// A rank's rows on its device.
struct ShareRows {
    form: ShareForm,
    count: usize,
    /// Rows whose values others need.
    sent: DeviceRowList,
}

enum ShareForm {
    /// Planes of a cube.
    Slab(DeviceSlab),
    /// Rows of a matrix.
    Rows(Box<MatrixShare>),
}

/// The entries between rows of this rank, and those in columns of others.
struct MatrixShare {
    local: DeviceOperator,
    beyond: DeviceBeyond,
}

/// Room on the device for what is exchanged.
struct HaloRoom {
    outgoing: DeviceVec<f64>,
    incoming: DeviceVec<f64>,
}

impl DeviceShare {
    /// The share of a distributed operator on the device of `stream`; `None` for another operator.
    /// Collective.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost, [`SolveError::Device`] when the device fails or
    /// has no room.
    pub(super) fn of(stream: &Stream, system: &System<'_>) -> Result<Option<Self>, SolveError> {
        let Some(known) = system.a.as_any() else { return Ok(None) };
        if let Some(planes) = known.downcast_ref::<DistributedPoisson3d>() {
            let halo = planes.halo().over(system.comm.dup()?);
            let form = ShareForm::Slab(slab_of(planes));
            return Self::with(stream, form, halo, planes.rows()).map(Some);
        }
        let Some(matrix) = known.downcast_ref::<DistributedCsr>() else { return Ok(None) };
        let halo = matrix.halo().over(system.comm.dup()?);
        let local = DeviceOperator::of(stream, matrix.local().as_ref()).map_err(solve_error)?;
        let local = local.expect("a matrix has a form on a device");
        let beyond = DeviceBeyond::of(stream, matrix.beyond()).map_err(solve_error)?;
        Self::with(stream, ShareForm::Rows(Box::new(MatrixShare { local, beyond })), halo, matrix.rows()).map(Some)
    }

    fn with(stream: &Stream, form: ShareForm, halo: Halo, count: usize) -> Result<Self, SolveError> {
        let sent = DeviceRowList::of(stream, &halo.sent_rows()).map_err(solve_error)?;
        Self::linked(Arc::new(ShareRows { form, count, sent }), halo, stream.device())
    }

    fn linked(rows: Arc<ShareRows>, halo: Halo, device: &Device) -> Result<Self, SolveError> {
        let room = || {
            let outgoing = DeviceVec::new(device, halo.sent_rows().len())?;
            Ok(HaloRoom { outgoing, incoming: DeviceVec::new(device, halo.received())? })
        };
        let room = Mutex::new(room().map_err(solve_error)?);
        Ok(Self { rows, halo, room })
    }

    /// The same rows for another thread, which exchanges values by a communicator of its own.
    /// Collective.
    ///
    /// # Errors
    /// Those of [`DeviceRows::apply`](super::DeviceRows::apply); no rank waits for one that has
    /// none.
    pub(super) fn beside(&self, comm: &dyn Comm, device: &Device) -> Result<Self, SolveError> {
        let halo = self.halo.over(comm.dup()?);
        Self::linked(Arc::clone(&self.rows), halo, device)
    }

    /// Sends zeros in place of the values that a product needs of this rank, which cannot make it.
    /// Collective.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost.
    pub(super) fn stand_in(&self) -> Result<(), SolveError> {
        let fill = |values: &mut [f64]| {
            values.fill(0.0);
            Ok(())
        };
        Ok(self.halo.exchange_filled::<CommError>(fill, |_| Ok(()))?)
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.count
    }

    /// `y = A x`. Collective.
    pub(super) fn apply(
        &self,
        passes: &DevicePasses,
        x: Doubles<'_>,
        y: &mut DoublesMut<'_>,
    ) -> Result<(), SolveError> {
        // What a panic left half done is overwritten.
        let HaloRoom { outgoing, incoming } = &mut *self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = passes.stream();
        let fill = |values: &mut [f64]| {
            passes.gather(&self.rows.sent, x, &mut outgoing.view_mut())?;
            Ok(stream.download(outgoing.view(), values)?)
        };
        let take = |values: &[f64]| Ok(stream.upload(values, &mut incoming.view_mut())?);
        self.halo.exchange_filled::<HaloError>(fill, take)?;
        self.multiply(passes, x, incoming.view(), y).map_err(solve_error)
    }

    /// `y = A x` with the values of other ranks at hand.
    fn multiply(
        &self,
        passes: &DevicePasses,
        x: Doubles<'_>,
        halo: Doubles<'_>,
        y: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        match &self.rows.form {
            ShareForm::Slab(slab) => passes.slab_apply(slab, x, halo, y),
            ShareForm::Rows(rows) => {
                rows.local.apply(passes, x, y)?;
                passes.apply_beyond(&rows.local, &rows.beyond, x, halo, y)
            }
        }
    }

    /// `r = b - A x`.
    pub(super) fn subtract_product(
        &self,
        passes: &DevicePasses,
        b: Doubles<'_>,
        x: Doubles<'_>,
        r: &mut DoublesMut<'_>,
    ) -> Result<(), SolveError> {
        self.apply(passes, x, r)?;
        // b + (-1) A x has the bits of b - A x.
        passes.xpay(b, -1.0, r).map_err(solve_error)
    }

    /// Does a Jacobi sweep as [`DeviceOperator::jacobi_sweep`] does. Collective.
    pub(super) fn jacobi_sweep(
        &self,
        passes: &DevicePasses,
        sweep: DeviceSweep<'_>,
        target: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, SolveError> {
        let DeviceSweep { b, inverse_diagonal, omega, x } = sweep;
        self.subtract_product(passes, b, x, target)?;
        let squares = match &self.rows.form {
            ShareForm::Slab(slab) => {
                passes.plane_squares(slab.side, slab.planes, target.as_view()).map_err(solve_error)?
            }
            ShareForm::Rows(_) => passes.dot(target.as_view(), target.as_view()).map_err(solve_error)?,
        };
        passes.relax(omega, inverse_diagonal, x, target).map_err(solve_error)?;
        Ok(squares)
    }
}

/// An error of an exchange.
enum HaloError {
    Comm(CommError),
    Device(DeviceError),
}

impl From<CommError> for HaloError {
    fn from(error: CommError) -> Self {
        Self::Comm(error)
    }
}

impl From<DeviceError> for HaloError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<HaloError> for SolveError {
    fn from(error: HaloError) -> Self {
        match error {
            HaloError::Comm(error) => error.into(),
            HaloError::Device(error) => solve_error(error),
        }
    }
}

fn slab_of(planes: &DistributedPoisson3d) -> DeviceSlab {
    let [side, here] = planes.slab().side_and_planes();
    let is_first = planes.first_row() == 0;
    let is_last = planes.first_row() + planes.rows() as u64 == planes.global_rows();
    DeviceSlab { side: side as u32, planes: here as u32, below: usize::from(!is_first), above: usize::from(!is_last) }
}
