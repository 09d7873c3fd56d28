//! `cargo xtask site`: the pages of the project as a book, with the references of its interfaces,
//! for readers without a network.
//!
//! Promises: each text is one file of the repository, and relative links mean the same there and in
//! the book; nothing on a page is fetched from elsewhere. The list of pages is `docs/SUMMARY.md`.

mod browser;
mod c_reference;
mod example_report;
mod html;
mod links;
mod python_reference;
mod rust_reference;
mod staging;
mod widths;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::files::clear;
use crate::{cargo, succeed};

/// The folder in which the site is made, below the repository.
const PLACE: &str = "target/site";

/// The end of the help.
pub(crate) const HELP: &str = "Examples:
  make site                         install what is missing, build and check
  cargo xtask site                  build target/site/book/index.html
  cargo xtask site --book           build the pages alone, in seconds
  cargo xtask site --check          check every link, and every page in three
                                    widths, light and dark
  cargo xtask site --pictures       build, and renew the pictures of the report
                                    in docs/report

The pages are those of docs/SUMMARY.md. Widths need Chromium.";

/// The parts of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteBuild {
    /// The pages, without references of Rust and Python and with the report's pictures as they are.
    Book,
    /// Everything.
    All,
    /// Everything, and the pictures of the repository become the new ones.
    AllAndPictures,
}

/// Builds the site.
pub(crate) fn build(root: &Path, parts: SiteBuild) -> Result<()> {
    let place = root.join(PLACE);
    let book = place.join("book");
    clear(&place.join("src"))?;
    if parts != SiteBuild::Book {
        succeed(cargo(root).args(["build", "--locked", "-p", "recoup-cli", "-p", "recoup-python"]))?;
    }
    staging::stage(root, &place.join("src"))?;
    if parts != SiteBuild::Book {
        example_report::make(root, &place, parts == SiteBuild::AllAndPictures)?;
    }
    clear(&book)?;
    succeed(Command::new(mdbook(root)?).arg("build").arg(&place).env("MDBOOK_LOG", "warn"))?;
    if parts != SiteBuild::Book {
        rust_reference::make(root, &book.join("reference/rust"))?;
        python_reference::make(root, &place, &book.join("reference/python"))?;
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
