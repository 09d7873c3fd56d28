//! Plain values of a program as a part of its state: numbers, and vectors and arrays of them.
//!
//! Plain values have no marks. Each commit compares them with the newest version, byte by byte, and
//! stores the blocks that differ.

use bytemuck::Pod;

use crate::any_array::{AnyVersionedArray, ArrayTracking};
use crate::element::{ElementKind, VersionedElement};
use crate::error::MemoryError;
use crate::structure::{ArrayList, Versioned};

/// A value that is stored in memory as one element, or as a fixed number of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no plain value of a version",
    note = "plain values are f64, f32, i64, i32, u64, u32 and u8, and arrays of them"
)]
pub trait PlainValue: Pod {
    /// The type of the elements.
    type Element: VersionedElement;
}

impl<V: PlainValue, const N: usize> PlainValue for [V; N]
where
    [V; N]: Pod,
{
    type Element = V::Element;
}

/// Elements of a plain value.
pub(crate) fn lanes<V: PlainValue>() -> usize {
    const { assert!(size_of::<V>() > 0, "a value without bytes cannot be counted") };
    size_of::<V>() / size_of::<V::Element>()
}

macro_rules! plain_values {
    ($($type:ty),*) => {
        $(
            impl PlainValue for $type {
                type Element = Self;
            }

            impl Versioned for $type {
                fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
                    arrays.plain(Box::new(PlainArray::new(PlainValues::Fixed(std::slice::from_mut(self)))));
                }
            }
        )*
    };
}

plain_values!(f64, f32, i64, i32, u64, u32, u8);

impl<V: PlainValue, const N: usize> Versioned for [V; N] {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.plain(Box::new(PlainArray::new(PlainValues::Fixed(self))));
    }
}

impl<V: PlainValue> Versioned for Vec<V> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.plain(Box::new(PlainArray::new(PlainValues::Growing(self))));
    }
}

/// Plain values of the program.
enum PlainValues<'a, V> {
    /// A number that stays.
    Fixed(&'a mut [V]),
    /// A number that is that of a version after a restore.
    Growing(&'a mut Vec<V>),
}

/// Plain values as an array, for one commit or restore.
struct PlainArray<'a, V> {
    values: PlainValues<'a, V>,
    /// Values that are being restored.
    room: Vec<V>,
    tracking: ArrayTracking,
}

impl<'a, V: PlainValue> PlainArray<'a, V> {
    fn new(values: PlainValues<'a, V>) -> Self {
        let mut tracking = ArrayTracking::default();
        tracking.compare();
        Self { values, room: Vec::new(), tracking }
    }
}

impl<V: PlainValue> AnyVersionedArray for PlainArray<'_, V> {
    fn name(&self) -> &str {
        ""
    }

    fn kind(&self) -> ElementKind {
        V::Element::KIND
    }

    fn bytes(&self) -> &[u8] {
        match &self.values {
            PlainValues::Fixed(values) => bytemuck::cast_slice(values),
            PlainValues::Growing(values) => bytemuck::cast_slice(values),
        }
    }

    fn tracking(&self) -> &ArrayTracking {
        &self.tracking
    }

    fn tracking_mut(&mut self) -> &mut ArrayTracking {
        &mut self.tracking
    }

    fn make_room(&mut self, len: usize) -> Result<&mut [u8], MemoryError> {
        let expected = match &self.values {
            PlainValues::Fixed(values) => values.len() * lanes::<V>(),
            PlainValues::Growing(_) => len.next_multiple_of(lanes::<V>()),
        };
        if len != expected {
            return Err(MemoryError::Length { name: String::new(), expected, found: len });
        }
        self.room = vec![V::zeroed(); len / lanes::<V>()];
        Ok(bytemuck::cast_slice_mut(&mut self.room))
    }

    fn adopt_room(&mut self) {
        let room = std::mem::take(&mut self.room);
        match &mut self.values {
            PlainValues::Fixed(values) => values.copy_from_slice(&room),
            PlainValues::Growing(values) => **values = room,
        }
    }

    fn drop_room(&mut self) {
        self.room = Vec::new();
    }
}
