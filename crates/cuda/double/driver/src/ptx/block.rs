//! One block: the order in which its threads run.

use super::fault::DeviceFault;
use super::memory::DeviceMemory;
use super::order::SeededOrder;
use super::special::ThreadNumbers;
use super::state::{BlockState, LANES, ThreadFault};
use super::thread::{ThreadState, ThreadStatus};
use super::{barrier, report, warp};

/// Times that a warp continues before the next one has its turns.
const WARP_TURNS: usize = 64;

/// Runs blocks, one after the other.
#[derive(Debug)]
pub(super) struct BlockRunner<'a> {
    pub(super) state: BlockState<'a>,
    pub(super) order: SeededOrder,
    pub(super) instructions_max: u64,
    /// Instructions executed by all blocks so far.
    pub(super) executed: u64,
}

impl BlockRunner<'_> {
    /// Runs all threads of a block to their end.
    pub(super) fn run(&mut self, numbers: ThreadNumbers, memory: &mut dyn DeviceMemory) -> Result<(), ThreadFault> {
        self.state.begin(numbers);
        loop {
            self.pass(memory)?;
            if self.state.lanes.iter().all(|lane| lane.status == ThreadStatus::Ended) {
                return Ok(());
            }
            let is_released = barrier::release(&mut self.state)?;
            if !is_released && !self.state.lanes.iter().any(|lane| lane.status == ThreadStatus::Ready) {
                return Err(self.deadlock());
            }
        }
    }

    /// Gives every warp its turns.
    fn pass(&mut self, memory: &mut dyn DeviceMemory) -> Result<(), ThreadFault> {
        let n_threads = self.state.lanes.len();
        let mut warps: Vec<usize> = (0..n_threads.div_ceil(LANES)).collect();
        self.order.shuffle(&mut warps);
        for warp in warps {
            let first = warp * LANES;
            self.run_warp(first, n_threads.min(first + LANES), memory)?;
        }
        Ok(())
    }

    fn run_warp(&mut self, first: usize, end: usize, memory: &mut dyn DeviceMemory) -> Result<(), ThreadFault> {
        let mut ready = Vec::with_capacity(LANES);
        for _ in 0..WARP_TURNS {
            ready.clear();
            ready.extend((first..end).filter(|thread| self.state.lanes[*thread].status == ThreadStatus::Ready));
            if ready.is_empty() {
                break;
            }
            self.order.shuffle(&mut ready);
            for thread in &ready {
                self.run_thread(*thread, memory)?;
            }
            warp::meet(&mut self.state, first..end)?;
        }
        Ok(())
    }

    /// Gives a thread its turn.
    fn run_thread(&mut self, thread: usize, memory: &mut dyn DeviceMemory) -> Result<(), ThreadFault> {
        let turn = self.order.turn().min(self.instructions_max - self.executed);
        self.executed += self.state.run_thread(thread, turn, memory)?;
        if self.executed == self.instructions_max && self.state.lanes[thread].status == ThreadStatus::Ready {
            return Err(ThreadFault { thread, fault: DeviceFault::Endless { instructions: self.executed } });
        }
        Ok(())
    }

    fn deadlock(&self) -> ThreadFault {
        let waits = |lane: &ThreadState| lane.status != ThreadStatus::Ended;
        let thread = self.state.lanes.iter().position(waits).unwrap_or_default();
        let waiting = report::waiting(&self.state.lanes, &self.state.kernel.code);
        ThreadFault { thread, fault: DeviceFault::Deadlock { waiting } }
    }
}
