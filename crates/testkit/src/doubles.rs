//! The doubles of a variable, wherever they rest.

use recoup_core::{Lent, LentMut, Values, ValuesMut};

/// Returns a copy of the values of a variable.
///
/// # Panics
/// When they are no doubles, or cannot be fetched.
#[must_use]
pub fn doubles(lent: Lent<'_>) -> Vec<f64> {
    match lent {
        Lent::Near(Values::F64(values)) => values.to_vec(),
        Lent::Near(other) => panic!("doubles expected, {} found", other.element()),
        Lent::Afar(values) => {
            let mut copy = vec![0.0; values.len()];
            let held = values.hold(values.len(), None).expect("a frozen copy");
            held.fetch(0, ValuesMut::F64(&mut copy)).expect("its values");
            copy
        }
    }
}

/// Overwrites the values of a variable.
///
/// # Panics
/// When they are no doubles, have another length, or cannot be overwritten.
pub fn set_doubles(lent: &mut LentMut<'_>, values: &[f64]) {
    assert_eq!(lent.as_lent().len(), values.len(), "values of a variable");
    match lent {
        LentMut::Near(ValuesMut::F64(target)) => target.copy_from_slice(values),
        LentMut::Near(other) => panic!("doubles expected, {} found", other.as_values().element()),
        LentMut::Afar(target) => {
            let mut held = target.room(values.len()).expect("room");
            held.put(0, Values::F64(values)).expect("room for the values");
            target.overwrite(held.as_ref()).expect("room for the values");
        }
    }
}
