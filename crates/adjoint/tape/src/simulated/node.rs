//! A machine in virtual time: flows of bytes whose rates depend on each other.

use std::collections::VecDeque;

use crate::mover::MoveTicket;
use crate::simulated::rates::{NodeRates, PinningTurns};
use crate::work::{Extent, Location, TapeWork};

/// Bytes below which a flow has ended; rounding leaves less.
const REST_BYTES: f64 = 1e-3;

/// Resource that a flow uses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FlowKind {
    Map,
    Touch {
        to: u64,
    },
    Pin {
        to: u64,
        seconds_per_byte: f64,
    },
    DeviceCopy,
    HostCopy {
        is_down: bool,
        pages: PageShares,
    },
    Spill,
    /// Takes no time.
    Nothing,
}

/// Shares of the bytes of a copy, by their pages in the host's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PageShares {
    registered: f64,
    touched: f64,
    untouched: f64,
}

/// Work of a process that is under way.
#[derive(Clone, Copy, Debug)]
struct Flow {
    ticket: MoveTicket,
    process: usize,
    kind: FlowKind,
    left_bytes: f64,
}

/// Memory of a process in the host, and its work that has ended.
#[derive(Clone, Debug, Default)]
struct ProcessMemory {
    touched: u64,
    pinned: u64,
    mapped: u64,
    ended: VecDeque<MoveTicket>,
}

/// A machine with processes, each with a device.
#[derive(Clone, Debug)]
pub struct VirtualNode {
    rates: NodeRates,
    turns: PinningTurns,
    now_seconds: f64,
    flows: Vec<Flow>,
    processes: Vec<ProcessMemory>,
    n_tickets: u64,
}

impl VirtualNode {
    /// Makes a machine with this number of processes.
    #[must_use]
    pub fn new(rates: NodeRates, turns: PinningTurns, n_processes: usize) -> Self {
        let processes = vec![ProcessMemory::default(); n_processes];
        Self { rates, turns, now_seconds: 0.0, flows: Vec::new(), processes, n_tickets: 0 }
    }

    /// Returns the virtual time.
    #[must_use]
    pub fn now_seconds(&self) -> f64 {
        self.now_seconds
    }

    /// Starts work of a process.
    pub(crate) fn start(&mut self, process: usize, work: TapeWork) -> MoveTicket {
        let ticket = MoveTicket(self.n_tickets);
        self.n_tickets += 1;
        let (kind, bytes) = self.flow_of(process, work);
        self.flows.push(Flow { ticket, process, kind, left_bytes: bytes as f64 });
        ticket
    }

    /// Returns the ticket of work of a process that has ended, once each.
    pub(crate) fn poll(&mut self, process: usize) -> Option<MoveTicket> {
        self.processes[process].ended.pop_front()
    }

    /// Returns whether work of a process is under way.
    pub(crate) fn is_busy(&self, process: usize) -> bool {
        self.flows.iter().any(|flow| flow.process == process)
    }

    /// Lets time pass until work ends, or until `limit_seconds`. Returns whether either came.
    pub fn advance(&mut self, limit_seconds: Option<f64>) -> bool {
        let rates: Vec<f64> = self.flows.iter().map(|flow| self.rate(flow)).collect();
        let times = self.flows.iter().zip(&rates).filter(|(_, rate)| **rate > 0.0);
        let first = times.map(|(flow, rate)| flow.left_bytes / rate).fold(f64::INFINITY, f64::min);
        let limit = limit_seconds.map_or(f64::INFINITY, |limit| (limit - self.now_seconds).max(0.0));
        let seconds = first.min(limit);
        if !seconds.is_finite() {
            return false;
        }
        self.now_seconds =
            if limit <= first { limit_seconds.unwrap_or(self.now_seconds) } else { self.now_seconds + seconds };
        for (flow, rate) in self.flows.iter_mut().zip(&rates) {
            flow.left_bytes -= rate.min(f64::MAX) * seconds;
        }
        self.end_flows();
        true
    }

    fn end_flows(&mut self) {
        let is_done = |flow: &Flow| flow.left_bytes <= REST_BYTES;
        for flow in self.flows.iter().filter(|flow| is_done(flow)) {
            let memory = &mut self.processes[flow.process];
            match flow.kind {
                FlowKind::Touch { to } => memory.touched = memory.touched.max(to),
                FlowKind::Pin { to, .. } => {
                    memory.touched = memory.touched.max(to);
                    memory.pinned = memory.pinned.max(to);
                }
                _ => {}
            }
            memory.ended.push_back(flow.ticket);
        }
        self.flows.retain(|flow| !is_done(flow));
    }

    fn flow_of(&mut self, process: usize, work: TapeWork) -> (FlowKind, u64) {
        let rates = &self.rates;
        let memory = &mut self.processes[process];
        match work {
            TapeWork::Extend { to, .. } => {
                let bytes = to.saturating_sub(memory.mapped);
                memory.mapped = memory.mapped.max(to);
                (FlowKind::Map, bytes)
            }
            TapeWork::Touch { to, .. } => (FlowKind::Touch { to }, to.saturating_sub(memory.touched)),
            TapeWork::Pin { to, .. } => {
                let bytes = to.saturating_sub(memory.pinned);
                let touched = memory.touched.min(to).saturating_sub(memory.pinned);
                let untouched = bytes - touched;
                let seconds = touched as f64 / rates.pin + untouched as f64 / rates.pin_untouched;
                (FlowKind::Pin { to, seconds_per_byte: seconds / bytes.max(1) as f64 }, bytes)
            }
            TapeWork::Copy { source, target, bytes, .. } => {
                let kind = match deepest(source, target) {
                    (2.., _) => FlowKind::Spill,
                    (1, start) => {
                        let is_down = matches!(target, Location::Level { level: 1, .. });
                        FlowKind::HostCopy { is_down, pages: memory.shares(Extent { start, bytes }) }
                    }
                    _ => FlowKind::DeviceCopy,
                };
                (if bytes == 0 { FlowKind::Nothing } else { kind }, bytes)
            }
        }
    }

    /// Bytes per second of a flow among the others.
    fn rate(&self, flow: &Flow) -> f64 {
        let rates = &self.rates;
        let count = |uses: &dyn Fn(&Flow) -> bool| self.flows.iter().filter(|other| uses(other)).count() as f64;
        let is_pin = |other: &Flow| matches!(other.kind, FlowKind::Pin { .. });
        match flow.kind {
            FlowKind::Nothing => f64::INFINITY,
            FlowKind::Map => {
                let n_mapping = count(&|other| other.kind == FlowKind::Map);
                rates.map_process.min(rates.map_node / n_mapping)
            }
            FlowKind::Touch { .. } => {
                let copies = count(&|other| other.process == flow.process && self.disturbs(other));
                rates.touch * if copies > 0.0 { rates.together } else { 1.0 }
            }
            FlowKind::Pin { seconds_per_byte, .. } => match self.turns {
                PinningTurns::Parallel => 1.0 / (seconds_per_byte * count(&is_pin)),
                PinningTurns::Serial if self.is_pinning(flow.process) => 1.0 / seconds_per_byte,
                PinningTurns::Serial => 0.0,
            },
            _ if self.is_pinning(flow.process) => 0.0,
            FlowKind::DeviceCopy => rates.device_copy,
            FlowKind::HostCopy { is_down, pages } => self.host_rate(flow, is_down, pages),
            FlowKind::Spill => rates.spill / count(&|other| other.kind == FlowKind::Spill),
        }
    }

    /// Returns whether a registration of a process makes progress. Meanwhile its copies are stored.
    fn is_pinning(&self, process: usize) -> bool {
        let mut pins = self.flows.iter().filter(|flow| matches!(flow.kind, FlowKind::Pin { .. }));
        match self.turns {
            PinningTurns::Serial => pins.next().is_some_and(|flow| flow.process == process),
            PinningTurns::Parallel => pins.any(|flow| flow.process == process),
        }
    }

    /// Returns whether a flow competes with touching of its process.
    fn disturbs(&self, flow: &Flow) -> bool {
        matches!(flow.kind, FlowKind::HostCopy { pages, .. } if pages.registered < 1.0)
            && !self.is_pinning(flow.process)
    }

    fn host_rate(&self, flow: &Flow, is_down: bool, pages: PageShares) -> f64 {
        let rates = &self.rates;
        let link = |process: usize| process / rates.devices_per_link.max(1);
        let shares = self.flows.iter().filter(|other| {
            let is_same_way = matches!(other.kind, FlowKind::HostCopy { is_down: way, .. } if way == is_down);
            is_same_way && link(other.process) == link(flow.process) && !self.is_pinning(other.process)
        });
        let n = shares.count().max(1) as f64;
        let is_touching = self
            .flows
            .iter()
            .any(|other| other.process == flow.process && matches!(other.kind, FlowKind::Touch { .. }));
        let together = if is_touching { rates.together } else { 1.0 };
        let touched = rates.link_unregistered / n * together;
        let untouched = rates.untouched_copy.min(rates.link_unregistered / n) * together;
        let registered = rates.link_registered / n;
        // An encode and its copy follow each other.
        1.0 / (pages.registered / registered
            + pages.touched / touched
            + pages.untouched / untouched
            + 1.0 / rates.codec)
    }
}

impl ProcessMemory {
    /// Counts the pages of a copy, and those it writes as touched.
    fn shares(&mut self, extent: Extent) -> PageShares {
        let below = |mark: u64| mark.clamp(extent.start, extent.end()) - extent.start;
        let registered = below(self.pinned);
        let touched = below(self.touched.max(self.pinned)) - registered;
        let untouched = extent.bytes - registered - touched;
        self.touched = self.touched.max(extent.end());
        let share = |bytes: u64| bytes as f64 / extent.bytes.max(1) as f64;
        PageShares { registered: share(registered), touched: share(touched), untouched: share(untouched) }
    }
}

/// The lower of two ends of a copy: its level, and where it begins there.
fn deepest(source: Location, target: Location) -> (usize, u64) {
    let place = |location: Location| match location {
        Location::Program => (0, 0),
        Location::Level { level, start } => (level, start),
    };
    let source = place(source);
    let target = place(target);
    if source.0 > target.0 { source } else { target }
}
