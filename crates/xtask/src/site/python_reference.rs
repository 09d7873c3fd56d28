//! The reference of the Python package: pdoc, put next to the book.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::site::files::{clear, copy, copy_all};
use crate::succeed;

/// The modules with public names. Those that begin with an underscore are shown where they are
/// re-exported.
const MODULES: [&str; 3] = ["recoup", "recoup.scipy", "recoup.pyadjoint"];

/// The folder with the style of its pages.
const LOOKS: &str = "docs/book/pdoc";

/// Lets pdoc look at the package in `place`, with the native module that cargo has built, and
/// write its pages to `target`.
pub(super) fn make(root: &Path, place: &Path, target: &Path) -> Result<()> {
    let package = place.join("python/recoup");
    clear(&package)?;
    copy_all(&root.join("crates/python/python/recoup"), &package)?;
    copy(&root.join("target/debug/librecoup_native.so"), &package.join("_native.abi3.so"))?;
    let mut command = Command::new(root.join("target/tools/python/bin/python"));
    command.args(["-m", "pdoc", "--docformat", "restructuredtext", "-t"]).arg(root.join(LOOKS));
    command.arg("-o").arg(target).args(MODULES);
    succeed(command.env("PYTHONPATH", place.join("python")))
}
