//! States by their steps, as values: raw, through a codec, or from levels that have one between
//! them.

use recoup_core::{Bound, CodecError, CodecId};

use crate::coder::StateCoder;
use crate::error::TapeError;
use crate::payload::{PayloadSource, PayloadTarget, StateTarget};
use crate::record::{StateHeader, StateLink};
use crate::shelf::{Reading, StateShelf};

/// A shelf, and the codec of its states, if there is one.
#[derive(Debug)]
pub(crate) struct CodedShelf {
    pub(crate) shelf: StateShelf,
    coder: Option<StateCoder>,
}

impl CodedShelf {
    pub(crate) fn new(shelf: StateShelf, coder: Option<StateCoder>) -> Self {
        Self { shelf, coder }
    }

    /// Returns whether there is a codec.
    pub(crate) fn is_coded(&self) -> bool {
        self.coder.is_some()
    }

    /// Returns whether states follow others.
    pub(crate) fn is_chained(&self) -> bool {
        self.coder.as_ref().is_some_and(StateCoder::is_chained)
    }

    /// Pushes a state on a grid; one of a type that the codec does not take, raw.
    pub(crate) fn push(&mut self, step: u64, source: PayloadSource<'_>, dims: [usize; 3]) -> Result<(), TapeError> {
        if let (Some(coder), PayloadSource::Values(values)) = (&mut self.coder, &source) {
            let values = *values;
            match coder.push(&mut self.shelf, step, values, dims) {
                Err(TapeError::Codec { source: CodecError::Element { .. }, .. }) => {}
                pushed => return pushed,
            }
        }
        if let Some(coder) = self.shelf.coder() {
            coder.check_bound().map_err(|source| TapeError::Codec { step, source })?;
        }
        let header = StateHeader {
            number: 0,
            step,
            codec: CodecId::Raw,
            element: source.element(),
            bound: Bound::Lossless,
            link: StateLink::Alone,
            dims: dims.map(|extent| extent as u64),
            payload_bytes: (source.len() * source.element().size()) as u64,
        };
        self.shelf.push(header, source)
    }

    /// Reads a state into room of its type and number of values.
    pub(crate) fn read(&mut self, step: u64, mut target: StateTarget<'_>, reading: Reading) -> Result<(), TapeError> {
        let header = self.shelf.header(step)?;
        if target.element() != header.element || target.len() != header.len() {
            return Err(TapeError::Shape {
                step,
                expected: header.element,
                expected_len: header.len(),
                found: target.element(),
                found_len: target.len(),
            });
        }
        let is_raw = header.codec == CodecId::Raw && header.link == StateLink::Alone;
        if let Some(coder) = self.shelf.coder() {
            coder.check(&header)?;
        } else if is_raw {
            header.check_length().map_err(|source| TapeError::Codec { step, source })?;
        }
        if is_raw || self.shelf.coder().is_some() {
            return self.shelf.read(step, PayloadTarget::State(target), reading);
        }
        let coder =
            self.coder.as_mut().ok_or(TapeError::OtherCodec { step, expected: header.codec, found: CodecId::Raw })?;
        let is_ahead = coder.decoded(step).is_some();
        coder.decode(&mut self.shelf, step)?;
        if let Some(values) = coder.decoded(step) {
            target.fill(values).map_err(|source| TapeError::DeviceValues { step, source })?;
        }
        match reading {
            Reading::Pop => {
                self.shelf.forget(step)?;
                coder.forget(step);
            }
            // Kept for a state that follows it, or because its pop comes next.
            Reading::Peek if is_ahead || header.link != StateLink::Alone => {}
            Reading::Peek => coder.forget(step),
        }
        Ok(())
    }

    /// Decodes the state that is popped next.
    pub(crate) fn look_ahead(&mut self) -> Result<(), TapeError> {
        self.shelf.turn();
        match (self.shelf.next_step(), &mut self.coder) {
            (Some(step), Some(coder)) => coder.decode(&mut self.shelf, step),
            _ => Ok(()),
        }
    }

    /// Drops a state unread.
    pub(crate) fn forget(&mut self, step: u64) -> Result<(), TapeError> {
        if self.shelf.is_followed(step) {
            return Err(TapeError::ChainedOrder);
        }
        self.shelf.forget(step)?;
        if let Some(coder) = &mut self.coder {
            coder.forget(step);
        }
        Ok(())
    }
}
