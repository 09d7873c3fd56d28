//! The C interface from outside: its communicator, its calls, and the programs of examples/embed.

mod build;
mod calls;
#[expect(unsafe_code, reason = "the callbacks stand in for a C program's")]
mod comm;
mod embed;
mod petsc;
