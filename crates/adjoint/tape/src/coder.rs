//! States to payloads and back: alone, or each against the one before, with keys.
//!
//! States come back in reverse. A state that follows others needs all of its group, from the key
//! on: they are decoded once and kept until they are popped. So each state is decoded once on the
//! way back, at the cost of room for a group.

use std::collections::BTreeMap;

use recoup_core::{Chain, CodecId, Context, Parent, Values, ValuesMut};

use crate::coding::CodingSettings;
use crate::error::TapeError;
use crate::owned::{StateValues, read_bytes};
use crate::payload::{PayloadSource, PayloadTarget};
use crate::record::{StateHeader, StateLink};
use crate::shelf::{Reading, StateShelf};

/// Bytes of the hash that names a parent.
const HASH_BYTES: usize = 16;

/// A state as its decoder gives it back.
#[derive(Clone, Debug)]
struct DecodedState {
    values: StateValues,
    hash: [u8; HASH_BYTES],
}

impl DecodedState {
    fn as_parent(&self) -> Parent<'_> {
        Parent { values: self.values.values(), hash: self.hash }
    }
}

/// Encodes and decodes states.
pub(crate) struct StateCoder {
    settings: CodingSettings,
    /// The state that was pushed last, if one may follow it.
    parent: Option<(u64, DecodedState)>,
    /// States since the last key, with it.
    group_len: usize,
    /// States that were decoded and not yet popped.
    decoded: BTreeMap<u64, DecodedState>,
    spare: Vec<StateValues>,
    payload: Vec<u8>,
}

impl StateCoder {
    pub(crate) fn new(settings: CodingSettings) -> Self {
        Self { settings, parent: None, group_len: 0, decoded: BTreeMap::new(), spare: Vec::new(), payload: Vec::new() }
    }

    /// Returns whether states may follow others.
    pub(crate) fn is_chained(&self) -> bool {
        self.settings.key_every > 1
    }

    /// Encodes a state and pushes it.
    pub(crate) fn push(
        &mut self,
        shelf: &mut StateShelf,
        step: u64,
        values: Values<'_>,
        dims: [usize; 3],
    ) -> Result<(), TapeError> {
        let newest = shelf.newest();
        let parent = self.parent.take().filter(|(step, _)| newest == Some(*step));
        let parent = parent.filter(|_| self.group_len < self.settings.key_every);
        let chain = match &parent {
            _ if !self.is_chained() => Chain::Alone,
            None => Chain::Start,
            Some((_, parent)) => Chain::Follow(parent.as_parent()),
        };
        let context = Context { threads: self.settings.threads, ..Context::grid(dims).chained(chain) };
        let encoded = self.settings.codec.encode(values, self.settings.bound, &context, &mut self.payload);
        let encoded = encoded.map_err(|source| TapeError::Codec { step, source })?;
        let link = match chain {
            _ if encoded.follows => StateLink::Follows,
            Chain::Alone => StateLink::Alone,
            Chain::Start | Chain::Follow(_) | Chain::Changed(_) => StateLink::Start,
        };
        let header = StateHeader {
            number: 0,
            step,
            codec: if encoded.stored_raw { CodecId::Raw } else { self.settings.codec.id() },
            element: values.element(),
            bound: encoded.bound,
            link,
            dims: dims.map(|extent| extent as u64),
            payload_bytes: self.payload.len() as u64,
        };
        shelf.push(header, PayloadSource::Values(Values::Bytes(&self.payload)))?;
        if self.is_chained() {
            let payload = std::mem::take(&mut self.payload);
            let decoded = self.decode_payload(&header, &payload, parent.as_ref().map(|(_, parent)| parent));
            self.payload = payload;
            self.group_len = if link == StateLink::Follows { self.group_len + 1 } else { 1 };
            self.parent = Some((step, decoded?));
        }
        if let Some((_, parent)) = parent {
            self.spare.push(parent.values);
        }
        Ok(())
    }

    /// Decodes a state, unless it is decoded already; with it those before that it follows.
    pub(crate) fn decode(&mut self, shelf: &mut StateShelf, step: u64) -> Result<(), TapeError> {
        let mut missing = Vec::new();
        let mut next = Some(step);
        while let Some(step) = next.filter(|step| !self.decoded.contains_key(step)) {
            missing.push(step);
            let follows = shelf.header(step)?.link == StateLink::Follows;
            next = if follows { Some(shelf.before(step).ok_or(TapeError::Orphan { step })?.step) } else { None };
        }
        for step in missing.into_iter().rev() {
            let header = shelf.header(step)?;
            let before = if header.link == StateLink::Follows { shelf.before(step) } else { None };
            let parent = before.and_then(|before| self.decoded.get(&before.step)).cloned();
            let mut decoded = Err(TapeError::Unknown { step });
            let mut decode = |payload: &[u8]| decoded = self.decode_payload(&header, payload, parent.as_ref());
            shelf.read(step, PayloadTarget::Decoder(&mut decode), Reading::Peek)?;
            self.decoded.insert(step, decoded?);
        }
        Ok(())
    }

    /// Returns the values of a state that was decoded.
    pub(crate) fn decoded(&self, step: u64) -> Option<Values<'_>> {
        self.decoded.get(&step).map(|decoded| decoded.values.values())
    }

    /// Drops what was decoded of a state.
    pub(crate) fn forget(&mut self, step: u64) {
        if let Some(decoded) = self.decoded.remove(&step) {
            self.spare.push(decoded.values);
        }
    }

    fn decode_payload(
        &mut self,
        header: &StateHeader,
        payload: &[u8],
        parent: Option<&DecodedState>,
    ) -> Result<DecodedState, TapeError> {
        if header.codec == CodecId::Raw {
            header.check_length().map_err(|source| TapeError::Codec { step: header.step, source })?;
        }
        let mut values = self.spare.pop().unwrap_or_else(StateValues::new);
        values.reshape(header.element, header.len());
        if header.codec == CodecId::Raw {
            read_bytes(payload, values.values_mut());
        } else {
            self.decode_coded(header, payload, parent, values.values_mut())?;
        }
        let mut hash = [0; HASH_BYTES];
        if header.link != StateLink::Alone {
            hash.copy_from_slice(&blake3::hash(payload).as_bytes()[..HASH_BYTES]);
        }
        Ok(DecodedState { values, hash })
    }

    fn decode_coded(
        &self,
        header: &StateHeader,
        payload: &[u8],
        parent: Option<&DecodedState>,
        target: ValuesMut<'_>,
    ) -> Result<(), TapeError> {
        let codec = &self.settings.codec;
        let step = header.step;
        if header.codec != codec.id() {
            return Err(TapeError::OtherCodec { step, expected: header.codec, found: codec.id() });
        }
        let parent = parent.filter(|_| header.link == StateLink::Follows);
        let chain = parent.map_or(Chain::Alone, |parent| Chain::Follow(parent.as_parent()));
        let dims = header.dims.map(|extent| extent as usize);
        let context = Context { threads: self.settings.threads, ..Context::grid(dims).chained(chain) };
        codec.decode(payload, header.bound, &context, target).map_err(|source| TapeError::Codec { step, source })
    }
}

impl std::fmt::Debug for StateCoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateCoder").field("codec", &self.settings.codec.id()).finish_non_exhaustive()
    }
}
