//! Owned values of any element type, in this process's memory.

use recoup_core::{ElementType, Values, ValuesMut};

use crate::sys;

/// Bytes of a huge page where the processor has them.
const HUGE_PAGE: usize = 2 << 20;
/// Bytes of the smallest page.
const PAGE: usize = 4096;
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
        match self {
            Self::F64(v) => v.resize(padded_len, 0.0),
            Self::F32(v) => v.resize(padded_len, 0.0),
            Self::I64(v) => v.resize(padded_len, 0),
            Self::Bytes(v) => v.resize(padded_len, 0),
        }
    }

    /// Makes memory for this many values, with its pages, for the first copy to find.
    pub(crate) fn make_room(&mut self, padded_len: usize) {
        match self {
            Self::F64(v) => make_room(v, padded_len),
            Self::F32(v) => make_room(v, padded_len),
            Self::I64(v) => make_room(v, padded_len),
            Self::Bytes(v) => make_room(v, padded_len),
        }
    }

    /// Overwrites all values with zeros.
    pub(crate) fn zero(&mut self) {
        match self {
            Self::F64(v) => v.fill(0.0),
            Self::F32(v) => v.fill(0.0),
            Self::I64(v) => v.fill(0),
            Self::Bytes(v) => v.fill(0),
        }
    }

    /// Returns the first `len` values; none when they are no doubles.
    pub(crate) fn doubles(&self, len: usize) -> &[f64] {
        match self {
            Self::F64(values) => &values[..len],
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

    /// Copies `values` in, pads to whole frames, and shows `seen` each piece while it is near.
    pub(crate) fn fill(&mut self, values: Values<'_>, frames: FrameCuts, seen: &mut dyn FnMut(usize, Values<'_>)) {
        match (self, values) {
            (Self::F64(v), Values::F64(s)) => copy_padded(v, s, frames, |run, piece| seen(run, Values::F64(piece))),
            (Self::F32(v), Values::F32(s)) => copy_padded(v, s, frames, |run, piece| seen(run, Values::F32(piece))),
            (Self::I64(v), Values::I64(s)) => copy_padded(v, s, frames, |run, piece| seen(run, Values::I64(piece))),
            (Self::Bytes(v), Values::Bytes(s)) => {
                copy_padded(v, s, frames, |run, piece| seen(run, Values::Bytes(piece)));
            }
            (this, values) => {
                *this = Self::new(values.element());
                this.fill(values, frames, seen);
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

/// The division of a variable's values into frames.
#[derive(Clone, Copy)]
pub(crate) struct FrameCuts {
    pub(crate) n_frames: usize,
    /// Values in one frame.
    pub(crate) len: usize,
}

/// Copies frame by frame and piece by piece; `seen` is shown each piece of each frame, padding
/// included.
fn copy_padded<T: Copy>(target: &mut Vec<T>, source: &[T], frames: FrameCuts, mut seen: impl FnMut(usize, &[T])) {
    target.clear();
    let Some(&last) = source.last() else { return };
    reserve(target, frames.n_frames * frames.len);
    for run in 0..frames.n_frames {
        let start = run * frames.len;
        let end = (run + 1) * frames.len;
        for piece in source[start..end.min(source.len())].chunks(PIECE_LEN) {
            target.extend_from_slice(piece);
            seen(run, piece);
        }
        if end > source.len() {
            target.resize(end, last);
            seen(run, &target[source.len()..]);
        }
    }
}

/// Makes room and writes to each of its pages. The system could make them all in one call, but
/// holds a lock meanwhile that the solver's next allocation waits for, behind a thread that yields
/// to all others.
fn make_room<T: Copy + Default>(target: &mut Vec<T>, len: usize) {
    target.clear();
    reserve(target, len);
    let room = target.spare_capacity_mut();
    let needed = len.min(room.len());
    for page in room[..needed].chunks_mut(PAGE / size_of::<T>()) {
        page.first_mut().into_iter().for_each(|value| _ = value.write(T::default()));
    }
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
