//! The C interface from outside: its communicator, its calls, and the programs of examples/embed.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[cfg(test)]
mod adapters;
#[cfg(test)]
mod annotate;
#[cfg(test)]
mod build;
#[cfg(test)]
mod calls;
#[cfg(test)]
#[expect(unsafe_code, reason = "the callbacks stand in for a C program's")]
mod comm;
#[cfg(test)]
mod cpp;
#[cfg(all(test, feature = "cuda", target_os = "linux"))]
mod device;
#[cfg(test)]
mod embed;
#[cfg(test)]
mod hang;
#[cfg(test)]
mod package;
#[cfg(test)]
mod petsc;
#[cfg(all(test, feature = "cuda", target_os = "linux"))]
mod petsc_device;
#[cfg(test)]
mod tutorials;
