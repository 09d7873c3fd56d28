//! Preconditioners that are applied row by row, or by runs of rows: down all rows, then up.
//!
//! A row waits for the one before it, and a core could do another meanwhile. So two blocks that do
//! not depend on each other take turns: on one busy EPYC core, IC(0) at 100^3 in 16 blocks took
//! 0.77 of the time. Four in turns took longer than two. Turns change nothing in the bits.

use super::solve::Preconditioner;

/// A preconditioner that goes down all rows and then up.
pub trait RowSweeps: Preconditioner + Sized {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// `z = M^-1 r` for one block, or for two in turns, the rows of one behind those of the other.
    ///
    /// # Panics
    /// For other numbers of blocks.
    fn sweep_blocks(blocks: &[Self], r: &[f64], z: &mut [f64]);
}

/// The steps of both ways, of one row or a few.
pub(super) trait SweepSteps: RowSweeps {
    /// Steps on the way down.
    fn steps_down(&self) -> usize;

    /// Steps on the way up.
    fn steps_up(&self) -> usize;

    /// Computes the rows of z of a step on the way down, from those of r and the z of rows above.
    fn step_down(&self, step: usize, r: &[f64], z: &mut [f64]);

    /// Computes the rows of z of a step on the way up, from their values so far and the z of rows
    /// below.
    fn step_up(&self, step: usize, z: &mut [f64]);
}

/// Does the work of [`RowSweeps::sweep_blocks`]. Called next to the steps, so that they are
/// compiled together.
pub(super) fn sweep<M: SweepSteps>(blocks: &[M], r: &[f64], z: &mut [f64]) {
    match blocks {
        [m] => {
            (0..m.steps_down()).for_each(|step| m.step_down(step, r, z));
            (0..m.steps_up()).rev().for_each(|step| m.step_up(step, z));
        }
        [a, b] => sweep_two([a, b], r, z),
        _ => unreachable!("one block, or two"),
    }
}

fn sweep_two<M: SweepSteps>(pair: [&M; 2], r: &[f64], z: &mut [f64]) {
    let [a, b] = pair;
    let (r_a, r_b) = r.split_at(a.rows());
    let (z_a, z_b) = z.split_at_mut(a.rows());
    let both = a.steps_down().min(b.steps_down());
    for step in 0..both {
        a.step_down(step, r_a, z_a);
        b.step_down(step, r_b, z_b);
    }
    (both..a.steps_down()).for_each(|step| a.step_down(step, r_a, z_a));
    (both..b.steps_down()).for_each(|step| b.step_down(step, r_b, z_b));
    let both = a.steps_up().min(b.steps_up());
    (both..a.steps_up()).rev().for_each(|step| a.step_up(step, z_a));
    (both..b.steps_up()).rev().for_each(|step| b.step_up(step, z_b));
    for step in (0..both).rev() {
        a.step_up(step, z_a);
        b.step_up(step, z_b);
    }
}
