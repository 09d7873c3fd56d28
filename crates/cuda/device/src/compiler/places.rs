//! Places where the runtime compiler may be.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable whose folder is searched before any other.
pub(crate) const NAMED: &str = "RECOUP_NVRTC";

/// A library that may be the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NvrtcPlace {
    /// Path of the library, or its name, for the loader to find.
    pub(crate) library: PathBuf,
    /// Major version of the library, by its name.
    pub(crate) major: u32,
    /// Libraries that it asks for by name, in an order in which they load.
    pub(crate) parts: Vec<PathBuf>,
}

/// Returns what may be the compiler: the folder that [`NAMED`] names comes first, then newer before
/// older. A library that the loader would search for is named once for each of `majors`.
pub(crate) fn candidates(variable: impl Fn(&str) -> Option<OsString>, majors: &[u32]) -> Vec<NvrtcPlace> {
    let of = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut named: Vec<NvrtcPlace> = of(NAMED).iter().flat_map(|folder| in_folder(folder)).collect();
    let mut others: Vec<NvrtcPlace> = of("VIRTUAL_ENV").iter().flat_map(|root| wheels(root)).collect();
    others.extend(of("CUDA_HOME").iter().flat_map(|root| in_folder(&root.join("lib64"))));
    others.extend(majors.iter().map(|major| by_name(*major)));
    for found in [&mut named, &mut others] {
        found.sort_by_key(|candidate| std::cmp::Reverse(candidate.major));
    }
    named.extend(others);
    named
}

/// The compilers that pip has put into a Python environment.
fn wheels(root: &Path) -> Vec<NvrtcPlace> {
    let pythons = std::fs::read_dir(root.join("lib")).into_iter().flatten().flatten();
    let packages = pythons.map(|entry| entry.path().join("site-packages/nvidia"));
    // CUDA 13, and CUDA 12.
    let folders = packages.flat_map(|nvidia| [nvidia.join("cu13/lib"), nvidia.join("cuda_nvrtc/lib")]);
    folders.flat_map(|folder| in_folder(&folder)).collect()
}

fn by_name(major: u32) -> NvrtcPlace {
    NvrtcPlace { library: PathBuf::from(format!("libnvrtc.so.{major}")), major, parts: Vec::new() }
}

/// The compilers in a folder; none where it cannot be read.
fn in_folder(folder: &Path) -> Vec<NvrtcPlace> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let majors = names.iter().filter_map(|name| {
        let version = name.strip_prefix("libnvrtc.so.")?;
        version.parse().ok().map(|major: u32| (name, major))
    });
    let parts = |major: u32| {
        let prefix = format!("libnvrtc-builtins.so.{major}.");
        names.iter().filter(|name| name.starts_with(&prefix)).map(|name| folder.join(name)).collect()
    };
    majors.map(|(name, major)| NvrtcPlace { library: folder.join(name), major, parts: parts(major) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with empty files of these names.
    fn folder(root: &Path, path: &str, names: &[&str]) -> PathBuf {
        let folder = root.join(path);
        std::fs::create_dir_all(&folder).unwrap();
        names.iter().for_each(|name| std::fs::write(folder.join(name), "").unwrap());
        folder
    }

    #[test]
    fn the_named_folder_comes_first_and_newer_before_older() {
        let root = tempfile::tempdir().unwrap();
        let named = folder(root.path(), "named", &["libnvrtc.so.12", "libnvrtc-builtins.so.12.8", "libnvrtc.so"]);
        let names = ["libnvrtc.so.13", "libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0"];
        let wheel = folder(root.path(), "venv/lib/python3.11/site-packages/nvidia/cu13/lib", &names);
        let older = "venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib";
        let older = folder(root.path(), older, &["libnvrtc.so.12"]);
        let variable = |name: &str| match name {
            NAMED => Some(named.clone().into_os_string()),
            "VIRTUAL_ENV" => Some(root.path().join("venv").into_os_string()),
            _ => None,
        };
        let found = candidates(variable, &[13]);
        let libraries: Vec<_> = found.iter().map(|found| (found.library.clone(), found.major)).collect();
        let system = PathBuf::from("libnvrtc.so.13");
        let expected = [
            (named.join("libnvrtc.so.12"), 12),
            (wheel.join("libnvrtc.so.13"), 13),
            (system, 13),
            (older.join("libnvrtc.so.12"), 12),
        ];
        assert_eq!(libraries, expected);
        assert_eq!(found[0].parts, [named.join("libnvrtc-builtins.so.12.8")]);
        assert_eq!(found[1].parts, [wheel.join("libnvrtc-builtins.so.13.0")]);
    }

    #[test]
    fn variables_that_are_empty_or_name_nothing_add_nothing() {
        assert_eq!(candidates(|_| Some(OsString::new()), &[]), []);
        assert_eq!(candidates(|_| Some(OsString::from("/no/such/folder")), &[]), []);
        let names: Vec<_> = candidates(|_| None, &[12, 13]).into_iter().map(|found| found.library).collect();
        assert_eq!(names, [PathBuf::from("libnvrtc.so.13"), PathBuf::from("libnvrtc.so.12")]);
    }
}
