//! Arrays of a program, lent to a versioned memory.

use recoup::core::{Borrowed, BorrowedMut, Values, ValuesMut};
use recoup::memory::{AnyVersionedArray, ArrayList, ArrayTracking, ElementKind, MemoryError, Versioned};

use crate::protected::{LentMemory, RECOUP_BYTES, RECOUP_F32, RECOUP_F64, RECOUP_I64};
use crate::status::CallFailure;

/// Values of type int32_t, integer(c_int32_t). Of versioned memories alone.
pub const RECOUP_I32: i32 = 4;
/// Values of type uint64_t. Of versioned memories alone.
pub const RECOUP_U64: i32 = 5;
/// Values of type uint32_t. Of versioned memories alone.
pub const RECOUP_U32: i32 = 6;

/// Every type, as C and as the file name it.
const TYPES: [(i32, ElementKind); 7] = [
    (RECOUP_F64, ElementKind::F64),
    (RECOUP_F32, ElementKind::F32),
    (RECOUP_I64, ElementKind::I64),
    (RECOUP_BYTES, ElementKind::U8),
    (RECOUP_I32, ElementKind::I32),
    (RECOUP_U64, ElementKind::U64),
    (RECOUP_U32, ElementKind::U32),
];

/// Returns the kind of a type.
pub(crate) fn kind_of(code: i32) -> Result<ElementKind, CallFailure> {
    let found = TYPES.iter().find(|(known, _)| *known == code).map(|(_, kind)| *kind);
    found.ok_or_else(|| CallFailure::argument(format!("{code} is no type: expected RECOUP_F64 or another of recoup.h")))
}

/// Returns the type of a kind.
pub(crate) fn code_of(kind: ElementKind) -> i32 {
    TYPES.iter().find(|(_, known)| *known == kind).map_or(RECOUP_BYTES, |(code, _)| *code)
}

/// The first values of an array, their number, and the type that they are lent as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LentValues {
    pub(crate) kind: ElementKind,
    pub(crate) start: *mut std::ffi::c_void,
    pub(crate) count: u64,
}

impl LentValues {
    /// Takes the memory as bytes. `Err` says what is wrong with it.
    pub(crate) fn memory(self, name: &str) -> Result<LentMemory, CallFailure> {
        let Self { kind, start, count } = self;
        let refuse = |what: String| CallFailure::argument(format!("array {name}: {what}"));
        let size = kind.bytes() as u64;
        let bytes = count.checked_mul(size).filter(|_| (start as u64).is_multiple_of(size));
        let nowhere = || refuse(format!("no {count} values of type {} can be at {start:p}", kind.name()));
        let memory = LentMemory::of(RECOUP_BYTES, start, bytes.ok_or_else(nowhere)?).map_err(refuse)?;
        if matches!(memory.lend(), Borrowed::Device(_)) {
            return Err(refuse("a versioned memory takes arrays of the host, and this one is on a device".to_owned()));
        }
        Ok(memory)
    }
}

/// An array of the program that has versions. Its size is fixed.
pub(crate) struct LentArray {
    name: String,
    kind: ElementKind,
    memory: LentMemory,
    tracking: ArrayTracking,
    /// Values that are being restored.
    room: Vec<u8>,
}

impl LentArray {
    pub(crate) fn new(name: &str, lent: LentValues) -> Result<Self, CallFailure> {
        let memory = lent.memory(name)?;
        let tracking = ArrayTracking::default();
        Ok(Self { name: name.to_owned(), kind: lent.kind, memory, tracking, room: Vec::new() })
    }

    /// Returns whether these are the same values of the program.
    pub(crate) fn is_same_memory(&self, other: &Self) -> bool {
        let place = |array: &Self| array.bytes().as_ptr_range();
        self.kind == other.kind && place(self) == place(other)
    }

    /// Takes other values in the place of its own. No block of a version is one of theirs.
    pub(crate) fn move_to(&mut self, other: Self) {
        let is_compared = self.tracking.is_compared();
        *self = other;
        if is_compared {
            self.tracking.compare();
        }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.memory.overlaps(&other.memory)
    }

    /// Marks values as touched.
    pub(crate) fn touch(&mut self, first: u64, count: u64) -> Result<(), CallFailure> {
        let size = self.kind.bytes() as u64;
        let n_values = self.bytes().len() as u64 / size;
        let end = first.checked_add(count).filter(|end| *end <= n_values).ok_or_else(|| {
            CallFailure::argument(format!("array {}: {count} values from value {first} of {n_values}", self.name))
        })?;
        self.tracking.touch((first * size) as usize..(end * size) as usize);
        Ok(())
    }
}

impl Versioned for LentArray {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.array(self);
    }
}

impl AnyVersionedArray for LentArray {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> ElementKind {
        self.kind
    }

    fn bytes(&self) -> &[u8] {
        match self.memory.lend() {
            Borrowed::Host(Values::Bytes(bytes)) => bytes,
            _ => unreachable!("it was lent as bytes of the host"),
        }
    }

    fn tracking(&self) -> &ArrayTracking {
        &self.tracking
    }

    fn tracking_mut(&mut self) -> &mut ArrayTracking {
        &mut self.tracking
    }

    fn make_room(&mut self, len: usize) -> Result<&mut [u8], MemoryError> {
        let expected = self.bytes().len() / self.kind.bytes();
        if len != expected {
            return Err(MemoryError::Length { name: self.name.clone(), expected, found: len });
        }
        self.room = vec![0; len * self.kind.bytes()];
        Ok(&mut self.room)
    }

    fn adopt_room(&mut self) {
        let room = std::mem::take(&mut self.room);
        match self.memory.lend_mut() {
            BorrowedMut::Host(ValuesMut::Bytes(bytes)) => bytes.copy_from_slice(&room),
            _ => unreachable!("it was lent as bytes of the host"),
        }
    }

    fn drop_room(&mut self) {
        self.room = Vec::new();
    }
}
