//! Floats: arithmetic rounded to nearest, and signs.
//!
//! Nothing is contracted, and no denormal becomes zero. The payload of a double that is no number
//! is that of the host.

use super::super::scalar::{Real, by_real};
use super::{Operation, one, two};

const SIGN: u64 = 1 << 63;
const SINGLE_SIGN: u64 = 1 << 31;

/// Returns the operation of a float instruction. Without a rounding, `add`, `sub` and `mul` round
/// to nearest too.
pub(super) fn find(words: &[&str]) -> Option<Operation> {
    let bits = if *words.last()? == "f32" { 32 } else { 64 };
    let function = match *words {
        ["add", "rn", name] | ["add", name] => by_real!(name, T => two!(|a, b| (T::of(a) + T::of(b)).bits())),
        ["sub", "rn", name] | ["sub", name] => by_real!(name, T => two!(|a, b| (T::of(a) - T::of(b)).bits())),
        ["mul", "rn", name] | ["mul", name] => by_real!(name, T => two!(|a, b| (T::of(a) * T::of(b)).bits())),
        ["div", "rn", name] => by_real!(name, T => two!(|a, b| (T::of(a) / T::of(b)).bits())),
        ["neg", "f64"] => one!(|a| a ^ SIGN),
        ["neg", "f32"] => one!(|a| a ^ SINGLE_SIGN),
        ["abs", "f64"] => one!(|a| a & !SIGN),
        ["abs", "f32"] => one!(|a| a & !SINGLE_SIGN),
        _ => return None,
    };
    Some(Operation::uniform(function, bits))
}
