//! The types of PTX, and integers and floats as the bits of a register.

use std::ops::{Add, Div, Mul, Sub};

/// Meaning of the bits of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarKind {
    Bits,
    Unsigned,
    Signed,
    Float,
    Predicate,
}

/// A type, such as `.u32`. A predicate has one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScalarType {
    pub(super) kind: ScalarKind,
    pub(super) bits: u32,
}

impl ScalarType {
    /// Returns the type of a name without its dot. Half floats and vectors in a register are none.
    pub(super) fn named(name: &str) -> Option<Self> {
        if name == "pred" {
            return Some(Self { kind: ScalarKind::Predicate, bits: 1 });
        }
        let (kind, sizes): (_, &[u32]) = match name.as_bytes().first()? {
            b'b' => (ScalarKind::Bits, &[8, 16, 32, 64]),
            b'u' => (ScalarKind::Unsigned, &[8, 16, 32, 64]),
            b's' => (ScalarKind::Signed, &[8, 16, 32, 64]),
            b'f' => (ScalarKind::Float, &[32, 64]),
            _ => return None,
        };
        let bits = sizes.iter().copied().find(|bits| name[1..] == bits.to_string())?;
        Some(Self { kind, bits })
    }

    /// Returns the bytes of a value in memory.
    pub(super) fn bytes(self) -> usize {
        self.bits as usize / 8
    }
}

/// The lowest `bits` bits, 1 to 64.
pub(super) fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// An integer type of the device.
pub(super) trait Integer: Copy + Ord {
    /// Number of bits.
    const BITS: u32;
    /// Takes the low bits of a register.
    fn of(bits: u64) -> Self;
    /// Returns the bits of a register, zero above the type.
    fn bits(self) -> u64;
    /// Returns the value.
    fn wide(self) -> i128;
    /// Returns the quotient; `None` where it has no value.
    fn quotient(self, divisor: Self) -> Option<Self>;
    /// Returns the remainder, with the sign of `self`; `None` for a divisor of zero.
    fn remainder(self, divisor: Self) -> Option<Self>;
}

macro_rules! integers {
    ($($name:ident $unsigned:ident)*) => { $(
        impl Integer for $name {
            const BITS: u32 = $name::BITS;
            fn of(bits: u64) -> Self { bits as $name }
            fn bits(self) -> u64 { u64::from(self as $unsigned) }
            fn wide(self) -> i128 { i128::from(self) }
            fn quotient(self, divisor: Self) -> Option<Self> { self.checked_div(divisor) }
            fn remainder(self, divisor: Self) -> Option<Self> { (divisor != 0).then(|| self.wrapping_rem(divisor)) }
        }
    )* };
}

integers!(u8 u8 i8 u8 u16 u16 i16 u16 u32 u32 i32 u32 u64 u64 i64 u64);

/// A float type of the device.
pub(super) trait Real:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// Takes the low bits of a register.
    fn of(bits: u64) -> Self;
    /// Returns the bits of a result. A single that is no number has one pattern only.
    fn bits(self) -> u64;
}

impl Real for f64 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Real for f32 {
    fn of(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }

    fn bits(self) -> u64 {
        u64::from(if self.is_nan() { 0x7fff_ffff } else { self.to_bits() })
    }
}

/// Evaluates an expression with `$type` standing for the integer type of a name; leaves the
/// function with `None` where that is none of the list.
macro_rules! by_integer {
    ($name:expr, [$($word:literal = $integer:ty),*], $type:ident => $value:expr) => {
        match $name {
            $($word => { type $type = $integer; $value })*
            _ => return None,
        }
    };
    ($name:expr, all, $type:ident => $value:expr) => {
        by_integer!($name, ["u8" = u8, "s8" = i8, "u16" = u16, "s16" = i16, "u32" = u32, "s32" = i32,
                            "u64" = u64, "s64" = i64], $type => $value)
    };
    ($name:expr, arithmetic, $type:ident => $value:expr) => {
        by_integer!($name, ["u16" = u16, "s16" = i16, "u32" = u32, "s32" = i32, "u64" = u64, "s64" = i64],
                    $type => $value)
    };
    ($name:expr, bits, $type:ident => $value:expr) => {
        by_integer!($name, ["b16" = u16, "b32" = u32, "b64" = u64], $type => $value)
    };
    ($name:expr, wide_bits, $type:ident => $value:expr) => {
        by_integer!($name, ["b32" = u32, "b64" = u64], $type => $value)
    };
}

/// The same for float types.
macro_rules! by_real {
    ($name:expr, $type:ident => $value:expr) => {
        match $name {
            "f32" => {
                type $type = f32;
                $value
            }
            "f64" => {
                type $type = f64;
                $value
            }
            _ => return None,
        }
    };
}

pub(super) use {by_integer, by_real};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_are_those_of_the_list_only() {
        assert_eq!(ScalarType::named("s16"), Some(ScalarType { kind: ScalarKind::Signed, bits: 16 }));
        assert_eq!(ScalarType::named("pred").map(|found| found.bits), Some(1));
        for unknown in ["f16", "b128", "u", "", "f16x2", "bf16", "u032", "pre"] {
            assert_eq!(ScalarType::named(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn an_integer_of_a_register_is_its_low_bits() {
        assert_eq!(i8::of(0x1ff).wide(), -1);
        assert_eq!(i16::of(0x8000).bits(), 0x8000);
        assert_eq!(<f32 as Real>::of(0x7f80_0001).bits(), 0x7fff_ffff);
        assert_eq!(<f64 as Real>::of(0x7ff8_0000_0000_0001).bits(), 0x7ff8_0000_0000_0001);
    }
}
