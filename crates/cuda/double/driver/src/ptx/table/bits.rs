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
        ["shf", side, limit, "b32"] => Operation::uniform(funnel(side, limit)?, 32),
        ["popc", name] => by_integer!(name, wide_bits, T => count::<T>(one!(|a| u64::from(a.count_ones())))),
        ["clz", name] => by_integer!(name, wide_bits, T => count::<T>(one!(clz::<T>))),
        ["brev", name] => by_integer!(name, wide_bits, T => uniform::<T>(one!(brev::<T>))),
        ["bfind", name] => by_integer!(name, wide, T => count::<T>(one!(bfind::<T>))),
        ["bfind", "shiftamt", name] => by_integer!(name, wide, T => count::<T>(one!(bfind_shift::<T>))),
        ["bfe", name] => by_integer!(name, wide, T => {
            Operation::new(three!(bfe::<T>), T::BITS, &[T::BITS, 32, 32])
        }),
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

fn funnel(side: &str, limit: &str) -> Option<TotalFunction> {
    Some(match (side, limit) {
        ("l", "wrap") => three!(|a, b, c| funnel_left(a, b, c & 31)),
        ("l", "clamp") => three!(|a, b, c| funnel_left(a, b, c.min(32))),
        ("r", "wrap") => three!(|a, b, c| funnel_right(a, b, c & 31)),
        ("r", "clamp") => three!(|a, b, c| funnel_right(a, b, c.min(32))),
        _ => return None,
    })
}

/// The high half of `b:a` shifted left.
fn funnel_left(a: u64, b: u64, n: u64) -> u64 {
    ((b << 32 | a) << n) >> 32 & mask(32)
}

/// The low half of `b:a` shifted right.
fn funnel_right(a: u64, b: u64, n: u64) -> u64 {
    (b << 32 | a) >> n & mask(32)
}

fn clz<T: Integer>(a: u64) -> u64 {
    u64::from(a.leading_zeros() - (64 - T::BITS))
}

fn brev<T: Integer>(a: u64) -> u64 {
    a.reverse_bits() >> (64 - T::BITS)
}

/// Place of the highest bit that differs from the sign; all ones where there is none.
fn bfind<T: Integer>(a: u64) -> u64 {
    let value = T::of(a);
    let bits = if value.wide() < 0 { not::<T>(a) } else { value.bits() };
    if bits == 0 { mask(32) } else { u64::from(63 - bits.leading_zeros()) }
}

/// The shift that brings the bit [`bfind`] finds to the top.
fn bfind_shift<T: Integer>(a: u64) -> u64 {
    match bfind::<T>(a) {
        place if place == mask(32) => place,
        place => u64::from(T::BITS - 1) - place,
    }
}

/// The field of `c` bits from place `b` on, both taken modulo 256. What lies above the type, and
/// above the field, is the field's sign.
fn bfe<T: Integer>(a: u64, b: u64, c: u64) -> u64 {
    let start = b & 0xff;
    let length = c & 0xff;
    if length == 0 {
        return 0;
    }
    let top = (start + length - 1).min(u64::from(T::BITS - 1));
    let is_signed = T::MIN.wide() < 0;
    let sign = is_signed && T::of(a).bits() >> top & 1 == 1;
    let field = if start < u64::from(T::BITS) { T::of(a).bits() >> start } else { 0 };
    let kept = if start <= top { mask((top - start + 1) as u32) } else { 0 };
    T::of(if sign { field & kept | !kept } else { field & kept }).bits()
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
