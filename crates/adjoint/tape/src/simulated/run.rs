//! Runs of several processes: each computes and pushes, then computes and pops in reverse.

use std::cell::RefCell;
use std::rc::Rc;

use crate::driver::TapeDriver;
use crate::event::TapeEvent;
use crate::mover::Mover;
use crate::settings::TapeSettings;
use crate::simulated::mover::SimulatedMover;
use crate::simulated::node::VirtualNode;
use crate::simulated::rates::{NodeRates, PinningTurns};
use crate::work::{PlaceError, StateId, TapeWork};

/// The states of a process, and the time it computes before each push and each pop.
#[derive(Clone, Debug)]
pub struct Script {
    /// Computation before each call.
    pub interval_seconds: f64,
    /// Bytes of each state.
    pub state_bytes: Vec<u64>,
}

/// Work that is done before the first push, while the program waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// None: the levels grow while they are in use.
    None,
    /// All memory is allocated and registered, as runtimes do that know no other way.
    Direct {
        /// Bytes of device memory.
        device_bytes: u64,
        /// Bytes of memory of the host.
        host_bytes: u64,
    },
}

/// A run of a machine.
#[derive(Clone, Debug)]
pub struct NodeRun {
    /// Rates of the machine.
    pub rates: NodeRates,
    /// Order of registrations.
    pub turns: PinningTurns,
    /// Settings of the tape of each process.
    pub settings: TapeSettings,
    /// Work before the first push.
    pub preparation: Preparation,
    /// Processes.
    pub scripts: Vec<Script>,
}

/// Seconds for which a process waited, of those it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Blocking {
    /// Waiting for preparations and pushes.
    pub push_seconds: f64,
    /// Waiting for pops.
    pub pop_seconds: f64,
    /// End of the run.
    pub end_seconds: f64,
    /// Pushes for which pages were touched during copies.
    pub n_concurrent: usize,
}

impl Blocking {
    /// Seconds of waiting.
    #[must_use]
    pub fn total_seconds(self) -> f64 {
        self.push_seconds + self.pop_seconds
    }

    /// Mean of several processes.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let n = all.len().max(1) as f64;
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / n;
        Self {
            push_seconds: mean(|one| one.push_seconds),
            pop_seconds: mean(|one| one.pop_seconds),
            end_seconds: mean(|one| one.end_seconds),
            n_concurrent: all.iter().map(|one| one.n_concurrent).sum::<usize>() / all.len().max(1),
        }
    }
}

/// ProcessActivity of a process.
#[derive(Clone, Copy, Debug)]
enum ProcessActivity {
    Computing { until_seconds: f64 },
    Preparing { since_seconds: f64 },
    Calling { since_seconds: f64 },
    Finished,
}

/// A process that runs.
struct RunningProcess {
    script: Script,
    driver: TapeDriver<SimulatedMover>,
    activity: ProcessActivity,
    preparation: Vec<TapeWork>,
    pushed: Vec<StateId>,
    n_pushed: usize,
    blocking: Blocking,
}

impl NodeRun {
    /// Runs all processes to their ends, and returns the time that each waited.
    ///
    /// # Errors
    /// [`PlaceError`] of a call; states must fit the tape.
    pub fn run(&self) -> Result<Vec<Blocking>, PlaceError> {
        let node = VirtualNode::new(self.rates.clone(), self.turns, self.scripts.len());
        let node = Rc::new(RefCell::new(node));
        let start = |(process, script): (usize, &Script)| {
            let mover = SimulatedMover::new(&node, process);
            RunningProcess::new(self.settings.clone(), mover, script.clone(), self.preparation)
        };
        let mut processes: Vec<RunningProcess> = self.scripts.iter().enumerate().map(start).collect();
        loop {
            for process in &mut processes {
                process.proceed()?;
            }
            if processes.iter().all(|process| matches!(process.activity, ProcessActivity::Finished)) {
                break;
            }
            let ends = processes.iter().filter_map(RunningProcess::computes_until);
            let first = ends.fold(f64::INFINITY, f64::min);
            let moves = node.borrow_mut().advance(Some(first).filter(|first| first.is_finite()));
            assert!(moves, "a process that waits has work under way");
        }
        Ok(processes.iter().map(|process| process.blocking).collect())
    }
}

impl RunningProcess {
    fn new(settings: TapeSettings, mover: SimulatedMover, script: Script, preparation: Preparation) -> Self {
        let preparation = match preparation {
            Preparation::None => Vec::new(),
            Preparation::Direct { device_bytes, host_bytes } => {
                vec![TapeWork::Pin { level: 1, to: host_bytes }, TapeWork::Extend { level: 0, to: device_bytes }]
            }
        };
        let activity = ProcessActivity::Computing { until_seconds: mover.now_seconds() + script.interval_seconds };
        let driver = TapeDriver::new(settings, mover);
        let blocking = Blocking::default();
        Self { script, driver, activity, preparation, pushed: Vec::new(), n_pushed: 0, blocking }
    }

    fn computes_until(&self) -> Option<f64> {
        match self.activity {
            ProcessActivity::Computing { until_seconds } => Some(until_seconds),
            _ => None,
        }
    }

    fn now_seconds(&mut self) -> f64 {
        self.driver.mover().now_seconds()
    }

    /// Does all that can be done now.
    fn proceed(&mut self) -> Result<(), PlaceError> {
        let now = self.now_seconds();
        loop {
            // The driver has no work while memory is prepared, and sees no ticket of it.
            if let ProcessActivity::Preparing { since_seconds } = self.activity {
                if self.driver.mover().poll().is_none() {
                    return Ok(());
                }
                self.blocking.push_seconds += now - since_seconds;
                self.activity = ProcessActivity::Computing { until_seconds: now };
            }
            let reply = self.driver.pump();
            match self.activity {
                ProcessActivity::Computing { until_seconds } if until_seconds <= now => self.begin_call(now),
                ProcessActivity::Calling { since_seconds } => match reply {
                    Some(reply) => self.end_call(reply?, now - since_seconds, now),
                    None => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    fn begin_call(&mut self, now: f64) {
        if let Some(work) = self.preparation.pop() {
            let begun = self.driver.mover().start(work);
            debug_assert!(begun.is_ok(), "a simulated mover starts all work");
            self.activity = ProcessActivity::Preparing { since_seconds: now };
            return;
        }
        self.activity = ProcessActivity::Calling { since_seconds: now };
        if let Some(&bytes) = self.script.state_bytes.get(self.n_pushed) {
            self.driver.tell(self.driver.push_event(bytes));
            let is_concurrent = self.driver.policy().is_touching_concurrently();
            self.blocking.n_concurrent += usize::from(is_concurrent);
        } else if let Some(id) = self.pushed.pop() {
            self.driver.tell(TapeEvent::Pop { id });
        }
    }

    fn end_call(&mut self, id: StateId, waited_seconds: f64, now: f64) {
        if self.n_pushed < self.script.state_bytes.len() {
            self.n_pushed += 1;
            self.pushed.push(id);
            self.blocking.push_seconds += waited_seconds;
            if self.n_pushed == self.script.state_bytes.len() {
                self.driver.tell(TapeEvent::Turn);
            }
        } else {
            self.blocking.pop_seconds += waited_seconds;
        }
        self.activity = if self.n_pushed == self.script.state_bytes.len() && self.pushed.is_empty() {
            self.blocking.end_seconds = now;
            ProcessActivity::Finished
        } else {
            ProcessActivity::Computing { until_seconds: now + self.script.interval_seconds }
        };
    }
}
