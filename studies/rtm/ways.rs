//! The ways to come by the states of the forward pass.

use recoup::core::Bound;

use crate::Failed;
use crate::experiment::{Experiment, ObservedShot};
use crate::options::Options;
use crate::reverse::{ImagedShot, image_by_revolve, image_stored, store_forward};
use crate::states::{PassRange, PlainStates, TapeStates, TapeWay};

/// Bytes that a tape gets beyond those that its states have taken.
const SPARE_BYTES: u64 = 1 << 20;
/// Bytes of a place beyond those of the raw state, at most.
const HEADER_BYTES_MAX: u64 = 256;

/// Treatment of the states on a tape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Coding {
    /// They stay as they are.
    Raw,
    /// Each bit comes back.
    Lossless,
    /// One bound for all of them, relative to the range of the pass.
    OfPass(f64),
    /// A bound for each, relative to its own range.
    OfState(f64),
}

impl Coding {
    /// Name in tables.
    fn name(self) -> String {
        match self {
            Self::Raw => "raw".to_owned(),
            Self::Lossless => "lossless".to_owned(),
            Self::OfPass(bound) => format!("{bound:e} of pass"),
            Self::OfState(bound) => format!("{bound:e} of state"),
        }
    }

    fn bound(self, pass_range: f64) -> Option<Bound> {
        match self {
            Self::Raw => None,
            Self::Lossless => Some(Bound::Lossless),
            Self::OfPass(bound) => Some(Bound::Absolute(bound * pass_range)),
            Self::OfState(bound) => Some(Bound::Range(bound)),
        }
    }

    fn is_exact(self) -> bool {
        matches!(self, Self::Raw | Self::Lossless)
    }
}

/// A way, with the memory it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// A `Vec` for each state.
    Memory,
    /// A tape.
    Tape {
        coding: Coding,
        tape: TapeWay,
        /// Memory of the tape.
        host_bytes: u64,
        /// Raw bytes of all states over those of their places.
        ratio: f64,
    },
    /// States computed again, in the memory of a lossy tape.
    Revolve { bytes: u64, coding: Coding },
}

impl Way {
    /// Name in tables.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Memory => "all in memory".to_owned(),
            Self::Tape { coding, .. } => format!("tape, {}", coding.name()),
            Self::Revolve { coding, .. } => format!("Revolve, memory of {}", coding.name()),
        }
    }

    /// Returns whether its image has every bit of that of all in memory.
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Self::Memory | Self::Revolve { .. } => true,
            Self::Tape { coding, .. } => coding.is_exact(),
        }
    }

    /// Images a shot.
    ///
    /// # Errors
    /// When the states do not fit.
    pub(crate) fn image(&self, shot: &ObservedShot) -> Result<ImagedShot<f32>, Failed> {
        let ObservedShot { problem, observed } = shot;
        match *self {
            Self::Memory => image_stored(problem, observed, &mut PlainStates::default()),
            Self::Tape { tape, host_bytes, .. } => {
                let extents = problem.medium.grid.extents;
                let mut states = TapeStates::new(tape, extents, host_bytes, problem.field_bytes() as u64)?;
                image_stored(problem, observed, &mut states)
            }
            Self::Revolve { bytes, .. } => image_by_revolve(problem, observed, bytes),
        }
    }
}

/// All ways. A forward pass of each shot tells the range of its states, and one on each tape the
/// memory that it needs.
///
/// # Errors
/// When the machine does not have the memory.
pub(crate) fn all(experiment: &Experiment, options: &Options) -> Result<Vec<Way>, Failed> {
    let mut range = PassRange::default();
    for shot in &experiment.shots {
        store_forward(&shot.problem, &mut range)?;
    }
    let middle = options.bounds[options.bounds.len() / 2];
    let of_pass = options.bounds.iter().map(|&bound| Coding::OfPass(bound));
    let codings = [Coding::Raw, Coding::Lossless].into_iter().chain(of_pass).chain([Coding::OfState(middle)]);
    let mut ways = vec![Way::Memory];
    for coding in codings {
        let key_every = if coding.is_exact() { 1 } else { options.key_every };
        let tape = TapeWay { bound: coding.bound(range.width()), key_every, threads: options.codec_threads };
        let stored = stored_bytes(experiment, options, tape)?;
        let host_bytes = stored + SPARE_BYTES;
        let ratio = (experiment.n_states(options) * experiment.field_bytes()) as f64 / stored as f64;
        ways.push(Way::Tape { coding, tape, host_bytes, ratio });
        if coding == Coding::OfPass(middle) {
            let bytes = host_bytes + tape.working_states() * experiment.field_bytes();
            ways.push(Way::Revolve { bytes, coding });
        }
    }
    Ok(ways)
}

/// Most bytes that the states of a shot take on a tape.
fn stored_bytes(experiment: &Experiment, options: &Options, tape: TapeWay) -> Result<u64, Failed> {
    let state_bytes = experiment.field_bytes();
    let host_bytes = experiment.n_states(options) * (state_bytes + HEADER_BYTES_MAX) + SPARE_BYTES;
    let mut stored_max = 0;
    for shot in &experiment.shots {
        let mut states = TapeStates::new(tape, experiment.grid.extents, host_bytes, state_bytes)?;
        store_forward(&shot.problem, &mut states)?;
        stored_max = stored_max.max(states.stored_bytes);
    }
    Ok(stored_max)
}
