//! The kernels on one device, their grids, and the sums over rows.

#![expect(unsafe_code, reason = "a launch trusts its arguments")]

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::{Pod, Zeroable};
use recoup_core::ExactSum;
use recoup_device::{
    Argument, Device, DeviceError, DeviceKernel, DeviceModule, DeviceVec, DeviceView, DeviceViewMut, Grid, HostBuffer,
    HostRead, Stream,
};

use super::room::SumRoom;
use crate::kernels::{BLOCK, SummedRows};

/// Doubles in the memory of a device, to read.
pub type Doubles<'v> = DeviceView<'v, f64>;
/// Doubles in the memory of a device, to write.
pub type DoublesMut<'v> = DeviceViewMut<'v, f64>;

/// The kernels of all passes, as CUDA C.
pub const KERNEL_SOURCE: &str = concat!(
    include_str!("sums.cuh"),
    include_str!("vector.cuh"),
    include_str!("operators.cuh"),
    include_str!("methods.cuh")
);

/// Threads of a thread block in passes without sums: a row each.
const ROW_THREADS: u32 = 256;
/// Threads of a thread block in passes with sums.
const LANE_THREADS: u32 = 128;
/// Threads that share a block of rows.
const LANES: u32 = 16;
/// Threads of a thread block of `combine`; `COMBINE_THREADS` of the kernel.
const COMBINE_THREADS: u32 = 64;
/// Vectors in a table.
pub(super) const TABLE: usize = 32;

macro_rules! kernels {
    ($($name:ident),+ $(,)?) => {
        /// The kernels of all passes.
        pub(super) struct PassKernels {
            $(pub(super) $name: DeviceKernel,)+
        }

        impl PassKernels {
            fn load(module: &DeviceModule) -> Result<Self, DeviceError> {
                Ok(Self { $($name: module.kernel(stringify!($name))?,)+ })
            }
        }
    };
}

kernels! {
    sum_chunks, dot, scaled_dot, axpy, xpay, scaled_copy, divide, divide_by, relax, multi_dot, multi_axpy,
    combine, stencil_apply, stencil_apply_dot, stencil_residual, slices_apply, slices_apply_dot, slices_residual,
    plane_squares, slab_apply, apply_beyond, gather, cg_residual_step, cg_iterate_step, cg_restart_direction, bicgstab_products, bicgstab_iterate_step,
    bicgstab_direction_step,
}

/// Addresses of vectors, as kernels take them; `Vectors` in `sums.cuh`.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct VectorTable([u64; TABLE]);

// SAFETY: zeros are numbers.
unsafe impl Zeroable for VectorTable {}
// SAFETY: whole numbers in a row, any bytes of which are numbers.
unsafe impl Pod for VectorTable {}

impl VectorTable {
    /// The addresses of at most [`TABLE`] vectors of `n` rows.
    pub(super) fn new(vectors: &[impl AsRef<DeviceVec<f64>>], n: u32) -> Self {
        assert!(vectors.len() <= TABLE, "{} vectors in a table", vectors.len());
        let mut table = Self::default();
        for (address, vector) in table.0.iter_mut().zip(vectors) {
            assert_eq!(vector.as_ref().len(), n as usize, "vectors of one pass differ in length");
            *address = *vector.as_ref().view().address();
        }
        table
    }
}

/// Numbers, one for each vector of a table; `Coefficients` in `sums.cuh`.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct CoefficientTable([f64; TABLE]);

// SAFETY: zeros are numbers.
unsafe impl Zeroable for CoefficientTable {}
// SAFETY: numbers in a row, any bytes of which are numbers.
unsafe impl Pod for CoefficientTable {}

impl CoefficientTable {
    /// At most [`TABLE`] numbers.
    pub(super) fn new(coefficients: impl IntoIterator<Item = f64>) -> Self {
        let mut table = Self::default();
        for (index, coefficient) in coefficients.into_iter().enumerate() {
            table.0[index] = coefficient;
        }
        table
    }
}

/// The kernels of solvers on a device, the stream they run in, and room for their sums.
///
/// A pass is one launch. A pass with sums adds a launch, one small copy to the host and one wait:
/// two in an iteration of CG, three in one of BiCGSTAB. Scalars kept on the device would save these
/// waits; the host would then read the residual norm one iteration late.
pub struct DevicePasses {
    stream: Stream,
    pub(super) kernels: PassKernels,
    room: Mutex<SumRoom>,
    /// Rows of a chunk of the sums; `None` where vectors are of no operator.
    chunk_rows: Option<usize>,
}

/// The rows of a pass with sums; `Rows` in `sums.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct ChunkedRows {
    n: u32,
    chunk: u32,
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for ChunkedRows {}
// SAFETY: two 4-byte numbers, any bytes of which are numbers, with nothing between them.
unsafe impl Pod for ChunkedRows {}

impl ChunkedRows {
    fn chunks(self) -> u32 {
        self.n.div_ceil(self.chunk)
    }

    fn chunk_blocks(self) -> u32 {
        self.chunk.div_ceil(BLOCK as u32)
    }

    /// Number of blocks, each within a chunk.
    pub(super) fn blocks(self) -> u32 {
        self.n / self.chunk * self.chunk_blocks() + (self.n % self.chunk).div_ceil(BLOCK as u32)
    }
}

impl fmt::Debug for DevicePasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevicePasses").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl DevicePasses {
    /// Compiles the kernels, once in a process, and loads them to `device`.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] when there is no compiler for them, [`DeviceError::Driver`]
    /// when the device refuses.
    pub fn load(device: &Device) -> Result<Self, DeviceError> {
        Self::of_source(device, KERNEL_SOURCE)
    }

    /// Loads kernels of the same names from another source.
    fn of_source(device: &Device, source: &str) -> Result<Self, DeviceError> {
        let module = DeviceModule::load(device, source, "solvers.cuh")?;
        let kernels = PassKernels::load(&module)?;
        Ok(Self { stream: Stream::new(device)?, kernels, room: Mutex::new(SumRoom::new(device)?), chunk_rows: None })
    }

    /// Sums as the rows of an operator are summed, in chunks of this many rows.
    #[must_use]
    pub fn in_chunks(self, chunk_rows: usize) -> Self {
        Self { chunk_rows: Some(chunk_rows), ..self }
    }

    /// The chunks of `n` rows.
    pub(super) fn chunked(&self, n: u32) -> ChunkedRows {
        let chunk = self.chunk_rows.unwrap_or_else(|| SummedRows::from(n as usize).chunk_rows);
        ChunkedRows { n, chunk: u32::try_from(chunk).unwrap_or(u32::MAX) }
    }

    /// The stream of all passes.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes room for passes over `n` rows with up to `sums` sums.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device has no more.
    pub fn reserve_sums(&self, n: usize, sums: usize) -> Result<(), DeviceError> {
        let rows = self.chunked(rows_of([n]));
        self.room().reserve(rows.blocks() as usize * sums, rows.chunks() as usize * sums)
    }

    fn room(&self) -> MutexGuard<'_, SumRoom> {
        // What a panic left half done is overwritten by the next pass.
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Launches a kernel with one thread for each of `n` rows.
    ///
    /// # Safety
    /// As for [`DeviceKernel::launch`]; the kernel touches rows below `n` only.
    pub(super) unsafe fn for_rows(
        &self,
        kernel: &DeviceKernel,
        n: u32,
        arguments: &[&dyn Argument],
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.launch(kernel, n.div_ceil(ROW_THREADS), ROW_THREADS, arguments) }
    }

    /// Launches a kernel with a thread for each lane of each block of `n` rows.
    ///
    /// # Safety
    /// As for [`DevicePasses::for_rows`].
    pub(super) unsafe fn for_blocks(
        &self,
        kernel: &DeviceKernel,
        n: u32,
        arguments: &[&dyn Argument],
    ) -> Result<(), DeviceError> {
        let blocks = self.chunked(n).blocks();
        // SAFETY: the caller's promise is the same.
        unsafe { self.launch(kernel, blocks.div_ceil(LANE_THREADS / LANES), LANE_THREADS, arguments) }
    }

    /// Launches `combine` for `n` rows.
    ///
    /// # Safety
    /// As for [`DevicePasses::for_rows`].
    pub(super) unsafe fn for_combined_rows(&self, n: u32, arguments: &[&dyn Argument]) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.launch(&self.kernels.combine, n.div_ceil(COMBINE_THREADS), COMBINE_THREADS, arguments) }
    }

    /// Launches a kernel; nothing for no thread blocks.
    ///
    /// # Safety
    /// As for [`DeviceKernel::launch`].
    unsafe fn launch(
        &self,
        kernel: &DeviceKernel,
        blocks: u32,
        threads: u32,
        arguments: &[&dyn Argument],
    ) -> Result<(), DeviceError> {
        match blocks {
            0 => Ok(()),
            // SAFETY: the caller's promise is the same.
            blocks => unsafe { kernel.launch(&self.stream, Grid { blocks, threads, shared_bytes: 0 }, arguments) },
        }
    }

    /// Runs a pass over `n` rows with `K` sums, which leaves one value for each block of rows and
    /// sum.
    pub(super) fn sums<const K: usize>(
        &self,
        n: u32,
        pass: impl FnOnce(&DoublesMut<'_>) -> Result<(), DeviceError>,
    ) -> Result<[ExactSum; K], DeviceError> {
        let mut sums = [ExactSum::ZERO; K];
        self.sums_into(n, &mut sums, pass)?;
        Ok(sums)
    }

    /// Works as [`DevicePasses::sums`] for a number of sums known at run time: the blocks of each
    /// chunk are added on the device, in order, the chunks here, exactly.
    pub(super) fn sums_into(
        &self,
        n: u32,
        sums: &mut [ExactSum],
        pass: impl FnOnce(&DoublesMut<'_>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        sums.iter_mut().for_each(ExactSum::clear);
        if n == 0 || sums.is_empty() {
            return Ok(());
        }
        let room = &mut *self.room();
        let chunks = self.launch_sums(n, sums.len(), room, pass)?;
        let values = fetch(&self.stream, &room.host, room.chunks.slice(0..chunks * sums.len()))?;
        let values: &[f64] = bytemuck::cast_slice(&values);
        for (sum, own) in sums.iter_mut().zip(values.chunks_exact(chunks)) {
            *sum = own.iter().copied().collect();
        }
        Ok(())
    }

    /// Launches such a pass, which leaves `count` sums of each chunk in `room`. Returns the number
    /// of chunks.
    fn launch_sums(
        &self,
        n: u32,
        count: usize,
        room: &mut SumRoom,
        pass: impl FnOnce(&DoublesMut<'_>) -> Result<(), DeviceError>,
    ) -> Result<usize, DeviceError> {
        let rows = self.chunked(n);
        let [blocks, chunks] = [rows.blocks(), rows.chunks()];
        room.reserve(blocks as usize * count, chunks as usize * count)?;
        let of_blocks = room.blocks.view_mut();
        pass(&of_blocks)?;
        let of_chunks = room.chunks.view_mut();
        let chunk_blocks = rows.chunk_blocks();
        let count = count as u32;
        // SAFETY: as the kernel is declared; it reads a value for each block and sum and writes one
        // for each chunk and sum, for which there is room.
        unsafe {
            let arguments: [&dyn Argument; 6] = [&blocks, &chunk_blocks, &chunks, &count, &of_blocks, &of_chunks];
            self.for_rows(&self.kernels.sum_chunks, chunks * count, &arguments)?;
        }
        Ok(chunks as usize)
    }

    /// Runs such a pass for what it does to vectors. Its sums are not fetched.
    pub(super) fn without_sums(
        &self,
        n: u32,
        pass: impl FnOnce(&DoublesMut<'_>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let room = &mut *self.room();
        room.reserve(self.chunked(n).blocks() as usize, 0)?;
        pass(&room.blocks.view_mut())
    }

    /// Runs a pass that leaves `count` values, and returns their sum.
    pub(super) fn sum_of_values(
        &self,
        count: usize,
        pass: impl FnOnce(&DoublesMut<'_>) -> Result<(), DeviceError>,
    ) -> Result<ExactSum, DeviceError> {
        let room = &mut *self.room();
        room.reserve(0, count)?;
        pass(&room.chunks.view_mut())?;
        let values = fetch(&self.stream, &room.host, room.chunks.slice(0..count))?;
        Ok(bytemuck::cast_slice::<u8, f64>(&values).iter().copied().collect())
    }
}

/// Copies values of the device to the beginning of `host`, and waits for them.
fn fetch<'h>(stream: &Stream, host: &'h HostBuffer, values: Doubles<'_>) -> Result<HostRead<'h>, DeviceError> {
    host.store(stream, values, 0)?;
    host.read(0..values.bytes())
}

/// The common length of the vectors of a pass.
pub(super) fn rows_of<const K: usize>(lengths: [usize; K]) -> u32 {
    assert!(lengths.iter().all(|length| *length == lengths[0]), "vectors of one pass differ in length");
    u32::try_from(lengths[0]).expect("rows have 32-bit numbers")
}

/// Defects put in by hand, which the double of the driver has to find.
#[cfg(test)]
mod tests {
    use super::*;
    use recoup_cuda_double::{Double, DoubleReport, Settings};

    /// The double's account of a pass: `x . y` of 1000 values with these kernels.
    fn account(source: &str, is_swapped: bool) -> (Result<ExactSum, DeviceError>, DoubleReport) {
        let double = Double::load();
        double.reset(&Settings::default());
        let run = || {
            let device = Device::open(0)?;
            let passes = DevicePasses::of_source(&device, source)?;
            let other = Stream::new(&device)?;
            let stream = if is_swapped { &other } else { passes.stream() };
            let x = DeviceVec::copy_of(stream, &[0.5; 1000])?;
            let y = DeviceVec::copy_of(stream, &[2.0; 1000])?;
            let mut z = DeviceVec::zeros(stream, 1000)?;
            passes.axpy(1.0, y.view(), &mut z.view_mut())?;
            passes.dot(x.view(), z.view())
        };
        let result = run();
        (result, double.report())
    }

    #[test]
    fn without_a_defect_nothing_is_found() {
        let (result, report) = account(KERNEL_SOURCE, false);
        assert_eq!(result, Ok(ExactSum::from(1000.0)));
        assert!(report.is_clean(), "{report}");
    }

    #[test]
    fn a_bound_of_a_kernel_that_is_off_by_one_is_found() {
        let source = KERNEL_SOURCE
            .replace("end = min(u64(begin) + BLOCK, chunk_end);", "end = min(u64(begin) + BLOCK, chunk_end + 1);");
        assert_ne!(source, KERNEL_SOURCE);
        let (result, report) = account(&source, false);
        assert!(result.is_err_and(|error| error.is_lost()));
        assert!(report.faults.iter().any(|fault| fault.contains("kernel dot")), "{report}");
    }

    #[test]
    fn a_stream_that_is_not_the_vectors_own_is_found() {
        let (_, report) = account(KERNEL_SOURCE, true);
        assert!(!report.races.is_empty(), "{report}");
    }

    /// Launches `x . y` of 1000 values, as a pass does before it fetches the sum.
    fn launch_dot(passes: &DevicePasses, room: &mut SumRoom, x: &DeviceVec<f64>, y: &DeviceVec<f64>) {
        let [x, y] = [x.view(), y.view()];
        // SAFETY: as the kernel is declared; both have 1000 rows, and it writes a value.
        let pass = |sums: &DoublesMut<'_>| unsafe {
            passes.for_blocks(&passes.kernels.dot, 1000, &[&passes.chunked(1000), &x, &y, sums])
        };
        assert_eq!(passes.launch_sums(1000, 1, room, pass), Ok(1));
    }

    /// Runs `test` in many orders of the device's work, with passes and two vectors of 1000 values
    /// whose product is 1000.
    fn in_every_order(test: impl Fn(&DevicePasses, &DeviceVec<f64>, &DeviceVec<f64>), is_clean: bool) {
        let double = Double::load();
        for seed in 0..20 {
            double.reset(&Settings { seed, ..Settings::default() });
            let passes = DevicePasses::load(&Device::open(0).unwrap()).unwrap().in_chunks(1000);
            let [x, y] = [0.5, 2.0].map(|value| DeviceVec::copy_of(passes.stream(), &[value; 1000]).unwrap());
            test(&passes, &x, &y);
            drop((x, y, passes));
            let report = double.report();
            assert_eq!(report.races.is_empty(), is_clean, "seed {seed}: {report}");
        }
    }

    #[test]
    fn a_sum_read_without_its_wait_is_what_stood_there_before_in_every_order() {
        let test = |passes: &DevicePasses, x: &_, y: &_| {
            let room = &mut *passes.room();
            launch_dot(passes, room, x, y);
            let place = room.host.read(0..8).unwrap().as_ptr().cast::<f64>();
            let ticket = room.host.store(&passes.stream, room.chunks.slice(0..1), 0).unwrap();
            // SAFETY: the memory is mapped; that a copy to it may be under way is the defect.
            let sum = || unsafe { place.read_volatile() };
            assert_eq!(sum(), 0.0);
            ticket.wait().unwrap();
            assert_eq!(sum(), 1000.0);
        };
        in_every_order(test, true);
    }

    #[test]
    fn a_sum_fetched_by_a_stream_that_does_not_wait_for_the_pass_is_found_in_every_order() {
        let test = |waits: bool| {
            move |passes: &DevicePasses, x: &_, y: &_| {
                let other = Stream::new(passes.stream.device()).unwrap();
                let room = &mut *passes.room();
                launch_dot(passes, room, x, y);
                if waits {
                    other.wait_for(&passes.stream.ticket().unwrap()).unwrap();
                }
                let mut sum = [0.0];
                other.download(room.chunks.slice(0..1), &mut sum).unwrap();
                assert_eq!(sum == [1000.0], waits);
            }
        };
        in_every_order(test(true), true);
        in_every_order(test(false), false);
    }
}
