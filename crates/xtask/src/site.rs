//! `cargo xtask site`: the pages of the project as a book, with the references of its interfaces,
//! for readers without a network.
//!
//! Promises: each text is one file of the repository, and relative links mean the same there and in
//! the book; nothing on a page is fetched from elsewhere. The list of pages is `docs/SUMMARY.md`.

mod c_reference;
mod html;
mod links;
mod references;
mod staging;
mod widths;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::succeed;

/// The folder in which the site is made, below the repository.
const PLACE: &str = "target/site";

/// The end of the help.
pub(crate) const HELP: &str = "Examples:
  make site                         what is missing, then both commands below
  cargo xtask site                  build target/site/book/index.html
  cargo xtask site --book           build the pages alone, without references
  cargo xtask site --check          check every link, and every page in three
                                    widths, light and dark

The pages are those of docs/SUMMARY.md. Widths need Chromium.";

/// Builds the site; `with_references` leaves the slow parts out where it is false.
pub(crate) fn build(root: &Path, with_references: bool) -> Result<()> {
    let place = root.join(PLACE);
    let source = place.join("src");
    clear(&source)?;
    staging::stage(root, &source)?;
    let mdbook = mdbook(root)?;
    clear(&place.join("book"))?;
    succeed(Command::new(mdbook).arg("build").arg(&place).env("MDBOOK_LOG", "warn"))?;
    if with_references {
        references::add(root, &place)?;
    }
    println!("{PLACE}/book/index.html");
    Ok(())
}

/// Checks the site that was built.
pub(crate) fn check(root: &Path) -> Result<()> {
    let book = root.join(PLACE).join("book");
    ensure!(book.join("index.html").is_file(), "{PLACE}/book is not there: run `cargo xtask site`");
    links::check(&book)?;
    widths::check(&book)
}

/// The program that makes the book: that of the bootstrap script, or the machine's own.
fn mdbook(root: &Path) -> Result<PathBuf> {
    let ours = root.join("target/tools/bin/mdbook");
    let program = if ours.is_file() { ours } else { PathBuf::from("mdbook") };
    let answer = Command::new(&program).arg("--version").output();
    answer.context("mdbook is missing: run `scripts/bootstrap.sh site`")?;
    Ok(program)
}

/// Makes a folder that holds nothing.
fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}
