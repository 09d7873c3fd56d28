//! The references of the Rust and the Python interface: rustdoc and pdoc, put next to the book.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::markdown::beside;
use crate::site::links::files_below;
use crate::{cargo, succeed};

/// The crates that a program in Rust sees: the facade, and what it re-exports.
const CRATES: [&str; 13] = [
    "recoup",
    "recoup-cache",
    "recoup-comm",
    "recoup-compress",
    "recoup-core",
    "recoup-device",
    "recoup-io",
    "recoup-memory",
    "recoup-model",
    "recoup-pipeline",
    "recoup-snapshot",
    "recoup-solvers",
    "recoup-tape",
];

/// A page of rustdoc that shows a page of the repository, whose links count from there.
struct ShownPage {
    rustdoc: &'static str,
    shown: &'static str,
}

const SHOWN: [ShownPage; 2] = [
    ShownPage { rustdoc: "recoup/index.html", shown: "README.md" },
    ShownPage { rustdoc: "recoup_memory/index.html", shown: "crates/memory/src/lib.rs" },
];

/// Makes both and puts them into the book of `place`.
pub(super) fn add(root: &Path, place: &Path) -> Result<()> {
    rust(root, &place.join("book/reference/rust"))?;
    python(root, place)
}

fn rust(root: &Path, target: &Path) -> Result<()> {
    // Other tasks document private items into the same folder, and nothing removes their pages.
    let made = root.join("target/doc");
    if made.exists() {
        fs::remove_dir_all(&made)?;
    }
    let packages = CRATES.map(|name| ["-p", name]);
    let doc = ["doc", "--locked", "--no-deps", "--lib"];
    succeed(cargo(root).args(doc).args(packages.as_flattened()).env("RUSTDOCFLAGS", "-D warnings"))?;
    copy_all(&made, target)?;
    SHOWN.iter().try_for_each(|page| lead_to_the_book(target, page))
}

/// Turns links to Markdown on a page of rustdoc into links to the page of the book.
fn lead_to_the_book(rust: &Path, page: &ShownPage) -> Result<()> {
    let path = rust.join(page.rustdoc);
    let text = fs::read_to_string(&path).with_context(|| format!("{} is not there", page.rustdoc))?;
    let depth = format!("reference/rust/{}", page.rustdoc).matches('/').count();
    fs::write(&path, with_book_links(&text, page.shown, &"../".repeat(depth)))?;
    Ok(())
}

/// A page whose links to files of the book, counted from the page `shown`, lead below `top`.
fn with_book_links(text: &str, shown: &str, top: &str) -> String {
    ["href=\"", "src=\""].iter().fold(text.to_owned(), |text, key| {
        let mut pieces = text.split(key);
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |out, piece| {
            let (target, rest) = piece.split_once('"').unwrap_or((piece, ""));
            let target = book_link(target, shown, top).unwrap_or_else(|| target.to_owned());
            out + key + &target + "\"" + rest
        })
    })
}

/// The place in the book to which a link leads; `None` for one that is rustdoc's own.
fn book_link(target: &str, shown: &str, top: &str) -> Option<String> {
    let (path, place) = target.split_once('#').map_or((target, ""), |(path, _)| (path, &target[path.len()..]));
    let is_of_the_book = path.ends_with(".md") || path.ends_with(".svg") && path.starts_with("docs/");
    if path.contains("://") || !(is_of_the_book || path.starts_with("LICENSE")) {
        return None;
    }
    let file = beside(shown, path);
    let Some(stem) = file.strip_suffix(".md") else { return Some(format!("{top}{file}")) };
    let stem = stem.strip_suffix("README").map_or(stem.to_owned(), |folder| format!("{folder}index"));
    Some(format!("{top}{stem}.html{place}"))
}

/// Builds the native module as the wheel has it, and lets pdoc look at the package.
fn python(root: &Path, place: &Path) -> Result<()> {
    succeed(cargo(root).args(["build", "--locked", "-p", "recoup-python"]))?;
    let package = place.join("python/recoup");
    copy_all(&root.join("crates/python/python/recoup"), &package)?;
    fs::copy(root.join("target/debug/librecoup_native.so"), package.join("_native.abi3.so"))
        .context("the native module was not built")?;
    let python = root.join("target/tools/python/bin/python");
    let pdoc = ["-m", "pdoc", "--docformat", "markdown", "-o"];
    let modules = ["recoup", "recoup.scipy", "recoup.pyadjoint"];
    let mut command = Command::new(python);
    command.args(pdoc).arg(place.join("book/reference/python")).args(modules);
    succeed(command.env("PYTHONPATH", place.join("python")))
}

/// Copies all files below a folder.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for path in files_below(from)? {
        let target = to.join(path.strip_prefix(from)?);
        fs::create_dir_all(target.parent().unwrap_or(to))?;
        fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_lead_to_the_book() {
        let top = "../../../";
        let page = "<a href=\"docs/run.md\"><a href=\"docs/paper/README.md#a\"><a href=\"struct.A.html\"><a href=\"LICENSE-MIT\"><img src=\"docs/a.svg\">";
        let expected = "<a href=\"../../../docs/run.html\"><a href=\"../../../docs/paper/index.html#a\">\
                        <a href=\"struct.A.html\"><a href=\"../../../LICENSE-MIT\"><img src=\"../../../docs/a.svg\">";
        assert_eq!(with_book_links(page, "README.md", top), expected);
        let far = "<a href=\"https://a.org/b.md\">";
        assert_eq!(with_book_links(far, "README.md", top), far);
    }
}
