//! Decisions on how versions are saved, as they are printed, drawn and kept.

use std::fmt;

use recoup::core::{Prediction, PredictionSource, Scheme};
use serde::{Deserialize, Serialize};

/// A line of the decision log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DecisionJson {
    pub(crate) iteration: u64,
    pub(crate) scheme: String,
    pub(crate) codec: String,
    pub(crate) bound: String,
    pub(crate) interval_seconds: Option<f64>,
    #[serde(flatten)]
    pub(crate) extra: ExtraJson,
    pub(crate) why: String,
}

/// N' as it was expected of versions when they were saved, means over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExtraJson {
    pub(crate) extra_iterations_predicted: Option<f64>,
    /// The most they could be, where that is known.
    pub(crate) extra_iterations_at_most: Option<f64>,
    /// Basis of the newest prediction.
    extra_iterations_source: Option<PredictionSource>,
}

impl ExtraJson {
    pub(crate) fn of(predictions: &[Prediction]) -> Self {
        let mean = |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        Self {
            extra_iterations_predicted: mean(predictions.iter().map(|of| of.iterations).collect()),
            extra_iterations_at_most: mean(predictions.iter().filter_map(|of| of.at_most).collect()),
            extra_iterations_source: predictions.last().map(|of| of.source),
        }
    }
}

impl fmt::Display for DecisionJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iteration {}: {}", self.iteration, self.why)
    }
}

impl DecisionJson {
    pub(crate) fn of(record: &recoup::pipeline::DecisionRecord) -> Self {
        let plan = &record.plan;
        let is_lossy = plan.scheme == Scheme::Lossy;
        Self {
            iteration: record.iteration,
            scheme: plan.scheme.to_string(),
            codec: plan.codec.to_string(),
            bound: if is_lossy { plan.rule.to_string() } else { "lossless".to_owned() },
            interval_seconds: Some(record.interval_seconds).filter(|s| s.is_finite()),
            extra: ExtraJson::of(record.extra_iterations.as_slice()),
            why: record.why.clone(),
        }
    }
}
