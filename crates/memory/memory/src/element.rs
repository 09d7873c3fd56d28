//! The types of values that a structure may hold.

use bytemuck::Pod;

/// The type of the values of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ElementKind {
    /// 64-bit floating point.
    F64 = 0,
    /// 32-bit floating point.
    F32 = 1,
    /// Signed, 64 bits.
    I64 = 2,
    /// Signed, 32 bits.
    I32 = 3,
    /// Unsigned, 64 bits.
    U64 = 4,
    /// Unsigned, 32 bits.
    U32 = 5,
    /// Bytes.
    U8 = 6,
}

impl ElementKind {
    /// Every kind, in the order of its number in the file.
    pub const ALL: [Self; 7] = [Self::F64, Self::F32, Self::I64, Self::I32, Self::U64, Self::U32, Self::U8];

    /// Bytes of one value.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::U8 => 1,
        }
    }

    /// Name of the type in Rust.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::U32 => "u32",
            Self::U8 => "u8",
        }
    }

    pub(crate) fn decode(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// A type of values: any bytes are one of them.
pub trait VersionedElement: Pod {
    /// Its kind in the file.
    const KIND: ElementKind;
}

macro_rules! elements {
    ($($type:ty => $kind:ident),*) => {
        $(impl VersionedElement for $type {
            const KIND: ElementKind = ElementKind::$kind;
        })*
    };
}

elements!(f64 => F64, f32 => F32, i64 => I64, i32 => I32, u64 => U64, u32 => U32, u8 => U8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_back_from_their_numbers() {
        for kind in ElementKind::ALL {
            assert_eq!(ElementKind::decode(kind as u8), Some(kind));
        }
        assert_eq!(ElementKind::decode(7), None);
        assert_eq!((f64::KIND.bytes(), u8::KIND.bytes()), (8, 1));
    }
}
