//! Commits at the time that a policy chooses, from their measured cost.
//!
//! Promises: a program that asks after each step saves as often as its policy wants, and a call
//! that does not save reads no values. Must not know how the cost is predicted, or why an interval
//! is the right one: the model does.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use recoup_core::Clock;
use recoup_io::SystemClock;
use recoup_model::commit_cost::CommitCost;
use recoup_model::saving::{SaveDecision, SavePolicy};

use crate::error::MemoryError;
use crate::memory::Memory;
use crate::structure::Versioned;

/// Decides when to commit, and learns what commits cost.
///
/// The cost of the next commit follows from the marks: what was touched since the last version.
/// Marks are counted, and no values are read. An array that is
/// [`compared`](crate::VersionedArray::compared) has no marks; it is expected to change in as many
/// blocks as its last commit has stored.
///
/// ```
/// use recoup_memory::{Memory, MemoryOptions, VersionedArray, Saver};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("heat.memory");
/// let mut heat = VersionedArray::<f64>::zeros("heat", 100_000);
/// let mut memory = Memory::open(&path, MemoryOptions::default())?;
/// let mut saver = Saver::new("auto".parse()?);
/// for step in 0..10 {
///     heat.write(500..510).fill(step as f64);
///     saver.commit_if_due(&mut memory, step, &mut [&mut heat])?;
/// }
/// saver.commit(&mut memory, 10, &mut [&mut heat])?;     // the end is always saved
/// # assert_eq!(memory.versions().last().map(|version| version.step), Some(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Saver {
    policy: SavePolicy,
    cost: CommitCost,
    clock: Arc<dyn Clock>,
    /// Time of the last version, or of the start.
    saved_at: Duration,
    decision: Option<SaveDecision>,
}

impl fmt::Debug for Saver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, cost, decision, .. } = self;
        f.debug_struct("Saver").field("policy", policy).field("cost", cost).field("decision", decision).finish()
    }
}

impl Saver {
    /// Starts to count time: call it where the computing begins, after a restore.
    #[must_use]
    pub fn new(policy: SavePolicy) -> Self {
        Self::with_clock(policy, Arc::new(SystemClock::new()))
    }

    /// Starts to count the time of a clock.
    #[must_use]
    pub fn with_clock(policy: SavePolicy, clock: Arc<dyn Clock>) -> Self {
        let saved_at = clock.now();
        Self { policy, cost: CommitCost::new(), clock, saved_at, decision: None }
    }

    /// Commits if the policy says that a version is due. Returns the number of the version, if
    /// there is one. [`decision`](Self::decision) has the reasons.
    ///
    /// # Errors
    /// As for [`Memory::commit`].
    pub fn commit_if_due(
        &mut self,
        memory: &mut Memory,
        step: u64,
        state: &mut [&mut dyn Versioned],
    ) -> Result<Option<u64>, MemoryError> {
        let elapsed = self.clock.now().saturating_sub(self.saved_at);
        let cost_seconds = self.cost.seconds(&memory.pending_work(state));
        let decision = self.policy.decide(elapsed.as_secs_f64(), cost_seconds);
        self.decision = Some(decision);
        if decision.is_due() { self.commit(memory, step, state).map(Some) } else { Ok(None) }
    }

    /// Commits whatever the policy says, and learns what it cost.
    ///
    /// # Errors
    /// As for [`Memory::commit`].
    pub fn commit(
        &mut self,
        memory: &mut Memory,
        step: u64,
        state: &mut [&mut dyn Versioned],
    ) -> Result<u64, MemoryError> {
        let start = self.clock.now();
        let number = memory.commit(step, state)?;
        let end = self.clock.now();
        self.cost.learn(&memory.committed_work(), end.saturating_sub(start).as_secs_f64());
        self.saved_at = end;
        Ok(number)
    }

    /// Counts the time since now: a version was restored, or committed by another way.
    pub fn restart(&mut self) {
        self.saved_at = self.clock.now();
    }

    /// Returns the last answer of the policy; its text has the reasons. `None` before the first.
    #[must_use]
    pub fn decision(&self) -> Option<SaveDecision> {
        self.decision
    }

    /// Returns what was learned of the cost of commits.
    #[must_use]
    pub fn cost(&self) -> &CommitCost {
        &self.cost
    }
}
