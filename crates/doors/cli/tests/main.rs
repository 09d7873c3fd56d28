//! The program as its users meet it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod annotate;
mod auto;
mod chains;
mod checks;
mod histories;
mod install;
mod json;
mod kills;
mod memory_file;
mod messages;
mod mutations;
mod petsc_exec;
mod petsc_faults;
mod petsc_getdp;
mod petsc_mpich;
mod petsc_rows;
mod petsc_storm;
mod preconditioners;
mod program;
mod report;
mod results;
mod scenarios;
mod screens;
mod slurm;
mod staging;
mod support;
mod tape;
mod tiers;
