//! Reads pkg-config's file of a package: a process for each question took longer than all else
//! before the program starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variables and fields of a package's file, with the variables within them replaced.
#[derive(Debug)]
pub(super) struct PackageFile(BTreeMap<String, String>);

impl PackageFile {
    /// Reads a file, as `PETSc.pc`.
    pub(super) fn read(file: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(file).ok()?;
        let folder = file.parent()?.display().to_string();
        let mut package = Self(BTreeMap::from([("pcfiledir".to_owned(), folder)]));
        for line in text.lines() {
            // A variable has an equals sign after its name, a field a colon.
            if let Some((name, value)) = line.split_once(['=', ':']) {
                let value = package.expanded(value.trim());
                package.0.insert(name.trim().to_owned(), value);
            }
        }
        Some(package)
    }

    /// Returns the text of a variable or a field.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn expanded(&self, value: &str) -> String {
        let mut parts = value.split("${");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap_or((part, ""));
            whole += self.value(name).unwrap_or_default();
            whole += rest;
        }
        whole
    }
}

/// Returns the folders in which pkg-config looks for packages, in its order.
pub(super) fn folders() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = || {
        let said = Command::new("pkg-config").args(["--variable=pc_path", "pkg-config"]).output().ok()?;
        Some(String::from_utf8_lossy(&said.stdout).trim().into())
    };
    let lists = [variable("PKG_CONFIG_PATH"), variable("PKG_CONFIG_LIBDIR").or_else(own)];
    lists.iter().flatten().flat_map(std::env::split_paths).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_by_those_before_them_and_by_the_folder_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("PETSc.pc");
        let text = "# a comment\nprefix=${pcfiledir}/../..\nlibdir=${prefix}/lib\nempty=\n\nName: PETSc\n\
                    Cflags: -DX=1 -I${prefix}/include\nLibs: -L${libdir} -lpetsc_${unknown}real\n";
        std::fs::write(&file, text).unwrap();
        let package = PackageFile::read(&file).unwrap();
        let folder = dir.path().display();
        assert_eq!(package.value("libdir").unwrap(), format!("{folder}/../../lib"));
        assert_eq!(package.value("Cflags").unwrap(), format!("-DX=1 -I{folder}/../../include"));
        assert_eq!(package.value("Libs").unwrap(), format!("-L{folder}/../../lib -lpetsc_real"));
        assert_eq!((package.value("empty"), package.value("ccompiler")), (None, None));
        assert!(PackageFile::read(&dir.path().join("petsc.pc")).is_none());
    }
}
