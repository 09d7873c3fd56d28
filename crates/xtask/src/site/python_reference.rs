//! The reference of the Python package: pdoc, put next to the book.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::files::{clear, copy, copy_all, files_below};
use crate::succeed;

/// The modules with public names. Those that begin with an underscore are shown where they are
/// re-exported.
const MODULES: [&str; 3] = ["recoup", "recoup.scipy", "recoup.pyadjoint"];

/// The folder with the style of its pages.
const LOOKS: &str = "docs/book/pdoc";

/// The mark of a block of code in docstrings, which pdoc shows as words.
const LITERAL: &str = "<p>::</p>\n";

/// Lets pdoc look at the package in `place`, with the native module that cargo has built, and
/// write its pages to `target`.
pub(super) fn make(root: &Path, place: &Path, target: &Path) -> Result<()> {
    let package = place.join("python/recoup");
    clear(&package)?;
    copy_all(&root.join("crates/doors/python/python/recoup"), &package)?;
    copy(&root.join("target/debug/librecoup_native.so"), &package.join("_native.abi3.so"))?;
    let mut command = Command::new(root.join("target/tools/python/bin/python"));
    command.args(["-m", "pdoc", "--docformat", "restructuredtext", "-t"]).arg(root.join(LOOKS));
    command.arg("-o").arg(target).args(MODULES);
    succeed(command.env("PYTHONPATH", place.join("python")))?;
    files_below(target)?.iter().filter(|path| path.extension().is_some_and(|it| it == "html")).try_for_each(|page| {
        fs::write(page, fs::read_to_string(page)?.replace(LITERAL, "")).context("cannot write a page")
    })
}
