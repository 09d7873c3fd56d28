//! Runs of the library under a seed: the operating system below it is ours.
//!
//! A run is a program of a few threads on a disk. A seed decides which thread goes on at each call,
//! what the disk refuses, and where a crash cuts the run. The code under test is the library as
//! users have it; only its system calls end in a world of their own. The world writes a journal of
//! all that changes on its disk, so that one run yields as many crashes as its journal has lines.
//! Must not know how the library works: it judges by files, by results and by what it was promised.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod call;
mod case;
mod choices;
mod client;
mod disk;
mod image;
mod invariants;
mod live;
mod lived;
mod memory;
mod other_process;
mod program;
mod ranks;
mod run_story;
mod schedule;
mod session;
mod shrink;
mod story;
mod sweep;
mod sys;
mod tape;
mod tree;
mod world;

pub use image::LossKind;
pub use invariants::{BrokenInvariant, Invariant};
pub use sweep::{CRASHES, SeedReport, run_seed};
pub use world::Mistake;
