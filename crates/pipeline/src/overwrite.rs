//! Overwriting the owners' variables with the values of a version.
//!
//! Values for a place elsewhere are brought there first, to room of their own: what can fail for
//! want of room has failed before any variable is overwritten.

use recoup_core::{AfarError, HeldValues, LentMut, Registered, VariableMut};

use crate::candidate::Candidate;
use crate::chain::Decoded;
use crate::guess::is_restored;
use crate::staging::afar_error;
use crate::{Guess, PipelineError};

/// The values of one variable, where it rests.
pub(crate) struct FilledRoom {
    name: String,
    held: Box<dyn HeldValues>,
}

/// Brings decoded values to where variables rest, next to those that are there.
pub(crate) fn fill_rooms(
    candidate: &Candidate,
    guess: Option<Guess>,
    owners: &mut [&mut dyn Registered],
) -> Result<Vec<FilledRoom>, PipelineError> {
    let mut rooms = Vec::new();
    for owner in owners.iter_mut() {
        for VariableMut { name, values } in owner.variables_mut() {
            if let (LentMut::Afar(target), Some(decoded)) = (values, found(candidate, guess, name)) {
                let held = target.room().and_then(|room| filled(room, decoded));
                rooms.push(FilledRoom { name: name.to_owned(), held: held.map_err(afar_error(&decoded.record))? });
            }
        }
    }
    Ok(rooms)
}

fn filled(mut room: Box<dyn HeldValues>, decoded: &Decoded) -> Result<Box<dyn HeldValues>, AfarError> {
    room.put(0, decoded.values.slice(0, decoded.record.len as usize))?;
    Ok(room)
}

/// Copies decoded values into the owners' variables.
pub(crate) fn overwrite_variables(
    candidate: &Candidate,
    guess: Option<Guess>,
    owners: &mut [&mut dyn Registered],
    rooms: &[FilledRoom],
) -> Result<(), PipelineError> {
    for owner in owners.iter_mut() {
        for VariableMut { name, values } in owner.variables_mut() {
            let Some(decoded) = found(candidate, guess, name) else { continue };
            match values {
                LentMut::Near(target) => decoded.values.copy_to(0, target),
                LentMut::Afar(target) => {
                    let room = rooms.iter().find(|room| room.name == name);
                    let overwritten = room.map_or(Ok(()), |room| target.overwrite(room.held.as_ref()));
                    overwritten.map_err(|source| {
                        let rank = decoded.record.rank;
                        PipelineError::RestoredInPart { variable: name.to_owned(), rank, source }
                    })?;
                }
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
