//! The link between a session and its worker thread: work and buffers there, outcomes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use recoup_core::SystemRecord;

use super::registry::StagingNeed;
use crate::costs::{CostAccount, Outcome};
use crate::encode::{Base, CheckpointJob, Work, Worker};
use crate::error::PipelineError;
use crate::staging::{StagingRule, StagingSet};
use crate::verify::Verifier;

/// Staging buffers of a session: one being drained while the solver fills the other.
const STAGING_SETS: usize = 2;

/// The session's end of the link. Dropped, it finishes what was sent and joins the worker.
pub(crate) struct WorkerLink {
    /// `None` once the worker is to end, or has.
    work: Option<Sender<Work>>,
    /// Sets to be used again, with the outcome of the version that was made of each, if any.
    done: Receiver<(StagingSet, Option<Outcome>)>,
    thread: Option<JoinHandle<()>>,
    /// Set while versions under way are given up.
    abort: Arc<AtomicBool>,
    free: Vec<StagingSet>,
    /// Versions sent that have no outcome yet.
    outstanding: usize,
}

impl WorkerLink {
    /// Starts the worker.
    ///
    /// # Errors
    /// [`PipelineError::NoWorker`] when the system refuses a thread.
    pub(crate) fn spawn(worker: Worker) -> Result<Self, PipelineError> {
        let (work, work_received) = mpsc::channel();
        let (done_sent, done) = mpsc::channel();
        let abort = worker.context.abort.clone();
        let thread = std::thread::Builder::new()
            .name("recoup-worker".to_owned())
            .spawn(move || worker.run(&work_received, &done_sent))
            .map_err(PipelineError::NoWorker)?;
        let free = (0..STAGING_SETS).map(|_| StagingSet::default()).collect();
        Ok(Self { work: Some(work), done, thread: Some(thread), abort, free, outstanding: 0 })
    }

    /// Asks the worker to make a version.
    pub(crate) fn make(&mut self, job: CheckpointJob) -> Result<(), PipelineError> {
        self.send(Work::Make(Box::new(job)))?;
        self.outstanding += 1;
        Ok(())
    }

    /// Asks the worker to make the memory of a set, before the first version needs it. The other
    /// set is needed only while a version is under way, and makes its own. Behind a version nothing
    /// is made: the set would return after it, and the version may need the thread that waits for
    /// the set.
    pub(crate) fn prepare(&mut self, needs: Vec<StagingNeed>, rule: StagingRule) -> Result<(), PipelineError> {
        if self.outstanding > 0 {
            return Ok(());
        }
        match self.free.pop() {
            Some(staging) => self.send(Work::Prepare { staging, needs, rule }),
            None => Ok(()),
        }
    }

    /// Asks the worker to code the next version against these values, which a restore brought back,
    /// or against none.
    pub(crate) fn restart(&self, restored: Base) -> Result<(), PipelineError> {
        self.send(Work::Restart(restored))
    }

    /// Asks the worker to make versions of another system.
    pub(crate) fn begin_system(&self, verifier: Verifier, record: SystemRecord) -> Result<(), PipelineError> {
        self.send(Work::System { verifier: Box::new(verifier), record })
    }

    fn send(&self, work: Work) -> Result<(), PipelineError> {
        self.work.as_ref().and_then(|sender| sender.send(work).ok()).ok_or(PipelineError::WorkerGone)
    }

    /// Returns a free staging buffer, once there is one. A version that this rank's worker takes no
    /// part in must not be begun: the other workers would wait.
    ///
    /// # Errors
    /// [`PipelineError::WorkerGone`].
    pub(crate) fn free_staging(&mut self, costs: &mut CostAccount) -> Result<StagingSet, PipelineError> {
        if self.work.is_none() || self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(PipelineError::WorkerGone);
        }
        loop {
            if let Some(staging) = self.free.pop() {
                return Ok(staging);
            }
            self.receive(costs)?;
        }
    }

    /// Takes back a staging buffer that no version is made of.
    pub(crate) fn return_staging(&mut self, staging: StagingSet) {
        self.free.push(staging);
    }

    /// Waits until every version sent has an outcome, or `timeout` is over. Returns whether every
    /// version has an outcome.
    pub(crate) fn wait_for(&mut self, timeout: Duration, costs: &mut CostAccount) -> Result<bool, PipelineError> {
        let until = costs.clock.now().saturating_add(timeout);
        while self.outstanding > 0 {
            match self.done.recv_timeout(until.saturating_sub(costs.clock.now())) {
                Ok((staging, outcome)) => self.take(staging, outcome, costs),
                Err(mpsc::RecvTimeoutError::Timeout) => return Ok(false),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
        Ok(true)
    }

    /// Enters the outcomes that are there. Does not wait.
    pub(crate) fn poll(&mut self, costs: &mut CostAccount) -> Result<(), PipelineError> {
        loop {
            match self.done.try_recv() {
                Ok((staging, outcome)) => self.take(staging, outcome, costs),
                Err(mpsc::TryRecvError::Empty) => return Ok(()),
                Err(mpsc::TryRecvError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn receive(&mut self, costs: &mut CostAccount) -> Result<(), PipelineError> {
        let (staging, outcome) = self.done.recv().map_err(|_| self.ended())?;
        self.take(staging, outcome, costs);
        Ok(())
    }

    /// Takes note that the worker has ended although more work may come.
    fn ended(&mut self) -> PipelineError {
        self.work = None;
        PipelineError::WorkerGone
    }

    fn take(&mut self, staging: StagingSet, outcome: Option<Outcome>, costs: &mut CostAccount) {
        self.free.push(staging);
        if let Some(outcome) = outcome {
            self.outstanding -= 1;
            costs.enter(outcome);
        }
    }

    /// Tells the worker to give up what it makes, now and whatever comes.
    pub(crate) fn abandon(&self) {
        self.abort.store(true, Ordering::Release);
    }

    /// Ends the giving up of [`WorkerLink::abandon`].
    pub(crate) fn go_on(&self) {
        self.abort.store(false, Ordering::Release);
    }
}

impl Drop for WorkerLink {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint worker panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose first decision was to save asked for memory at the second one, behind that
    /// version. The third waited for the set, on the thread that the version needed for its
    /// collectives: all ranks waited without an end.
    #[test]
    fn no_memory_is_made_behind_a_version_that_may_need_this_thread() {
        let (work, received) = mpsc::channel();
        let (_done_sent, done) = mpsc::channel();
        let free = vec![StagingSet::default(), StagingSet::default()];
        let abort = Arc::new(AtomicBool::new(false));
        let mut link = WorkerLink { work: Some(work), done, thread: None, abort, free, outstanding: 1 };
        link.prepare(Vec::new(), StagingRule::COPY).unwrap();
        assert!(link.free.len() == 2 && received.try_recv().is_err());
        link.outstanding = 0;
        link.prepare(Vec::new(), StagingRule::COPY).unwrap();
        assert!(link.free.len() == 1 && matches!(received.try_recv(), Ok(Work::Prepare { .. })));
    }
}
