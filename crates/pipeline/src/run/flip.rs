//! Bits of registered vectors flipped on purpose.

use recoup_core::{Bit, BorrowedMut, Distribution, FlipTarget, Registered, Role, Values, ValuesMut};
use recoup_model::Rng;

/// A bit that was flipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flipped {
    /// The vector.
    pub variable: String,
    /// Position of the value in the global vector.
    pub row: u64,
    /// Position of the bit.
    pub bit: u32,
}

/// A vector of doubles that is shared among the ranks by rows.
struct SharedVector {
    name: String,
    is_iterate: bool,
    first: u64,
    global: u64,
}

/// Flips one bit of one value of one vector, the same on all ranks, by the rank that holds it;
/// `None` where there is no such vector.
pub(crate) fn flip<R: Registered + ?Sized>(owner: &mut R, target: &FlipTarget, bit: Bit) -> Option<Flipped> {
    let mut vectors = vectors(owner);
    let mut rng = Rng::new(if let Bit::Drawn(draw) = bit { draw } else { 0 });
    let mut draw = |n: u64| rng.next_u64() % n.max(1);
    let position = match target {
        FlipTarget::Any => draw(vectors.len() as u64) as usize,
        FlipTarget::Iterate => vectors.iter().position(|v| v.is_iterate)?,
        FlipTarget::Named(name) => vectors.iter().position(|v| v.name == *name)?,
    };
    let vector = (position < vectors.len()).then(|| vectors.swap_remove(position))?;
    let (row, bit) = match bit {
        Bit::At { row, bit } => (row, bit % u64::BITS),
        Bit::Drawn(_) => (draw(vector.global), draw(u64::from(u64::BITS)) as u32),
    };
    let mut variables = owner.variables_mut();
    let variable = variables.iter_mut().find(|v| v.name == vector.name)?;
    if let BorrowedMut::Host(ValuesMut::F64(values)) = &mut variable.values
        && let Some(value) = row.checked_sub(vector.first).and_then(|local| values.get_mut(local as usize))
    {
        *value = f64::from_bits(value.to_bits() ^ (1 << bit));
    }
    Some(Flipped { variable: vector.name, row, bit })
}

fn vectors<R: Registered + ?Sized>(owner: &R) -> Vec<SharedVector> {
    let vector = |variable: &recoup_core::Variable<'_>| match (variable.values.host(), variable.distribution) {
        (Some(Values::F64(_)), Distribution::Rows { first, global }) => Some(SharedVector {
            name: variable.name.to_owned(),
            is_iterate: variable.role == Role::Iterate,
            first,
            global,
        }),
        _ => None,
    };
    owner.variables().iter().filter_map(vector).collect()
}
