//! The least cost of an adjoint program, found without any theory of schedules.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use recoup_tape::schedule::{AccessCost, ScheduleCosts};

/// Everything that a program has: bits stand for steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Situation {
    /// Step whose state the program has.
    at: u64,
    stored: [u64; 2],
    /// Steps that are still to be reversed.
    left: u64,
}

/// Quarters of a second, so that costs are whole numbers and can be put in order.
fn quarters(seconds: f64) -> u64 {
    let scaled = seconds * 4.0;
    assert_eq!(scaled, scaled.round(), "{seconds} is not a number of quarters");
    scaled as u64
}

/// All situations that one action leads to, and its cost. A state is dropped when its slot is
/// needed, or once its step was reversed.
fn following(from: Situation, slots: [u64; 2], costs: &ScheduleCosts) -> Vec<(u64, Situation)> {
    let mut found = Vec::new();
    let forward = quarters(costs.forward_seconds);
    if from.at + 1 == from.left {
        // The step is taken with its data, and reversed. The state after it is of no use.
        let left = from.left - 1;
        let mask = (1 << left) - 1;
        let stored = from.stored.map(|of| of & mask);
        found.push((forward, Situation { at: u64::MAX - 1, stored, left }));
    } else if from.at < from.left {
        found.push((forward, Situation { at: from.at + 1, ..from }));
    }
    for (level, cost) in [costs.memory, costs.disk].into_iter().enumerate() {
        let AccessCost { write_seconds, read_seconds } = cost;
        let stored = from.stored[level];
        let with = |of: u64, at: u64| {
            let mut next = Situation { at, ..from };
            next.stored[level] = of;
            next
        };
        if from.at < from.left && stored >> from.at & 1 == 0 && slots[level] > 0 {
            let added = stored | 1 << from.at;
            if u64::from(stored.count_ones()) < slots[level] {
                found.push((quarters(write_seconds), with(added, from.at)));
            } else {
                let dropped = (0..from.left).filter(|step| stored >> step & 1 == 1);
                found.extend(dropped.map(|step| (quarters(write_seconds), with(added & !(1 << step), from.at))));
            }
        }
        let readable = (0..from.left).filter(|step| stored >> step & 1 == 1 && *step != from.at);
        found.extend(readable.map(|step| (quarters(read_seconds), with(stored, step))));
    }
    found
}

/// Returns the least seconds in which `steps` steps can be reversed, without the reverse steps:
/// the shortest way through all situations.
pub(crate) fn cheapest(steps: u64, slots: [u64; 2], costs: &ScheduleCosts) -> f64 {
    let start = Situation { at: 0, stored: [0, 0], left: steps };
    let mut least = HashMap::from([(start, 0)]);
    let mut queue = BinaryHeap::from([Reverse((0, start))]);
    while let Some(Reverse((cost, from))) = queue.pop() {
        if from.left == 0 {
            return cost as f64 / 4.0;
        }
        if least[&from] < cost {
            continue;
        }
        for (added, to) in following(from, slots, costs) {
            let known = least.entry(to).or_insert(u64::MAX);
            if cost + added < *known {
                *known = cost + added;
                queue.push(Reverse((cost + added, to)));
            }
        }
    }
    panic!("no program reverses {steps} steps with {slots:?} slots");
}

/// The recurrence of two levels, with every split looked at.
pub(crate) struct TwoLevels {
    fresh: Vec<f64>,
    forward: f64,
}

impl TwoLevels {
    pub(crate) fn new(steps: usize, memory: usize, disk: usize, costs: &ScheduleCosts) -> Self {
        let forward = costs.forward_seconds;
        let mut fresh: Vec<f64> = (0..=steps).map(|n| if n <= 1 { 0.0 } else { f64::INFINITY }).collect();
        for _ in 0..memory {
            fresh = level(&fresh, forward, costs.memory, None);
        }
        let alone = fresh.clone();
        for _ in 0..disk {
            fresh = level(&fresh, forward, costs.disk, Some(&alone));
        }
        Self { fresh, forward }
    }

    pub(crate) fn seconds(&self, steps: usize) -> f64 {
        self.fresh[steps] + steps as f64 * self.forward
    }
}

/// One slot more: costs by steps, where `right` has those without the slot and `alone` those of the
/// faster level.
fn level(right: &[f64], forward: f64, cost: AccessCost, alone: Option<&[f64]>) -> Vec<f64> {
    let mut held = vec![0.0, 0.0];
    let mut fresh = vec![0.0, 0.0];
    for n in 2..right.len() {
        let of = |j: usize| j as f64 * forward + right[n - j] + cost.read_seconds + held[j];
        let split = (1..n).map(of).fold(f64::INFINITY, f64::min);
        let other = alone.map_or(f64::INFINITY, |of| of[n]);
        held.push(split.min(other));
        fresh.push((split + cost.write_seconds).min(other));
    }
    fresh
}
