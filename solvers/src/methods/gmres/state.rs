//! The part of a cycle that belongs to the state of a solve, in addition to x.

use recoup_core::Role;

use super::harvest::Start;
use crate::methods::shared::{FOR_EXACT, FOR_TRADITIONAL};

/// The part of a cycle that a version holds in addition to x.
#[derive(Debug, Default, PartialEq)]
pub(super) enum CycleState {
    /// Nothing: the cycle begins with `b - A x`.
    #[default]
    Plain,
    /// The vectors that the cycle began with.
    Deflated {
        /// Number of vectors, the residual's not counted.
        kept: usize,
        /// The small problem over them, as numbers in a row.
        start: Vec<f64>,
    },
    /// All vectors and the small problem: the cycle is under way.
    Within {
        /// Steps done.
        columns: usize,
    },
    /// Nothing, though the version to restore holds a cycle under way: it is too long to continue
    /// here.
    Misfit,
}

impl CycleState {
    /// The state of a cycle that begins with carried vectors.
    pub(super) fn deflated(start: &Start) -> Self {
        Self::Deflated { kept: start.kept(), start: start.to_vec() }
    }

    /// Room for the state that a version with this many basis vectors holds, in cycles of
    /// `length_max` steps. The vectors of a cycle that `is_under_way` are all of its vectors.
    pub(super) fn room(vectors: usize, is_under_way: bool, length_max: usize) -> Self {
        let before_last = vectors.saturating_sub(1);
        if is_under_way {
            let fits = (1..length_max).contains(&before_last);
            return if fits { Self::Within { columns: before_last } } else { Self::Misfit };
        }
        let kept = before_last.min(length_max.saturating_sub(1));
        if kept == 0 { Self::Plain } else { Self::Deflated { kept, start: vec![0.0; (kept + 1) * (kept + 1)] } }
    }

    /// First basis vectors that belong to the state.
    pub(super) fn vectors(&self) -> usize {
        match self {
            Self::Plain | Self::Misfit => 0,
            Self::Deflated { kept: before_last, .. } | Self::Within { columns: before_last } => before_last + 1,
        }
    }

    /// The role of these vectors.
    pub(super) fn role(&self) -> Role {
        if matches!(self, Self::Within { .. }) { FOR_EXACT } else { FOR_TRADITIONAL }
    }

    /// The small problem over the vectors that the cycle began with; `None` without such vectors.
    pub(super) fn start(&self) -> Option<Start> {
        match self {
            Self::Deflated { kept, start } => Start::from_slice(*kept, start),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_under_way_has_room_only_where_another_step_fits() {
        assert_eq!(CycleState::room(5, true, 5), CycleState::Within { columns: 4 });
        assert_eq!(CycleState::room(6, true, 5), CycleState::Misfit);
        assert_eq!(CycleState::room(1, true, 5), CycleState::Misfit, "no step was done");
        assert_eq!(CycleState::room(0, false, 5), CycleState::Plain);
        assert_eq!(CycleState::room(3, false, 5).vectors(), 3);
    }
}
