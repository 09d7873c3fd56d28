//! The kernels as the runtime compiler makes them, each once a process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use recoup_compress::cuda_source;
use recoup_device::{Compiled, compile};

/// The kernels of a lattice, a type and a cut, for an architecture. The compiler comes with what
/// `make test-all` installs; without it this fails.
pub(crate) fn compiled(lattice: &str, element: &str, cut: &str, architecture: &str) -> Arc<Compiled> {
    static KEPT: Mutex<BTreeMap<String, Arc<Compiled>>> = Mutex::new(BTreeMap::new());
    let label = format!("{lattice} of {element} by {cut} for {architecture}");
    let mut kept = KEPT.lock().unwrap();
    let make = || Arc::new(compile(&cuda_source(lattice, element, cut), "qb.cuh", architecture).unwrap());
    Arc::clone(kept.entry(label).or_insert_with(make))
}
