//! The published numbers, each with its place: Tao, Di, Liang, Chen, Cappello, "Improving
//! Performance of Iterative Methods by Lossy Checkpointing", HPDC 2018, doi
//! 10.1145/3208040.3208050.
//!
//! Numbers are those of its text. Curves and bars that the text gives no numbers for are not here.

/// The publication.
pub(crate) const DOI: &str = "doi 10.1145/3208040.3208050";
/// Ranks of the largest runs (Section 4.1).
pub(crate) const RANKS: f64 = 2048.0;
/// Ranks along the axes of Figures 4 to 7 that the text names, and the steps between them.
pub(crate) const RANK_STEPS: [f64; 8] = [256.0, 512.0, 768.0, 1024.0, 1280.0, 1536.0, 1792.0, 2048.0];
/// Elements of one vector on all 2,048 ranks, "10^10" (Section 4.1); 2160 to the third.
pub(crate) const UNKNOWNS: f64 = 2160.0 * 2160.0 * 2160.0;
/// Writing one raw vector on 2,048 ranks, seconds (Section 4.1).
pub(crate) const VECTOR_SECONDS: f64 = 120.0;
/// Encoding one vector on 2,048 ranks, seconds (Section 5.3).
pub(crate) const ENCODE_SECONDS: f64 = 0.5;
/// Decoding one vector on 2,048 ranks, seconds (Section 5.3).
pub(crate) const DECODE_SECONDS: f64 = 0.2;
/// Mean time to interrupt of the experiments, seconds (Section 5.4).
pub(crate) const MTTI_SECONDS: f64 = 3600.0;
/// The second failure rate of Figure 7, as an MTTI in seconds (Section 5.3).
pub(crate) const MTTI_LONG_SECONDS: f64 = 3.0 * 3600.0;
/// Pointwise relative bound of the experiments (Section 5.4); GMRES follows Theorem 3 (Section
/// 4.4.2).
pub(crate) const ERROR_BOUND: f64 = 1e-4;
/// Time of a lossy GMRES checkpoint on 2,048 ranks, seconds (Section 4.3, the example after Theorem
/// 1).
pub(crate) const GMRES_LOSSY_SECONDS: f64 = 25.0;
/// Iterations and seconds of that GMRES solve (same place).
pub(crate) const GMRES_EXAMPLE: (f64, f64) = (5875.0, 7160.0);
/// Extra iterations Theorem 1 allows it (same place).
pub(crate) const GMRES_ALLOWED: f64 = 500.0;
/// Overhead of Figure 1 at 120 s and an MTTI of an hour, "as high as" (Section 4.1).
pub(crate) const FIG1_OVERHEAD: f64 = 0.40;
/// Extra iterations of CG after a lossy restart, least and most over the bounds of Figure 2
/// (Section 4.4.3).
pub(crate) const FIG2_EXTRA: (f64, f64) = (0.10, 0.25);
/// Spectral radius and iterations of Jacobi that Theorem 2 is evaluated with (Section 5.3).
pub(crate) const JACOBI_RADIUS: f64 = 0.99998;
/// Iterations of Jacobi (Section 5.3).
pub(crate) const JACOBI_ITERATIONS: f64 = 3941.0;
/// Extra iterations of Jacobi that follow from it, "about" (Section 5.3).
pub(crate) const JACOBI_EXTRA: f64 = 6.0;
/// Extra iterations of CG, a quarter of all (Section 5.3).
pub(crate) const CG_EXTRA: f64 = 594.0;
/// Iterations of CG: 594 are 25 % of them (Section 5.3).
pub(crate) const CG_ITERATIONS: f64 = CG_EXTRA / 0.25;
/// Bytes of lossy over bytes of traditional checkpoints, inverted: least and most (Section 5.3, on
/// Table 3).
pub(crate) const TABLE3_RATIO: (f64, f64) = (20.0, 60.0);
/// The same of lossless ones, at most "about" (Section 5.3, on Table 3).
pub(crate) const TABLE3_LOSSLESS: f64 = 6.0;
/// Ranks above which lossy CG pays in Figure 7, MTTI 1 h and 3 h (Section 5.3).
pub(crate) const FIG7_CROSSINGS: (f64, f64) = (1536.0, 768.0);
/// Delay of CG's convergence under lossy checkpoints and failures (Section 5.4, Figure 8).
pub(crate) const FIG8_CG: f64 = 0.248;
/// Young's intervals the text names, minutes: traditional, lossless, lossy (Section 5.4; the times
/// are those of Figure 5).
pub(crate) const INTERVALS_MINUTES: [f64; 3] = [16.0, 12.0, 7.0];

/// The published numbers of one method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solve {
    /// Time of the undisturbed solve, seconds (Section 5.4).
    pub(crate) productive_seconds: f64,
    /// Its iterations (Sections 4.3 and 5.3).
    pub(crate) iterations: f64,
    /// Vectors a traditional checkpoint holds (Sections 3 and 5.3).
    pub(crate) vectors: f64,
    /// By how much lossy reduces the overhead of traditional and of lossless checkpoints (Section
    /// 5.4, Figure 10).
    pub(crate) reductions: (f64, f64),
    /// Extra iterations of a lossy recovery that Figure 7 assumes (Section 5.3).
    pub(crate) extra_iterations: f64,
    /// The convergence as described at Figure 8.
    pub(crate) convergence: &'static str,
}

/// Jacobi.
pub(crate) const JACOBI: Solve = Solve {
    productive_seconds: 50.0 * 60.0,
    iterations: JACOBI_ITERATIONS,
    vectors: 1.0,
    reductions: (0.59, 0.24),
    extra_iterations: JACOBI_EXTRA,
    convergence: "no delay",
};
/// GMRES.
pub(crate) const GMRES: Solve = Solve {
    productive_seconds: 120.0 * 60.0,
    iterations: GMRES_EXAMPLE.0,
    vectors: 1.0,
    reductions: (0.70, 0.58),
    extra_iterations: 0.0,
    convergence: "slightly faster",
};
/// CG.
pub(crate) const CG: Solve = Solve {
    productive_seconds: 35.0 * 60.0,
    iterations: CG_ITERATIONS,
    vectors: 2.0,
    reductions: (0.23, 0.20),
    extra_iterations: CG_EXTRA,
    convergence: "24.8 % more",
};
