//! A frame: a run of values of one variable of one rank, encoded as one unit.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Bound, CodecId, Filter};

/// The form of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// The bytes the frame's codec wrote.
    Coded,
    /// Raw little-endian values: the codec could not hold them within the bound.
    Raw,
}

/// The place of a payload: a file of the version and a position in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// File name inside the version's directory.
    pub file: String,
    /// First byte of the payload.
    pub offset: u64,
}

/// The entry of a frame in the manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameRecord {
    /// The variable's name.
    pub variable: String,
    /// The rank that owns the values.
    pub rank: usize,
    /// Position among the frames of this variable and rank.
    pub run: usize,
    /// First value, counted in this rank's part of the variable.
    pub start: u64,
    /// Values the frame stands for. The payload may hold more: the last frame is padded with its
    /// last value to the full length, so that all frames of a variable are alike.
    pub len: u64,
    /// The codec.
    pub codec: CodecId,
    /// Coded, or raw because the codec could not hold the values.
    pub storage: Storage,
    /// The bound it was coded under, needed to decode it: the one asked for, or the absolute
    /// bound that follows from it.
    pub bound: Bound,
    /// The largest `|x' - x|` found.
    pub achieved_error: f64,
    /// Payload length.
    pub payload_bytes: u64,
    /// CRC-32C of the payload, checked before any decoder runs.
    pub crc32c: u32,
    /// The version this frame is coded against, an older one; empty when it stands alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<u64>,
    /// The place of the payload; set by the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

impl FrameRecord {
    /// Returns the version this frame is coded against; `None` when it stands alone.
    #[must_use]
    pub fn parent(&self) -> Option<u64> {
        self.parents.first().copied()
    }
}

/// A frame on its way to a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<'a> {
    /// The frame's entry in the manifest.
    pub record: FrameRecord,
    /// The HDF5 filters the values went through, in the order applied when writing; empty for none.
    pub filters: Vec<Filter>,
    /// The encoded values; of a variable saved as it is, the memory it is staged in.
    pub payload: Cow<'a, [u8]>,
}

impl Frame<'_> {
    /// Returns the same frame with a payload of its own.
    #[must_use]
    pub fn to_owned(&self) -> Frame<'static> {
        let payload = Cow::Owned(self.payload.to_vec());
        Frame { record: self.record.clone(), filters: self.filters.clone(), payload }
    }
}
