//! All kernels compiled ahead, for machines without the runtime compiler.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::compress::cuda_sources;
use recoup::device::{KernelFolder, ZONE_HASH_SOURCE, compile};
use recoup::solvers::device::KERNEL_SOURCE;

use crate::triad::TRIAD_SOURCE;

/// Compiles every kernel of the product, that of the triad, and those in the files `more`.
pub(crate) fn compile_all(out: &Path, architecture: &str, more: &[PathBuf]) -> Result<()> {
    let mut sources = cuda_sources();
    sources.extend([TRIAD_SOURCE, KERNEL_SOURCE, ZONE_HASH_SOURCE].map(str::to_owned));
    for path in more {
        sources.push(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    let folder = KernelFolder::new(out);
    for (number, source) in sources.iter().enumerate() {
        let compiled = compile(source, &format!("source {number}"), architecture)?;
        folder.keep(source, architecture, &compiled).with_context(|| format!("cannot write {}", out.display()))?;
    }
    println!("{} sources compiled for {architecture} into {}", sources.len(), out.display());
    Ok(())
}
