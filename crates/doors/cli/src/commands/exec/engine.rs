//! The engine for each PETSc of this machine, and the library that is preloaded.
//!
//! An engine is compiled with the headers and the compiler of its PETSc, which Debian, conda and
//! PETSc's own installation bring along.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::tell::tell;

use super::cache::{Recipe, SourceText, compiled};
use super::package::{self, PackageFile};

macro_rules! header {
    ($name:literal) => {
        SourceText { name: $name, text: include_str!(concat!("../../../../capi/include/", $name)) }
    };
}

const ENGINE: [SourceText; 15] = [
    SourceText { name: "engine.c", text: include_str!("../../../exec/engine.c") },
    SourceText { name: "engine_append.h", text: include_str!("../../../exec/engine_append.h") },
    SourceText { name: "engine_log.h", text: include_str!("../../../exec/engine_log.h") },
    SourceText { name: "engine_numbers.h", text: include_str!("../../../exec/engine_numbers.h") },
    SourceText { name: "engine_rows.h", text: include_str!("../../../exec/engine_rows.h") },
    SourceText { name: "engine_ts.h", text: include_str!("../../../exec/engine_ts.h") },
    SourceText { name: "engine_versions.h", text: include_str!("../../../exec/engine_versions.h") },
    header!("recoup.h"),
    header!("recoup_mpi.h"),
    header!("recoup_petsc.h"),
    header!("recoup_petsc_run.h"),
    header!("recoup_petsc_ksp.h"),
    header!("recoup_petsc_systems.h"),
    header!("recoup_petsc_snes.h"),
    header!("recoup_petsc_ts.h"),
];
const SHIM: [SourceText; 1] = [SourceText { name: "shim.c", text: include_str!("../../../exec/shim.c") }];

/// Names of librecoup: as it is installed, and as cargo builds it.
const LIBRARY: [&str; 2] = [concat!("librecoup.so.", env!("CARGO_PKG_VERSION_MAJOR")), "librecoup_c.so"];

/// The library that is preloaded, and the engine of each libpetsc.
#[derive(Debug)]
pub(super) struct Engines {
    pub(super) shim: PathBuf,
    engines: BTreeMap<PathBuf, PathBuf>,
}

impl Engines {
    /// Returns the list as the preloaded library reads it.
    pub(super) fn list(&self) -> OsString {
        let mut list = OsString::new();
        for (library, engine) in &self.engines {
            for part in [library.as_os_str(), "=".as_ref(), engine.as_os_str(), ":".as_ref()] {
                list.push(part);
            }
        }
        list
    }
}

/// Finds or compiles all that is needed. An engine that cannot be made is told.
///
/// # Errors
/// When none can be made.
pub(super) fn prepare() -> Result<Engines> {
    let librecoup = library()?;
    let flags = ["-ldl".to_owned(), "-lpthread".to_owned()];
    let shim = compiled(&Recipe {
        compiler: "cc",
        flags: &flags,
        sources: &SHIM,
        libraries: &[],
        neighbour: None,
        target: "librecoup_plugin.so",
    })?;
    let mut engines = BTreeMap::new();
    let mut refused = None;
    for petsc in petscs() {
        match petsc.engine(&librecoup) {
            Ok(engine) => drop(engines.insert(petsc.library, engine)),
            Err(error) => refused = Some(error.context(format!("no engine for {}", petsc.library.display()))),
        }
    }
    match refused {
        Some(error) if engines.is_empty() => return Err(error),
        Some(error) => tell(format_args!("recoup: {error:#}")),
        None if engines.is_empty() => bail!("pkg-config and PETSC_DIR name no PETSc with headers"),
        None => {}
    }
    Ok(Engines { shim, engines })
}

/// Finds librecoup next to this program or in the `lib` next to its folder.
fn library() -> Result<PathBuf> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).context("where this program is")?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let folders = [folder.to_owned(), folder.join("../lib"), folder.join("deps")];
    let found = folders.iter().flat_map(|folder| LIBRARY.map(|name| folder.join(name))).find(|file| file.exists());
    let found = found.with_context(|| format!("there is no {} next to {}", LIBRARY[0], program.display()))?;
    found.canonicalize().with_context(|| found.display().to_string())
}

/// A PETSc of this machine.
#[derive(Debug)]
struct Petsc {
    /// The file of its library, without links.
    library: PathBuf,
    compiler: String,
    flags: Vec<String>,
}

impl Petsc {
    /// Reads the file that pkg-config has of a PETSc, which names all that an engine needs.
    fn of(file: &Path) -> Option<Self> {
        let package = PackageFile::read(file)?;
        let mut names = package.value("Libs")?.split_whitespace().filter_map(|word| word.strip_prefix("-l"));
        let name = format!("lib{}.so", names.find(|name| name.starts_with("petsc"))?);
        let words = |name| package.value(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        Some(Self {
            library: shared_library(Path::new(package.value("libdir")?), &name)?,
            compiler: package.value("ccompiler").unwrap_or("mpicc").to_owned(),
            flags: words("Cflags"),
        })
    }

    fn engine(&self, librecoup: &Path) -> Result<PathBuf> {
        compiled(&Recipe {
            compiler: &self.compiler,
            flags: &self.flags,
            sources: &ENGINE,
            libraries: std::slice::from_ref(&self.library),
            neighbour: Some((LIBRARY[0], librecoup)),
            target: "engine.so",
        })
    }
}

/// Returns the file that programs load for a library: the one its link leads to. A wheel has no
/// links, and a script of the linker that names the file.
fn shared_library(folder: &Path, name: &str) -> Option<PathBuf> {
    const SCRIPT_BYTES_MAX: u64 = 4096;
    let linked = folder.join(name).canonicalize().ok()?;
    if linked.metadata().ok()?.len() > SCRIPT_BYTES_MAX {
        return Some(linked);
    }
    let script = std::fs::read_to_string(&linked).ok()?;
    let file = script.split(|c: char| c.is_whitespace() || "()".contains(c)).find(|word| word.contains(name))?;
    folder.join(file).canonicalize().ok()
}

/// Returns the libraries of the PETScs for which an engine can be made.
pub(crate) fn petsc_libraries() -> Vec<PathBuf> {
    petscs().into_iter().map(|petsc| petsc.library).collect()
}

/// Returns the PETScs that can be found, each once: those that pkg-config, `PETSC_DIR` and Debian's
/// folder name.
fn petscs() -> Vec<Petsc> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let builds = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|build| build.path());
    let given = variable("PETSC_DIR").map(|dir| dir.join(variable("PETSC_ARCH").unwrap_or_default()));
    let installed = given.into_iter().chain(builds("/usr/lib/petscdir".into()).flat_map(builds));
    let folders = package::folders().into_iter().chain(installed.map(|build| build.join("lib/pkgconfig")));
    let mut found: Vec<Petsc> = Vec::new();
    for folder in folders {
        // Of a package with two names the first counts.
        let petsc = ["PETSc.pc", "petsc.pc"].iter().find_map(|name| Petsc::of(&folder.join(name)));
        found.extend(petsc.filter(|petsc| found.iter().all(|other| other.library != petsc.library)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine was listed for the script, and no call was caught.
    #[test]
    fn library_of_a_wheel_is_the_file_that_its_linker_script_names() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let file = folder.join("libpetsc.so.3.26");
        std::fs::write(&file, vec![0; 8192]).unwrap();
        std::fs::write(folder.join("libpetsc.so"), "INPUT(libpetsc.so.3.26)\n").unwrap();
        assert_eq!(shared_library(&folder, "libpetsc.so"), Some(file.clone()));
        std::os::unix::fs::symlink(&file, folder.join("libpetsc_real.so")).unwrap();
        assert_eq!(shared_library(&folder, "libpetsc_real.so"), Some(file));
        assert_eq!(shared_library(&folder, "libpetsc_complex.so"), None);
    }
}
