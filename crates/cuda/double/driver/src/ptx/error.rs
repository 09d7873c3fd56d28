//! Texts that are not interpreted.

/// A text that is no PTX, or PTX that is not interpreted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX, line {line}: {what}: {found}")]
pub struct ParseError {
    /// Line of the text, from 1.
    pub line: usize,
    /// The rule that does not hold.
    pub what: &'static str,
    /// The words in question.
    pub found: String,
}
