//! Results of the compiler that are kept: a kernel takes it a second, and each device opened needs
//! the same ones.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Compiled, Compiler, DeviceError};

/// Results kept; the oldest goes first.
const KEPT_MAX: usize = 64;

/// A result, and what it was made of.
struct KeptResult {
    compiler: Compiler,
    source: String,
    architecture: String,
    compiled: Arc<Compiled>,
}

static KEPT: Mutex<Vec<KeptResult>> = Mutex::new(Vec::new());

/// Compiles as [`Compiler::compile`], once for each source and architecture.
pub(crate) fn compile(
    compiler: &Compiler,
    source: &str,
    name: &str,
    architecture: &str,
) -> Result<Arc<Compiled>, DeviceError> {
    // Every change of the list is one step.
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |of: &&KeptResult| {
        of.source == source && of.architecture == architecture && of.compiler.library() == compiler.library()
    };
    if let Some(found) = kept().iter().find(is_same) {
        return Ok(Arc::clone(&found.compiled));
    }
    let compiled = Arc::new(compiler.compile(source, name, architecture)?);
    let [source, architecture] = [source, architecture].map(str::to_owned);
    let mut list = kept();
    if list.len() == KEPT_MAX {
        list.remove(0);
    }
    list.push(KeptResult { compiler: compiler.clone(), source, architecture, compiled: Arc::clone(&compiled) });
    Ok(compiled)
}
