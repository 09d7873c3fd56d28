//! The passes that use values of other ranks' rows.

#![expect(unsafe_code, reason = "a launch trusts its arguments, and a kernel takes a share as its addresses")]

use bytemuck::{Pod, Zeroable};
use recoup_device::{Argument, DeviceError, DeviceVec, Stream};

use super::launch::{DevicePasses, Doubles, DoublesMut, rows_of};
use super::operators::DeviceOperator;
use crate::operators::Beyond;

/// Some planes of the cube of a 7-point Laplacian; the planes around them come with each product.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlab {
    /// Points along a side.
    pub side: u32,
    /// Planes that are here.
    pub planes: u32,
    /// Planes of other ranks below, 0 or 1.
    pub below: usize,
    /// Planes of other ranks above, 0 or 1.
    pub above: usize,
}

/// A slab as kernels take it; `Slab` in `operators.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct SlabForm {
    below: u64,
    above: u64,
    side: u32,
    planes: u32,
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for SlabForm {}
// SAFETY: two 8-byte and two 4-byte numbers, any bytes of which are numbers, with nothing between.
unsafe impl Pod for SlabForm {}

/// Entries of a matrix in columns of other ranks.
#[derive(Debug)]
pub struct DeviceBeyond {
    addresses: BeyondAddresses,
    count: u32,
    halo: usize,
    rows_end: usize,
    _rows: DeviceVec<u32>,
    _starts: DeviceVec<u64>,
    _columns: DeviceVec<u32>,
    _values: DeviceVec<f64>,
}

/// Addresses of its parts, as kernels take them; `Beyond` in `operators.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct BeyondAddresses {
    rows: u64,
    starts: u64,
    columns: u64,
    values: u64,
    low: u64,
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for BeyondAddresses {}
// SAFETY: five 8-byte numbers, any bytes of which are numbers, with nothing between them.
unsafe impl Pod for BeyondAddresses {}

/// Numbers of rows.
#[derive(Debug)]
pub struct DeviceRowList {
    rows: DeviceVec<u32>,
    /// One more than the largest.
    end: usize,
}

impl DeviceRowList {
    /// Copies the numbers to the device of `stream`.
    pub(crate) fn of(stream: &Stream, rows: &[u32]) -> Result<Self, DeviceError> {
        let end = rows.iter().max().map_or(0, |last| *last as usize + 1);
        Ok(Self { rows: DeviceVec::copy_of(stream, rows)?, end })
    }
}

impl DeviceBeyond {
    /// Copies the entries to the device of `stream`.
    pub(crate) fn of(stream: &Stream, beyond: &Beyond) -> Result<Self, DeviceError> {
        let starts: Vec<u64> = beyond.starts.iter().map(|start| *start as u64).collect();
        let rows = DeviceVec::copy_of(stream, &beyond.rows)?;
        let starts = DeviceVec::copy_of(stream, &starts)?;
        let columns = DeviceVec::copy_of(stream, &beyond.columns)?;
        let values = DeviceVec::copy_of(stream, &beyond.values)?;
        let addresses = BeyondAddresses {
            rows: *rows.view().address(),
            starts: *starts.view().address(),
            columns: *columns.view().address(),
            values: *values.view().address(),
            low: u64::from(beyond.low),
        };
        Ok(Self {
            addresses,
            count: rows_of([beyond.rows.len()]),
            halo: beyond.columns.iter().max().map_or(0, |last| *last as usize + 1),
            rows_end: beyond.rows.last().map_or(0, |last| *last as usize + 1),
            _rows: rows,
            _starts: starts,
            _columns: columns,
            _values: values,
        })
    }
}

impl DevicePasses {
    /// `y = A x` for the planes of a slab; `halo` holds the planes below and above it.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn slab_apply(
        &self,
        slab: &DeviceSlab,
        x: Doubles<'_>,
        halo: Doubles<'_>,
        y: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        let DeviceSlab { side, planes, below, above } = *slab;
        let plane = side as usize * side as usize;
        let n = rows_of([x.len(), y.len(), plane * planes as usize]);
        assert_eq!(halo.len(), (below + above) * plane, "planes around a slab");
        let first = *halo.address();
        let last = first + ((halo.len() - above * plane) * size_of::<f64>()) as u64;
        let form = SlabForm {
            below: if below > 0 { first } else { 0 },
            above: if above > 0 { last } else { 0 },
            side,
            planes,
        };
        // SAFETY: as the kernel is declared; it reads n rows of x and the planes around them, which
        // are there as asserted, and writes n rows of y.
        unsafe { self.for_rows(&self.kernels.slab_apply, n, &[&form, &n, &x, &*y]) }
    }

    /// `y = A x` for the rows with entries in columns of other ranks; `local` has the others.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    ///
    /// # Panics
    /// For a `local` that is no matrix.
    pub fn apply_beyond(
        &self,
        local: &DeviceOperator,
        beyond: &DeviceBeyond,
        x: Doubles<'_>,
        halo: Doubles<'_>,
        y: &mut DoublesMut<'_>,
    ) -> Result<(), DeviceError> {
        assert_eq!([local.rows(); 2], [x.len(), y.len()], "a share and its vectors");
        assert!(beyond.halo <= halo.len() && beyond.rows_end <= y.len(), "a share and its vectors");
        assert!(local.is_matrix(), "rows of a matrix");
        let arguments: [&dyn Argument; 6] = [local.argument(), &beyond.addresses, &beyond.count, &x, &halo, &*y];
        // SAFETY: as the kernel is declared; all columns are below the length of the halo and all
        // rows, each once, below that of y.
        unsafe { self.for_rows(&self.kernels.apply_beyond, beyond.count, &arguments) }
    }

    /// Copies the values of some rows, one after the other.
    ///
    /// # Errors
    /// Those of [`DevicePasses::dot`].
    pub fn gather(&self, list: &DeviceRowList, x: Doubles<'_>, target: &mut DoublesMut<'_>) -> Result<(), DeviceError> {
        let count = rows_of([list.rows.len(), target.len()]);
        assert!(list.end <= x.len(), "rows of a vector");
        // SAFETY: as the kernel is declared; all rows are below the length of x, as asserted.
        unsafe { self.for_rows(&self.kernels.gather, count, &[&count, &list.rows.view(), &x, &*target]) }
    }
}
