//! recoup for C, Fortran and PETSc: the C interface of `librecoup`.

#![expect(unsafe_code, reason = "the C interface takes pointers and calls back")]

mod comm;
mod home;
mod lent;

pub use comm::{CallbackComm, RECOUP_COMM_ANY_THREAD, RecoupComm, RecoupPart};
pub use home::Inside;
pub use lent::Lent;
