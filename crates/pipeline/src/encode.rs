//! Encoding: behind the solver, staged variables become frames, and the frames of all ranks a
//! version.
//!
//! Others may use the [`Worker`]; chains and the codec of frames also serve the way back.

mod bound_loop;
mod chain;
mod codec_selection;
mod codecs;
mod context;
mod cores;
mod encode_variable;
mod frame_codec;
mod increments;
mod rank_part;
mod symmetry;
mod worker;

pub(crate) use self::bound_loop::{Judge, Stopwatch, largest};
pub(crate) use self::chain::{Base, Decoded, PayloadHash, PlacedParent, payload_hash};
pub use self::codecs::{CodecTable, Codecs};
pub(crate) use self::cores::idle_cores;
pub(crate) use self::frame_codec::{Payload, decode, decode_placed, read_frame};
pub(crate) use self::worker::Worker;
