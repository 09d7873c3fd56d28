//! Refusals of a file, before its name is added.

/// The expected and the found, before the file's name is added.
pub(super) struct ImportRefusal {
    pub(super) expected: String,
    pub(super) found: String,
}

pub(super) fn refuse<T>(expected: impl Into<String>, found: impl Into<String>) -> Result<T, ImportRefusal> {
    Err(ImportRefusal { expected: expected.into(), found: found.into() })
}
