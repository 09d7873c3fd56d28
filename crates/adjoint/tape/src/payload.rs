//! The payload of a record on its way from the program, and back to it.
//!
//! Values lie in memory of the host, or rest elsewhere. A level at the same place takes them there;
//! any other level takes their bytes.

use std::sync::Arc;

use recoup_core::{
    DeviceSnapshot, DeviceValues, DeviceValuesError, DeviceValuesErrorKind, ElementType, Values, ValuesMut,
};

use crate::owned::{StateValues, copy, read_bytes, write_bytes};
use crate::record::StateHeader;
use crate::record_coder::{CodingRoom, RecordCoder};

/// Memory at the place of values that are stored elsewhere, kept from one state to the next.
pub(crate) type SpareCopy = Option<Box<dyn DeviceSnapshot>>;

/// A record that is pushed, not coded.
pub(crate) struct RecordSource<'a> {
    pub(crate) header: StateHeader,
    pub(crate) payload: PayloadSource<'a>,
    /// Works on the way to a level that is coded.
    pub(crate) coder: Option<Arc<RecordCoder>>,
}

/// Values that become a payload.
pub(crate) enum PayloadSource<'a> {
    Values(Values<'a>),
    Device { values: &'a dyn DeviceValues, spare: &'a mut SpareCopy },
}

/// A record that is read.
pub(crate) struct RecordTarget<'a> {
    /// Its header in a level that is not coded.
    pub(crate) header: StateHeader,
    pub(crate) payload: PayloadTarget<'a>,
    /// Works on the way from a level that is coded.
    pub(crate) coder: Option<Arc<RecordCoder>>,
}

/// The reader of a payload.
pub(crate) enum PayloadTarget<'a> {
    State(StateTarget<'a>),
    Decoder(&'a mut dyn FnMut(&[u8])),
}

/// Values of the program that a state overwrites.
pub(crate) enum StateTarget<'a> {
    Values(ValuesMut<'a>),
    Device { values: &'a mut dyn DeviceValues, spare: &'a mut SpareCopy },
}

impl RecordSource<'_> {
    /// Writes the record to its place, coded where there is a codec. Returns its bytes.
    pub(crate) fn write(&mut self, place: &mut [u8]) -> Result<usize, String> {
        let Self { header, payload, coder } = self;
        let Some(coder) = coder else { return header.write_record(place, |bytes| payload.write(bytes)) };
        coder.with_room(|room| {
            let coded = payload.encode(coder, header, room)?;
            coded.write_record(place, |bytes| {
                bytes.copy_from_slice(&room.payload);
                Ok(())
            })
        })
    }
}

impl PayloadSource<'_> {
    pub(crate) fn element(&self) -> ElementType {
        match self {
            Self::Values(values) => values.element(),
            Self::Device { values, .. } => values.element(),
        }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Device { values, .. } => values.len(),
        }
    }

    /// Copies the values to memory of the host.
    pub(crate) fn copy_to(&mut self, target: &mut StateValues) -> Result<(), DeviceValuesError> {
        match self {
            Self::Values(values) => target.fill(*values),
            Self::Device { values, spare } => {
                target.reshape(values.element(), values.len());
                let held = values.snapshot(values.len(), spare.take())?;
                held.fetch(0, target.values_mut())?;
                **spare = Some(held);
            }
        }
        Ok(())
    }

    /// Encodes the values, and returns the header of the coded record.
    fn encode(
        &mut self,
        coder: &RecordCoder,
        header: &StateHeader,
        room: &mut CodingRoom,
    ) -> Result<StateHeader, String> {
        let CodingRoom { payload, values: fetched } = room;
        match self {
            Self::Values(values) => Ok(coder.encode(header, *values, payload)),
            Self::Device { values, spare } => {
                let held = values.snapshot(values.len(), spare.take()).map_err(|error| error.to_string())?;
                let there = coder.encode_on_device(header, held.as_ref(), payload);
                let coded = match there {
                    Ok(Some(coded)) => coded,
                    _ => {
                        fetched.reshape(values.element(), values.len());
                        held.fetch(0, fetched.values_mut()).map_err(|error| error.to_string())?;
                        coder.encode(header, fetched.values(), payload)
                    }
                };
                // Work on a copy that the codec has failed on may be under way.
                **spare = there.is_ok().then_some(held);
                Ok(coded)
            }
        }
    }

    fn write(&mut self, target: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Values(values) => write_bytes(*values, target),
            Self::Device { values, spare } => {
                let held = values.snapshot(values.len(), spare.take()).map_err(|error| error.to_string())?;
                fetch(held.as_ref(), target)?;
                **spare = Some(held);
            }
        }
        Ok(())
    }
}

impl RecordTarget<'_> {
    /// Reads the payload of a record, coded or not.
    pub(crate) fn read(&mut self, record: &[u8]) -> Result<(), String> {
        match &self.coder {
            Some(coder) => {
                let header = StateHeader::decode(record)?;
                self.payload.decode(coder, &header, header.payload_of(record)?)
            }
            None => self.payload.read(self.header.payload_of(record)?),
        }
    }
}

impl PayloadTarget<'_> {
    pub(crate) fn read(&mut self, payload: &[u8]) -> Result<(), String> {
        match self {
            Self::State(StateTarget::Values(values)) => read_bytes(payload, values.reborrow()),
            Self::State(StateTarget::Device { values, spare }) => {
                let mut read = StateValues::new();
                read.reshape(values.element(), values.len());
                read_bytes(payload, read.values_mut());
                overwrite(*values, spare, read.values()).map_err(|error| error.to_string())?;
            }
            Self::Decoder(take) => take(payload),
        }
        Ok(())
    }

    /// Decodes the payload of a record: where the values of the program rest, if the codec knows
    /// the place.
    fn decode(&mut self, coder: &RecordCoder, header: &StateHeader, payload: &[u8]) -> Result<(), String> {
        match self {
            Self::State(StateTarget::Values(values)) => coder.decode(header, payload, values.reborrow()),
            Self::State(StateTarget::Device { values, spare }) => {
                let fill = |room: &mut dyn DeviceSnapshot| decode_to(room, coder, header, payload);
                overwrite_by(*values, spare, fill).map_err(|error| error.to_string())
            }
            Self::Decoder(_) => Err("a record is decoded once".to_owned()),
        }
    }
}

/// Decodes the payload of a record to memory where values are stored, there or here.
fn decode_to(
    room: &mut dyn DeviceSnapshot,
    coder: &RecordCoder,
    header: &StateHeader,
    payload: &[u8],
) -> Result<(), DeviceValuesError> {
    if let Ok(true) = coder.decode_on_device(header, payload, room) {
        return Ok(());
    }
    coder.with_room(|CodingRoom { values, .. }| {
        values.reshape(header.element, header.len());
        let decoded = coder.decode(header, payload, values.values_mut());
        decoded.map_err(|message| DeviceValuesError { message, kind: DeviceValuesErrorKind::Failed })?;
        room.put(0, values.values())
    })
}

impl StateTarget<'_> {
    pub(crate) fn element(&self) -> ElementType {
        match self {
            Self::Values(values) => values.as_values().element(),
            Self::Device { values, .. } => values.element(),
        }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.as_values().len(),
            Self::Device { values, .. } => values.len(),
        }
    }

    /// Overwrites the values with others of the same type and number.
    pub(crate) fn fill(&mut self, source: Values<'_>) -> Result<(), DeviceValuesError> {
        match self {
            Self::Values(values) => {
                copy(source, values.reborrow());
                Ok(())
            }
            Self::Device { values, spare } => overwrite(*values, spare, source),
        }
    }
}

/// Fetches frozen values as little-endian bytes; straight to their place where they fit there.
pub(crate) fn fetch(held: &dyn DeviceSnapshot, target: &mut [u8]) -> Result<(), String> {
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

/// Overwrites values that are stored elsewhere, through memory at their place.
fn overwrite(
    target: &mut dyn DeviceValues,
    spare: &mut SpareCopy,
    values: Values<'_>,
) -> Result<(), DeviceValuesError> {
    overwrite_by(target, spare, |room| room.put(0, values))
}

/// Overwrites values that are stored elsewhere with those that `fill` gives to memory at their
/// place.
fn overwrite_by(
    target: &mut dyn DeviceValues,
    spare: &mut SpareCopy,
    fill: impl Fn(&mut dyn DeviceSnapshot) -> Result<(), DeviceValuesError>,
) -> Result<(), DeviceValuesError> {
    let n_values = target.len();
    let fits = |held: &dyn DeviceSnapshot| held.element() == target.element() && held.len() == n_values;
    let earlier = spare.take().filter(|held| fits(held.as_ref()));
    let mut through = |target: &mut dyn DeviceValues, mut room: Box<dyn DeviceSnapshot>| {
        fill(room.as_mut())?;
        target.overwrite(room.as_ref())?;
        *spare = Some(room);
        Ok(())
    };
    match earlier.map(|room| through(target, room)) {
        // Memory at another place is one reason.
        None | Some(Err(DeviceValuesError { kind: DeviceValuesErrorKind::Failed, .. })) => {}
        Some(done) => return done,
    }
    let room = target.alloc(n_values)?;
    through(target, room)
}
