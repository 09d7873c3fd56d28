//! The mover of a process of a simulated machine.

use std::cell::RefCell;
use std::rc::Rc;

use crate::mover::{EndedMove, MoveError, MoveTicket, Mover};
use crate::simulated::node::VirtualNode;
use crate::work::TapeWork;

/// A mover that moves nothing, in virtual time.
#[derive(Clone, Debug)]
pub struct SimulatedMover {
    node: Rc<RefCell<VirtualNode>>,
    process: usize,
}

impl SimulatedMover {
    /// Makes the mover of a process of this machine, counted from 0.
    #[must_use]
    pub fn new(node: &Rc<RefCell<VirtualNode>>, process: usize) -> Self {
        Self { node: Rc::clone(node), process }
    }
}

impl Mover for SimulatedMover {
    fn start(&mut self, work: TapeWork) -> Result<MoveTicket, MoveError> {
        Ok(self.node.borrow_mut().start(self.process, work))
    }

    fn poll(&mut self) -> Option<EndedMove> {
        let ticket = self.node.borrow_mut().poll(self.process)?;
        Some(EndedMove { ticket, written_bytes: None, result: Ok(()) })
    }

    fn wait(&mut self) -> Option<EndedMove> {
        loop {
            if let Some(ended) = self.poll() {
                return Some(ended);
            }
            let mut node = self.node.borrow_mut();
            if !node.is_busy(self.process) || !node.advance(None) {
                return None;
            }
        }
    }

    fn now_seconds(&self) -> f64 {
        self.node.borrow().now_seconds()
    }
}
