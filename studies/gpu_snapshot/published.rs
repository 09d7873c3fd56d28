//! The published numbers, each with its place: Lee, Sullivan, Hari, Tsai, Keckler, Erez,
//! "GPU Snapshot: Checkpoint Offloading for GPU-Dense Systems", ICS 2019, doi
//! 10.1145/3330345.3330361.
//!
//! Numbers are those of its tables and its text. Figures 2, 3 and 7 to 14 are pictures.

/// The publication.
pub(crate) const DOI: &str = "doi 10.1145/3330345.3330361";

/// A column of Table 1. Rates are those of the whole system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemColumn {
    pub(crate) exaflops: f64,
    pub(crate) gpus_per_cpu: f64,
    pub(crate) gpus: f64,
    pub(crate) cpus: f64,
    pub(crate) nodes: f64,
    /// GB/s between GPUs and CPUs.
    pub(crate) pcie: f64,
    /// GB/s to the disks of the nodes.
    pub(crate) local: f64,
    /// GB/s to the parallel file system.
    pub(crate) pfs: f64,
    /// Failures per second of GPUs, CPUs and nodes.
    pub(crate) failures: [f64; 3],
}

/// Table 1, but for the rows that no result needs: cabinets, the rates of memory, and sums of
/// failures.
#[rustfmt::skip]
pub(crate) const TABLE1: [SystemColumn; 9] = [
    column(0.45, [16.0, 57_600.0, 3_600.0, 1_800.0], [2.30e5, 3.87e3, 3.45e3], [6.56e-5, 1.14e-6, 2.60e-7]),
    column(0.90, [16.0, 115_200.0, 7_200.0, 3_600.0], [4.61e5, 7.74e3, 4.49e3], [1.31e-4, 2.28e-6, 5.20e-7]),
    column(1.80, [16.0, 230_400.0, 14_400.0, 7_200.0], [9.22e5, 1.55e4, 5.84e3], [2.62e-4, 4.56e-6, 1.04e-6]),
    column(3.60, [2.0, 460_800.0, 230_400.0, 115_200.0], [3.69e6, 2.48e5, 7.65e3], [5.25e-4, 6.36e-5, 1.66e-5]),
    column(3.60, [4.0, 460_800.0, 115_200.0, 57_600.0], [3.69e6, 1.24e5, 7.61e3], [5.25e-4, 3.31e-5, 8.31e-6]),
    column(3.60, [8.0, 460_800.0, 57_600.0, 28_800.0], [3.69e6, 6.19e4, 7.60e3], [5.25e-4, 1.73e-5, 4.16e-6]),
    column(3.60, [16.0, 460_800.0, 28_800.0, 14_400.0], [1.84e6, 3.10e4, 7.59e3], [5.25e-4, 9.13e-6, 2.08e-6]),
    column(3.60, [32.0, 460_800.0, 14_400.0, 7_200.0], [9.22e5, 1.55e4, 7.58e3], [5.25e-4, 4.84e-6, 1.04e-6]),
    column(7.20, [16.0, 921_600.0, 57_600.0, 28_800.0], [3.69e6, 6.19e4, 9.86e3], [1.05e-3, 1.83e-5, 4.16e-6]),
];

/// The column of the results at 3.6 exaflops and 16 GPUs for each CPU.
pub(crate) const REFERENCE: SystemColumn = TABLE1[6];

/// Failures per second of the system as a whole, the same in every column (Table 1).
pub(crate) const SYSTEM_FAILURES: f64 = 1.77e-7;

/// Table 2, and two numbers of the text: what a column of Table 1 is made of.
pub(crate) mod node {
    /// FLOP/s of a CPU and of a GPU.
    pub(crate) const FLOPS: [f64; 2] = [0.384e12, 7.8e12];
    /// CPUs of a node. The GPUs are those of the column; Table 2 has 4, the text 3 for each CPU.
    pub(crate) const CPUS: f64 = 2.0;
    /// Bytes of a GPU's memory.
    pub(crate) const GPU_BYTES: f64 = 32e9;
    /// Bytes per second between the GPUs of a node and its memory: 32 lanes for each CPU.
    pub(crate) const PCIE: f64 = 128e9;
    /// Bytes per second to the disk of a node.
    pub(crate) const DISK: f64 = 2.15e9;
    /// Bytes per second to the parallel file system of the smallest system.
    pub(crate) const PFS: f64 = 2500e9;
    /// Growth of that rate with each doubling of a system (Section 5.2).
    pub(crate) const PFS_GROWTH: f64 = 1.3;
}

/// Efficiencies, in percent.
pub(crate) mod efficiency {
    /// Average of the programs at the reference, full checkpoints (Section 9).
    pub(crate) const BASELINE: f64 = 84.9;
    /// No time between GPUs and CPUs (Section 6.2).
    pub(crate) const FREE_LINK: f64 = 92.7;
    /// None there and none to the disk (Section 9).
    pub(crate) const FREE_LINK_AND_DISK: f64 = 97.2;
    /// Points lost above 8 GPUs for each CPU (Section 1).
    pub(crate) const DENSITY_LOSS: f64 = 8.0;
    /// Full checkpoints at a tenth of the GPUs' failures (Section 6.2.2).
    pub(crate) const TENTH_OF_FAILURES: f64 = 90.0;
    /// Full checkpoints at 50 times the GPUs' failures, "less than" (Section 6.2.2).
    pub(crate) const MANY_FAILURES: f64 = 54.0;
    /// The same with the variants of the device (Section 6.2.2).
    pub(crate) const MANY_FAILURES_DEVICE: f64 = 90.0;
}

const fn column(exaflops: f64, counts: [f64; 4], gigabytes: [f64; 3], failures: [f64; 3]) -> SystemColumn {
    let [gpus_per_cpu, gpus, cpus, nodes] = counts;
    let [pcie, local, pfs] = gigabytes;
    SystemColumn { exaflops, gpus_per_cpu, gpus, cpus, nodes, pcie, local, pfs, failures }
}
