//! Values of any type, owned, and their bytes.

use recoup_core::{ElementType, Values, ValuesMut};

/// Values of any type, owned.
#[derive(Clone, Debug)]
pub enum OwnedValues {
    /// Doubles.
    F64(Vec<f64>),
    /// Singles.
    F32(Vec<f32>),
    /// Whole numbers.
    I64(Vec<i64>),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl OwnedValues {
    /// Zeros.
    pub fn zeros(element: ElementType, len: usize) -> Self {
        match element {
            ElementType::F64 => Self::F64(vec![0.0; len]),
            ElementType::F32 => Self::F32(vec![0.0; len]),
            ElementType::I64 => Self::I64(vec![0; len]),
            ElementType::Bytes => Self::Bytes(vec![0; len]),
        }
    }

    /// Zeros of the same type.
    pub fn zeros_like(&self, len: usize) -> Self {
        Self::zeros(self.lend().element(), len)
    }

    /// Values of little-endian bytes.
    pub fn from_bytes(element: ElementType, bytes: &[u8]) -> Self {
        let mut values = Self::zeros(element, bytes.len() / element.size());
        fill(bytes, values.lend_mut());
        values
    }

    /// The values.
    pub fn lend(&self) -> Values<'_> {
        match self {
            Self::F64(v) => Values::F64(v),
            Self::F32(v) => Values::F32(v),
            Self::I64(v) => Values::I64(v),
            Self::Bytes(v) => Values::Bytes(v),
        }
    }

    /// The values, to be overwritten.
    pub fn lend_mut(&mut self) -> ValuesMut<'_> {
        match self {
            Self::F64(v) => ValuesMut::F64(v),
            Self::F32(v) => ValuesMut::F32(v),
            Self::I64(v) => ValuesMut::I64(v),
            Self::Bytes(v) => ValuesMut::Bytes(v),
        }
    }

    /// Their little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes_of(self.lend())
    }
}

/// Returns the little-endian bytes of values.
pub fn bytes_of(values: Values<'_>) -> Vec<u8> {
    match values {
        Values::F64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Values::F32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Values::I64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Values::Bytes(v) => v.to_vec(),
    }
}

/// Overwrites values with those of little-endian bytes.
pub fn fill(bytes: &[u8], target: ValuesMut<'_>) {
    match target {
        ValuesMut::F64(t) => t.iter_mut().zip(bytes.as_chunks().0).for_each(|(t, b)| *t = f64::from_le_bytes(*b)),
        ValuesMut::F32(t) => t.iter_mut().zip(bytes.as_chunks().0).for_each(|(t, b)| *t = f32::from_le_bytes(*b)),
        ValuesMut::I64(t) => t.iter_mut().zip(bytes.as_chunks().0).for_each(|(t, b)| *t = i64::from_le_bytes(*b)),
        ValuesMut::Bytes(t) => t.copy_from_slice(&bytes[..t.len()]),
    }
}
