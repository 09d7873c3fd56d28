//! The payload of a record on its way from the program, and back to it.
//!
//! Values lie in memory of the host, or rest elsewhere. A level at the same place takes them there;
//! any other level takes their bytes.

use recoup_core::{Afar, AfarError, AfarErrorKind, ElementType, HeldValues, Values, ValuesMut};

use crate::owned::{StateValues, copy, read_bytes, write_bytes};
use crate::record::HEADER_BYTES;

/// Memory at the place of values that rest elsewhere, kept from one state to the next.
pub(crate) type SpareCopy = Option<Box<dyn HeldValues>>;

/// A record that is pushed.
pub(crate) struct RecordSource<'a> {
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) payload_bytes: usize,
    pub(crate) payload: PayloadSource<'a>,
}

/// Values that become a payload.
pub(crate) enum PayloadSource<'a> {
    Values(Values<'a>),
    Afar { values: &'a dyn Afar, spare: &'a mut SpareCopy },
}

/// A record that is read.
pub(crate) struct RecordTarget<'a> {
    pub(crate) payload_bytes: usize,
    pub(crate) payload: PayloadTarget<'a>,
}

/// The reader of a payload.
pub(crate) enum PayloadTarget<'a> {
    State(StateTarget<'a>),
    Decoder(&'a mut dyn FnMut(&[u8])),
}

/// Values of the program that a state overwrites.
pub(crate) enum StateTarget<'a> {
    Values(ValuesMut<'a>),
    Afar { values: &'a mut dyn Afar, spare: &'a mut SpareCopy },
}

impl RecordSource<'_> {
    /// Writes the record to its place: header, payload, and zeros to the end.
    pub(crate) fn write(&mut self, place: &mut [u8]) -> Result<(), String> {
        let (header, rest) = place.split_at_mut(HEADER_BYTES);
        let (payload, end) = rest.split_at_mut(self.payload_bytes);
        header.copy_from_slice(&self.header);
        end.fill(0);
        self.payload.write(payload)
    }
}

impl PayloadSource<'_> {
    pub(crate) fn element(&self) -> ElementType {
        match self {
            Self::Values(values) => values.element(),
            Self::Afar { values, .. } => values.element(),
        }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Afar { values, .. } => values.len(),
        }
    }

    /// Copies the values to memory of the host.
    pub(crate) fn copy_to(&mut self, target: &mut StateValues) -> Result<(), AfarError> {
        match self {
            Self::Values(values) => target.fill(*values),
            Self::Afar { values, spare } => {
                target.reshape(values.element(), values.len());
                let held = values.hold(values.len(), spare.take())?;
                held.fetch(0, target.values_mut())?;
                **spare = Some(held);
            }
        }
        Ok(())
    }

    fn write(&mut self, target: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Values(values) => write_bytes(*values, target),
            Self::Afar { values, spare } => {
                let held = values.hold(values.len(), spare.take()).map_err(|error| error.to_string())?;
                fetch(held.as_ref(), target)?;
                **spare = Some(held);
            }
        }
        Ok(())
    }
}

impl RecordTarget<'_> {
    /// Reads the payload of a record.
    pub(crate) fn read(&mut self, record: &[u8]) -> Result<(), String> {
        let end = HEADER_BYTES + self.payload_bytes;
        let payload = record.get(HEADER_BYTES..end).ok_or_else(|| format!("{} bytes, {end} expected", record.len()))?;
        self.payload.read(payload)
    }
}

impl PayloadTarget<'_> {
    pub(crate) fn read(&mut self, payload: &[u8]) -> Result<(), String> {
        match self {
            Self::State(StateTarget::Values(values)) => read_bytes(payload, values.reborrow()),
            Self::State(StateTarget::Afar { values, spare }) => {
                let mut read = StateValues::new();
                read.reshape(values.element(), values.len());
                read_bytes(payload, read.values_mut());
                overwrite(*values, spare, read.values()).map_err(|error| error.to_string())?;
            }
            Self::Decoder(take) => take(payload),
        }
        Ok(())
    }
}

impl StateTarget<'_> {
    pub(crate) fn element(&self) -> ElementType {
        match self {
            Self::Values(values) => values.as_values().element(),
            Self::Afar { values, .. } => values.element(),
        }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.as_values().len(),
            Self::Afar { values, .. } => values.len(),
        }
    }

    /// Overwrites the values with others of the same type and number.
    pub(crate) fn fill(&mut self, source: Values<'_>) -> Result<(), AfarError> {
        match self {
            Self::Values(values) => {
                copy(source, values.reborrow());
                Ok(())
            }
            Self::Afar { values, spare } => overwrite(*values, spare, source),
        }
    }
}

/// Fetches frozen values as little-endian bytes; straight to their place where they fit there.
pub(crate) fn fetch(held: &dyn HeldValues, target: &mut [u8]) -> Result<(), String> {
    let element = held.element();
    let fetched = match values_at(element, target) {
        Some(values) => held.fetch(0, values),
        None => {
            let mut values = StateValues::new();
            values.reshape(element, held.len());
            let fetched = held.fetch(0, values.values_mut());
            write_bytes(values.values(), target);
            fetched
        }
    };
    fetched.map_err(|error| error.to_string())
}

/// Returns bytes as values, where the processor can see them so.
fn values_at(element: ElementType, bytes: &mut [u8]) -> Option<ValuesMut<'_>> {
    match element {
        ElementType::Bytes => Some(ValuesMut::Bytes(bytes)),
        _ if cfg!(target_endian = "big") => None,
        ElementType::F64 => bytemuck::try_cast_slice_mut(bytes).ok().map(ValuesMut::F64),
        ElementType::F32 => bytemuck::try_cast_slice_mut(bytes).ok().map(ValuesMut::F32),
        ElementType::I64 => bytemuck::try_cast_slice_mut(bytes).ok().map(ValuesMut::I64),
    }
}

/// Overwrites values that rest elsewhere, through memory at their place.
fn overwrite(target: &mut dyn Afar, spare: &mut SpareCopy, values: Values<'_>) -> Result<(), AfarError> {
    let fits = |held: &dyn HeldValues| held.element() == values.element() && held.len() == values.len();
    let earlier = spare.take().filter(|held| fits(held.as_ref()));
    let mut through = |target: &mut dyn Afar, mut room: Box<dyn HeldValues>| {
        room.put(0, values)?;
        target.overwrite(room.as_ref())?;
        *spare = Some(room);
        Ok(())
    };
    match earlier.map(|room| through(target, room)) {
        // Memory at another place is one reason.
        None | Some(Err(AfarError { kind: AfarErrorKind::Failed, .. })) => {}
        Some(done) => return done,
    }
    let room = target.room(values.len())?;
    through(target, room)
}
