//! Modules that were parsed: tests load the same ones hundreds of times.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ptx::{Module, ParseError};

/// Modules kept; the oldest goes first.
const KEPT_MAX: usize = 8;

/// A module, and its text.
struct ParsedModule {
    text: String,
    code: Arc<Module>,
}

static PARSED: Mutex<VecDeque<ParsedModule>> = Mutex::new(VecDeque::new());

/// Parses a module, or finds it among those parsed before.
pub(super) fn parse(text: String) -> Result<Arc<Module>, ParseError> {
    // Every change of the list is one step.
    let mut kept = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.iter().find(|parsed| parsed.text == text) {
        return Ok(Arc::clone(&found.code));
    }
    let code = Arc::new(Module::parse(&text)?);
    if kept.len() == KEPT_MAX {
        kept.pop_front();
    }
    kept.push_back(ParsedModule { text, code: Arc::clone(&code) });
    Ok(code)
}
