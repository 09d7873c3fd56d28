//! The doubles of a variable, wherever they are stored.

use recoup_core::{Borrowed, BorrowedMut, Values, ValuesMut};

/// Returns a copy of the values of a variable, floats and bytes as doubles.
///
/// # Panics
/// When they are integers, or cannot be fetched.
pub fn doubles(lent: Borrowed<'_>) -> Vec<f64> {
    match lent {
        Borrowed::Host(Values::F64(values)) => values.to_vec(),
        Borrowed::Host(Values::F32(values)) => values.iter().copied().map(f64::from).collect(),
        Borrowed::Host(Values::Bytes(values)) => values.iter().copied().map(f64::from).collect(),
        Borrowed::Host(other) => panic!("doubles expected, {} found", other.element()),
        Borrowed::Device(values) => {
            let mut copy = vec![0.0; values.len()];
            let held = values.snapshot(values.len(), None).expect("a frozen copy");
            held.fetch(0, ValuesMut::F64(&mut copy)).expect("its values");
            copy
        }
    }
}

/// Overwrites the values of a variable.
///
/// # Panics
/// When they are integers, have another length, or cannot be overwritten.
pub fn set_doubles(lent: &mut BorrowedMut<'_>, values: &[f64]) {
    assert_eq!(lent.as_borrowed().len(), values.len(), "values of a variable");
    match lent {
        BorrowedMut::Host(ValuesMut::F64(target)) => target.copy_from_slice(values),
        BorrowedMut::Host(ValuesMut::F32(target)) => {
            target.iter_mut().zip(values).for_each(|(target, value)| *target = *value as f32);
        }
        BorrowedMut::Host(ValuesMut::Bytes(target)) => {
            target.iter_mut().zip(values).for_each(|(target, value)| *target = *value as u8);
        }
        BorrowedMut::Host(other) => panic!("doubles expected, {} found", other.as_values().element()),
        BorrowedMut::Device(target) => {
            let mut held = target.alloc(values.len()).expect("room");
            held.put(0, Values::F64(values)).expect("room for the values");
            target.overwrite(held.as_ref()).expect("room for the values");
        }
    }
}
