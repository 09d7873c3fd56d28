//! Measured numbers of an adjoint program and of the machine it runs on.

use super::action::ScheduleError;
use super::costs::{AccessCost, ScheduleCosts};

/// An adjoint program, in numbers that were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjointProblem {
    /// Forward steps.
    pub steps: u64,
    /// Seconds of a forward step.
    pub forward_seconds: f64,
    /// Seconds of a reverse step.
    pub reverse_seconds: f64,
    /// Data that the reverse of a step takes.
    pub reverse_needs: ReverseNeeds,
    /// Raw bytes of a state.
    pub state_bytes: u64,
    /// A state after a codec, if there is one.
    pub coded: Option<CodedState>,
    /// Memory for states.
    pub memory: StateStorage,
    /// Disk for states; 0 bytes where there is none.
    pub disk: StateStorage,
}

/// Data that the reverse of a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReverseNeeds {
    /// The state that the step begins with. Once it is there, no forward step is taken for it.
    State,
    /// Data that only the forward step makes, as large as a state. The step is taken for it.
    StepData,
}

/// A state after a codec.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodedState {
    /// Bytes.
    pub bytes: u64,
    /// Seconds to encode it.
    pub encode_seconds: f64,
    /// Seconds to decode it.
    pub decode_seconds: f64,
}

/// A place for states.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateStorage {
    /// Bytes that states may take.
    pub bytes: u64,
    /// Seconds of one raw state. A coded one takes its share of them.
    pub access: AccessCost,
}

/// Form in which states are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateForm {
    /// Their own bytes.
    Raw,
    /// Encoded.
    Coded,
}

impl std::fmt::Display for StateForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Raw => "raw",
            Self::Coded => "coded",
        })
    }
}

impl AdjointProblem {
    /// Returns the bytes of a state in a form, if there is a codec for it.
    pub(super) fn bytes(&self, form: StateForm) -> Option<u64> {
        match form {
            StateForm::Raw => Some(self.state_bytes),
            StateForm::Coded => self.coded.map(|coded| coded.bytes),
        }
    }

    /// Returns the costs of a forward step and of states in a form.
    #[must_use]
    pub fn costs(&self, form: StateForm) -> ScheduleCosts {
        let coded = self.coded.filter(|_| form == StateForm::Coded);
        let of = |storage: StateStorage| match coded {
            None => storage.access,
            Some(coded) => {
                let share = coded.bytes as f64 / self.state_bytes as f64;
                AccessCost {
                    write_seconds: coded.encode_seconds + share * storage.access.write_seconds,
                    read_seconds: coded.decode_seconds + share * storage.access.read_seconds,
                }
            }
        };
        ScheduleCosts { forward_seconds: self.forward_seconds, memory: of(self.memory), disk: of(self.disk) }
    }

    /// Returns the forward steps that no schedule saves.
    pub(super) fn least_steps(&self) -> u64 {
        match self.reverse_needs {
            ReverseNeeds::State => self.steps - 1,
            ReverseNeeds::StepData => self.steps,
        }
    }

    /// Refuses numbers that no program has.
    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        if self.steps == 0 {
            return Err(ScheduleError::NoSteps);
        }
        if self.state_bytes == 0 || self.coded.is_some_and(|coded| coded.bytes == 0) {
            return Err(ScheduleError::NoBytes);
        }
        self.costs(StateForm::Raw).check()?;
        self.costs(StateForm::Coded).check()?;
        let coded = self.coded.map_or([0.0; 2], |coded| [coded.encode_seconds, coded.decode_seconds]);
        let others = [
            ("the cost of a reverse step", self.reverse_seconds),
            ("the cost of encoding a state", coded[0]),
            ("the cost of decoding a state", coded[1]),
        ];
        match others.into_iter().find(|cost| !(cost.1.is_finite() && cost.1 >= 0.0)) {
            Some(cost) => Err(ScheduleError::Cost { name: cost.0, value: cost.1 }),
            None => Ok(()),
        }
    }
}
