#![doc = include_str!("../docs/c.md")]
#![doc = include_str!("../docs/petsc.md")]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![expect(unsafe_code, reason = "the C interface takes pointers and calls back")]

mod callbacks;
mod calls;
mod changes;
mod columns;
mod handle;
mod how;
mod kinds;
mod lent;
mod log;
mod memory;
mod memory_array;
mod memory_pace;
mod memory_view;
mod numbers;
mod operator;
mod protected;
mod roll_call;
mod statics;
mod status;
mod systems;
mod tape;
mod tape_options;
mod veloc;

pub use callbacks::{RECOUP_COMM_ANY_THREAD, RecoupComm, RecoupPart};
pub use calls::*;
pub use changes::*;
pub use columns::*;
pub use handle::{RecoupHandle, RecoupStats};
pub use how::*;
pub use kinds::*;
pub use lent::lent_comm;
pub use log::*;
pub use memory::*;
pub use memory_array::{RECOUP_I32, RECOUP_U32, RECOUP_U64};
pub use memory_view::*;
pub use operator::{RECOUP_OPERATOR_ANY_THREAD, RecoupApply};
pub use protected::{
    RECOUP_BYTES, RECOUP_C64, RECOUP_C128, RECOUP_DIRECTION, RECOUP_DYNAMIC, RECOUP_F32, RECOUP_F64, RECOUP_I64,
    RECOUP_ITERATE, RECOUP_RANK_LOCAL, RECOUP_RECOMPUTED, RECOUP_RECURRENCE, RECOUP_REPLICATED, RECOUP_STATIC,
    RecoupRebuild,
};
pub use status::*;
pub use systems::*;
pub use tape::*;
pub use veloc::recoup_veloc_init;
