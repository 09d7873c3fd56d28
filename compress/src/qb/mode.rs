//! The mode of a frame: the lattice all its blocks are coded on.

use recoup_core::Bound;

use crate::lattice::{Absolute, INTEGER, Relative, StepRule};
use crate::scalar::Scalar;

/// Number of the mode with absolute bounds.
pub(super) const ABSOLUTE: u8 = 1;
/// Above this a pointwise bound is taken as if it were this one, which is tighter.
const RELATIVE_MAX: f64 = 0.499;

/// The lattice of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FrameMode {
    Lossless,
    Absolute(Absolute),
    Relative(Relative),
}

/// Evaluates an expression with the lattice of a [`FrameMode`] in a variable: once for each type of
/// lattice.
macro_rules! with_lattice {
    ($mode:expr, $lattice:ident => $work:expr) => {
        match $mode {
            $crate::qb::mode::FrameMode::Lossless => {
                let $lattice = $crate::lattice::Exact;
                $work
            }
            $crate::qb::mode::FrameMode::Absolute($lattice) => $work,
            $crate::qb::mode::FrameMode::Relative($lattice) => $work,
        }
    };
}
pub(super) use with_lattice;

/// Mode and step, as a header stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredMode {
    pub(super) mode: u8,
    pub(super) step: u64,
}

impl FrameMode {
    /// The mode for values of type `T` under a bound.
    pub(super) fn new<T: Scalar>(bound: Bound, rule: StepRule) -> Self {
        let mode = match bound {
            Bound::Absolute(e) => Absolute::new(e, rule).map(Self::Absolute),
            Bound::Pointwise(e) => {
                divisor::<T>(e, rule.is_chained).map(|divisor| Self::Relative(Relative::of_divisor::<T>(divisor)))
            }
            Bound::Lossless | Bound::Range(_) => None,
        };
        mode.unwrap_or(Self::Lossless)
    }

    /// Number and step in the header.
    pub(super) fn to_stored(self) -> StoredMode {
        match self {
            Self::Lossless => StoredMode { mode: 0, step: 0 },
            Self::Absolute(lattice) => StoredMode { mode: ABSOLUTE, step: lattice.step().to_bits() },
            Self::Relative(lattice) => StoredMode { mode: 2, step: lattice.divisor() },
        }
    }

    /// The mode of a header; `None` for what no encoder writes.
    pub(super) fn from_stored<T: Scalar>(stored: StoredMode) -> Option<Self> {
        match (stored.mode, stored.step) {
            (0, step) => (step == 0).then_some(Self::Lossless),
            (ABSOLUTE, step) => {
                // Parents have codes where the inverse is normal too.
                let lattice = Absolute::of_step(f64::from_bits(step))?;
                lattice.inverse().is_normal().then_some(Self::Absolute(lattice))
            }
            (2, divisor) => (2..1 << 42).contains(&divisor).then(|| Self::Relative(Relative::of_divisor::<T>(divisor))),
            _ => None,
        }
    }
}

/// The divisor for a pointwise bound; `None` where it leaves no room. In a chain it is a power of
/// two.
fn divisor<T: Scalar>(bound: f64, is_chained: bool) -> Option<u64> {
    let bound = bound.min(RELATIVE_MAX);
    let divisor = if T::SHIFT > 0 {
        ((bound * INTEGER) as u64).checked_sub(4096)? / 1024
    } else {
        2 * ((bound * T::SMALLEST_NORMAL as f64) as u64).checked_sub(1)?
    };
    let divisor = if is_chained { (divisor + 1).next_power_of_two() / 2 } else { divisor };
    // Below these bounds fewer codes are saved than the lattice costs.
    let least = if T::SHIFT > 0 { 12 } else { 2 };
    (divisor >= least).then_some(divisor)
}
