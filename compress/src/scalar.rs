//! The two float types that lossy codecs take, as patterns of bits and as doubles.

use recoup_core::{ElementType, Values};

/// A float type values may have.
pub(crate) trait Scalar: Copy + Default + Send + Sync + 'static {
    /// The type, as manifests name it.
    const ELEMENT: ElementType;
    /// Number of the type in a QB header.
    const DTYPE: u8;
    /// Bytes of a value.
    const BYTES: usize;
    /// Low bits of a pattern that relative lattices leave out: what remains fits a double.
    const SHIFT: u32;
    /// All bits of a pattern but its sign.
    const MAGNITUDE: u64;
    /// Pattern of the smallest normal number.
    const SMALLEST_NORMAL: u64;
    /// Pattern of infinity.
    const INFINITY: u64;

    /// The values, where they are of this type.
    fn of(values: Values<'_>) -> Option<&[Self]>;
    /// The value's bits, in the low end.
    fn bits(self) -> u64;
    /// The value of these bits; those above [`Scalar::BYTES`] are ignored.
    fn from_bits(bits: u64) -> Self;
    /// The value with its sign turned where `flip`.
    fn negated(self, flip: bool) -> Self;
    fn is_zero(self) -> bool;
    fn is_negative(self) -> bool;
    /// The value as a double: exact.
    fn wide(self) -> f64;
    /// The value nearest to a double, ties to even.
    fn rounded(wide: f64) -> Self;
    /// The value's rank among all values: integers that ascend as the values do.
    fn rank(self) -> i64;
    /// The inverse of [`Scalar::rank`].
    fn from_rank(rank: i64) -> Self;
}

macro_rules! scalar {
    ($kind:ident, $variant:ident, $bits:ty, $signed:ty, $dtype:expr, $shift:expr) => {
        impl Scalar for $kind {
            const ELEMENT: ElementType = ElementType::$variant;
            const DTYPE: u8 = $dtype;
            const BYTES: usize = size_of::<$kind>();
            const SHIFT: u32 = $shift;
            const MAGNITUDE: u64 = (<$bits>::MAX >> 1) as u64;
            const SMALLEST_NORMAL: u64 = <$kind>::MIN_POSITIVE.to_bits() as u64;
            const INFINITY: u64 = <$kind>::INFINITY.to_bits() as u64;

            fn of(values: Values<'_>) -> Option<&[Self]> {
                if let Values::$variant(values) = values { Some(values) } else { None }
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                <$kind>::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn negated(self, flip: bool) -> Self {
                <$kind>::from_bits(self.to_bits() ^ (<$bits>::from(flip) << (<$bits>::BITS - 1)))
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self == 0.0
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                self.to_bits() >> (<$bits>::BITS - 1) != 0
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn rounded(wide: f64) -> Self {
                wide as $kind
            }
            #[inline(always)]
            fn rank(self) -> i64 {
                let bits = self.to_bits() as $signed;
                i64::from(bits ^ (((bits >> (<$signed>::BITS - 1)) as $bits) >> 1) as $signed)
            }
            #[inline(always)]
            fn from_rank(rank: i64) -> Self {
                let rank = rank as $signed;
                <$kind>::from_bits((rank ^ (((rank >> (<$signed>::BITS - 1)) as $bits) >> 1) as $signed) as $bits)
            }
        }
    };
}
scalar!(f64, F64, u64, i64, 0, 11);
scalar!(f32, F32, u32, i32, 1, 0);
