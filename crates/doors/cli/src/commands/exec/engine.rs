//! The engine for each PETSc of this machine, and the library that is preloaded.
//!
//! An engine is compiled with the headers and the compiler of its PETSc, which Debian, conda and
//! PETSc's own installation bring along.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::tell::tell;

use super::cache::{Recipe, SourceText, compiled};

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

/// Returns what pkg-config says of a package, by its name or file.
fn pkg_config(option: &str, package: &str) -> Option<String> {
    let said = Command::new("pkg-config").args([option, package]).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// Returns the file of the library of a package, without links.
fn library_of(package: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(pkg_config("--variable=libdir", package)?);
    let names = pkg_config("--libs-only-l", package)?;
    let mut names = names.split_whitespace().filter_map(|word| word.strip_prefix("-l"));
    shared_library(&folder, &format!("lib{}.so", names.find(|name| name.starts_with("petsc"))?))
}

impl Petsc {
    fn of(package: &str, library: PathBuf) -> Option<Self> {
        let compiler = pkg_config("--variable=ccompiler", package).filter(|name| !name.is_empty());
        let compiler = compiler.unwrap_or_else(|| "mpicc".to_owned());
        let flags = pkg_config("--cflags", package)?.split_whitespace().map(str::to_owned).collect();
        Some(Self { library, compiler, flags })
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

/// Returns the PETScs that can be found, each once. Of a package with two names the first counts.
fn petscs() -> Vec<Petsc> {
    let mut packages = vec![["PETSc", "petsc"].map(str::to_owned)];
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    if let Some(dir) = variable("PETSC_DIR") {
        packages.push(packages_in(&dir.join(variable("PETSC_ARCH").unwrap_or_default())));
    }
    let versions = std::fs::read_dir("/usr/lib/petscdir").into_iter().flatten().flatten();
    for version in versions {
        let builds = std::fs::read_dir(version.path()).into_iter().flatten().flatten();
        let builds = builds.map(|build| packages_in(&build.path()));
        packages.extend(builds.filter(|names| names.iter().any(|file| Path::new(file).exists())));
    }
    let mut found: Vec<Petsc> = Vec::new();
    for names in packages {
        let Some((package, library)) = names.iter().find_map(|name| Some((name, library_of(name)?))) else { continue };
        if !found.iter().any(|other| other.library == library) {
            found.extend(Petsc::of(package, library));
        }
    }
    found
}

/// The files of pkg-config of one installation.
fn packages_in(build: &Path) -> [String; 2] {
    ["PETSc.pc", "petsc.pc"].map(|name| build.join("lib/pkgconfig").join(name).display().to_string())
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
