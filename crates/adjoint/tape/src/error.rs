//! Errors of a tape.

use std::path::PathBuf;

use recoup_core::{CodecError, CodecId, DeviceValuesError, ElementType, ErrorKind, KindedError};

use crate::work::PlaceError;

/// Errors of a tape and of its calls.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    /// The tape has neither memory nor a directory.
    #[error("a tape needs room: name bytes of the host's memory, of a device, or a spill directory")]
    NoRoom,
    /// The machine has less memory than asked for.
    #[error(
        "{asked} bytes of the host's memory for the tape: the machine has {available}; name fewer, or a spill directory"
    )]
    Memory {
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes of the machine.
        available: u64,
    },
    /// The system refused memory or threads.
    #[error("the system refuses what the tape needs: {0}")]
    System(#[from] std::io::Error),
    /// The file by which processes take turns at locking memory cannot be used.
    #[error("lock memory in turns by {}: {source}; name another file", .path.display())]
    Turns {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The spill directory cannot be used.
    #[error("spill directory: {reason}")]
    Spill {
        /// The finding.
        reason: String,
    },
    /// The spill directory holds states of an earlier run.
    #[error("{}: {n_states} states of an earlier run are there; reopen the tape to continue with them, or clear it", .path.display())]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// Number of files with states.
        n_states: usize,
    },
    /// The device cannot be used.
    #[error("device of the tape: {0}")]
    Device(DeviceValuesError),
    /// This build has no devices.
    #[error("a tape on a device needs feature {feature}, which was not built")]
    NotBuilt {
        /// The feature.
        feature: &'static str,
    },
    /// The codec is for versions of a solve, and a state has no word for it.
    #[error("states cannot be coded by {codec}, which codes versions of a solve: choose another codec")]
    CodecName {
        /// The codec.
        codec: CodecId,
    },
    /// The codec loses nothing, and a bound was named.
    #[error(transparent)]
    CodecBound(#[from] CodecError),
    /// A codec was named for a tape in the memory of a device alone.
    #[error(
        "states are coded when they leave the memory of a device: name memory of the host, or a spill directory, or leave the codec out"
    )]
    CodedDevice,
    /// States of a device were to be coded against each other.
    #[error(
        "states leave the memory of a device one by one, so none is coded against another: code each alone, or leave the device out"
    )]
    ChainedDevice,
    /// Saving needs a spill directory.
    #[error("a tape without a spill directory cannot be saved; name one when it is made")]
    NothingKept,
    /// The tape has no state.
    #[error("the tape is empty: all states were popped")]
    Empty,
    /// The step is on the tape already.
    #[error("step {step} is on the tape already; pop or forget it first")]
    Duplicate {
        /// The step.
        step: u64,
    },
    /// The step is not on the tape.
    #[error("step {step} is not on the tape: it was popped, or never pushed")]
    Unknown {
        /// The step.
        step: u64,
    },
    /// The program's room does not fit the state, which is still on the tape.
    #[error(
        "step {step}: {expected_len} values of type {expected} are on the tape, room for {found_len} of type {found} was given"
    )]
    Shape {
        /// The step.
        step: u64,
        /// Type of the values on the tape.
        expected: ElementType,
        /// Number of them.
        expected_len: usize,
        /// Type of the room.
        found: ElementType,
        /// Values it has room for.
        found_len: usize,
    },
    /// The state does not fit the grid of the tape.
    #[error("step {step}: the grid of the tape has {expected} values, the state {found}")]
    Grid {
        /// The step.
        step: u64,
        /// Values of the grid.
        expected: usize,
        /// Values of the state.
        found: usize,
    },
    /// The place where the program's values rest failed.
    #[error("step {step}: {source}")]
    DeviceValues {
        /// The step.
        step: u64,
        /// Its error.
        source: DeviceValuesError,
    },
    /// The codec failed.
    #[error("step {step}: {source}")]
    Codec {
        /// The step.
        step: u64,
        /// Its error.
        source: CodecError,
    },
    /// The state was coded with another codec.
    #[error("step {step}: it was coded with {expected}, and the tape was made with {found}")]
    OtherCodec {
        /// The step.
        step: u64,
        /// Codec of the state.
        expected: CodecId,
        /// Codec of the tape.
        found: CodecId,
    },
    /// The state follows one that is not on the tape.
    #[error("step {step}: it was coded against the state before, which is not on the tape")]
    Orphan {
        /// The step.
        step: u64,
    },
    /// A level failed.
    #[error("step {step}: {source}")]
    Place {
        /// The step.
        step: u64,
        /// Its error.
        source: PlaceError,
    },
    /// States that follow each other are popped in reverse only.
    #[error("states coded against each other leave in reverse; code each alone for another order")]
    ChainedOrder,
    /// A process that was forked has the tape of its parent, and none of its threads.
    #[error("process {opener} made this tape, process {here} was forked from it: make one of its own")]
    Forked {
        /// The process that made it.
        opener: u32,
        /// The process that called.
        here: u32,
    },
    /// The codec's thread has ended.
    #[error("the thread that codes states has panicked; states after the last call that worked are lost")]
    Stopped,
}

impl KindedError for TapeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::System(source) => ErrorKind::of_io(source),
            Self::Memory { .. } => ErrorKind::OutOfMemory,
            Self::Spill { .. } => ErrorKind::Io,
            Self::Device(source) | Self::DeviceValues { source, .. } => source.kind.into(),
            Self::Codec { source, .. } => source.kind(),
            Self::Orphan { .. } => ErrorKind::Damaged,
            Self::Place { source, .. } => match source {
                PlaceError::TooLarge { .. } | PlaceError::Full { .. } => ErrorKind::OutOfMemory,
                PlaceError::Copy { .. } | PlaceError::Kept { .. } => ErrorKind::Io,
                PlaceError::Unknown { .. } => ErrorKind::Refused,
            },
            Self::Stopped => ErrorKind::Panicked,
            _ => ErrorKind::Refused,
        }
    }
}
