//! The integers of codes, in 32 and in 64 bits.

/// Integers differences are taken in, wrapping.
pub(super) trait Int: Copy + Default + 'static {
    type Unsigned: UnsignedWord;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// The integer below the quotient by `2^bits`.
    fn shifted(self, bits: u32) -> Self;
    /// Small magnitudes to small numbers: 0, -1, 1, -2, ... to 0, 1, 2, 3, ...
    fn zigzag(self) -> Self::Unsigned;
    fn unzigzag(z: Self::Unsigned) -> Self;
    /// About the bits of the magnitude: 126 more than its bit length. Between 2^24 and 2^31 a
    /// magnitude may count as one bit longer.
    fn length(self) -> u32;
    fn wide(self) -> i64;
    fn narrowed(code: i64) -> Self;
}

macro_rules! int {
    ($kind:ident, $unsigned:ident, |$value:ident| $length:expr) => {
        impl Int for $kind {
            type Unsigned = $unsigned;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn shifted(self, bits: u32) -> Self {
                self >> bits
            }
            #[inline(always)]
            fn zigzag(self) -> $unsigned {
                ((self << 1) ^ (self >> (Self::BITS - 1))) as $unsigned
            }
            #[inline(always)]
            fn unzigzag(z: $unsigned) -> Self {
                (z >> 1) as Self ^ (z as Self & 1).wrapping_neg()
            }
            #[inline(always)]
            fn length(self) -> u32 {
                let $value = self;
                $length
            }
            #[inline(always)]
            fn wide(self) -> i64 {
                i64::from(self)
            }
            #[inline(always)]
            fn narrowed(code: i64) -> Self {
                code as Self
            }
        }
    };
}
// The exponent of |v| + 1/2.
int!(i32, u32, |v| ((v as f32).abs() + 0.5).to_bits() >> 23);
int!(i64, u64, |v| 126 + 64 - v.unsigned_abs().leading_zeros());

/// Unsigned integers of the same widths.
pub(super) trait UnsignedWord: Copy + Default + 'static {
    fn or(self, other: Self) -> Self;
    /// Returns whether a bit at `width` or above is set.
    fn reaches(self, width: u32) -> bool;
    /// Eight bits from `shift` on; all set where there are bits above them.
    fn byte(self, shift: u32) -> u8;
    fn wide(self) -> u64;
    fn narrowed(wide: u64) -> Self;
}

macro_rules! word {
    ($kind:ty) => {
        impl UnsignedWord for $kind {
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn reaches(self, width: u32) -> bool {
                self >> width != 0
            }
            #[inline(always)]
            fn byte(self, shift: u32) -> u8 {
                (self >> shift).min(255) as u8
            }
            #[inline(always)]
            fn wide(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn narrowed(wide: u64) -> Self {
                wide as Self
            }
        }
    };
}
word!(u32);
word!(u64);
