//! A codec between levels: states are raw above it, and payloads below.
//!
//! Each state is coded alone, by whichever thread copies it, so states may be coded in any order.
//! Promises: a coded record is not larger than the raw one, and a state that the codec refuses is
//! kept as it is. Must not know where records rest.

use std::sync::{Mutex, PoisonError};

use recoup_core::{CodecError, CodecId, Context, DeviceFrame, DeviceSnapshot, Encoded, Values, ValuesMut};

use crate::coding::CodingSettings;
use crate::error::TapeError;
use crate::owned::{StateValues, read_bytes, write_bytes};
use crate::record::{StateHeader, StateLink};

/// Encodes and decodes records.
pub(crate) struct RecordCoder {
    settings: CodingSettings,
    /// Memory that no record is coded in now.
    rooms: Mutex<Vec<CodingRoom>>,
}

/// Memory in which one record is coded.
#[derive(Debug)]
pub(crate) struct CodingRoom {
    pub(crate) payload: Vec<u8>,
    /// Values of a state on their way to or from a place that the codec does not reach.
    pub(crate) values: StateValues,
}

impl RecordCoder {
    pub(crate) fn new(settings: CodingSettings) -> Self {
        Self { settings, rooms: Mutex::default() }
    }

    /// Calls `work` with memory that earlier records were coded in.
    pub(crate) fn with_room<R>(&self, work: impl FnOnce(&mut CodingRoom) -> R) -> R {
        // Each change of the list is one step.
        let rooms = || self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let room = rooms().pop();
        let mut room = room.unwrap_or_else(|| CodingRoom { payload: Vec::new(), values: StateValues::new() });
        let result = work(&mut room);
        rooms().push(room);
        result
    }

    /// Refuses a bound that is none.
    pub(crate) fn check_bound(&self) -> Result<(), CodecError> {
        let bound = self.settings.bound;
        bound.validated().map(|_| ()).map_err(|_| CodecError::Bound { value: bound.value() })
    }

    /// Refuses a state that it cannot decode.
    pub(crate) fn check(&self, header: &StateHeader) -> Result<(), TapeError> {
        let step = header.step;
        match header.codec {
            _ if header.link == StateLink::Follows => Err(TapeError::ChainedDevice),
            CodecId::Raw => header.check_length().map_err(|source| TapeError::Codec { step, source }),
            codec if codec == self.settings.codec.id() => Ok(()),
            expected => Err(TapeError::OtherCodec { step, expected, found: self.settings.codec.id() }),
        }
    }

    /// Encodes the values of a raw record, and returns the header of the coded one. It is that of
    /// the raw record where raw values are the payload.
    pub(crate) fn encode(&self, header: &StateHeader, values: Values<'_>, payload: &mut Vec<u8>) -> StateHeader {
        let CodingSettings { codec, bound, .. } = &self.settings;
        match codec.encode(values, *bound, &self.context(header), payload) {
            Ok(encoded) if !encoded.stored_raw && payload.len() as u64 <= header.payload_bytes => {
                self.coded(header, &encoded, payload)
            }
            _ => {
                payload.resize(header.payload_bytes as usize, 0);
                write_bytes(values, payload);
                *header
            }
        }
    }

    /// Encodes the values of a raw record where they are stored, as [`RecordCoder::encode`] does
    /// here. `None` where they are to be fetched.
    ///
    /// # Errors
    /// [`CodecError`] of the place; work there may still be under way.
    pub(crate) fn encode_on_device(
        &self,
        header: &StateHeader,
        values: &dyn DeviceSnapshot,
        payload: &mut Vec<u8>,
    ) -> Result<Option<StateHeader>, CodecError> {
        let CodingSettings { codec, bound, .. } = &self.settings;
        if !codec.reaches(values) {
            return Ok(None);
        }
        let frame = DeviceFrame { values, start: 0, parent: None };
        let encoded = codec.encode_on_device(&frame, *bound, &self.context(header), payload).transpose()?;
        let encoded = encoded.filter(|encoded| !encoded.stored_raw && payload.len() as u64 <= header.payload_bytes);
        Ok(encoded.map(|encoded| self.coded(header, &encoded, payload)))
    }

    fn coded(&self, header: &StateHeader, encoded: &Encoded, payload: &[u8]) -> StateHeader {
        let codec = self.settings.codec.id();
        StateHeader { codec, bound: encoded.bound, payload_bytes: payload.len() as u64, ..*header }
    }

    /// Decodes the payload of a record.
    pub(crate) fn decode(&self, header: &StateHeader, payload: &[u8], mut target: ValuesMut<'_>) -> Result<(), String> {
        self.check(header).map_err(|error| error.to_string())?;
        if header.codec == CodecId::Raw {
            read_bytes(payload, target.reborrow());
            return Ok(());
        }
        let decoded = self.settings.codec.decode(payload, header.bound, &self.context(header), target);
        decoded.map_err(|error| error.to_string())
    }

    /// Decodes the payload of a record to where values are stored; `false` where it is to be
    /// decoded here.
    ///
    /// # Errors
    /// [`CodecError`] of the place, or of the payload.
    pub(crate) fn decode_on_device(
        &self,
        header: &StateHeader,
        payload: &[u8],
        target: &mut dyn DeviceSnapshot,
    ) -> Result<bool, CodecError> {
        let codec = &self.settings.codec;
        if header.codec == CodecId::Raw || self.check(header).is_err() || !codec.reaches(target) {
            return Ok(false);
        }
        let decoded = codec.decode_on_device(payload, header.bound, &self.context(header), None, target, 0);
        decoded.transpose().map(|done| done.is_some())
    }

    fn context(&self, header: &StateHeader) -> Context<'static> {
        let dims = header.dims.map(|extent| extent as usize);
        Context { threads: self.settings.threads, ..Context::grid(dims) }
    }
}

impl std::fmt::Debug for RecordCoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordCoder").field("codec", &self.settings.codec.id()).finish_non_exhaustive()
    }
}
