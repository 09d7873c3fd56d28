//! Conversions between integers of all widths, to floats, and between these.
//!
//! The result is that of the type in 64 bits, with its sign: a register wider than the type takes
//! more of it.

use super::super::scalar::{Integer, Real, by_integer};
use super::{TotalFunction, one};

/// Returns the conversion of `cvt` with these modifiers and types.
pub(super) fn conversion(modifiers: &[&str], target: &str, source: &str) -> Option<TotalFunction> {
    match (target.starts_with('f'), source.starts_with('f')) {
        (false, false) => integers(modifiers, target, source),
        (true, false) => Some(by_integer!(source, all, T => from_integer::<T>(modifiers, target)?)),
        (true, true) => between_reals(modifiers, target, source),
        (false, true) => None,
    }
}

fn integers(modifiers: &[&str], target: &str, source: &str) -> Option<TotalFunction> {
    modifiers.is_empty().then_some(())?;
    Some(by_integer!(source, all, T => truncated::<T>(target)?))
}

fn truncated<S: Integer>(target: &str) -> Option<TotalFunction> {
    Some(by_integer!(target, all, T => one!(|a| T::of(S::of(a).wide() as u64).wide() as u64)))
}

/// Rounds to nearest.
fn from_integer<S: Integer>(modifiers: &[&str], target: &str) -> Option<TotalFunction> {
    (modifiers == ["rn"]).then_some(())?;
    Some(match target {
        "f32" => one!(|a| (S::of(a).wide() as f32).bits()),
        "f64" => one!(|a| (S::of(a).wide() as f64).bits()),
        _ => return None,
    })
}

fn between_reals(modifiers: &[&str], target: &str, source: &str) -> Option<TotalFunction> {
    Some(match (modifiers, target, source) {
        ([], "f64", "f32") => one!(|a| f64::from(<f32 as Real>::of(a)).bits()),
        (["rn"], "f32", "f64") => one!(|a| (f64::from_bits(a) as f32).bits()),
        _ => return None,
    })
}
