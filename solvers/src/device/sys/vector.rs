//! Passes over vectors, with the bits of `kernels/vector.rs`.

#![expect(unsafe_code, reason = "a launch trusts its arguments")]

use recoup_core::ExactSum;
use recoup_device::{Argument, DeviceError, DeviceVec};

use super::launch::{CoefficientTable, DevicePasses, Doubles, DoublesMut, TABLE, VectorTable, rows_of};

/// Vectors that `combine` makes at most; `COMBINED_MAX` of the kernel.
const COMBINED_MAX: usize = 32;

impl DevicePasses {
    /// `x . y`.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device fails, as for all passes.
    pub fn dot(&self, x: Doubles<'_>, y: Doubles<'_>) -> Result<ExactSum, DeviceError> {
        let n = rows_of([x.len(), y.len()]);
        let [sum] = self.sums(n, |sums| {
            // SAFETY: as the kernel is declared; it reads n rows and writes a value for each block.
            unsafe { self.for_blocks(&self.kernels.dot, n, &[&self.chunked(n), &x, &y, sums]) }
        })?;
        Ok(sum)
    }

    /// `r . D^-1 r`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn scaled_dot(&self, diagonal: Doubles<'_>, r: Doubles<'_>) -> Result<ExactSum, DeviceError> {
        let n = rows_of([diagonal.len(), r.len()]);
        let [sum] = self.sums(n, |sums| {
            // SAFETY: as for `dot`.
            unsafe { self.for_blocks(&self.kernels.scaled_dot, n, &[&self.chunked(n), &diagonal, &r, sums]) }
        })?;
        Ok(sum)
    }

    /// `target = x`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn copy(&self, x: Doubles<'_>, target: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        self.stream().copy(x, target)
    }

    /// `y += alpha x`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn axpy(&self, alpha: f64, x: Doubles<'_>, y: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        let n = rows_of([x.len(), y.len()]);
        // SAFETY: as the kernel is declared; it reads and writes n rows.
        unsafe { self.for_rows(&self.kernels.axpy, n, &[&n, &alpha, &x, &*y]) }
    }

    /// `y = x + beta y`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn xpay(&self, x: Doubles<'_>, beta: f64, y: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        let n = rows_of([x.len(), y.len()]);
        // SAFETY: as for `axpy`.
        unsafe { self.for_rows(&self.kernels.xpay, n, &[&n, &x, &beta, &*y]) }
    }

    /// `target = alpha x`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn scaled_copy(&self, alpha: f64, x: Doubles<'_>, target: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        let n = rows_of([x.len(), target.len()]);
        // SAFETY: as for `axpy`.
        unsafe { self.for_rows(&self.kernels.scaled_copy, n, &[&n, &alpha, &x, &*target]) }
    }

    /// `z = D^-1 r`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn divide(&self, r: Doubles<'_>, diagonal: Doubles<'_>, z: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        let n = rows_of([r.len(), diagonal.len(), z.len()]);
        // SAFETY: as for `axpy`.
        unsafe { self.for_rows(&self.kernels.divide, n, &[&n, &r, &diagonal, &*z]) }
    }

    /// `u /= divisor`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn divide_by(&self, divisor: f64, u: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        let n = rows_of([u.len()]);
        // SAFETY: as for `axpy`.
        unsafe { self.for_rows(&self.kernels.divide_by, n, &[&n, &divisor, &*u]) }
    }

    /// `r = x + omega D^-1 r`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn relax(
        &self,
        omega: f64,
        inverse_diagonal: Doubles<'_>,
        x: Doubles<'_>,
        r: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        let n = rows_of([inverse_diagonal.len(), x.len(), r.len()]);
        // SAFETY: as for `axpy`.
        unsafe { self.for_rows(&self.kernels.relax, n, &[&n, &omega, &inverse_diagonal, &x, &*r]) }
    }

    /// `h_j = w . v_j` for each vector of `basis`: as many sums as `h` is long.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn multi_dot(
        &self,
        w: Doubles<'_>,
        basis: &[impl AsRef<DeviceVec<f64>>],
        h: &mut [ExactSum],
    ) -> Result<(), DeviceError> {
        assert_eq!(basis.len(), h.len(), "one sum for each basis vector");
        let n = rows_of([w.len()]);
        let blocks = self.chunked(n).blocks() as usize;
        self.sums_into(n, h, |sums| {
            // A table is whole groups of four, so the groups are those of the host.
            for (part, vectors) in basis.chunks(TABLE).enumerate() {
                let table = VectorTable::new(vectors, n);
                let count = vectors.len() as u32;
                let own = sums.as_view().slice(part * TABLE * blocks..sums.len());
                // SAFETY: as the kernel is declared; it reads n rows of `count` vectors and writes
                // a value for each block and vector, from the place of this table on.
                unsafe { self.for_blocks(&self.kernels.multi_dot, n, &[&self.chunked(n), &w, &table, &count, &own]) }?;
            }
            Ok(())
        })
    }

    /// `w += alpha sum_j h_j v_j`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn multi_axpy(
        &self,
        alpha: f64,
        basis: &[impl AsRef<DeviceVec<f64>>],
        h: &[f64],
        w: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        self.without_sums(rows_of([w.len()]), |sums| self.add_multiples(alpha, basis, h, w, sums))
    }

    /// `w += alpha sum_j h_j v_j`, and the new `w . w`.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn multi_axpy_norm(
        &self,
        alpha: f64,
        basis: &[impl AsRef<DeviceVec<f64>>],
        h: &[f64],
        w: &mut DoublesMut<'_>,
    ) -> Result<ExactSum, DeviceError> {
        if basis.is_empty() {
            return self.dot(w.as_view(), w.as_view());
        }
        let [sum] = self.sums(rows_of([w.len()]), |sums| self.add_multiples(alpha, basis, h, w, sums))?;
        Ok(sum)
    }

    /// Launches both passes above.
    fn add_multiples(
        &self,
        alpha: f64,
        basis: &[impl AsRef<DeviceVec<f64>>],
        h: &[f64],
        w: &DoublesMut<'_>,
        sums: &DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        assert_eq!(basis.len(), h.len(), "one coefficient for each basis vector");
        let n = rows_of([w.len()]);
        for (vectors, h) in basis.chunks(TABLE).zip(h.chunks(TABLE)) {
            let table = VectorTable::new(vectors, n);
            let coefficients = CoefficientTable::new(h.iter().map(|h| alpha * h));
            let count = vectors.len() as u32;
            let rows = self.chunked(n);
            let arguments: [&dyn Argument; 6] = [&rows, &table, &coefficients, &count, w, sums];
            // SAFETY: as the kernel is declared; it reads n rows of `count` vectors, and writes
            // w, borrowed to be written by the callers, and a value for each block.
            unsafe { self.for_blocks(&self.kernels.multi_axpy, n, &arguments) }?;
        }
        Ok(())
    }

    /// `v_j = sum_i c_ij v_i` in place for the first vectors of `basis`, one for each column of
    /// `columns`; the others stay. Waits for the device.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn combine(&self, columns: &[Vec<f64>], basis: &mut [DoublesMut<'_>]) -> Result<(), DeviceError> {
        assert!(columns.len() <= COMBINED_MAX && columns.len() <= basis.len(), "{} vectors made", columns.len());
        assert!(columns.iter().all(|column| column.len() == basis.len()), "one coefficient for each vector");
        let Some(first) = basis.first() else { return Ok(()) };
        let n = rows_of([first.len()]);
        assert!(basis.iter().all(|v| v.len() == n as usize), "vectors of one pass differ in length");
        let count = basis.len() as u32;
        let made = columns.len() as u32;
        let addresses: Vec<u64> = basis.iter().map(|v| *v.as_view().address()).collect();
        let table = DeviceVec::copy_of(self.stream(), &addresses)?;
        let coefficients = DeviceVec::copy_of(self.stream(), &columns.concat())?;
        let table = table.view();
        let coefficients = coefficients.view();
        // SAFETY: as the kernel is declared; it reads n rows of all vectors of the table, which are
        // borrowed to be written, and writes those of the first.
        unsafe { self.for_combined_rows(n, &[&n, &table, &count, &coefficients, &made]) }
    }
}
