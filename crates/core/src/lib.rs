//! The vocabulary of recoup: what a variable, a bound, a frame, a version is, and the traits
//! solvers, codecs, stores, communicators and policies implement.
//!
//! Promises: data, traits, and the collectives that carry values and errors between ranks; no I/O,
//! no thread, no unsafe code. Must not know any implementation. ARCHITECTURE.md has the map and the
//! crates that each crate may use.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod borrowed;
mod bound;
mod clock;
mod codec;
mod collective;
mod comm;
mod decorator;
mod device_values;
mod digits;
mod error_kind;
mod exact_sum;
mod failure;
mod fingerprint;
mod frame;
mod increment_mode;
mod iteration;
mod manifest;
mod manifest_parts;
mod mix;
mod note;
mod operator;
mod policy;
mod problem_on_device;
mod profile;
mod resume;
mod store;
mod store_error;
mod values;
mod variable;
mod zones;

pub use borrowed::{Borrowed, BorrowedMut};
pub use bound::{Bound, BoundRule, ParseBoundError};
pub use clock::Clock;
pub use codec::{
    Chain, Codec, CodecError, CodecId, CodecResult, Context, DeviceFrame, DeviceParent, Encoded, Filter, KnownChanges,
    Parent,
};
pub use collective::{
    CommonError, Message, RankError, agreed, are_alike, broadcast_bytes, broadcast_json, broadcast_json_from,
    broadcast_words, by_rank_0, collect_bytes, collect_json, each, from_rank_0, gather_bytes, gather_json,
    gather_unlike, gather_words, gathered, hand_out_bytes, hand_out_json, summed, text_hash, wrapping_sums,
};
pub use comm::{Comm, CommError, MpiHandle};
pub use decorator::StoreDecorator;
pub use device_values::{DeviceSnapshot, DeviceValues, DeviceValuesError, DeviceValuesErrorKind, SnapshotAllocator};
pub use digits::short_number;
pub use error_kind::{ErrorKind, FullCause, KindedError, RankFailure};
pub use exact_sum::ExactSum;
pub use failure::{Bit, Failure, FailureKind, FailureSource, FlipTarget, Phase};
pub use fingerprint::{
    Difference, Evidence, Fingerprint, PROBES, Probe, Projection, probe_value, row_hash, vector_fingerprint,
};
pub use frame::{Frame, FrameRecord, Place, Storage};
pub use increment_mode::{IncrementMode, UnknownIncrementMode};
pub use iteration::{BreakdownReason, Iteration, Progress, Registered, ResidualKind, SafePoint, SolveError, Status};
pub use manifest::{
    FORMAT_VERSION, FileRecord, Manifest, PARTS_FORMAT_VERSION, PartRecord, ResidualRecord, RowRange, SystemRecord,
    VariableRecord,
};
pub use mix::mix;
pub use note::Note;
pub use operator::{BLOCK, BlockSums, JacobiSweep, Operator, chunk_rows, slice_rows};
pub use policy::{
    BoundScale, Choice, Cost, Decision, Measured, Observation, Plan, Policy, Prediction, PredictionSource, Scheme,
};
pub use problem_on_device::ProblemOnDevice;
pub use profile::MethodProfile;
pub use resume::Resume;
pub use store::{Draft, NextBegin, NextCall, Reads, Sealed, Store, Tier, Tiered, VersionFiles, VersionLinks};
pub use store_error::{Damage, StoreError};
pub use values::{ElementType, Values, ValuesMut};
pub use variable::{Distribution, Role, Variable, VariableMut, revision_of, revision_with};
pub use zones::{LastWrite, Mark, Zones};
