//! The effect of lossy saving and recovery on a method: numbers that the library, not its user,
//! knows.

use crate::Resume;

/// The behaviour of a method after a recovery from lossy values. Every solver states its own
/// ([`crate::Iteration::profile`]); policies start from it, and what a run measures takes its
/// place.
///
/// The fractions are extra iterations divided by the iterations done before the failure. They are
/// what a policy expects until a recovery was seen; `cargo xtask recoveries` prints what recoveries
/// cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodProfile {
    /// Default of theta, the allowed growth of the residual: `||b - A x'|| <= (1 + theta) ||r||`.
    pub theta: f64,
    /// The resume that lossy versions allow: [`Resume::Deflated`] where the method keeps a
    /// direction worth saving.
    pub lossy_resume: Resume,
    /// Extra iterations of a recovery from the iterate alone.
    pub restarted_fraction: f64,
    /// Extra iterations of a recovery from the iterate and a direction.
    pub deflated_fraction: f64,
    /// A lossy version for a traditional resume bears errors of this share of what the residual has
    /// yet to fall ([`Plan::held_to`](crate::Plan::held_to)), with which the recurrences continue
    /// as if nothing had happened.
    pub continued_share: f64,
    /// The convergence rate grows in the course of a solve, and a recovery from lossy values begins
    /// at the first rate again. This does not hold for methods that restart all the time.
    pub starts_slowly: bool,
    /// The method applies the same linear map to the error in every iteration, so that Theorem 2
    /// (doi 10.1145/3208040.3208050) says what a lossy iterate costs.
    pub is_stationary: bool,
    /// An iterate that shares a symmetry of the problem converges sooner than others, so errors
    /// that break it cost iterations.
    pub gains_by_symmetry: bool,
}

impl MethodProfile {
    /// A method of which nothing is known: a Krylov method that loses its search space with a
    /// restart.
    pub const UNKNOWN: Self = Self {
        theta: 0.5,
        lossy_resume: Resume::Deflated,
        restarted_fraction: 0.25,
        deflated_fraction: 0.1,
        continued_share: 0.1,
        starts_slowly: true,
        is_stationary: false,
        gains_by_symmetry: true,
    };

    /// A stationary method: it forgets nothing, so a recovery costs next to nothing.
    pub const STATIONARY: Self = Self {
        theta: 3.0,
        lossy_resume: Resume::Restarted,
        restarted_fraction: 0.0,
        deflated_fraction: 0.0,
        continued_share: 0.1,
        starts_slowly: true,
        is_stationary: true,
        gains_by_symmetry: false,
    };
}

impl Default for MethodProfile {
    fn default() -> Self {
        Self::UNKNOWN
    }
}
