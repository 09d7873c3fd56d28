//! Kernels compiled ahead, for machines that have a driver and no compiler.
//!
//! They are files of PTX in a folder. The name of a file is a hash of its source and the
//! architecture, as in `00a1b2c3d4e5f607.compute_80.ptx`. The driver of that architecture or a
//! newer one makes code of it. The folder is the one `RECOUP_KERNELS` names: while the variable is
//! set, kernels come from there alone.

use std::path::{Path, PathBuf};

use crate::architecture::Capability;
use crate::compiler::OPTIONS;
use crate::{Compiled, DeviceError};

/// The variable that names the folder.
const NAMED: &str = "RECOUP_KERNELS";

/// A folder of compiled kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFolder {
    path: PathBuf,
}

impl KernelFolder {
    /// The folder at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The folder that `RECOUP_KERNELS` names; `None` if it names none.
    pub(crate) fn named() -> Option<Self> {
        let named = std::env::var_os(NAMED).filter(|value| !value.is_empty());
        named.map(|path| Self { path: PathBuf::from(path) })
    }

    /// Keeps the PTX of `source`, compiled for a virtual architecture such as `compute_80`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(&self, source: &str, architecture: &str, compiled: &Compiled) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.path)?;
        std::fs::write(self.path.join(format!("{}.{architecture}.ptx", name_of(source))), &compiled.ptx)
    }

    /// Returns what is kept of `source` for the highest architecture that a device of this
    /// capability runs. `name` is for the error.
    pub(crate) fn find(&self, source: &str, name: &str, capability: Capability) -> Result<Compiled, DeviceError> {
        let prefix = format!("{}.compute_", name_of(source));
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let architectures = entries.filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            file.strip_prefix(&prefix)?.strip_suffix(".ptx")?.parse::<u32>().ok()
        });
        let fitting = architectures.filter(|number| *number <= capability.number()).max();
        let ptx = fitting.map(|number| std::fs::read_to_string(self.path.join(format!("{prefix}{number}.ptx"))));
        match ptx {
            Some(Ok(ptx)) => Ok(Compiled { binary: None, ptx, log: String::new() }),
            Some(Err(error)) => Err(self.missing(&error.to_string())),
            None => Err(self.missing(&format!("no {name} of this release for capability {capability} or below"))),
        }
    }

    fn missing(&self, what: &str) -> DeviceError {
        let why = format!("{NAMED}={}: {what}; unset {NAMED} to compile kernels here", self.path.display());
        DeviceError::NotAvailable { what: "compiled kernel", why }
    }
}

/// Names a source by a hash of all that its PTX depends on: 64 bits of FNV-1a.
fn name_of(source: &str) -> String {
    let text = OPTIONS.into_iter().chain([source]).flat_map(str::bytes);
    let hash =
        text.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: &str) -> Compiled {
        Compiled { binary: None, ptx: text.to_owned(), log: String::new() }
    }

    #[test]
    fn a_device_gets_the_ptx_of_the_highest_architecture_that_it_runs() {
        let root = tempfile::tempdir().unwrap();
        let folder = KernelFolder::new(&root.path().join("kernels"));
        for architecture in ["compute_80", "compute_90", "compute_120"] {
            folder.keep("source", architecture, &compiled(architecture)).unwrap();
        }
        let find = |major, minor| folder.find("source", "x.cu", Capability { major, minor });
        for (major, minor, expected) in [(8, 0, "compute_80"), (8, 9, "compute_80"), (9, 0, "compute_90")] {
            assert_eq!(find(major, minor), Ok(compiled(expected)));
        }
        assert_eq!(find(13, 0), Ok(compiled("compute_120")));
        let error = find(7, 5).unwrap_err().to_string();
        assert!(error.contains("no x.cu of this release for capability 7.5") && error.contains(NAMED), "{error}");
    }

    #[test]
    fn a_source_that_differs_by_a_letter_is_not_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = KernelFolder::new(root.path());
        folder.keep("source", "compute_80", &compiled("")).unwrap();
        assert!(folder.find("sourcf", "x.cu", Capability { major: 9, minor: 0 }).is_err());
    }
}
