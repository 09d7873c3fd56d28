//! The ways to come by the states of the forward pass.

use recoup::core::Bound;

use crate::Failed;
use crate::experiment::{Experiment, ObservedShot};
use crate::options::Options;
use crate::reverse::{ImagedShot, image_by_revolve, image_stored, store_forward};
use crate::states::{PlainStates, TapeStates, TapeWay};

/// Bytes that a tape gets beyond those that its states have taken.
const SPARE_BYTES: u64 = 1 << 20;

/// A way, with the memory it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// A `Vec` for each state.
    Memory,
    /// A tape.
    Tape {
        tape: TapeWay,
        /// Memory of the tape.
        host_bytes: u64,
        /// Raw bytes of all states over those of their places.
        ratio: f64,
    },
    /// States computed again, in the memory of the lossy tape with this bound.
    Revolve { bytes: u64, bound: f64 },
}

impl Way {
    /// Name in tables.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Memory => "all in memory".to_owned(),
            Self::Tape { tape: TapeWay { bound: None, .. }, .. } => "tape, raw".to_owned(),
            Self::Tape { tape: TapeWay { bound: Some(bound), .. }, .. } => format!("tape, {bound}"),
            Self::Revolve { bound, .. } => format!("Revolve, memory of range:{bound:e}"),
        }
    }

    /// Returns whether its image has every bit of that of all in memory.
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Self::Memory | Self::Revolve { .. } => true,
            Self::Tape { tape, .. } => matches!(tape.bound, None | Some(Bound::Lossless)),
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

/// All ways. A forward pass of each shot on each tape tells the memory that it needs.
///
/// # Errors
/// When the machine does not have the memory.
pub(crate) fn all(experiment: &Experiment, options: &Options) -> Result<Vec<Way>, Failed> {
    let lossy = |&bound: &f64| Some(Bound::Range(bound));
    let bounds = [None, Some(Bound::Lossless)].into_iter().chain(options.bounds.iter().map(lossy));
    let tapes = bounds.map(|bound| {
        let key_every = if matches!(bound, Some(Bound::Range(_))) { options.key_every } else { 1 };
        sized(experiment, options, TapeWay { bound, key_every, threads: options.codec_threads })
    });
    let tapes: Vec<Way> = tapes.collect::<Result<_, _>>()?;
    let revolve = tapes.get(2 + options.bounds.len() / 2).zip(options.bounds.get(options.bounds.len() / 2));
    let revolve =
        revolve.map(|(tape, &bound)| Way::Revolve { bytes: bytes_max(tape, experiment.field_bytes()), bound });
    Ok(std::iter::once(Way::Memory).chain(tapes).chain(revolve).collect())
}

/// Memory of states on a tape, with those on their way.
fn bytes_max(way: &Way, state_bytes: u64) -> u64 {
    match way {
        Way::Tape { tape, host_bytes, .. } => host_bytes + tape.working_states() * state_bytes,
        Way::Memory | Way::Revolve { .. } => 0,
    }
}

fn sized(experiment: &Experiment, options: &Options, tape: TapeWay) -> Result<Way, Failed> {
    let state_bytes = experiment.field_bytes();
    let n_states = experiment.n_states(options);
    let raw_bytes = n_states * state_bytes;
    let mut stored_max = 0;
    for shot in &experiment.shots {
        // Raw, and a header for each state.
        let host_bytes = raw_bytes + n_states * 256 + SPARE_BYTES;
        let mut states = TapeStates::new(tape, experiment.grid.extents, host_bytes, state_bytes)?;
        store_forward(&shot.problem, &mut states)?;
        stored_max = stored_max.max(states.stored_bytes);
    }
    Ok(Way::Tape { tape, host_bytes: stored_max + SPARE_BYTES, ratio: raw_bytes as f64 / stored_max as f64 })
}
