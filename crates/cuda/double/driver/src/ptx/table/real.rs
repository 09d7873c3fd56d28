//! Floats: arithmetic rounded to nearest, and sums rounded to zero; extremes, signs.
//!
//! Nothing is contracted, and no denormal becomes zero. The payload of a double that is no number
//! is that of the host.

use std::num::FpCategory;

use super::super::scalar::{Real, by_real};
use super::{Operation, one, three, two};

const SIGN: u64 = 1 << 63;
const SINGLE_SIGN: u64 = 1 << 31;

/// Returns the operation of a float instruction. Without a rounding, `add`, `sub` and `mul` round
/// to nearest too.
pub(super) fn find(words: &[&str]) -> Option<Operation> {
    let bits = width(words.last()?);
    Some(match *words {
        ["add", "rn", name] | ["add", name] => Operation::uniform(by_real!(name, T => two!(add::<T>)), bits),
        ["sub", "rn", name] | ["sub", name] => Operation::uniform(by_real!(name, T => two!(sub::<T>)), bits),
        ["add", "rz", name] => Operation::uniform(by_real!(name, T => two!(add_to_zero::<T>)), bits),
        ["sub", "rz", name] => Operation::uniform(by_real!(name, T => two!(sub_to_zero::<T>)), bits),
        ["mul", "rn", name] | ["mul", name] => Operation::uniform(by_real!(name, T => two!(mul::<T>)), bits),
        ["div", "rn", name] => Operation::uniform(by_real!(name, T => two!(div::<T>)), bits),
        ["fma" | "mad", "rn", name] => Operation::uniform(by_real!(name, T => three!(fma::<T>)), bits),
        ["sqrt", "rn", name] => Operation::uniform(by_real!(name, T => one!(sqrt::<T>)), bits),
        ["rcp", "rn", name] => Operation::uniform(by_real!(name, T => one!(rcp::<T>)), bits),
        ["min", name] => Operation::uniform(by_real!(name, T => two!(min::<T>)), bits),
        ["max", name] => Operation::uniform(by_real!(name, T => two!(max::<T>)), bits),
        ["neg", "f64"] => Operation::uniform(one!(|a| a ^ SIGN), bits),
        ["neg", "f32"] => Operation::uniform(one!(|a| a ^ SINGLE_SIGN), bits),
        ["abs", "f64"] => Operation::uniform(one!(|a| a & !SIGN), bits),
        ["abs", "f32"] => Operation::uniform(one!(|a| a & !SINGLE_SIGN), bits),
        ["copysign", "f64"] => Operation::uniform(two!(|a, b| a & SIGN | b & !SIGN), bits),
        ["copysign", "f32"] => Operation::uniform(two!(|a, b| a & SINGLE_SIGN | b & !SINGLE_SIGN), bits),
        _ => return None,
    })
}

fn width(name: &str) -> u32 {
    if name == "f32" { 32 } else { 64 }
}

/// Arithmetic of both types.
trait Arithmetic: Real {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn fused(self, factor: Self, term: Self) -> Self;
    fn root(self) -> Self;
    fn size(self) -> Self;
    fn negated(self) -> Self;
    fn one() -> Self;
    fn is_nan(self) -> bool;
    fn is_negative(self) -> bool;
    fn class(self) -> FpCategory;
    fn nan() -> Self;
}

macro_rules! arithmetic {
    ($($name:ident $nan:literal)*) => { $(
        impl Arithmetic for $name {
            fn add(self, other: Self) -> Self { self + other }
            fn sub(self, other: Self) -> Self { self - other }
            fn mul(self, other: Self) -> Self { self * other }
            fn div(self, other: Self) -> Self { self / other }
            fn fused(self, factor: Self, term: Self) -> Self { self.mul_add(factor, term) }
            fn root(self) -> Self { self.sqrt() }
            fn size(self) -> Self { self.abs() }
            fn negated(self) -> Self { -self }
            fn one() -> Self { 1.0 }
            fn is_nan(self) -> bool { self.is_nan() }
            fn is_negative(self) -> bool { self.is_sign_negative() }
            fn class(self) -> FpCategory { self.classify() }
            fn nan() -> Self { $name::from_bits($nan) }
        }
    )* };
}

arithmetic!(f32 0x7fff_ffff f64 0x7fff_ffff_ffff_ffff);

fn add<T: Arithmetic>(a: u64, b: u64) -> u64 {
    T::of(a).add(T::of(b)).bits()
}

fn sub<T: Arithmetic>(a: u64, b: u64) -> u64 {
    T::of(a).sub(T::of(b)).bits()
}

/// The sum, rounded to zero. The sum to nearest and what it leaves are exact together (Dekker, doi
/// 10.1007/BF01397083); where the two have other signs, the sum is one too far from zero.
fn add_to_zero<T: Arithmetic>(a: u64, b: u64) -> u64 {
    let first = T::of(a);
    let second = T::of(b);
    let sum = first.add(second);
    let is_finite = |x: T| matches!(x.class(), FpCategory::Normal | FpCategory::Subnormal | FpCategory::Zero);
    if sum.is_nan() || !is_finite(first) || !is_finite(second) {
        return sum.bits();
    }
    if !is_finite(sum) {
        return sum.bits() - 1;
    }
    let [large, small] = if first.size() < second.size() { [second, first] } else { [first, second] };
    let left = small.sub(sum.sub(large));
    let is_too_far = left.class() != FpCategory::Zero && left.is_negative() != sum.is_negative();
    sum.bits() - u64::from(is_too_far)
}

fn sub_to_zero<T: Arithmetic>(a: u64, b: u64) -> u64 {
    add_to_zero::<T>(a, T::of(b).negated().bits())
}

fn mul<T: Arithmetic>(a: u64, b: u64) -> u64 {
    T::of(a).mul(T::of(b)).bits()
}

fn div<T: Arithmetic>(a: u64, b: u64) -> u64 {
    T::of(a).div(T::of(b)).bits()
}

fn fma<T: Arithmetic>(a: u64, b: u64, c: u64) -> u64 {
    T::of(a).fused(T::of(b), T::of(c)).bits()
}

fn sqrt<T: Arithmetic>(a: u64) -> u64 {
    T::of(a).root().bits()
}

fn rcp<T: Arithmetic>(a: u64) -> u64 {
    T::one().div(T::of(a)).bits()
}

fn min<T: Arithmetic>(a: u64, b: u64) -> u64 {
    extreme::<T>(T::of(a), T::of(b), |a, b| is_below(b, a))
}

fn max<T: Arithmetic>(a: u64, b: u64) -> u64 {
    extreme::<T>(T::of(a), T::of(b), |a, b| is_below(a, b))
}

/// The second of two where it wins, or the one that is a number; one pattern where none is.
fn extreme<T: Arithmetic>(a: T, b: T, second_wins: fn(T, T) -> bool) -> u64 {
    let taken = match (a.is_nan(), b.is_nan()) {
        (true, true) => T::nan(),
        (true, false) => b,
        (false, true) => a,
        (false, false) => [a, b][usize::from(second_wins(a, b))],
    };
    taken.bits()
}

/// Returns whether `a` is below `b`; -0 is below +0.
fn is_below<T: Arithmetic>(a: T, b: T) -> bool {
    a < b || (a == b && a.is_negative() && !b.is_negative())
}
