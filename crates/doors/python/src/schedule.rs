//! Schedules of adjoint computations: their actions, their work, and the choice between them.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use recoup::tape::schedule::{
    AccessCost, AdjointProblem, CodedState, LevelTally, ReverseNeeds, ScheduleAction, ScheduleActions, ScheduleCosts,
    ScheduleKind, ScheduleLevel, ScheduleSizes, ScheduleTally, StateStorage,
};

use crate::refused;

/// A schedule, by the names of the Python half.
#[derive(FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct NamedSchedule {
    kind: String,
    steps: u64,
    memory: u64,
    disk: u64,
    forward_seconds: f64,
    /// Seconds of a write and a read.
    memory_seconds: (f64, f64),
    disk_seconds: (f64, f64),
}

fn access(seconds: (f64, f64)) -> AccessCost {
    AccessCost { write_seconds: seconds.0, read_seconds: seconds.1 }
}

impl NamedSchedule {
    fn actions(&self) -> PyResult<ScheduleActions> {
        let kind: ScheduleKind = self.kind.parse().map_err(refused)?;
        let sizes = ScheduleSizes { steps: self.steps, memory_slots: self.memory, disk_slots: self.disk };
        let costs = ScheduleCosts {
            forward_seconds: self.forward_seconds,
            memory: access(self.memory_seconds),
            disk: access(self.disk_seconds),
        };
        kind.actions(sizes, &costs).map_err(refused)
    }
}

/// The actions of a schedule, one by one.
#[pyclass(name = "Actions", module = "recoup._native")]
pub(crate) struct PyActions(ScheduleActions);

/// An action as the Python half reads it: its name, its steps, and the place or the record.
type NamedAction = (&'static str, u64, u64, &'static str);

#[pymethods]
impl PyActions {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self) -> Option<NamedAction> {
        self.0.next().map(named)
    }
}

fn named(action: ScheduleAction) -> NamedAction {
    match action {
        ScheduleAction::Advance { from, to, record } => ("advance", from, to, if record { "record" } else { "" }),
        ScheduleAction::Write { step, level } => ("write", step, step, place(level)),
        ScheduleAction::Read { step, level } => ("read", step, step, place(level)),
        ScheduleAction::Take { step, level } => ("take", step, step, place(level)),
        ScheduleAction::Reverse { step } => ("reverse", step, step, ""),
        ScheduleAction::End => ("end", 0, 0, ""),
    }
}

fn place(level: ScheduleLevel) -> &'static str {
    match level {
        ScheduleLevel::Memory => "memory",
        ScheduleLevel::Disk => "disk",
    }
}

/// Plans a schedule.
#[pyfunction]
pub(crate) fn actions(py: Python<'_>, schedule: NamedSchedule) -> PyResult<PyActions> {
    py.detach(|| schedule.actions()).map(PyActions)
}

/// Counts the work of a schedule: forward steps, and writes, reads and most states of each level.
#[pyfunction]
pub(crate) fn tally(py: Python<'_>, schedule: NamedSchedule) -> PyResult<BTreeMap<&'static str, u64>> {
    let tally = py.detach(|| schedule.actions().map(ScheduleTally::of))?;
    let ScheduleTally { forward_steps, memory, disk } = tally;
    let LevelTally { writes, reads, states_max, .. } = memory;
    Ok(BTreeMap::from([
        ("forward_steps", forward_steps),
        ("memory_writes", writes),
        ("memory_reads", reads),
        ("memory_states_max", states_max),
        ("disk_writes", disk.writes),
        ("disk_reads", disk.reads),
        ("disk_states_max", disk.states_max),
    ]))
}

/// An adjoint program in numbers, by the names of the Python half.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct NamedProblem {
    steps: u64,
    forward_seconds: f64,
    reverse_seconds: f64,
    needs_step_data: bool,
    state_bytes: u64,
    memory_bytes: u64,
    disk_bytes: u64,
    memory_seconds: (f64, f64),
    disk_seconds: (f64, f64),
    /// Bytes of a coded state, and seconds to encode and to decode it.
    coded: Option<(u64, f64, f64)>,
}

impl NamedProblem {
    fn problem(&self) -> AdjointProblem {
        AdjointProblem {
            steps: self.steps,
            forward_seconds: self.forward_seconds,
            reverse_seconds: self.reverse_seconds,
            reverse_needs: if self.needs_step_data { ReverseNeeds::StepData } else { ReverseNeeds::State },
            state_bytes: self.state_bytes,
            coded: self.coded.map(|coded| CodedState {
                bytes: coded.0,
                encode_seconds: coded.1,
                decode_seconds: coded.2,
            }),
            memory: StateStorage { bytes: self.memory_bytes, access: access(self.memory_seconds) },
            disk: StateStorage { bytes: self.disk_bytes, access: access(self.disk_seconds) },
        }
    }
}

/// The cheapest schedule, with its predicted work and the reasons, by the names of the Python half.
#[derive(IntoPyObject)]
pub(crate) struct ChosenSchedule {
    schedule: NamedSchedule,
    coded: bool,
    seconds: f64,
    forward_steps: u64,
    recomputed_steps: u64,
    memory_bytes_max: u64,
    disk_bytes_max: u64,
    why: String,
    table: String,
}

/// Chooses the schedule with the least predicted seconds.
#[pyfunction]
pub(crate) fn choose(py: Python<'_>, problem: NamedProblem) -> PyResult<ChosenSchedule> {
    let problem = problem.problem();
    let choice = py.detach(|| problem.choose()).map_err(refused)?;
    let best = choice.best;
    let ScheduleCosts { forward_seconds, memory, disk } = problem.costs(best.form);
    let schedule = NamedSchedule {
        kind: best.kind.to_string(),
        steps: best.sizes.steps,
        memory: best.sizes.memory_slots,
        disk: best.sizes.disk_slots,
        forward_seconds,
        memory_seconds: (memory.write_seconds, memory.read_seconds),
        disk_seconds: (disk.write_seconds, disk.read_seconds),
    };
    Ok(ChosenSchedule {
        schedule,
        coded: best.form == recoup::tape::schedule::StateForm::Coded,
        seconds: best.seconds,
        forward_steps: best.forward_steps,
        recomputed_steps: best.recomputed_steps,
        memory_bytes_max: best.memory_bytes_max,
        disk_bytes_max: best.disk_bytes_max,
        why: choice.why(),
        table: choice.to_string(),
    })
}
