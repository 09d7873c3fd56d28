//! Failures a test places exactly: at the n-th question, or at the n-th question in one phase.

use std::time::Duration;

use recoup_core::{Failure, FailureKind, FailureSource, Phase};

/// A source that fails at chosen questions, so that a test can strike at every step of a run in
/// turn.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    strikes: Vec<(Option<Phase>, u64)>,
    asked: u64,
    asked_computing: u64,
    asked_checkpoint: u64,
    asked_recovery: u64,
}

impl Scripted {
    /// No failure yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a failure at question number `nth`, counted from 0 over all phases.
    pub fn at_question(mut self, nth: u64) -> Self {
        self.strikes.push((None, nth));
        self
    }

    /// Adds a failure at the `nth` question, counted from 0, asked in `phase`.
    pub fn in_phase(mut self, phase: Phase, nth: u64) -> Self {
        self.strikes.push((Some(phase), nth));
        self
    }

    /// Returns the number of questions asked: run once without failures to learn where one can
    /// strike.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    fn count(&mut self, phase: Phase) -> u64 {
        let counter = match phase {
            Phase::Computing => &mut self.asked_computing,
            Phase::Checkpoint => &mut self.asked_checkpoint,
            Phase::Recovery => &mut self.asked_recovery,
        };
        *counter += 1;
        *counter - 1
    }
}

impl FailureSource for Scripted {
    fn due(&mut self, now: Duration, _iteration: u64, phase: Phase) -> Option<Failure> {
        let overall = self.asked;
        let here = self.count(phase);
        self.asked += 1;
        let strikes =
            self.strikes.iter().any(|&(wanted, nth)| wanted.map_or(nth == overall, |p| p == phase && nth == here));
        strikes.then_some(Failure { at: now, kind: FailureKind::FailStop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_come_exactly_where_scripted() {
        let mut source = Scripted::new().at_question(1).in_phase(Phase::Recovery, 1);
        let phases = [Phase::Computing, Phase::Computing, Phase::Recovery, Phase::Computing, Phase::Recovery];
        let struck: Vec<bool> =
            phases.into_iter().map(|phase| source.due(Duration::ZERO, 0, phase).is_some()).collect();
        assert_eq!(struck, [false, true, false, false, true]);
        assert_eq!(source.asked(), 5);
    }
}
