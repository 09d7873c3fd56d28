//! The reference of the Rust interface: rustdoc, put next to the book.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::files::{clear, copy_all, files_below, name_below, put};
use crate::markdown::beside;
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
    ShownPage { rustdoc: "recoup_memory/index.html", shown: "crates/memory/memory/src/lib.rs" },
];

/// Links in the words of crates that are not documented here: rustdoc leaves them as they were
/// written.
const FOREIGN: [&str; 4] =
    ["super::Subscriber", "super::Span::current()", "crate::Span", "dispatcher#setting-the-default-subscriber"];

/// The page of the folder of all crates, to which rustdoc's help leads.
const FIRST: &str = "<!doctype html><meta charset=\"utf-8\"><title>recoup</title>\
<meta http-equiv=\"refresh\" content=\"0; url=recoup/index.html\"><a href=\"recoup/index.html\">recoup</a>\n";

/// Runs rustdoc, and puts its pages into `target`, `reference/rust` of the book.
pub(super) fn make(root: &Path, target: &Path) -> Result<()> {
    // Other tasks document private items into the same folder, and nothing removes their pages.
    let made = root.join("target/doc");
    clear(&made)?;
    // rustdoc leads to another crate only if its folder is there, whichever is documented first.
    CRATES.iter().try_for_each(|name| fs::create_dir(made.join(name.replace('-', "_"))))?;
    let packages = CRATES.map(|name| ["-p", name]);
    let doc = ["doc", "--locked", "--no-deps", "--lib"];
    succeed(cargo(root).args(doc).args(packages.as_flattened()).env("RUSTDOCFLAGS", "-D warnings"))?;
    copy_all(&made, target)?;
    put(&target.join("index.html"), FIRST)?;
    files_below(target)?.iter().try_for_each(|path| mend(target, path))?;
    SHOWN.iter().try_for_each(|page| lead_to_the_book(target, page))
}

/// Takes foreign links out of a page, and adds the scripts that it asks for and rustdoc has not
/// made: lists of implementors, of traits that other crates do not implement.
fn mend(rust: &Path, path: &Path) -> Result<()> {
    let name = name_below(rust, path)?;
    if !name.ends_with(".html") || name.starts_with("src/") {
        return Ok(());
    }
    let page = fs::read_to_string(path)?;
    let scripts = page.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    for script in scripts.filter(|script| script.contains("trait.impl/")) {
        let script = rust.join(beside(&name, script));
        if !script.exists() {
            put(&script, "")?;
        }
    }
    let mended = without_foreign_links(&page);
    if mended != page {
        fs::write(path, mended)?;
    }
    Ok(())
}

fn without_foreign_links(page: &str) -> String {
    FOREIGN.iter().fold(page.to_owned(), |page, target| page.replace(&format!(" href=\"{target}\""), ""))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_links_are_words() {
        let page = "<a href=\"crate::Span\">Span</a><a href=\"struct.A.html\">A</a>";
        assert_eq!(without_foreign_links(page), "<a>Span</a><a href=\"struct.A.html\">A</a>");
    }

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
