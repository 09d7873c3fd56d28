//! The published numbers, each with its place: Coy, He, Ren, Zhang, "Compiler Aided Checkpointing
//! using Crash-Consistent Data Structures in NVMM Systems", ICS 2020, doi 10.1145/3392717.3392755.
//!
//! Numbers are those of its tables and its text. Figures 7 to 12 are pictures.

use crate::programs::Kind;

/// The publication.
pub(crate) const DOI: &str = "doi 10.1145/3392717.3392755";
/// The most by which a run with versions in memory is faster than one with checkpoints in the
/// parallel file system (abstract).
pub(crate) const SPEEDUP_MOST: f64 = 121.0;
/// Speedup by more processes that versions lose against the plain program, on average (Section
/// 6.2).
pub(crate) const SPEEDUP_LOST: f64 = 0.117;
/// Average speedup of AMR by more processes, with checkpoints in the parallel file system and with
/// versions (Section 6.2).
pub(crate) const AMR_SPEEDUPS: [f64; 2] = [1.0, 3.3];
/// Time that versions add to the plain program as the problem grows, on average (Section 6.3).
pub(crate) const GROWN_ADDED: f64 = 0.40;
/// Part of the relative absolute error of two other models that M5P does not have (Section 6.4).
pub(crate) const MODEL_ERROR_SAVED: f64 = 0.89;
/// Part of the time of a run that the cost model saves, on average (Section 6.4).
pub(crate) const POLICY_SAVED: f64 = 0.15;
/// Time of a restart from the parallel file system over that from memory (Section 8).
pub(crate) const RESTART_SPEEDUP: f64 = 16.0;
/// Time that versions add to programs with checkpoints in memory by hand, on average (Section 6.6).
pub(crate) const MANUAL_ADDED: f64 = 0.07;

/// The published numbers of one program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Application {
    pub(crate) name: &'static str,
    /// Table 2.
    pub(crate) size: &'static str,
    /// Part of the restart time from the parallel file system that memory of the same nodes saves,
    /// and memory of other nodes (Section 6.5).
    pub(crate) restart_saved: [f64; 2],
    /// Directives, and lines that the compiler changes (Table 3).
    pub(crate) directives: usize,
    pub(crate) changed_lines: usize,
}

/// Returns what is published of the program that this one stands for.
pub(crate) fn application(kind: Kind) -> Application {
    match kind {
        Kind::Lu => Application {
            name: "LU",
            size: "20480 x 20480 numbers",
            restart_saved: [0.93, 0.83],
            directives: 4,
            changed_lines: 101,
        },
        Kind::Droplet => Application {
            name: "AMR",
            size: "125 million elements",
            restart_saved: [0.88, 0.85],
            directives: 4,
            changed_lines: 538,
        },
        Kind::PageRank => Application {
            name: "PR",
            size: "5 million vertices, 69 million edges",
            restart_saved: [0.98, 0.96],
            directives: 4,
            changed_lines: 94,
        },
        Kind::Crack => Application {
            name: "LAMMPS",
            size: "18 million atoms",
            restart_saved: [0.90, 0.81],
            directives: 12,
            changed_lines: 317,
        },
    }
}
