//! Break-even points: the extra iterations that a lossy recovery may cost and still pay (Theorem 1
//! of Tao et al. 2018), and what a codec costs and saves.

use serde::{Deserialize, Serialize};

/// The times that Theorem 1 compares, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossyBreakEven {
    /// Mean time to interrupt.
    pub mtti_seconds: f64,
    /// Time of a traditional checkpoint.
    pub traditional_seconds: f64,
    /// Time of a lossy one.
    pub lossy_seconds: f64,
    /// Time of one iteration.
    pub iteration_seconds: f64,
}

impl LossyBreakEven {
    /// Theorem 1 (Eq. 9, doi 10.1145/3208040.3208050): lossy checkpoints pay while a recovery costs
    /// at most `(f(T_trad) - f(T_lossy)) / (lambda T_it)` extra iterations, with
    /// `f(t) = sqrt(2 lambda t) + lambda t`. Negative when lossy never pays.
    #[must_use]
    pub fn max_extra_iterations(&self) -> f64 {
        let f = |t: f64| (2.0 * t / self.mtti_seconds).sqrt() + t / self.mtti_seconds;
        (f(self.traditional_seconds) - f(self.lossy_seconds)) * self.mtti_seconds / self.iteration_seconds
    }
}

/// Ratio and rates of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodecRates {
    /// Raw bytes over encoded bytes.
    pub ratio: f64,
    /// Raw bytes encoded per second and core.
    pub encode_bytes_per_second: f64,
    /// Raw bytes decoded per second and core.
    pub decode_bytes_per_second: f64,
}

impl CodecRates {
    /// No codec: ratio 1, no time.
    pub const RAW: Self =
        Self { ratio: 1.0, encode_bytes_per_second: f64::INFINITY, decode_bytes_per_second: f64::INFINITY };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Checkpointing;
    use crate::overhead::CheckpointTiming;

    const PAPER: LossyBreakEven = LossyBreakEven {
        mtti_seconds: 3600.0,
        traditional_seconds: 120.0,
        lossy_seconds: 25.0,
        iteration_seconds: 1.2,
    };

    #[test]
    fn example_of_the_paper_gives_500() {
        assert!((PAPER.max_extra_iterations() - 500.2).abs() < 0.05);
    }

    #[test]
    fn at_the_bound_both_overheads_are_equal() {
        let scheme = |checkpoint_seconds| {
            CheckpointTiming::synchronous(Checkpointing { mtti_seconds: 3600.0, checkpoint_seconds })
        };
        let extra_seconds = PAPER.max_extra_iterations() * PAPER.iteration_seconds;
        let lossy = CheckpointTiming { extra_seconds, ..scheme(25.0) }.overhead_fraction();
        assert!((lossy - scheme(120.0).overhead_fraction()).abs() <= 16.0 * f64::EPSILON);
    }

    #[test]
    fn slower_lossy_checkpoints_never_pay() {
        assert!(LossyBreakEven { lossy_seconds: 130.0, ..PAPER }.max_extra_iterations() < 0.0);
    }
}
