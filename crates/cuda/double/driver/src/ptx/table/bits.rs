//! Bits: logic, shifts, fields, counts, permutations.

use super::super::scalar::{Integer, by_integer, mask};
use super::{Operation, TotalFunction, four, one, three, two};

/// Returns the operation of an instruction on bits.
pub(super) fn find(words: &[&str]) -> Option<Operation> {
    Some(match *words {
        ["and", name] => Operation::uniform(two!(|a, b| a & b), logic(name)?),
        ["or", name] => Operation::uniform(two!(|a, b| a | b), logic(name)?),
        ["xor", name] => Operation::uniform(two!(|a, b| a ^ b), logic(name)?),
        ["not", "pred"] => Operation::uniform(one!(|a| a ^ 1), 1),
        ["not", name] => by_integer!(name, bits, T => uniform::<T>(one!(not::<T>))),
        ["shl", name] => by_integer!(name, bits, T => shift::<T>(two!(shl::<T>))),
        ["shr", name @ ("b16" | "b32" | "b64")] => by_integer!(name, bits, T => shift::<T>(two!(shr::<T>))),
        ["shr", name] => by_integer!(name, arithmetic, T => shift::<T>(two!(shr::<T>))),
        ["shf", "l", "wrap", "b32"] => Operation::uniform(three!(funnel_left), 32),
        ["popc", name] => by_integer!(name, wide_bits, T => count::<T>(one!(|a| u64::from(a.count_ones())))),
        ["clz", name] => by_integer!(name, wide_bits, T => count::<T>(one!(clz::<T>))),
        ["brev", name] => by_integer!(name, wide_bits, T => uniform::<T>(one!(brev::<T>))),
        ["bfind", "shiftamt", "u32"] => Operation::uniform(one!(bfind_shift), 32),
        ["bfi", name] => by_integer!(name, wide_bits, T => {
            Operation::new(four!(bfi::<T>), T::BITS, &[T::BITS, T::BITS, 32, 32])
        }),
        ["prmt", "b32"] => Operation::uniform(three!(prmt), 32),
        ["selp", name] => {
            Operation::new(three!(|a, b, p| if p != 0 { a } else { b }), any(name)?, &[any(name)?, any(name)?, 1])
        }
        _ => return None,
    })
}

fn uniform<T: Integer>(function: TotalFunction) -> Operation {
    Operation::uniform(function, T::BITS)
}

/// The second operand is a number of bits.
fn shift<T: Integer>(function: TotalFunction) -> Operation {
    Operation::new(function, T::BITS, &[T::BITS, 32])
}

fn count<T: Integer>(function: TotalFunction) -> Operation {
    Operation::new(function, 32, &[T::BITS])
}

fn logic(name: &str) -> Option<u32> {
    Some(match name {
        "pred" => 1,
        "b16" => 16,
        "b32" => 32,
        "b64" => 64,
        _ => return None,
    })
}

/// Bits of the types that a selection takes.
fn any(name: &str) -> Option<u32> {
    let found = super::super::scalar::ScalarType::named(name)?;
    (found.bits >= 16).then_some(found.bits)
}

fn not<T: Integer>(a: u64) -> u64 {
    T::of(!a).bits()
}

/// Shifts by the bits of the type and more leave nothing.
fn shl<T: Integer>(a: u64, b: u64) -> u64 {
    if b < u64::from(T::BITS) { T::of(a << b).bits() } else { 0 }
}

/// Shifts by the bits of the type and more leave nothing, or signs.
fn shr<T: Integer>(a: u64, b: u64) -> u64 {
    T::of((T::of(a).wide() >> b.min(64)) as u64).bits()
}

/// The high half of `b:a` shifted left, modulo 32.
fn funnel_left(a: u64, b: u64, n: u64) -> u64 {
    ((b << 32 | a) << (n & 31)) >> 32 & mask(32)
}

fn clz<T: Integer>(a: u64) -> u64 {
    u64::from(a.leading_zeros() - (64 - T::BITS))
}

fn brev<T: Integer>(a: u64) -> u64 {
    a.reverse_bits() >> (64 - T::BITS)
}

/// The shift that brings the highest bit of a word to the top; all ones where there is none.
fn bfind_shift(a: u64) -> u64 {
    if a == 0 { mask(32) } else { u64::from(a.leading_zeros() - 32) }
}

/// `b` with the low `d` bits of `a` from place `c` on, both taken modulo 256.
fn bfi<T: Integer>(a: u64, b: u64, c: u64, d: u64) -> u64 {
    let start = c & 0xff;
    let length = (d & 0xff).min(64);
    if length == 0 || start >= u64::from(T::BITS) {
        return b;
    }
    let field = mask(length as u32) << start;
    T::of(b & !field | a << start & field).bits()
}

/// Bytes of `b:a` as the nibbles of `c` choose them; a nibble's top bit asks for the byte's sign.
fn prmt(a: u64, b: u64, c: u64) -> u64 {
    let bytes = (b << 32 | a).to_le_bytes();
    let chosen = |place: u32| {
        let nibble = c >> (4 * place) & 15;
        let byte = bytes[(nibble & 7) as usize];
        let signs = if byte >= 0x80 { 0xff } else { 0 };
        u64::from(if nibble & 8 == 0 { byte } else { signs }) << (8 * place)
    };
    (0..4).map(chosen).fold(0, |word, byte| word | byte)
}
