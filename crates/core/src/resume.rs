//! The ways a solver continues from a version.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The way a solver continues from a version, in order of what the version must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resume {
    /// The solver has the iterate alone: `r = b - A x`, and the method starts from there.
    Restarted,
    /// The solver has the iterate and (lossy) directions that later ones are kept A-orthogonal to.
    Deflated,
    /// The recurrence continues with a recomputed residual: the same count, other bits. The
    /// traditional checkpoint of Tao et al. 2018, for CG (x, p, rho).
    Traditional,
    /// Bit for bit the same continuation.
    Exact,
}

impl fmt::Display for Resume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restarted => "restarted",
            Self::Deflated => "deflated",
            Self::Traditional => "traditional",
            Self::Exact => "exact",
        })
    }
}
