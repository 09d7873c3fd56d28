//! Owned values of any element type, in this process's memory.

use std::sync::{Mutex, PoisonError};

use recoup_core::{ElementType, Values, ValuesMut};

use super::sys;

/// Bytes of a huge page where the processor has them.
const HUGE_PAGE: usize = 2 << 20;
/// Bytes that allocators keep in front of large memory.
const ALLOCATOR_BYTES: usize = 16;
/// Values copied at a time: what stays in the nearest cache until it is summed.
const PIECE_LEN: usize = 3 << 10;

/// An owned copy of values. Those of a variable on its way to a store are padded to whole frames
/// with the last value.
#[derive(Clone, Debug, PartialEq)]
pub enum Buffer {
    /// IEEE doubles.
    F64(Vec<f64>),
    /// IEEE singles.
    F32(Vec<f32>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Plain bytes.
    Bytes(Vec<u8>),
}

/// Does the same with the vector of a buffer, whatever its type is.
macro_rules! with_vector {
    ($buffer:expr, $vector:ident => $work:expr) => {
        match $buffer {
            Buffer::F64($vector) => $work,
            Buffer::F32($vector) => $work,
            Buffer::I64($vector) => $work,
            Buffer::Bytes($vector) => $work,
        }
    };
}

impl Buffer {
    pub(crate) fn new(element: ElementType) -> Self {
        match element {
            ElementType::F64 => Self::F64(Vec::new()),
            ElementType::F32 => Self::F32(Vec::new()),
            ElementType::I64 => Self::I64(Vec::new()),
            ElementType::Bytes => Self::Bytes(Vec::new()),
        }
    }

    /// Becomes a buffer for values of this type; one that is already keeps its values and memory.
    pub(crate) fn retype(&mut self, element: ElementType) {
        let other = Self::new(element);
        if std::mem::discriminant(self) != std::mem::discriminant(&other) {
            *self = other;
        }
    }

    /// Resizes to the padded length, with zeros, for a decoder.
    pub(crate) fn resize(&mut self, padded_len: usize) {
        with_vector!(self, v => v.resize(padded_len, Default::default()));
    }

    /// Returns the number of values that there is memory for.
    pub(crate) fn room(&self) -> usize {
        with_vector!(self, v => v.capacity())
    }

    /// Makes memory for this many values, with its pages, for the first copy to find.
    pub(crate) fn make_room(&mut self, padded_len: usize) {
        with_vector!(self, v => make_room(v, padded_len));
    }

    /// Overwrites all values with zeros.
    pub(crate) fn zero(&mut self) {
        with_vector!(self, v => v.fill(Default::default()));
    }

    /// Returns the first `len` values as doubles: singles are widened, which is exact, into `room`.
    /// None when they are no real numbers.
    pub(crate) fn doubles<'a>(&'a self, len: usize, room: &'a mut Vec<f64>) -> &'a [f64] {
        match self {
            Self::F64(values) => &values[..len],
            Self::F32(values) => {
                room.clear();
                room.extend(values[..len].iter().map(|value| f64::from(*value)));
                room
            }
            _ => &[],
        }
    }

    /// Returns the values from `start`, `len` of them.
    pub(crate) fn slice(&self, start: usize, len: usize) -> Values<'_> {
        self.all().slice(start, len)
    }

    /// Returns all values.
    #[must_use]
    pub fn all(&self) -> Values<'_> {
        match self {
            Self::F64(v) => Values::F64(v),
            Self::F32(v) => Values::F32(v),
            Self::I64(v) => Values::I64(v),
            Self::Bytes(v) => Values::Bytes(v),
        }
    }

    /// Returns the values from `start`, `len` of them, to be overwritten.
    pub(crate) fn slice_mut(&mut self, start: usize, len: usize) -> ValuesMut<'_> {
        match self {
            Self::F64(v) => ValuesMut::F64(&mut v[start..start + len]),
            Self::F32(v) => ValuesMut::F32(&mut v[start..start + len]),
            Self::I64(v) => ValuesMut::I64(&mut v[start..start + len]),
            Self::Bytes(v) => ValuesMut::Bytes(&mut v[start..start + len]),
        }
    }

    /// Copies `values` in and pads to whole frames, on `threads` threads, the calling one included.
    /// The CRC-32C of each frame's memory is put into `sums`, unless that is empty.
    pub(crate) fn fill(&mut self, values: Values<'_>, frame_len: usize, threads: usize, sums: &mut [u32]) {
        match (self, values) {
            (Self::F64(v), Values::F64(s)) => copy_padded(v, s, frame_len, threads, sums, |piece| Values::F64(piece)),
            (Self::F32(v), Values::F32(s)) => copy_padded(v, s, frame_len, threads, sums, |piece| Values::F32(piece)),
            (Self::I64(v), Values::I64(s)) => copy_padded(v, s, frame_len, threads, sums, |piece| Values::I64(piece)),
            (Self::Bytes(v), Values::Bytes(s)) => {
                copy_padded(v, s, frame_len, threads, sums, |piece| Values::Bytes(piece))
            }
            (this, values) => {
                *this = Self::new(values.element());
                this.fill(values, frame_len, threads, sums);
            }
        }
    }

    /// Adds the first `len` values of `other`, which are of the same type.
    pub(crate) fn append(&mut self, other: Self, len: usize) {
        match (self, other) {
            (Self::F64(v), Self::F64(o)) => join(v, o, len),
            (Self::F32(v), Self::F32(o)) => join(v, o, len),
            (Self::I64(v), Self::I64(o)) => join(v, o, len),
            (Self::Bytes(v), Self::Bytes(o)) => join(v, o, len),
            _ => unreachable!("parts of one variable are of one type"),
        }
    }

    /// Copies values from `start` on out into `target`; lengths and types were compared before.
    pub(crate) fn copy_to(&self, start: usize, target: ValuesMut<'_>) {
        let len = target.as_values().len();
        match (self.slice(start, len), target) {
            (Values::F64(v), ValuesMut::F64(t)) => t.copy_from_slice(v),
            (Values::F32(v), ValuesMut::F32(t)) => t.copy_from_slice(v),
            (Values::I64(v), ValuesMut::I64(t)) => t.copy_from_slice(v),
            (Values::Bytes(v), ValuesMut::Bytes(t)) => t.copy_from_slice(v),
            _ => unreachable!("element types are compared before values are copied"),
        }
    }
}

/// Joins two parts; the first is moved, not copied.
fn join<T>(target: &mut Vec<T>, mut source: Vec<T>, len: usize) {
    source.truncate(len);
    if target.is_empty() {
        *target = source;
    } else {
        target.append(&mut source);
    }
}

/// Copies frame by frame. Memory that is there is filled by several threads.
fn copy_padded<T: Copy + Default + Send + Sync>(
    target: &mut Vec<T>,
    source: &[T],
    frame_len: usize,
    threads: usize,
    sums: &mut [u32],
    view: fn(&[T]) -> Values<'_>,
) {
    let frame_len = frame_len.max(1);
    let n_frames = source.len().div_ceil(frame_len);
    target.truncate(n_frames * frame_len);
    if target.len() < n_frames * frame_len {
        return copy_to_new(target, source, frame_len, sums, view);
    }
    let sums = sums.iter_mut().map(Some).chain(std::iter::repeat_with(|| None));
    let frames = target.chunks_mut(frame_len).zip(source.chunks(frame_len)).zip(sums);
    let frames = Mutex::new(frames);
    let next = || frames.lock().unwrap_or_else(PoisonError::into_inner).next();
    let copy = || {
        while let Some(((target, source), sum)) = next() {
            copy_frame(target, source, sum, view);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(n_frames) {
            // Where the system refuses a thread, the others copy its frames.
            _ = std::thread::Builder::new().name("recoup-copy".to_owned()).spawn_scoped(scope, copy);
        }
        copy();
    });
}

/// Copies a frame and pads it. Each piece is summed while it is near.
fn copy_frame<T: Copy>(target: &mut [T], source: &[T], mut sum: Option<&mut u32>, view: fn(&[T]) -> Values<'_>) {
    let Some(&last) = source.last() else { return };
    let (values, padding) = target.split_at_mut(source.len());
    for (target, source) in values.chunks_mut(PIECE_LEN).zip(source.chunks(PIECE_LEN)) {
        target.copy_from_slice(source);
        add_to(&mut sum, view(target));
    }
    padding.fill(last);
    add_to(&mut sum, view(padding));
}

/// Copies into memory whose pages may not be there yet: each is written once.
fn copy_to_new<T: Copy>(
    target: &mut Vec<T>,
    source: &[T],
    frame_len: usize,
    sums: &mut [u32],
    view: fn(&[T]) -> Values<'_>,
) {
    target.clear();
    let Some(&last) = source.last() else { return };
    reserve(target, source.len().next_multiple_of(frame_len));
    for (index, frame) in source.chunks(frame_len).enumerate() {
        let mut sum = sums.get_mut(index);
        for piece in frame.chunks(PIECE_LEN) {
            target.extend_from_slice(piece);
            add_to(&mut sum, view(piece));
        }
        let padded_from = target.len();
        target.resize((index + 1) * frame_len, last);
        add_to(&mut sum, view(&target[padded_from..]));
    }
}

fn add_to(sum: &mut Option<&mut u32>, values: Values<'_>) {
    if let (Some(sum), Some(bytes)) = (sum, values.as_raw()) {
        **sum = crc32c::crc32c_append(**sum, bytes);
    }
}

/// Makes memory of this length, with its pages.
fn make_room<T: Copy + Default>(target: &mut Vec<T>, len: usize) {
    target.clear();
    reserve(target, len);
    target.resize(len, T::default());
}

/// Reserves memory for this many values in all, in huge pages where it pays: a copy then finds its
/// pages, and a device maps few.
fn reserve<T: Copy>(target: &mut Vec<T>, len: usize) {
    let bytes = len * size_of::<T>();
    if len <= target.capacity() {
        return;
    }
    if bytes < HUGE_PAGE {
        return target.reserve_exact(len);
    }
    // With what an allocator keeps in front it is whole huge pages, which the system then lays
    // where such pages begin.
    let room = (bytes + ALLOCATOR_BYTES).next_multiple_of(HUGE_PAGE) - ALLOCATOR_BYTES;
    target.reserve_exact(room / size_of::<T>());
    sys::advise_huge_pages(target.spare_capacity_mut());
}
