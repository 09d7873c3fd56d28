//! From values to integer codes and back: one value at a time, so that every machine does the same.
//!
//! Promises: [`Lattice::code`] says that a value holds only when [`Lattice::value`] of its code is
//! within the bound in real arithmetic. Plain multiplications, additions and integer operations: no
//! fused multiply-add, no function of a mathematical library. FORMAT.md carries the proofs.

/// `1.5 2^52`: added to a number below 2^51, it rounds it to an integer that stands in the low
/// bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const MAGIC_BITS: i64 = MAGIC.to_bits() as i64;
/// `2^52`, likewise for what is not negative.
const INTEGER: f64 = 4_503_599_627_370_496.0;
const INTEGER_BITS: u64 = INTEGER.to_bits();
/// Codes stay below this, where both roundings are exact.
const LIMIT: f64 = 1_125_899_906_842_624.0;
const LIMIT_BITS: u64 = LIMIT.to_bits();
/// Below this an absolute bound leaves no room for the lattice: such values are stored exactly.
const ABSOLUTE_MIN: f64 = f64::from_bits((1023 - 1000) << 52);
/// Above these a bound is taken as if it were this one, which is tighter.
const ABSOLUTE_MAX: f64 = f64::from_bits((1023 + 1021) << 52);
const RELATIVE_MAX: f64 = 0.499;

const NEGATIVE_ZERO: u64 = 1 << 63;
const F64_SMALLEST_NORMAL: u64 = 1 << 52;
const F64_INFINITY: u64 = 0x7ff << 52;
const F32_SMALLEST_NORMAL: u32 = 1 << 23;
const F32_INFINITY: u32 = 0xff << 23;
/// Bits of an f64 pattern below what the relative lattice looks at.
const SHIFT: u32 = 11;

/// A float type values may have.
pub(super) trait Scalar: Copy + Default + Send + Sync + 'static {
    /// Number of the type in the header.
    const DTYPE: u8;
    /// Bytes of a value.
    const BYTES: usize;
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
}

macro_rules! scalar {
    ($kind:ty, $bits:ty, $dtype:expr) => {
        impl Scalar for $kind {
            const DTYPE: u8 = $dtype;
            const BYTES: usize = size_of::<$kind>();
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
        }
    };
}
scalar!(f64, u64, 0);
scalar!(f32, u32, 1);

/// What became of a value. Whether it holds is [`Lattice::holds`]'s to say; many values are judged
/// at once by the union of their signs of `odd` and their largest error.
#[derive(Clone, Copy)]
pub(super) struct Coded {
    pub(super) code: i64,
    /// Negative for a value that no code stands for, whatever the error.
    pub(super) odd: i64,
    /// `|x' - x|`; no NaN unless `odd` is negative.
    pub(super) error: f64,
}

/// Negative when `a < b`, both below 2^63: arithmetic, which every processor has in its vectors.
#[inline(always)]
fn short_of(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

/// Negative for the negative zero: of numbers below zero, only the least one's lowest set bit is
/// the highest.
#[inline(always)]
fn negative_zero(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    bits & bits.wrapping_neg()
}

/// A set of representable values, numbered in ascending order.
pub(super) trait Lattice<T>: Copy + Send + Sync {
    /// Codes stand for magnitudes; signs and zeros are kept beside them.
    const SPLITS_SIGN: bool;

    /// The code nearest to `x`.
    fn code(&self, x: T) -> Coded;

    /// Errors up to this hold; infinite where what is not odd holds by proof.
    fn bound(&self) -> f64;

    /// Whether the code's value is within the bound of the one it was made of.
    fn holds(&self, coded: Coded) -> bool {
        coded.odd >= 0 && coded.error <= self.bound()
    }

    /// The value of a code; any code has one.
    fn value(&self, code: i64) -> T;

    /// The code a decoded value is predicted by: 0 where it has none.
    fn parent_code(&self, x: T) -> i64;
}

/// Rounds to the nearest integer, ties to even: the integer, and the same as a float.
#[inline(always)]
fn round(t: f64) -> (i64, f64) {
    let y = t + MAGIC;
    ((y.to_bits() as i64).wrapping_sub(MAGIC_BITS), y - MAGIC)
}

/// A code as a float, exactly for all codes below 2^51.
#[inline(always)]
fn float(code: i64) -> f64 {
    f64::from_bits(code.wrapping_add(MAGIC_BITS) as u64) - MAGIC
}

/// Whether a parent at `t` steps has a code.
#[inline(always)]
fn bounded(t: f64, code: i64) -> i64 {
    if t.abs() < LIMIT { code } else { 0 }
}

/// `x' = code step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Absolute {
    step: f64,
    inverse: f64,
    bound: f64,
}

impl Absolute {
    /// The lattice for a bound; `None` where it leaves no room. In a chain the step is a power of
    /// two, so that the lattices of all versions lie in each other. `halved` takes half the step.
    pub(super) fn new(bound: f64, is_chained: bool, halved: bool) -> Option<Self> {
        if bound < ABSOLUTE_MIN {
            return None;
        }
        let bound = bound.min(ABSOLUTE_MAX);
        const SHRUNK: f64 = 1.0 - f64::EPSILON * 4.0;
        let full = if is_chained { power_of_two_below(2.0 * bound) } else { 2.0 * bound * SHRUNK };
        Some(Self::with(if halved { full / 2.0 } else { full }, bound))
    }

    /// The decoder's lattice; `None` for a step no encoder writes.
    pub(super) fn of_step(step: f64) -> Option<Self> {
        (step.is_normal() && step > 0.0 && (1.0 / step).is_normal()).then(|| Self::with(step, step))
    }

    fn with(step: f64, bound: f64) -> Self {
        Self { step, inverse: 1.0 / step, bound }
    }

    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// Step, its inverse, and the bound.
    #[cfg(feature = "cuda")]
    pub(super) fn numbers(&self) -> (f64, f64, f64) {
        (self.step, self.inverse, self.bound)
    }
}

/// The largest power of two not above a normal `x`.
fn power_of_two_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & F64_INFINITY)
}

impl Lattice<f64> for Absolute {
    const SPLITS_SIGN: bool = false;

    #[inline(always)]
    fn code(&self, x: f64) -> Coded {
        let t = x * self.inverse;
        let (code, r) = round(t);
        let error = (x - r * self.step).abs();
        Coded { code, odd: short_of(LIMIT_BITS - 1, t.abs().to_bits()) | negative_zero(x), error }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        self.bound
    }

    #[inline(always)]
    fn value(&self, code: i64) -> f64 {
        float(code) * self.step
    }

    #[inline(always)]
    fn parent_code(&self, x: f64) -> i64 {
        let t = x * self.inverse;
        bounded(t, round(t).0)
    }
}

impl Lattice<f32> for Absolute {
    const SPLITS_SIGN: bool = false;

    #[inline(always)]
    fn code(&self, x: f32) -> Coded {
        let wide = f64::from(x);
        let t = wide * self.inverse;
        let (code, r) = round(t);
        let error = (wide - f64::from((r * self.step) as f32)).abs();
        Coded { code, odd: short_of(LIMIT_BITS - 1, t.abs().to_bits()) | negative_zero(wide), error }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        self.bound
    }

    #[inline(always)]
    fn value(&self, code: i64) -> f32 {
        (float(code) * self.step) as f32
    }

    #[inline(always)]
    fn parent_code(&self, x: f32) -> i64 {
        Lattice::<f64>::parent_code(self, f64::from(x))
    }
}

/// `pattern of |x'| = code divisor`, in units of the pattern's bits above [`SHIFT`] (f64) or of all
/// (f32): the pattern of a float is a piecewise linear logarithm of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Relative {
    divisor: f64,
    inverse: f64,
    /// The last code whose value is finite.
    last: i64,
}

impl Relative {
    /// The lattice for a bound on values of `bytes` bytes; `None` where it leaves no room. In a
    /// chain the divisor is a power of two.
    pub(super) fn new(bound: f64, bytes: usize, is_chained: bool) -> Option<Self> {
        let bound = bound.min(RELATIVE_MAX);
        let divisor = if bytes == f64::BYTES {
            ((bound * INTEGER) as u64).checked_sub(4096)? / 1024
        } else {
            2 * ((bound * f64::from(F32_SMALLEST_NORMAL)) as u64).checked_sub(1)?
        };
        let divisor = if is_chained { (divisor + 1).next_power_of_two() / 2 } else { divisor };
        // Below these bounds fewer codes are saved than the lattice costs.
        let least = if bytes == f64::BYTES { 12 } else { 2 };
        (divisor >= least).then(|| Self::with(divisor, bytes))
    }

    /// The decoder's lattice; `None` for a divisor no encoder writes.
    pub(super) fn of_divisor(divisor: u64, bytes: usize) -> Option<Self> {
        (2..1 << 42).contains(&divisor).then(|| Self::with(divisor, bytes))
    }

    fn with(divisor: u64, bytes: usize) -> Self {
        let infinity = if bytes == f64::BYTES { F64_INFINITY >> SHIFT } else { u64::from(F32_INFINITY) };
        let last = ((infinity - 1) / divisor) as i64;
        Self { divisor: divisor as f64, inverse: 1.0 / divisor as f64, last }
    }

    pub(super) fn divisor(&self) -> u64 {
        self.divisor as u64
    }

    /// Divisor, its inverse, and the last code whose value is finite.
    #[cfg(feature = "cuda")]
    pub(super) fn numbers(&self) -> (f64, f64, i64) {
        (self.divisor, self.inverse, self.last)
    }

    /// The code nearest to a shifted pattern, and the shifted pattern of that code.
    #[inline(always)]
    fn nearest(&self, pattern: u64) -> (i64, u64) {
        let t = (f64::from_bits(pattern | INTEGER_BITS) - INTEGER) * self.inverse;
        let (code, r) = round(t);
        (code, integer(r * self.divisor))
    }

    #[inline(always)]
    fn pattern(&self, code: i64) -> u64 {
        integer(float(code) * self.divisor)
    }
}

/// The integer a float below 2^52 is; anything, but always the same, for others.
#[inline(always)]
fn integer(x: f64) -> u64 {
    (x + INTEGER).to_bits() & (F64_SMALLEST_NORMAL - 1)
}

impl Lattice<f64> for Relative {
    const SPLITS_SIGN: bool = true;

    #[inline(always)]
    fn code(&self, x: f64) -> Coded {
        let bits = x.to_bits() & !NEGATIVE_ZERO;
        let (code, pattern) = self.nearest(bits >> SHIFT);
        let error = (f64::from_bits(pattern << SHIFT) - f64::from_bits(bits)).abs();
        let odd = short_of(bits, F64_SMALLEST_NORMAL) | short_of(F64_INFINITY - 1, bits);
        Coded { code, odd: odd | short_of(self.last as u64, code as u64), error }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        f64::INFINITY
    }

    #[inline(always)]
    fn value(&self, code: i64) -> f64 {
        f64::from_bits(self.pattern(code) << SHIFT)
    }

    #[inline(always)]
    fn parent_code(&self, x: f64) -> i64 {
        let Coded { code, odd, .. } = self.code(x);
        if odd >= 0 { code } else { 0 }
    }
}

impl Lattice<f32> for Relative {
    const SPLITS_SIGN: bool = true;

    #[inline(always)]
    fn code(&self, x: f32) -> Coded {
        let bits = x.to_bits() & (u32::MAX >> 1);
        let wide = u64::from(bits);
        let (code, pattern) = self.nearest(wide);
        let error = (f64::from(f32::from_bits(pattern as u32)) - f64::from(f32::from_bits(bits))).abs();
        let odd = short_of(wide, u64::from(F32_SMALLEST_NORMAL)) | short_of(u64::from(F32_INFINITY) - 1, wide);
        Coded { code, odd: odd | short_of(self.last as u64, code as u64), error }
    }

    #[inline(always)]
    fn bound(&self) -> f64 {
        f64::INFINITY
    }

    #[inline(always)]
    fn value(&self, code: i64) -> f32 {
        f32::from_bits(self.pattern(code) as u32)
    }

    #[inline(always)]
    fn parent_code(&self, x: f32) -> i64 {
        let Coded { code, odd, .. } = self.code(x);
        if odd >= 0 { code } else { 0 }
    }
}

/// Every value: the bits in ascending order of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exact;

macro_rules! exact {
    ($kind:ty, $signed:ty, $unsigned:ty) => {
        impl Lattice<$kind> for Exact {
            const SPLITS_SIGN: bool = false;

            #[inline(always)]
            fn code(&self, x: $kind) -> Coded {
                Coded { code: self.parent_code(x), odd: 0, error: 0.0 }
            }

            #[inline(always)]
            fn bound(&self) -> f64 {
                f64::INFINITY
            }

            #[inline(always)]
            fn value(&self, code: i64) -> $kind {
                let code = code as $signed;
                <$kind>::from_bits(
                    (code ^ (((code >> (<$signed>::BITS - 1)) as $unsigned) >> 1) as $signed) as $unsigned,
                )
            }

            #[inline(always)]
            fn parent_code(&self, x: $kind) -> i64 {
                let bits = x.to_bits() as $signed;
                i64::from(bits ^ (((bits >> (<$signed>::BITS - 1)) as $unsigned) >> 1) as $signed)
            }
        }
    };
}
exact!(f64, i64, u64);
exact!(f32, i32, u32);
