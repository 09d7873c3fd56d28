//! Operators on a device, and the passes that take a product with one.

#![expect(unsafe_code, reason = "a launch trusts its arguments, and a kernel takes a matrix as its addresses")]

use bytemuck::{Pod, Zeroable};
use recoup_core::{ExactSum, Operator};
use recoup_device::{Argument, DeviceError, DeviceKernel, DeviceVec, Stream};

use super::launch::{DevicePasses, Doubles, DoublesMut, rows_of};
use crate::{Csr, Poisson3d};

/// Rows of a slice; `SLICE` of the kernel.
const SLICE: usize = 32;
/// Lanes of the squares of a plane; `HALF` of the kernel.
const PLANE_LANES: u32 = 8;

/// An operator on a device: all rows of it, without neighbours on other ranks.
/// [`DeviceShare`](crate::device::DeviceShare) has the rows of one rank.
#[derive(Debug)]
pub struct DeviceOperator {
    rows: u32,
    form: OperatorForm,
}

#[derive(Debug)]
enum OperatorForm {
    /// The 7-point Laplacian on a cube of this side.
    Stencil { side: u32 },
    /// A matrix in slices of 32 rows.
    Slices(SlicedRows),
}

/// A matrix in slices of 32 rows, entry k of the rows of a slice side by side. A slice is as long
/// as its longest row; what follows a shorter one is never read.
#[derive(Debug)]
struct SlicedRows {
    addresses: SliceAddresses,
    _starts: DeviceVec<u64>,
    _lengths: DeviceVec<u32>,
    _columns: DeviceVec<u32>,
    _values: DeviceVec<f64>,
}

/// Addresses of the parts of a sliced matrix, as kernels take them; `Slices` in `operators.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct SliceAddresses {
    starts: u64,
    lengths: u64,
    columns: u64,
    values: u64,
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for SliceAddresses {}
// SAFETY: four 8-byte numbers, any bytes of which are numbers, with nothing between them.
unsafe impl Pod for SliceAddresses {}

/// The kernels of one form of operators.
struct OperatorKernels<'k> {
    apply: &'k DeviceKernel,
    apply_dot: &'k DeviceKernel,
    residual: &'k DeviceKernel,
}

impl DeviceOperator {
    /// The form of `a` on the device of `stream`: of a [`Csr`], or of a whole [`Poisson3d`], which
    /// needs no memory. `None` for another operator.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device has no room for it.
    ///
    /// # Panics
    /// When its rows have no 32-bit numbers.
    pub fn of(stream: &Stream, a: &dyn Operator) -> Result<Option<Self>, DeviceError> {
        let Some(known) = a.as_any() else { return Ok(None) };
        let form = if let Some(matrix) = known.downcast_ref::<Csr>() {
            OperatorForm::Slices(SlicedRows::of(stream, matrix)?)
        } else if let Some(side) = known.downcast_ref::<Poisson3d>().and_then(Poisson3d::whole_side) {
            OperatorForm::Stencil { side: side as u32 }
        } else {
            return Ok(None);
        };
        Ok(Some(Self { rows: rows_of([a.rows()]), form }))
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns whether kernels take it as `Slices`.
    pub(super) fn is_matrix(&self) -> bool {
        matches!(self.form, OperatorForm::Slices(_))
    }

    /// Its form, as kernels take it.
    pub(super) fn argument(&self) -> &dyn Argument {
        match &self.form {
            OperatorForm::Stencil { side } => side,
            OperatorForm::Slices(slices) => &slices.addresses,
        }
    }

    fn kernels<'k>(&self, passes: &'k DevicePasses) -> OperatorKernels<'k> {
        let all = &passes.kernels;
        match self.form {
            OperatorForm::Stencil { .. } => OperatorKernels {
                apply: &all.stencil_apply,
                apply_dot: &all.stencil_apply_dot,
                residual: &all.stencil_residual,
            },
            OperatorForm::Slices(_) => OperatorKernels {
                apply: &all.slices_apply,
                apply_dot: &all.slices_apply_dot,
                residual: &all.slices_residual,
            },
        }
    }

    /// `y = A x`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn apply(&self, passes: &DevicePasses, x: Doubles<'_>, y: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        let n = rows_of([self.rows(), x.len(), y.len()]);
        // SAFETY: as the kernel is declared; all columns are below n, so it reads n rows of x and
        // writes n rows of y.
        unsafe { passes.for_rows(self.kernels(passes).apply, n, &[self.argument(), &n, &x, &*y]) }
    }

    /// `y = A x`, and `x . y`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn apply_dot(
        &self,
        passes: &DevicePasses,
        x: Doubles<'_>,
        y: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, DeviceError> {
        let n = rows_of([self.rows(), x.len(), y.len()]);
        let [sum] = passes.sums(n, |sums| {
            let rows = passes.chunked(n);
            let arguments: [&dyn Argument; 5] = [self.argument(), &rows, &x, &*y, sums];
            // SAFETY: as for `apply`, and a value for each block.
            unsafe { passes.for_blocks(self.kernels(passes).apply_dot, n, &arguments) }
        })?;
        Ok(sum)
    }

    /// `r = b - A x`, and `r . r`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn residual(
        &self,
        passes: &DevicePasses,
        b: Doubles<'_>,
        x: Doubles<'_>,
        r: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, DeviceError> {
        let n = rows_of([self.rows(), b.len(), x.len(), r.len()]);
        let [sum] = passes.sums(n, |sums| self.launch_residual(passes, b, x, r, sums))?;
        Ok(sum)
    }

    fn launch_residual(
        &self,
        passes: &DevicePasses,
        b: Doubles<'_>,
        x: Doubles<'_>,
        r: &mut DoublesMut<'_>,
        sums: &DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        let rows = passes.chunked(self.rows);
        let arguments: [&dyn Argument; 6] = [self.argument(), &rows, &b, &x, &*r, sums];
        // SAFETY: as for `apply_dot`; the caller has compared the lengths.
        unsafe { passes.for_blocks(self.kernels(passes).residual, self.rows, &arguments) }
    }

    /// Does a Jacobi sweep, `target = x + omega D^-1 (b - A x)`, and returns the sum of squares of
    /// the residual before, which is summed as the host's operator sums it.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn jacobi_sweep(
        &self,
        passes: &DevicePasses,
        sweep: DeviceSweep<'_>,
        target: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, DeviceError> {
        let DeviceSweep { b, inverse_diagonal, omega, x } = sweep;
        let n = rows_of([self.rows(), b.len(), x.len(), target.len()]);
        let residual_squared = match self.form {
            OperatorForm::Stencil { side } => {
                passes.without_sums(n, |sums| self.launch_residual(passes, b, x, target, sums))?;
                passes.plane_squares(side, side, target.as_view())?
            }
            OperatorForm::Slices(_) => self.residual(passes, b, x, target)?,
        };
        passes.relax(omega, inverse_diagonal, x, target)?;
        Ok(residual_squared)
    }
}

/// Input of [`DeviceOperator::jacobi_sweep`].
#[derive(Clone, Copy, Debug)]
pub struct DeviceSweep<'v> {
    /// The right-hand side.
    pub b: Doubles<'v>,
    /// `1 / a_ii`.
    pub inverse_diagonal: Doubles<'v>,
    /// Damping.
    pub omega: f64,
    /// The iterate before.
    pub x: Doubles<'v>,
}

impl DevicePasses {
    /// `r . r` in the order of the host's sweep over some planes of a cube of side `side`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub(crate) fn plane_squares(&self, side: u32, planes: u32, r: Doubles<'_>) -> Result<ExactSum, DeviceError> {
        assert_eq!(r.len(), side as usize * side as usize * planes as usize, "planes of a cube");
        self.sum_of_values(planes as usize, |sums| {
            // SAFETY: as the kernel is declared; r has the rows of the planes, as asserted, and
            // there is a value for each plane.
            unsafe { self.for_rows(&self.kernels.plane_squares, planes * PLANE_LANES, &[&side, &planes, &r, sums]) }
        })
    }
}

impl SlicedRows {
    fn of(stream: &Stream, matrix: &Csr) -> Result<Self, DeviceError> {
        let n = matrix.n();
        let lengths: Vec<u32> = (0..n).map(|row| matrix.row(row).0.len() as u32).collect();
        let mut starts = Vec::with_capacity(n.div_ceil(SLICE));
        let mut entries = 0;
        for slice in lengths.chunks(SLICE) {
            starts.push(entries as u64);
            entries += slice.iter().max().map_or(0, |longest| *longest as usize) * SLICE;
        }
        let mut columns = vec![0; entries];
        let mut values = vec![0.0; entries];
        for row in 0..n {
            let first = starts[row / SLICE] as usize + row % SLICE;
            let (row_columns, row_values) = matrix.row(row);
            for (k, (column, value)) in row_columns.iter().zip(row_values).enumerate() {
                columns[first + k * SLICE] = *column;
                values[first + k * SLICE] = *value;
            }
        }
        let starts = DeviceVec::copy_of(stream, &starts)?;
        let lengths = DeviceVec::copy_of(stream, &lengths)?;
        let columns = DeviceVec::copy_of(stream, &columns)?;
        let values = DeviceVec::copy_of(stream, &values)?;
        let addresses = SliceAddresses {
            starts: *starts.view().address(),
            lengths: *lengths.view().address(),
            columns: *columns.view().address(),
            values: *values.view().address(),
        };
        Ok(Self { addresses, _starts: starts, _lengths: lengths, _columns: columns, _values: values })
    }
}
