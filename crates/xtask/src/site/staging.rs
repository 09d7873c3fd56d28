//! The sources of the book: pages at the paths they have in the repository, and what they show.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::files::{copy, put};
use crate::markdown::{self, beside};
use crate::site::c_reference;

/// The list of pages.
const SUMMARY: &str = "docs/SUMMARY.md";
/// Settings and style of the book.
const LOOKS: [&str; 2] = ["docs/book/book.toml", "docs/book/site.css"];
/// Chapters that are made here and in no file of the repository.
const REFERENCE: &str = "
# Reference

- [Rust, Python and C](reference/index.md)
  - [recoup.h](reference/recoup.h.md)
";

/// Puts the pages, and the files they point to, into `source`; book.toml goes to the folder above.
pub(super) fn stage(root: &Path, source: &Path) -> Result<()> {
    let summary = fs::read_to_string(root.join(SUMMARY)).with_context(|| format!("cannot read {SUMMARY}"))?;
    let pages: BTreeSet<String> = markdown::links(&summary).iter().filter_map(|link| link.file(SUMMARY)).collect();
    let mut files = BTreeSet::new();
    for page in &pages {
        let text = fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {page}"))?;
        let linked = markdown::links(&text).into_iter().filter_map(|link| link.file(page));
        files.extend(linked.filter(|file| !file.ends_with(".md")));
        put(&source.join(in_book(page)), &c_reference::with_links(page, &with_book_links(&text)))?;
    }
    for file in &files {
        copy(&root.join(file), &source.join(file))?;
    }
    put(&source.join("SUMMARY.md"), &(with_book_links(&from_the_top(&summary)) + REFERENCE))?;
    put(&source.join(c_reference::PAGE), &c_reference::page(root)?)?;
    put(&source.join("reference/index.md"), REFERENCES)?;
    let place = source.parent().context("the sources have a folder above")?;
    LOOKS.iter().try_for_each(|file| copy(&root.join(file), &place.join(file.rsplit('/').next().unwrap_or(file))))
}

/// The first page of the references, which are made after the book.
const REFERENCES: &str = "# References

Every public item of the interfaces, from the sources that this site was built of:

- [Rust](rust/recoup/index.html): the crate `recoup`, and the crates that it re-exports
- [Python](python/recoup.html): the package `recoup`
- [C](recoup.h.md): the calls, types and constants of `recoup.h`

[The report](report/index.html) that [a page](../docs/report.md) explains is here, too.
";

/// The summary with its links as the book counts them: from the top of the repository.
fn from_the_top(summary: &str) -> String {
    let mut text = summary.to_owned();
    for link in markdown::links(summary) {
        text = text.replace(&format!("]({})", link.target), &format!("]({})", beside(SUMMARY, &link.target)));
    }
    text
}

/// The place of a page among the sources of the book, or of a link in it. A README is the page that
/// a browser shows for its folder.
fn in_book(path: &str) -> String {
    match path.split_once("README.md") {
        Some((folder, place)) if folder.is_empty() || folder.ends_with('/') => format!("{folder}index.md{place}"),
        _ => path.to_owned(),
    }
}

/// A page with its links as the book has them.
fn with_book_links(page: &str) -> String {
    let mut text = page.to_owned();
    for link in markdown::links(page) {
        text = text.replace(&format!("]({})", link.target), &format!("]({})", in_book(&link.target)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_from_the_top() {
        let text = "- [Home](../README.md)\n  - [Run](run.md)\n";
        assert_eq!(from_the_top(text), "- [Home](README.md)\n  - [Run](docs/run.md)\n");
    }

    #[test]
    fn a_readme_is_the_first_page_of_its_folder() {
        assert_eq!(with_book_links("[a](../README.md#b) [c](MY-README.md)"), "[a](../index.md#b) [c](MY-README.md)");
    }
}
