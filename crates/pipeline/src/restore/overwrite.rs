//! Overwriting the owners' variables with the values of a version.
//!
//! Values for a place elsewhere are decoded there first, to room of their own: what can fail for
//! want of room has failed before any variable is overwritten.

use recoup_core::{Borrowed, BorrowedMut, DeviceSnapshot, Registered, VariableMut, VariableRecord};

use super::candidate::Candidate;
use super::initial_guess::Guess;
use super::initial_guess::is_restored;
use crate::encode::Decoded;
use crate::error::PipelineError;
use crate::error::device_values_error;
use crate::staging::PlacedValues;
use crate::staging::padded_len;

/// Makes room for a variable where its values are stored; `None` where they rest here.
pub(crate) fn room_for(
    record: &VariableRecord,
    owners: &[&mut dyn Registered],
) -> Result<Option<Box<dyn DeviceSnapshot>>, PipelineError> {
    let mut variables = owners.iter().flat_map(|owner| owner.variables());
    match variables.find(|variable| variable.name == record.name).map(|variable| variable.values) {
        Some(Borrowed::Device(values)) => {
            values.alloc(padded_len(record)).map(Some).map_err(device_values_error(record))
        }
        _ => Ok(None),
    }
}

/// Copies decoded values into the owners' variables.
pub(crate) fn overwrite_variables(
    candidate: &Candidate,
    guess: Option<Guess>,
    owners: &mut [&mut dyn Registered],
) -> Result<(), PipelineError> {
    for owner in owners.iter_mut() {
        for VariableMut { name, values } in owner.variables_mut() {
            let Some(Decoded { record, values: decoded, .. }) = found(candidate, guess, name) else { continue };
            match (values, decoded) {
                (BorrowedMut::Host(target), PlacedValues::Host(decoded)) => decoded.copy_to(0, target),
                (BorrowedMut::Device(target), PlacedValues::Held(decoded)) => {
                    target.overwrite(decoded.as_ref()).map_err(|source| {
                        let rank = record.rank;
                        PipelineError::RestoredInPart { variable: name.to_owned(), rank, source }
                    })?;
                }
                _ => unreachable!("{name} was decoded to where it rests"),
            }
        }
    }
    Ok(())
}

/// Finds the values of a variable that is to be restored.
fn found<'a>(candidate: &'a Candidate, guess: Option<Guess>, name: &str) -> Option<&'a Decoded> {
    let mut restored = candidate.variables.iter().filter(|decoded| is_restored(decoded.record.role, guess));
    restored.find(|decoded| decoded.record.name == name)
}
