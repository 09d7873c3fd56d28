//! A tape: a policy and the mover that works for it.

use std::collections::{BTreeMap, VecDeque};

use crate::event::{AdoptedState, TapeAction, TapeEvent};
use crate::mover::{EndedMove, MoveTicket, Mover};
use crate::policy::TapePolicy;
use crate::settings::TapeSettings;
use crate::work::{PlaceError, StateBytes, StateId, WorkId};

/// Work that a mover has, and its start.
#[derive(Clone, Copy, Debug)]
struct Begun {
    work: WorkId,
    since_seconds: f64,
}

/// A policy with its mover.
#[derive(Debug)]
pub struct TapeDriver<M> {
    policy: TapePolicy,
    mover: M,
    begun: BTreeMap<MoveTicket, Begun>,
    reply: Option<Result<StateId, PlaceError>>,
    /// The answer to the last call.
    answered_seconds: f64,
}

impl<M: Mover> TapeDriver<M> {
    /// Makes a tape whose levels begin to grow.
    #[must_use]
    pub fn new(settings: TapeSettings, mover: M) -> Self {
        let mut policy = TapePolicy::new(settings);
        let actions = policy.start();
        let answered_seconds = mover.now_seconds();
        let mut driver = Self { policy, mover, begun: BTreeMap::new(), reply: None, answered_seconds };
        driver.act(actions);
        driver
    }

    /// Returns the policy.
    #[must_use]
    pub fn policy(&self) -> &TapePolicy {
        &self.policy
    }

    /// Returns the mover.
    #[must_use]
    pub fn mover(&mut self) -> &mut M {
        &mut self.mover
    }

    /// Returns the event of a push: the program has computed since its last call was answered.
    #[must_use]
    pub fn push_event(&self, bytes: u64) -> TapeEvent {
        TapeEvent::Push { bytes, interval_seconds: self.mover.now_seconds() - self.answered_seconds }
    }

    /// Makes a call of the program, and waits for its answer.
    ///
    /// # Errors
    /// [`PlaceError`]. After a push the tape is as it was, and a state whose copy to the program
    /// failed is still on it.
    pub fn call(&mut self, call: TapeEvent) -> Result<StateId, PlaceError> {
        self.tell(call);
        loop {
            if let Some(reply) = self.pump() {
                return reply;
            }
            // The policy answers each call when nothing is under way.
            match self.mover.wait() {
                Some(ended) => self.end(ended),
                None => assert!(self.reply.is_some(), "the policy answers when nothing is under way"),
            }
        }
    }

    /// Starts nothing more, and waits until no level holds a state that was popped. Calls after it
    /// are not answered.
    pub fn close(&mut self) {
        self.tell(TapeEvent::Close);
        while self.policy.is_leaving() {
            let Some(ended) = self.mover.wait() else { return };
            self.end(ended);
        }
    }

    /// Takes in a state that the last level held before the tape was made.
    ///
    /// # Errors
    /// [`PlaceError::Full`] if the level has no room for it.
    pub fn adopt(&mut self, bytes: StateBytes) -> Result<AdoptedState, PlaceError> {
        self.policy.adopt(bytes)
    }

    /// Takes in what has ended, and starts what may begin then. Waits for nothing.
    pub fn attend(&mut self) {
        while let Some(ended) = self.mover.poll() {
            self.end(ended);
        }
    }

    /// Takes in what has ended, and returns the answer to the call if there is one. Waits for
    /// nothing.
    pub fn pump(&mut self) -> Option<Result<StateId, PlaceError>> {
        self.attend();
        self.reply.take().inspect(|_| self.answered_seconds = self.mover.now_seconds())
    }

    fn end(&mut self, ended: EndedMove) {
        let begun = self.begun.remove(&ended.ticket);
        let Some(Begun { work, since_seconds }) = begun else { return };
        let seconds = self.mover.now_seconds() - since_seconds;
        let EndedMove { written_bytes, result, .. } = ended;
        let failure = result.err().map(|error| error.reason);
        self.tell(TapeEvent::Ended { work, failure, written_bytes, seconds });
    }

    /// Tells the policy what the program does, and starts what follows. The answer to a call comes
    /// from [`TapeDriver::pump`].
    pub fn tell(&mut self, event: TapeEvent) {
        let actions = self.policy.handle(event);
        self.act(actions);
    }

    /// Starts work. Work that cannot start has failed, which may lead to other work.
    fn act(&mut self, actions: Vec<TapeAction>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            match action {
                TapeAction::Reply(reply) => self.reply = Some(reply),
                TapeAction::Discard { level, extent } => self.mover.discard(level, extent),
                TapeAction::Start { id, work } => match self.mover.start(work) {
                    Ok(ticket) => {
                        let since_seconds = self.mover.now_seconds();
                        self.begun.insert(ticket, Begun { work: id, since_seconds });
                    }
                    Err(error) => {
                        let failure = Some(error.reason);
                        let failed = TapeEvent::Ended { work: id, failure, written_bytes: None, seconds: 0.0 };
                        actions.extend(self.policy.handle(failed));
                    }
                },
            }
        }
    }
}
