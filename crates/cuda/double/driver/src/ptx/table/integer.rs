//! Integers: sums, products, quotients, extremes.

use super::super::scalar::{Integer, by_integer};
use super::{Operation, ScalarFunction, one, three, two};

/// Returns the operation of an integer instruction.
pub(super) fn find(words: &[&str]) -> Option<Operation> {
    Some(match *words {
        ["add", name] => by_integer!(name, arithmetic, T => uniform::<T>(two!(add::<T>))),
        ["sub", name] => by_integer!(name, arithmetic, T => uniform::<T>(two!(sub::<T>))),
        ["mul", "lo", name] => by_integer!(name, arithmetic, T => uniform::<T>(two!(mul_lo::<T>))),
        ["mul", "hi", name] => by_integer!(name, arithmetic, T => uniform::<T>(two!(mul_hi::<T>))),
        ["mul", "wide", name] => mul_wide(name)?,
        ["mad", "lo", name] => by_integer!(name, arithmetic, T => uniform::<T>(three!(mad_lo::<T>))),
        ["div", name] => by_integer!(name, arithmetic, T => uniform::<T>(ScalarFunction::Partial(div::<T>))),
        ["rem", name] => by_integer!(name, arithmetic, T => uniform::<T>(ScalarFunction::Partial(rem::<T>))),
        ["min", name] => by_integer!(name, arithmetic, T => uniform::<T>(two!(min::<T>))),
        ["max", name] => by_integer!(name, arithmetic, T => uniform::<T>(two!(max::<T>))),
        ["neg", name @ ("s16" | "s32" | "s64")] => {
            by_integer!(name, arithmetic, T => uniform::<T>(one!(neg::<T>)))
        }
        ["abs", name @ ("s16" | "s32" | "s64")] => {
            by_integer!(name, arithmetic, T => uniform::<T>(one!(abs::<T>)))
        }
        _ => return None,
    })
}

fn uniform<T: Integer>(function: impl Into<ScalarFunction>) -> Operation {
    Operation::uniform(function, T::BITS)
}

/// Products of twice the bits.
fn mul_wide(name: &str) -> Option<Operation> {
    Some(by_integer!(name, ["u16" = u16, "s16" = i16, "u32" = u32, "s32" = i32],
        T => Operation::new(two!(mul_wide_of::<T>), 2 * T::BITS, &[T::BITS, T::BITS])))
}

fn add<T: Integer>(a: u64, b: u64) -> u64 {
    T::of(a.wrapping_add(b)).bits()
}

fn sub<T: Integer>(a: u64, b: u64) -> u64 {
    T::of(a.wrapping_sub(b)).bits()
}

fn mul_lo<T: Integer>(a: u64, b: u64) -> u64 {
    T::of(a.wrapping_mul(b)).bits()
}

fn mul_hi<T: Integer>(a: u64, b: u64) -> u64 {
    // Of a product of unsigned 64-bit integers, only the sign of the 128 bits is wrong.
    T::of((T::of(a).wide().wrapping_mul(T::of(b).wide()) >> T::BITS) as u64).bits()
}

fn mul_wide_of<T: Integer>(a: u64, b: u64) -> u64 {
    (T::of(a).wide() * T::of(b).wide()) as u64 & super::super::scalar::mask(2 * T::BITS)
}

fn mad_lo<T: Integer>(a: u64, b: u64, c: u64) -> u64 {
    add::<T>(mul_lo::<T>(a, b), c)
}

fn div<T: Integer>(a: u64, b: u64) -> Option<u64> {
    T::of(a).quotient(T::of(b)).map(T::bits)
}

fn rem<T: Integer>(a: u64, b: u64) -> Option<u64> {
    T::of(a).remainder(T::of(b)).map(T::bits)
}

fn min<T: Integer>(a: u64, b: u64) -> u64 {
    T::of(a).min(T::of(b)).bits()
}

fn max<T: Integer>(a: u64, b: u64) -> u64 {
    T::of(a).max(T::of(b)).bits()
}

fn neg<T: Integer>(a: u64) -> u64 {
    T::of(a.wrapping_neg()).bits()
}

fn abs<T: Integer>(a: u64) -> u64 {
    T::of(T::of(a).wide().unsigned_abs() as u64).bits()
}
