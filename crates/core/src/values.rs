//! Values of one type in this process's memory, lent to be read or to be overwritten.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of a variable's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ElementType {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
    /// Signed 64-bit integer.
    I64,
    /// Bytes without meaning to us.
    Bytes,
}

impl ElementType {
    /// Returns the bytes of one element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 => 4,
            Self::Bytes => 1,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::I64 => "i64",
            Self::Bytes => "bytes",
        })
    }
}

/// Values lent to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values<'a> {
    /// IEEE doubles.
    F64(&'a [f64]),
    /// IEEE singles.
    F32(&'a [f32]),
    /// Signed 64-bit integers.
    I64(&'a [i64]),
    /// Plain bytes.
    Bytes(&'a [u8]),
}

impl<'a> Values<'a> {
    /// Returns the values from `start`, `len` of them.
    ///
    /// # Panics
    /// When there are fewer.
    #[must_use]
    pub fn slice(self, start: usize, len: usize) -> Values<'a> {
        match self {
            Self::F64(v) => Values::F64(&v[start..start + len]),
            Self::F32(v) => Values::F32(&v[start..start + len]),
            Self::I64(v) => Values::I64(&v[start..start + len]),
            Self::Bytes(v) => Values::Bytes(&v[start..start + len]),
        }
    }

    /// Returns their memory, where it holds the bytes that [`CodecId::Raw`](crate::CodecId::Raw)
    /// writes: on little-endian machines.
    #[must_use]
    pub fn as_raw(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(v) => Some(v),
            _ if cfg!(target_endian = "big") => None,
            Self::F64(v) => Some(bytemuck::cast_slice(v)),
            Self::F32(v) => Some(bytemuck::cast_slice(v)),
            Self::I64(v) => Some(bytemuck::cast_slice(v)),
        }
    }
}

impl Values<'_> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F64(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::Bytes(v) => v.len(),
        }
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::F64(_) => ElementType::F64,
            Self::F32(_) => ElementType::F32,
            Self::I64(_) => ElementType::I64,
            Self::Bytes(_) => ElementType::Bytes,
        }
    }
}

/// Values lent to be overwritten.
#[derive(Debug, PartialEq)]
pub enum ValuesMut<'a> {
    /// IEEE doubles.
    F64(&'a mut [f64]),
    /// IEEE singles.
    F32(&'a mut [f32]),
    /// Signed 64-bit integers.
    I64(&'a mut [i64]),
    /// Plain bytes.
    Bytes(&'a mut [u8]),
}

impl ValuesMut<'_> {
    /// Lends the same values to be read.
    #[must_use]
    pub fn as_values(&self) -> Values<'_> {
        match self {
            Self::F64(v) => Values::F64(v),
            Self::F32(v) => Values::F32(v),
            Self::I64(v) => Values::I64(v),
            Self::Bytes(v) => Values::Bytes(v),
        }
    }

    /// Lends the values from `start`, `len` of them.
    ///
    /// # Panics
    /// When there are fewer.
    #[must_use]
    pub fn slice_mut(&mut self, start: usize, len: usize) -> ValuesMut<'_> {
        match self {
            Self::F64(v) => ValuesMut::F64(&mut v[start..start + len]),
            Self::F32(v) => ValuesMut::F32(&mut v[start..start + len]),
            Self::I64(v) => ValuesMut::I64(&mut v[start..start + len]),
            Self::Bytes(v) => ValuesMut::Bytes(&mut v[start..start + len]),
        }
    }

    /// Lends the same values again.
    #[must_use]
    pub fn reborrow(&mut self) -> ValuesMut<'_> {
        match self {
            Self::F64(v) => ValuesMut::F64(v),
            Self::F32(v) => ValuesMut::F32(v),
            Self::I64(v) => ValuesMut::I64(v),
            Self::Bytes(v) => ValuesMut::Bytes(v),
        }
    }
}
