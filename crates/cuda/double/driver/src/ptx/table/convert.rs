//! Conversions between integers and floats of all widths.
//!
//! The result is that of the type in 64 bits, with its sign: a register wider than the type takes
//! more of it.

use super::super::scalar::{Integer, Real, by_integer, by_real};
use super::{TotalFunction, one};

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
    modifiers.is_empty().then_some(())?;
    Some(by_integer!(source, all, T => truncated::<T>(target)?))
}

fn truncated<S: Integer>(target: &str) -> Option<TotalFunction> {
    Some(by_integer!(target, all, T => one!(|a| T::of(S::of(a).wide() as u64).wide() as u64)))
}

/// Operations that conversions need of floats.
trait Convertible: Real {
    const IS_DOUBLE: bool;
    fn double(self) -> f64;
    fn of_double(value: f64) -> Self;
    /// The nearest to an integer; of two as near, the even one.
    fn nearest(value: i128) -> Self;
}

macro_rules! convertible {
    ($($name:ident $is_double:literal)*) => { $(
        impl Convertible for $name {
            const IS_DOUBLE: bool = $is_double;
            fn double(self) -> f64 { f64::from(self) }
            fn of_double(value: f64) -> Self { value as $name }
            fn nearest(value: i128) -> Self { value as $name }
        }
    )* };
}

convertible!(f32 false f64 true);

/// Out of range, the nearest integer of the type. What is no number becomes 0 of singles, and the
/// top bit alone where a double or 64 bits are involved.
fn to_integer<S: Convertible>(modifiers: &[&str], target: &str) -> Option<TotalFunction> {
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

/// Rounds to nearest.
fn from_integer<S: Integer>(modifiers: &[&str], target: &str) -> Option<TotalFunction> {
    (modifiers == ["rn"]).then_some(())?;
    Some(by_real!(target, T => one!(|a| T::nearest(S::of(a).wide()).bits())))
}

/// Integers as floats.
fn to_integral<T: Convertible>(modifiers: &[&str]) -> Option<TotalFunction> {
    Some(match modifiers {
        ["rni"] => one!(|a| T::of_double(T::of(a).double().round_ties_even()).bits()),
        ["rzi"] => one!(|a| T::of_double(T::of(a).double().trunc()).bits()),
        ["rmi"] => one!(|a| T::of_double(T::of(a).double().floor()).bits()),
        ["rpi"] => one!(|a| T::of_double(T::of(a).double().ceil()).bits()),
        _ => return None,
    })
}

fn between_reals(modifiers: &[&str], target: &str) -> Option<TotalFunction> {
    Some(match (modifiers, target) {
        ([], "f64") => one!(|a| <f32 as Real>::of(a).double().bits()),
        (["rn"], "f32") => one!(|a| f32::of_double(f64::from_bits(a)).bits()),
        _ => return None,
    })
}
