//! Time that a solver loses to one frozen copy, by monitor, next to a copy made at once.
//!
//! `cargo bench -p recoup-snapshot --bench snapshot` runs passes like those of CG over x, r and p
//! of 512 MiB together. The overhead of a way is its pause and the time of the passes while a
//! thread fetches, less that of the same passes undisturbed just before. Medians over rounds, in
//! which all ways take turns. Vectors are fetched in the order in which the solver writes them, but
//! for the way that says so. The ways named "no idle core" have as many solver threads as the
//! machine has cores.

mod passes;
mod vectors;
mod ways;

use ways::{Way, WayTimes};

const ROUNDS: usize = 5;

fn main() {
    let ways = Way::all();
    let rounds: Vec<Vec<WayTimes>> = (0..ROUNDS).map(|_| ways.iter().map(Way::run).collect()).collect();
    println!("{:<44} {:>9} {:>12} {:>11} {:>14}", "", "pause", "iteration", "overhead", "overhead/copy");
    for (index, way) in ways.iter().enumerate() {
        let of = |value: fn(&WayTimes) -> f64| median(rounds.iter().map(|round| value(&round[index])).collect());
        let copy = |round: &Vec<WayTimes>| round[way.compared_with(&ways)].overhead;
        let to_copy = median(rounds.iter().map(|round| round[index].overhead / copy(round)).collect());
        let pause = of(|times| times.pause) * 1e3;
        let iteration = of(|times| times.iteration) * 1e3;
        let overhead = of(|times| times.overhead) * 1e3;
        let name = way.name();
        println!("{name:<44} {pause:>6.2} ms {iteration:>9.1} ms {overhead:>8.1} ms {to_copy:>14.2}");
    }
}

/// The median; the upper one of an even number of values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
