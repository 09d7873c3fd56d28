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

const SHOWN: [ShownPage; 4] = [
    ShownPage { rustdoc: "recoup/index.html", shown: "README.md" },
    ShownPage { rustdoc: "recoup/memory/index.html", shown: "docs/memory.md" },
    ShownPage { rustdoc: "recoup/tape/index.html", shown: "docs/adjoints.md" },
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

/// A page whose links to Markdown, counted from the page `shown`, lead below `top`.
fn with_book_links(text: &str, shown: &str, top: &str) -> String {
    let mut pieces = text.split("href=\"");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (target, rest) = piece.split_once('"').unwrap_or((piece, ""));
        let (path, place) = target.split_once('#').unwrap_or((target, ""));
        let is_far = path.contains("://");
        let book = beside(shown, path);
        let target = match book.strip_suffix(".md").filter(|_| !is_far) {
            Some(stem) => {
                let stem = stem.strip_suffix("README").map_or(stem.to_owned(), |folder| format!("{folder}index"));
                let place = if place.is_empty() { String::new() } else { format!("#{place}") };
                format!("{top}{stem}.html{place}")
            }
            None if !is_far && is_file_of_the_book(path) => format!("{top}{book}"),
            None => target.to_owned(),
        };
        out.push_str(&format!("href=\"{target}\"{rest}"));
    }
    out
}

/// Returns whether rustdoc has no page of such a name: licences and sources.
fn is_file_of_the_book(path: &str) -> bool {
    path.starts_with("LICENSE") || path.ends_with(".rs") || path.ends_with(".txt")
}

/// Builds the native module as the wheel has it, and lets pdoc look at the package.
fn python(root: &Path, place: &Path) -> Result<()> {
    succeed(cargo(root).args(["build", "--locked", "-p", "recoup-python"]))?;
    let package = place.join("python/recoup");
    copy_all(&root.join("crates/python/python/recoup"), &package)?;
    fs::copy(root.join("target/debug/librecoup_native.so"), package.join("_native.abi3.so"))
        .context("the native module was not built")?;
    let python = root.join(".venv/bin/python");
    let pdoc = ["-m", "pdoc", "--docformat", "markdown", "--no-search", "-o"];
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
        let page = "<a href=\"docs/run.md\"><a href=\"docs/paper/README.md#a\"><a href=\"struct.A.html\"><a href=\"LICENSE-MIT\">";
        let expected = "<a href=\"../../../docs/run.html\"><a href=\"../../../docs/paper/index.html#a\">\
                        <a href=\"struct.A.html\"><a href=\"../../../LICENSE-MIT\">";
        assert_eq!(with_book_links(page, "README.md", top), expected);
        let far = "<a href=\"https://a.org/b.md\">";
        assert_eq!(with_book_links(far, "README.md", top), far);
    }
}
