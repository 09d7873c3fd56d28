//! One row of the report: a part of the installation.

use serde::Serialize;

/// The state of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PartState {
    /// Usable.
    Yes,
    /// Usable within limits.
    Low,
    /// Not there.
    No,
}

/// One part of the installation.
#[derive(Debug, Serialize)]
pub(super) struct PartCheck {
    pub(super) name: &'static str,
    pub(super) state: PartState,
    /// The part that was found, or is missing.
    pub(super) found: String,
    /// The price of what is missing, and the way to have it; null where nothing is.
    pub(super) costs: Option<&'static str>,
    pub(super) remedy: Option<String>,
}

impl PartCheck {
    pub(super) fn yes(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: PartState::Yes, found: found.into(), costs: None, remedy: None }
    }

    /// The same part, which lacks something.
    pub(super) fn lacking(self, state: PartState, costs: &'static str, remedy: impl Into<String>) -> Self {
        Self { state, costs: Some(costs), remedy: Some(remedy.into()), ..self }
    }
}
