//! States of a forward pass, kept in levels of memory and given back in reverse or any known order.
//!
//! The levels are an incremental cache: memory is mapped, touched and registered while it is in
//! use, so a run does not begin with minutes of allocation. [`TapePolicy`] decides, a [`Mover`]
//! works, and a [`TapeDriver`] joins them. [`simulated`] moves nothing and counts virtual time.
//! [`schedule`] plans which states of an adjoint program are kept, and which are computed again.
//!
//! Promises: a state that was pushed is given back whole, or its pop is an error. Must not know
//! what states mean. Source: Maurya, Nicolae, Rafique, Elsayed, Tonellot, Cappello, HiPC 2022
//! (hal-03799226).
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod bell;
mod builder;
mod call;
mod coded;
mod coder;
mod coding;
#[cfg(feature = "cuda")]
mod device_cache;
mod driver;
mod error;
mod event;
mod host;
mod host_memory;
mod level;
mod machine;
mod mover;
mod owned;
mod payload;
mod policy;
mod record;
mod record_coder;
mod ring;
mod settings;
mod shelf;
mod spill;
mod stage;
mod state;
mod storage;
mod tape;
mod threads;
mod touching;
mod turns;
mod work;

pub mod schedule;
pub mod simulated;

pub use builder::TapeBuilder;
pub use driver::TapeDriver;
pub use error::TapeError;
pub use event::{AdoptedState, TapeAction, TapeEvent};
pub use mover::{EndedMove, MoveError, MoveTicket, Mover};
pub use policy::TapePolicy;
pub use recoup_pages::{PageRegion, PageSize};
pub use ring::PlaceRing;
pub use settings::{Eviction, Growth, LevelSettings, Registration, TapeSettings, Touching};
pub use shelf::DamagedState;
pub use tape::{StateShape, Tape, TapeReport};
pub use touching::{TouchMode, TouchModel};
pub use work::{Extent, Location, PlaceError, StateBytes, StateId, TapeWork, WorkId};
