//! The unsafe parts of the pool and of vector storage, each behind a safe type.
//!
//! Two things need it: lending disjoint row ranges of one vector to several threads, and memory
//! that is aligned, advised and first touched by the threads that use it.
#![expect(unsafe_code, reason = "lends row ranges and raw memory across threads")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;

use recoup_core::{BLOCK, ExactSum};
use recoup_team::Team;

use crate::kernels::team::{Alone, Crew, Partition, add_chunks, run_on};

/// Vectors that can be lent by disjoint row ranges: `&mut [f64]`, tuples and `Vec`s of them, `()`.
///
/// # Safety
/// `view` of disjoint ranges must yield values that may be used from several threads at once.
pub unsafe trait RowSlices: Sized {
    /// The vectors without their exclusive borrow.
    type Lent: Sync;
    /// View of one thread: the same vectors, its rows only.
    type View;

    /// Gives up the exclusive borrow; every vector must have `n` rows.
    ///
    /// # Panics
    /// When a vector has another length.
    fn lend(self, n: usize) -> Self::Lent;

    /// The rows `rows` of each vector.
    ///
    /// # Safety
    /// No two views alive at one time overlap, `rows` lies below the `n` given to `lend`, and what
    /// was lent is still exclusively borrowed.
    unsafe fn view(lent: &Self::Lent, rows: &Range<usize>) -> Self::View;

    /// Returns the most rows that one view should have, where that is for the vectors to say.
    fn rows_at_once(_lent: &Self::Lent) -> usize {
        usize::MAX
    }
}

/// A slice to be handed out in disjoint pieces.
pub struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: the pieces are disjoint (the promise of `Disjoint::range`), so threads share nothing but
// `T: Send` values.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}
// SAFETY: as an exclusive borrow of `T: Send` values.
unsafe impl<T: Send> Send for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    /// Takes the exclusive borrow of `slice`.
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// The values from `start` on.
    ///
    /// # Safety
    /// They live, and nothing else writes them, as long as `'a`. Whoever else reads them promises
    /// not to read a piece of them.
    pub(crate) unsafe fn of_raw(start: *mut T, len: usize) -> Self {
        Self { start, len, borrow: PhantomData }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The piece `range`.
    ///
    /// # Safety
    /// No two pieces alive at one time overlap.
    pub(crate) unsafe fn range(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "piece outside its slice");
        // SAFETY: in bounds by the assertion; exclusive by the caller's promise and by the borrow
        // held.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

// SAFETY: disjoint ranges of one slice are disjoint slices.
unsafe impl<'a, T: Send> RowSlices for &'a mut [T] {
    type Lent = Disjoint<'a, T>;
    type View = &'a mut [T];

    fn lend(self, n: usize) -> Self::Lent {
        assert_eq!(self.len(), n, "vectors of one pass differ in length");
        Disjoint::new(self)
    }

    unsafe fn view(lent: &Self::Lent, rows: &Range<usize>) -> Self::View {
        // SAFETY: the caller's promise is the same.
        unsafe { lent.range(rows.clone()) }
    }
}

/// One value for each `unit` rows, lent with the rows: a sum per plane, say.
pub struct PerUnit<'a> {
    /// The values.
    pub values: &'a mut [f64],
    /// Rows each value stands for; the unit of the slabs.
    pub unit: usize,
}

// SAFETY: slabs of whole units have disjoint values.
unsafe impl<'a> RowSlices for PerUnit<'a> {
    type Lent = (Disjoint<'a, f64>, usize);
    type View = &'a mut [f64];

    fn lend(self, n: usize) -> Self::Lent {
        assert_eq!(self.values.len(), n.div_ceil(self.unit), "one value for each unit of rows");
        (Disjoint::new(self.values), self.unit)
    }

    unsafe fn view(lent: &Self::Lent, rows: &Range<usize>) -> Self::View {
        let (values, unit) = lent;
        assert!(rows.start.is_multiple_of(*unit), "parts are whole units");
        // SAFETY: disjoint rows of whole units have disjoint values.
        unsafe { values.range(rows.start / unit..rows.end.div_ceil(*unit)) }
    }
}

// SAFETY: each member is lent by the same disjoint ranges.
unsafe impl<V: RowSlices> RowSlices for Vec<V> {
    type Lent = Vec<V::Lent>;
    type View = Vec<V::View>;

    fn lend(self, n: usize) -> Self::Lent {
        self.into_iter().map(|vector| vector.lend(n)).collect()
    }

    unsafe fn view(lent: &Self::Lent, rows: &Range<usize>) -> Self::View {
        // SAFETY: the caller's promise is the same.
        lent.iter().map(|lent| unsafe { V::view(lent, rows) }).collect()
    }

    fn rows_at_once(lent: &Self::Lent) -> usize {
        lent.iter().map(V::rows_at_once).min().unwrap_or(usize::MAX)
    }
}

// SAFETY: lends nothing.
unsafe impl RowSlices for () {
    type Lent = ();
    type View = ();

    fn lend(self, _n: usize) -> Self::Lent {}

    unsafe fn view(_lent: &Self::Lent, _rows: &Range<usize>) -> Self::View {}
}

macro_rules! row_slices_of_tuples {
    ($($name:ident $index:tt),+) => {
        // SAFETY: each member is lent by the same disjoint ranges.
        unsafe impl<$($name: RowSlices),+> RowSlices for ($($name,)+) {
            type Lent = ($($name::Lent,)+);
            type View = ($($name::View,)+);

            fn lend(self, n: usize) -> Self::Lent {
                ($(self.$index.lend(n),)+)
            }

            unsafe fn view(lent: &Self::Lent, rows: &Range<usize>) -> Self::View {
                // SAFETY: the caller's promise is the same.
                unsafe { ($($name::view(&lent.$index, rows),)+) }
            }

            fn rows_at_once(lent: &Self::Lent) -> usize {
                usize::MAX$(.min($name::rows_at_once(&lent.$index)))+
            }
        }
    };
}

row_slices_of_tuples!(A 0);
row_slices_of_tuples!(A 0, B 1);
row_slices_of_tuples!(A 0, B 1, C 2);
row_slices_of_tuples!(A 0, B 1, C 2, D 3);
row_slices_of_tuples!(A 0, B 1, C 2, D 3, E 4);

/// Calls `body` once per part with its rows, these rows of `vectors`, and its piece of `scratch`,
/// which is cut into as many equal pieces as there are threads.
pub(crate) fn for_slabs<V: RowSlices>(
    pool: &impl Crew,
    partition: Partition,
    vectors: V,
    scratch: &mut [f64],
    body: impl Fn(Range<usize>, V::View, &mut [f64]) + Sync,
) {
    let lent = vectors.lend(partition.n);
    let threads = pool.threads();
    let piece = scratch.len() / threads;
    let scratch = Disjoint::new(scratch);
    pool.run(partition.chunks(), &|part| {
        let rows = partition.rows(&partition.part(part, threads));
        if !rows.is_empty() {
            // SAFETY: the pool calls each part once, and the rows of two parts do not overlap.
            let view = unsafe { V::view(&lent, &rows) };
            // SAFETY: the same, for the pieces.
            body(rows, view, unsafe { scratch.range(part * piece..(part + 1) * piece) });
        }
    });
}

/// Calls `body` for the rows of each part, as many at once as `vectors` allow.
pub(crate) fn for_rows<V: RowSlices>(
    pool: &impl Crew,
    partition: Partition,
    vectors: V,
    body: impl Fn(Range<usize>, V::View) + Sync,
) {
    let lent = vectors.lend(partition.n);
    let at_once = V::rows_at_once(&lent).min(partition.n).max(1);
    let threads = pool.threads();
    pool.run(partition.chunks(), &|part| {
        let all = partition.rows(&partition.part(part, threads));
        for start in all.clone().step_by(at_once) {
            let rows = start..(start + at_once).min(all.end);
            // SAFETY: the pool calls each part once, and no two parts or pieces of one overlap.
            let view = unsafe { V::view(&lent, &rows) };
            body(rows, view);
        }
    });
}

/// Calls `body` for the pieces of each part with their numbers, and the rows of `vectors` in them.
pub(crate) fn for_pieces<V: RowSlices>(
    pool: &impl Crew,
    starts: &[usize],
    vectors: V,
    body: impl Fn(Range<usize>, V::View) + Sync,
) {
    let pieces = starts.len() - 1;
    let lent = vectors.lend(starts[pieces]);
    assert!(starts.is_sorted(), "the rows of two pieces overlap");
    let threads = pool.threads();
    pool.run(pieces, &|part| {
        let run = pieces * part / threads..pieces * (part + 1) / threads;
        if !run.is_empty() {
            // SAFETY: the pool calls each part once, and starts ascend, so that the rows of two
            // parts do not overlap.
            let view = unsafe { V::view(&lent, &(starts[run.start]..starts[run.end])) };
            body(run, view);
        }
    });
}

/// Sums what `body` adds to its last argument over the blocks of each chunk, and adds the chunks to
/// `sums` exactly.
pub(crate) fn sum_blocks<V: RowSlices>(
    pool: &impl Crew,
    partition: Partition,
    vectors: V,
    sums: &mut [ExactSum],
    body: impl Fn(Range<usize>, V::View, &mut [f64]) + Sync,
) {
    let lent = vectors.lend(partition.n);
    pool.sum_chunks(&partition, sums, &|chunk, partial| {
        for rows in partition.blocks(chunk) {
            // SAFETY: the pool calls each chunk once, and blocks do not overlap.
            let view = unsafe { V::view(&lent, &rows) };
            body(rows, view, partial);
        }
    });
}

/// Room for the sums of each thread, and for those of the chunk it is at.
#[derive(Default)]
pub(crate) struct ThreadSums {
    pub(crate) sums: Vec<ExactSum>,
    pub(crate) chunks: Vec<f64>,
}

impl ThreadSums {
    /// Makes room for `count` values in all.
    pub(crate) fn reserve(&mut self, count: usize) {
        if self.chunks.len() < count {
            self.sums.resize(count, ExactSum::ZERO);
            self.chunks.resize(count, 0.0);
        }
    }

    /// Adds what `body` adds for each chunk to `sums`, by the threads of `team`.
    pub(crate) fn sum_chunks(
        &mut self,
        team: &Team,
        partition: &Partition,
        sums: &mut [ExactSum],
        body: &(dyn Fn(usize, &mut [f64]) + Sync),
    ) {
        let threads = team.threads();
        let count = sums.len();
        self.reserve(threads * count);
        let own = &mut self.sums[..threads * count];
        own.iter_mut().for_each(ExactSum::clear);
        let of_threads = Disjoint::new(own);
        let rooms = Disjoint::new(&mut self.chunks[..threads * count]);
        run_on(team, &|part: usize| {
            let places = part * count..(part + 1) * count;
            // SAFETY: each part runs once, and the places of two do not overlap.
            let (own, room) = unsafe { (of_threads.range(places.clone()), rooms.range(places)) };
            add_chunks(partition.part(part, threads), own, room, body);
        });
        for own in self.sums[..threads * count].chunks_exact(count) {
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += *own);
        }
    }
}

/// Numbers whose zero is all bits zero.
pub trait Plain: Copy + Send + Sync + 'static {}
impl Plain for f64 {}
impl Plain for f32 {}
impl Plain for u32 {}
impl Plain for [u8; 2] {}

/// Bytes of a huge page where the processor has them.
const HUGE_PAGE: usize = 2 << 20;
/// Offsets a buffer may start at.
const SLOTS: usize = 16;
/// Distance of two offsets: another page, and another quarter kilobyte within the page.
const SLOT_BYTES: usize = 4096 + 256;

/// Zeroed memory for `len` numbers, staggered by `slot`, in huge pages where it pays, first touched
/// by the pool.
pub(crate) struct AlignedBuffer<T: Plain> {
    base: NonNull<u8>,
    layout: Layout,
    start: NonNull<T>,
    len: usize,
    slot: usize,
}

// SAFETY: owns its memory; shared access is to plain values.
unsafe impl<T: Plain> Send for AlignedBuffer<T> {}
// SAFETY: `&AlignedBuffer` gives `&[T]` only.
unsafe impl<T: Plain> Sync for AlignedBuffer<T> {}

impl<T: Plain> AlignedBuffer<T> {
    /// `len` zeros whose address differs from that of the next slot's buffer modulo 4 KiB and 64
    /// KiB.
    ///
    /// # Panics
    /// When `len` values exceed the address space.
    pub(crate) fn zeros(pool: &impl Crew, len: usize, slot: usize) -> Self {
        let bytes = len.checked_mul(size_of::<T>()).expect("vector fits the address space");
        let huge = bytes >= HUGE_PAGE;
        let (align, offset) = if huge { (HUGE_PAGE, slot % SLOTS * SLOT_BYTES) } else { (64, slot % SLOTS * 256) };
        let layout = Layout::from_size_align(bytes + offset + 64, align).expect("vector fits the address space");
        // SAFETY: the layout is not empty: 64 bytes at least.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        if huge {
            advise_huge_pages(base, layout.size());
        }
        // SAFETY: `offset + bytes` lies within the layout; offset and base are multiples of 64.
        let start = unsafe { base.add(offset) }.cast::<T>();
        let mut buffer = Self { base, layout, start, len, slot };
        buffer.touch(pool);
        buffer
    }

    /// Writes the zeros with the threads that will use them.
    fn touch(&mut self, pool: &impl Crew) {
        // SAFETY: the allocation holds `len` values here, no other code knows it yet, and any bytes
        // are a `MaybeUninit`.
        let room = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast::<MaybeUninit<T>>(), self.len) };
        for_slabs(pool, Partition::new(self.len, BLOCK), room, &mut [], |_rows, room, _scratch| {
            // SAFETY: in bounds of `room`; zero bytes are a value of every `Plain` type.
            unsafe { std::ptr::write_bytes(room.as_mut_ptr(), 0, room.len()) };
        });
    }

    /// A copy of `values`.
    pub(crate) fn copy_of(pool: &impl Crew, values: &[T], slot: usize) -> Self {
        let mut buffer = Self::zeros(pool, values.len(), slot);
        for_slabs(pool, Partition::new(values.len(), BLOCK), &mut buffer[..], &mut [], |rows, target, _scratch| {
            target.copy_from_slice(&values[rows]);
        });
        buffer
    }
}

impl<T: Plain> AlignedBuffer<T> {
    /// The first value, for whoever promises not to write what others read.
    pub(crate) fn start(&self) -> *mut T {
        self.start.as_ptr()
    }

    /// Copies the values to memory that the threads of `pool` touch first.
    pub(crate) fn copied_by(&self, pool: &impl Crew) -> Self {
        Self::copy_of(pool, self, self.slot)
    }
}

impl<T: Plain> Clone for AlignedBuffer<T> {
    fn clone(&self) -> Self {
        self.copied_by(&Alone)
    }
}

impl<T: Plain> std::ops::Deref for AlignedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised values at `start`, owned by `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> std::ops::DerefMut for AlignedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and exclusive through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for AlignedBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, freed once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// Asks for huge pages; a refusal costs speed only.
#[cfg(target_os = "linux")]
fn advise_huge_pages(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the range was just allocated, and the advice changes no content.
    unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Other systems choose their pages themselves.
#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_base: NonNull<u8>, _bytes: usize) {}
