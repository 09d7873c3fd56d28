//! Files that results are written to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Result;
use rustix::fs::{Access, access};

use crate::exit::Exit;

/// A file that is there can be written to, or one can be made. It is none that the command line
/// names a second time: what is read is not overwritten, whatever path leads to it.
///
/// # Errors
/// Exit 2, with the option that gave the name.
pub(crate) fn require_writable(path: &Path, option: &str) -> Result<()> {
    let refused = |what: String| Err(Exit::Usage.because(format!("{option} {}: {what}", path.display())));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let modes = if path.exists() { Access::WRITE_OK } else { Access::WRITE_OK | Access::EXEC_OK };
    match access(if path.exists() { path } else { folder }, modes) {
        _ if path.is_dir() => refused("a file expected, a directory found".to_owned()),
        _ if !folder.is_dir() => refused(format!("there is no directory {}; make it first", folder.display())),
        Err(error) if path.exists() => refused(format!("cannot be written to: {error}")),
        Err(error) => refused(format!("no file can be made in {}: {error}", folder.display())),
        Ok(()) if is_named_again(path, std::env::args_os().skip(1)) => {
            refused("the command line names this file twice, and it would be overwritten".to_owned())
        }
        Ok(()) => Ok(()),
    }
}

/// Returns whether more than one word of a command line leads to a file: the words themselves, and
/// those that are the value of an option in the same word.
fn is_named_again(path: &Path, words: impl Iterator<Item = OsString>) -> bool {
    let found = |path: &Path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let identity = |path: &Path| found(path).map(|found| (found.dev(), found.ino()));
    let Some(wanted) = identity(path) else { return false };
    let leads_there = |word: &OsString| {
        let bytes = word.as_bytes();
        let after_sign = bytes.iter().position(|byte| *byte == b'=').map(|at| &bytes[at + 1..]);
        let after_letter = bytes.strip_prefix(b"-").and_then(|rest| rest.get(1..));
        let names = [Some(bytes), after_sign, after_letter];
        names.into_iter().flatten().any(|name| identity(Path::new(OsStr::from_bytes(name))) == Some(wanted))
    };
    words.filter(leads_there).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `annotate src.c -o src.c` and `--solution` of the matrix wrote over what they had read.
    #[test]
    fn a_file_that_is_named_twice_is_found_by_any_path() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a.mtx"), "values").unwrap();
        std::fs::write(at("b.mtx"), "values").unwrap();
        std::os::unix::fs::symlink(at("a.mtx"), at("link")).unwrap();
        std::fs::hard_link(at("a.mtx"), at("hard")).unwrap();
        let is_named = |words: &[String]| is_named_again(&at("a.mtx"), words.iter().map(OsString::from));
        let text = |name: &str| at(name).display().to_string();
        for again in ["a.mtx", "./a.mtx", "link", "hard"] {
            let ways = [text(again), format!("--matrix={}", text(again)), format!("-m{}", text(again))];
            assert!(ways.iter().all(|way| is_named(&["--solution".to_owned(), text("a.mtx"), way.clone()])), "{again}");
        }
        assert!(!is_named(&["--matrix".to_owned(), text("b.mtx"), format!("--solution={}", text("a.mtx"))]));
        assert!(!is_named_again(&at("new.mtx"), [OsString::from(text("new.mtx"))].into_iter()));
    }
}
