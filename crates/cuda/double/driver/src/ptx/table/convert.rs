//! Conversions between integers and floats of all widths.
//!
//! The result is that of the type in 64 bits, with its sign: a register wider than the type takes
//! more of it.

use super::super::scalar::{Integer, Real, by_integer, by_real};
use super::{TotalFunction, one};

/// A direction of rounding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

/// Returns the conversion of `cvt` with these modifiers and types.
pub(super) fn conversion(modifiers: &[&str], target: &str, source: &str) -> Option<TotalFunction> {
    match (target.starts_with('f'), source.starts_with('f')) {
        (false, false) => integers(modifiers, target, source),
        (false, true) => Some(by_real!(source, T => to_integer::<T>(modifiers, target)?)),
        (true, false) => Some(by_integer!(source, all, T => from_integer::<T>(modifiers, target)?)),
        (true, true) if target == source => Some(by_real!(source, T => to_integral::<T>(modifiers)?)),
        (true, true) => between_reals(modifiers, target),
    }
}

fn integers(modifiers: &[&str], target: &str, source: &str) -> Option<TotalFunction> {
    match modifiers {
        [] => Some(by_integer!(source, all, T => truncated::<T>(target)?)),
        ["sat"] => Some(by_integer!(source, all, T => clamped::<T>(target)?)),
        _ => None,
    }
}

fn truncated<S: Integer>(target: &str) -> Option<TotalFunction> {
    Some(by_integer!(target, all, T => one!(|a| T::of(S::of(a).wide() as u64).wide() as u64)))
}

fn clamped<S: Integer>(target: &str) -> Option<TotalFunction> {
    Some(
        by_integer!(target, all, T => one!(|a| S::of(a).wide().clamp(<T as Integer>::MIN.wide(), <T as Integer>::MAX.wide()) as u64)),
    )
}

/// Operations that conversions need of floats.
trait Convertible: Real {
    const IS_DOUBLE: bool;
    fn double(self) -> f64;
    fn of_double(value: f64) -> Self;
    /// The nearest to an integer; of two as near, the even one.
    fn nearest(value: i128) -> Self;
    fn next_up(self) -> Self;
    fn next_down(self) -> Self;
}

macro_rules! convertible {
    ($($name:ident $is_double:literal)*) => { $(
        impl Convertible for $name {
            const IS_DOUBLE: bool = $is_double;
            fn double(self) -> f64 { f64::from(self) }
            fn of_double(value: f64) -> Self { value as $name }
            fn nearest(value: i128) -> Self { value as $name }
            fn next_up(self) -> Self { self.next_up() }
            fn next_down(self) -> Self { self.next_down() }
        }
    )* };
}

convertible!(f32 false f64 true);

/// Out of range, the nearest integer of the type. What is no number becomes 0 of singles, and the
/// top bit alone where a double or 64 bits are involved.
fn to_integer<S: Convertible>(modifiers: &[&str], target: &str) -> Option<TotalFunction> {
    let modifiers = modifiers.strip_suffix(&["sat"]).unwrap_or(modifiers);
    Some(by_integer!(target, all, T => match modifiers {
        ["rni"] => one!(|a| integer_of::<S, T>(S::of(a).double().round_ties_even())),
        ["rzi"] => one!(|a| integer_of::<S, T>(S::of(a).double().trunc())),
        ["rmi"] => one!(|a| integer_of::<S, T>(S::of(a).double().floor())),
        ["rpi"] => one!(|a| integer_of::<S, T>(S::of(a).double().ceil())),
        _ => return None,
    }))
}

fn integer_of<S: Convertible, T: Integer>(value: f64) -> u64 {
    if !value.is_nan() {
        return (value as i128).clamp(T::MIN.wide(), T::MAX.wide()) as u64;
    }
    if S::IS_DOUBLE || T::BITS == 64 { T::of(1 << (T::BITS - 1)).wide() as u64 } else { 0 }
}

fn from_integer<S: Integer>(modifiers: &[&str], target: &str) -> Option<TotalFunction> {
    Some(by_real!(target, T => match modifiers {
        ["rn"] => one!(|a| real_of::<T>(S::of(a).wide(), Rounding::Nearest)),
        ["rz"] => one!(|a| real_of::<T>(S::of(a).wide(), Rounding::Zero)),
        ["rm"] => one!(|a| real_of::<T>(S::of(a).wide(), Rounding::Down)),
        ["rp"] => one!(|a| real_of::<T>(S::of(a).wide(), Rounding::Up)),
        _ => return None,
    }))
}

fn real_of<T: Convertible>(value: i128, rounding: Rounding) -> u64 {
    let nearest = T::nearest(value);
    // At most 2^64, so the way back is exact.
    let back = nearest.double() as i128;
    directed(nearest, value.cmp(&back), rounding, value < 0)
}

/// The float next to `nearest` on the side of the exact value, where the rounding asks for it.
fn directed<T: Convertible>(nearest: T, exact: std::cmp::Ordering, rounding: Rounding, is_negative: bool) -> u64 {
    let goes_up = match rounding {
        Rounding::Nearest => return nearest.bits(),
        Rounding::Zero => is_negative,
        Rounding::Down => false,
        Rounding::Up => true,
    };
    match exact {
        std::cmp::Ordering::Greater if goes_up => nearest.next_up().bits(),
        std::cmp::Ordering::Less if !goes_up => nearest.next_down().bits(),
        _ => nearest.bits(),
    }
}

/// Integers as floats; `sat` brings a float between 0 and 1, and to 0 what is no number.
fn to_integral<T: Convertible>(modifiers: &[&str]) -> Option<TotalFunction> {
    Some(match modifiers {
        ["rni"] => one!(|a| T::of_double(T::of(a).double().round_ties_even()).bits()),
        ["rzi"] => one!(|a| T::of_double(T::of(a).double().trunc()).bits()),
        ["rmi"] => one!(|a| T::of_double(T::of(a).double().floor()).bits()),
        ["rpi"] => one!(|a| T::of_double(T::of(a).double().ceil()).bits()),
        ["sat"] => one!(|a| match T::of(a).double() {
            value if value > 0.0 => T::of_double(value.min(1.0)).bits(),
            _ => 0,
        }),
        _ => return None,
    })
}

fn between_reals(modifiers: &[&str], target: &str) -> Option<TotalFunction> {
    Some(match (modifiers, target) {
        ([], "f64") => one!(|a| <f32 as Real>::of(a).double().bits()),
        (["rn"], "f32") => one!(|a| narrowed(a, Rounding::Nearest)),
        (["rz"], "f32") => one!(|a| narrowed(a, Rounding::Zero)),
        (["rm"], "f32") => one!(|a| narrowed(a, Rounding::Down)),
        (["rp"], "f32") => one!(|a| narrowed(a, Rounding::Up)),
        _ => return None,
    })
}

fn narrowed(a: u64, rounding: Rounding) -> u64 {
    let value = f64::from_bits(a);
    let nearest = f32::of_double(value);
    let Some(exact) = value.partial_cmp(&nearest.double()) else { return nearest.bits() };
    directed(nearest, exact, rounding, value < 0.0)
}
