//! Runs of instructions that compute and nothing else, side by side for speed.
//!
//! Nearly all instructions of a kernel are functions of registers. Where they have no guard,
//! they cannot fail, wait or jump.

use super::instruction::{Action, Instruction};
use super::register::RegisterPlaces;
use super::table::{TotalFunction, one};

/// An instruction that computes and nothing else, or the place of another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainStep {
    pub(super) function: TotalFunction,
    pub(super) places: RegisterPlaces,
    /// Instructions of this kind from here on; 0 at the place of another one.
    pub(super) run: u32,
}

/// Returns a step for each instruction.
pub(super) fn plain_steps(code: &[Instruction]) -> Vec<PlainStep> {
    let none = PlainStep {
        function: one!(|a| a),
        places: RegisterPlaces { target: 0, sources: [0; 4], mask: u64::MAX },
        run: 0,
    };
    let mut run = 0;
    let step = |instruction: &Instruction| match instruction.action {
        Action::Compute { function, places } if !instruction.is_guarded() => {
            run += 1;
            PlainStep { function, places, run }
        }
        _ => {
            run = 0;
            none
        }
    };
    let mut steps: Vec<PlainStep> = code.iter().rev().map(step).collect();
    steps.reverse();
    steps
}
