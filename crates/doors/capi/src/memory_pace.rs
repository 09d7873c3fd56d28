//! The pace of the versions of a memory: a number of steps, or as a policy says.

use recoup::memory::{Memory, MemoryError, SavePolicy, Saver, Versioned};
use recoup::memory_options::PaceRule;

/// Makes versions when they are due, and learns what they cost.
pub(crate) struct MemoryPace {
    rule: PaceRule,
    saver: Saver,
    /// Steps since the last commit or restore.
    n_steps: u64,
}

impl MemoryPace {
    pub(crate) fn new(rule: PaceRule) -> Self {
        let policy = match rule {
            PaceRule::Steps(_) => SavePolicy::default(),
            PaceRule::Policy(policy) => policy,
        };
        Self { rule, saver: Saver::new(policy), n_steps: 0 }
    }

    /// Counts a step, and makes a version if one is due after it. Returns its number.
    pub(crate) fn step(
        &mut self,
        memory: &mut Memory,
        step: u64,
        state: &mut [&mut dyn Versioned],
    ) -> Result<Option<u64>, MemoryError> {
        self.n_steps += 1;
        match self.rule {
            PaceRule::Policy(_) => self.saver.commit_if_due(memory, step, state),
            PaceRule::Steps(steps) if self.n_steps < steps => Ok(None),
            PaceRule::Steps(_) => self.commit(memory, step, state).map(Some),
        }
    }

    /// Makes a version. Returns its number.
    pub(crate) fn commit(
        &mut self,
        memory: &mut Memory,
        step: u64,
        state: &mut [&mut dyn Versioned],
    ) -> Result<u64, MemoryError> {
        let number = self.saver.commit(memory, step, state)?;
        self.n_steps = 0;
        Ok(number)
    }

    /// Begins an interval: the program is at a version.
    pub(crate) fn rest(&mut self) {
        self.n_steps = 0;
        self.saver.restart();
    }
}

#[cfg(test)]
mod tests {
    use recoup::memory::{MemoryOptions, VersionedArray};

    use super::*;

    #[test]
    fn steps_are_counted_from_the_last_commit_and_the_last_restore() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = Memory::open(&folder.path().join("pace.memory"), MemoryOptions::default()).unwrap();
        let mut array = VersionedArray::<f64>::zeros("x", 10);
        let mut pace = MemoryPace::new(PaceRule::Steps(3));
        let mut steps = |pace: &mut MemoryPace, numbers: [u64; 3]| {
            numbers.map(|step| pace.step(&mut memory, step, &mut [&mut array]).unwrap())
        };
        assert_eq!(steps(&mut pace, [1, 2, 3]), [None, None, Some(1)]);
        assert_eq!(steps(&mut pace, [4, 5, 6]), [None, None, Some(2)]);
        assert_eq!(steps(&mut pace, [7, 8, 9])[2], Some(3));
        pace.rest();
        assert_eq!(steps(&mut pace, [1, 2, 3]), [None, None, Some(4)]);
    }
}
