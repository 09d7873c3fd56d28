//! Comparisons of integers and floats.

use super::super::scalar::{Integer, Real, by_integer, by_real};
use super::{TotalFunction, two};

/// Returns a comparison of a type; `None` where the type has none of that name.
pub(super) fn compare(name: &str, scalar: &str) -> Option<TotalFunction> {
    match scalar.as_bytes().first()? {
        b'f' => Some(by_real!(scalar, T => real::<T>(name)?)),
        b'b' => Some(by_integer!(scalar, bits, T => equality::<T>(name)?)),
        b's' => Some(by_integer!(scalar, arithmetic, T => signed::<T>(name)?)),
        _ => Some(by_integer!(scalar, arithmetic, T => unsigned::<T>(name)?)),
    }
}

fn equality<T: Integer>(name: &str) -> Option<TotalFunction> {
    Some(match name {
        "eq" => two!(|a, b| u64::from(T::of(a) == T::of(b))),
        "ne" => two!(|a, b| u64::from(T::of(a) != T::of(b))),
        _ => return None,
    })
}

fn signed<T: Integer>(name: &str) -> Option<TotalFunction> {
    Some(match name {
        "lt" => two!(|a, b| u64::from(T::of(a) < T::of(b))),
        "le" => two!(|a, b| u64::from(T::of(a) <= T::of(b))),
        "gt" => two!(|a, b| u64::from(T::of(a) > T::of(b))),
        "ge" => two!(|a, b| u64::from(T::of(a) >= T::of(b))),
        _ => return equality::<T>(name),
    })
}

/// Unsigned integers have names of their own for the same comparisons.
fn unsigned<T: Integer>(name: &str) -> Option<TotalFunction> {
    signed::<T>(match name {
        "lo" => "lt",
        "ls" => "le",
        "hi" => "gt",
        "hs" => "ge",
        other => other,
    })
}

/// Returns the comparison of this name. If an operand is NaN, `eq` to `ge` are false, and `equ` to
/// `geu` are true.
fn real<T: Real>(name: &str) -> Option<TotalFunction> {
    Some(match name {
        "eq" => two!(|a, b| u64::from(T::of(a) == T::of(b))),
        "ne" => two!(|a, b| u64::from(is_ordered::<T>(a, b) && T::of(a) != T::of(b))),
        "lt" => two!(|a, b| u64::from(T::of(a) < T::of(b))),
        "le" => two!(|a, b| u64::from(T::of(a) <= T::of(b))),
        "gt" => two!(|a, b| u64::from(T::of(a) > T::of(b))),
        "ge" => two!(|a, b| u64::from(T::of(a) >= T::of(b))),
        "equ" => two!(|a, b| u64::from(!is_ordered::<T>(a, b) || T::of(a) == T::of(b))),
        "neu" => two!(|a, b| u64::from(T::of(a) != T::of(b))),
        "ltu" => two!(|a, b| u64::from(!is_ordered::<T>(a, b) || T::of(a) < T::of(b))),
        "leu" => two!(|a, b| u64::from(!is_ordered::<T>(a, b) || T::of(a) <= T::of(b))),
        "gtu" => two!(|a, b| u64::from(!is_ordered::<T>(a, b) || T::of(a) > T::of(b))),
        "geu" => two!(|a, b| u64::from(!is_ordered::<T>(a, b) || T::of(a) >= T::of(b))),
        "num" => two!(|a, b| u64::from(is_ordered::<T>(a, b))),
        "nan" => two!(|a, b| u64::from(!is_ordered::<T>(a, b))),
        _ => return None,
    })
}

fn is_ordered<T: Real>(a: u64, b: u64) -> bool {
    T::of(a).partial_cmp(&T::of(b)).is_some()
}
