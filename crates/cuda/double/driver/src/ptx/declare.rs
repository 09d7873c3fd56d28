//! Declarations of variables.

use super::error::ParseError;
use super::scalar::{ScalarKind, ScalarType};
use super::syntax::Reader;

/// A variable as it is declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared<'a> {
    pub(super) name: &'a str,
    pub(super) alignment: usize,
    /// Length in bytes; `None` for an array without one.
    pub(super) bytes: Option<usize>,
}

/// Reads a declaration from behind its space up to its name and size.
pub(super) fn declared<'a>(reader: &mut Reader<'a>) -> Result<Declared<'a>, ParseError> {
    let stated = if reader.takes(".align") { Some(reader.count()?) } else { None };
    let scalar = scalar(reader)?;
    if scalar.kind == ScalarKind::Predicate {
        return Err(reader.refuse("no memory holds predicates"));
    }
    pointer(reader)?;
    let name = reader.word("a name expected")?;
    let mut bytes = Some(scalar.bytes());
    while reader.takes("[") {
        if reader.takes("]") {
            bytes = None;
            continue;
        }
        let n = reader.count()?;
        reader.expect("]", "the end of a size expected")?;
        bytes = bytes.and_then(|bytes| bytes.checked_mul(n));
    }
    let alignment = stated.unwrap_or(scalar.bytes());
    if alignment.is_power_of_two() && alignment <= 1024 {
        Ok(Declared { name, alignment, bytes })
    } else {
        Err(reader.refuse("an alignment that is not interpreted, before"))
    }
}

/// Reads a type.
pub(super) fn scalar(reader: &mut Reader<'_>) -> Result<ScalarType, ParseError> {
    let found = reader.peek(0).strip_prefix('.').and_then(ScalarType::named);
    let found = found.ok_or_else(|| reader.refuse("not a type that is interpreted"))?;
    reader.next();
    Ok(found)
}

/// Skips what a parameter says of where it points to.
fn pointer(reader: &mut Reader<'_>) -> Result<(), ParseError> {
    if reader.takes(".ptr") {
        let _ = [".global", ".const", ".shared", ".local"].iter().any(|space| reader.takes(space));
        if reader.takes(".align") {
            reader.count()?;
        }
    }
    Ok(())
}
