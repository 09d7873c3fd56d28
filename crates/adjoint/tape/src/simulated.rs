//! Runs in virtual time: processes of a machine with devices, that share links, driver and memory.
//!
//! Nothing is moved. Each piece of work is a flow of bytes; rates change whenever a flow begins or
//! ends. A run repeats exactly.

mod mover;
mod node;
mod rates;
mod run;
mod scenario;

pub use mover::SimulatedMover;
pub use node::VirtualNode;
pub use rates::{NodeRates, PinningTurns, SimulatedCodec};
pub use run::{Blocking, NodeRun, Preparation, Script};
pub use scenario::{Approach, MachineScenario, UNIFORM_BYTES, UNIFORM_STATES};
