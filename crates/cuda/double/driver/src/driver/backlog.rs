//! Operations that wait for each other, and the order in which they run.
//!
//! Nothing runs before something forces it. Then it runs with all it waits for, in an order that
//! the seed draws from those that are allowed.

use std::collections::BTreeMap;

use recoup_cuda_double::Trace;

use super::advance::Advance;
use super::operation::StreamWork;
use super::races::{History, Turn};
use crate::random::Choices;

/// An operation that has not run.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) action: StreamWork,
    pub(crate) context: u64,
    pub(crate) turn: Turn,
    /// Everything that is ordered before it, and itself.
    pub(crate) advance: Advance,
    /// Numbers of operations that it waits for; some may be done.
    pub(crate) after: Vec<u64>,
}

/// The operations of all streams.
#[derive(Debug)]
pub(crate) struct Backlog {
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    /// The operations that the host knows to be done.
    pub(crate) host: Advance,
    pub(crate) history: History,
    pub(crate) choices: Choices,
    pub(crate) trace: Trace,
}

/// Operations that are to run, the ready ones first.
#[derive(Debug)]
pub(crate) struct Batch {
    ready: Vec<u64>,
    /// Number of operations that each still waits for.
    blocked: BTreeMap<u64, usize>,
    /// Operations that wait for each.
    followers: BTreeMap<u64, Vec<u64>>,
}

impl Backlog {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            waiting: BTreeMap::new(),
            next: 1,
            host: Advance::default(),
            history: History::default(),
            choices: Choices::new(seed),
            trace: Trace::default(),
        }
    }

    /// Adds an operation; its number.
    pub(crate) fn add(&mut self, waiting: Waiting) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, waiting);
        number
    }

    /// Returns whether an operation has not run.
    pub(crate) fn is_waiting(&self, number: u64) -> bool {
        self.waiting.contains_key(&number)
    }

    /// Numbers of the operations that wait and fulfil a condition.
    pub(crate) fn select(&self, condition: impl Fn(&Waiting) -> bool) -> Vec<u64> {
        self.waiting.iter().filter(|(_, waiting)| condition(waiting)).map(|(number, _)| *number).collect()
    }

    /// Removes operations that will never run.
    pub(crate) fn abandon(&mut self, context: u64) {
        self.waiting.retain(|_, waiting| waiting.context != context);
    }

    /// Collects operations with all they wait for.
    pub(crate) fn batch(&self, targets: &[u64]) -> Batch {
        let mut batch = Batch { ready: Vec::new(), blocked: BTreeMap::new(), followers: BTreeMap::new() };
        let mut rest: Vec<u64> = targets.to_vec();
        while let Some(number) = rest.pop() {
            let Some(waiting) = self.waiting.get(&number).filter(|_| !batch.blocked.contains_key(&number)) else {
                continue;
            };
            let mut after: Vec<u64> = waiting.after.iter().copied().filter(|own| self.is_waiting(*own)).collect();
            after.sort_unstable();
            after.dedup();
            batch.blocked.insert(number, after.len());
            if after.is_empty() {
                batch.ready.push(number);
            }
            for before in &after {
                batch.followers.entry(*before).or_default().push(number);
            }
            rest.extend(after);
        }
        batch.ready.sort_unstable();
        batch
    }

    /// Takes the next operation of a batch with its number, drawn from those that are ready.
    pub(crate) fn take(&mut self, batch: &mut Batch) -> Option<(u64, Waiting)> {
        if batch.ready.is_empty() {
            return None;
        }
        let drawn = self.choices.below(batch.ready.len());
        let number = batch.ready.swap_remove(drawn);
        for follower in batch.followers.remove(&number).unwrap_or_default() {
            if let Some(count) = batch.blocked.get_mut(&follower) {
                *count -= 1;
                if *count == 0 {
                    batch.ready.push(follower);
                }
            }
        }
        self.waiting.remove(&number).map(|waiting| (number, waiting))
    }

    /// Counts an operation that has run.
    pub(crate) fn note(&mut self, waiting: &Waiting) {
        self.trace.operations += 1;
        let Turn { stream, count } = waiting.turn;
        for word in [stream, count] {
            // FNV-1a, eight bytes at a time.
            self.trace.digest = (self.trace.digest ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
        }
    }

    /// The host has seen that all before `advance` is done.
    pub(crate) fn observe(&mut self, advance: &Advance) {
        self.host.join(advance);
        if self.history.is_long() {
            let Self { history, host, waiting, .. } = self;
            history.forget(|Turn { stream, count }| {
                host.covers(stream, count) && waiting.values().all(|own| own.advance.covers(stream, count))
            });
        }
    }
}
