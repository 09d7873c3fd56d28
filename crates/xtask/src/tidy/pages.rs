//! Checks of pages as readers walk through them: links lead to files, every page of docs is in the
//! summary of the site, and no page of the site leads to one that it lacks.

use std::path::Path;

use super::Source;
use crate::markdown;

/// The list of pages of the site.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The folder whose pages are all on the site, but for those of notebooks.
const PAGES: &str = "docs/";
const NOTEBOOKS: &str = "docs/lab/";

pub(super) fn complaints(root: &Path, sources: &[Source]) -> Vec<String> {
    // The links of a page count from its own folder, not from that of a symbolic link to it.
    let is_own = |source: &&Source| is_page(&source.path) && !root.join(&source.path).is_symlink();
    let pages = sources.iter().filter(is_own);
    let mut found: Vec<String> = pages.clone().flat_map(|page| lost_links(root, page)).collect();
    let summary = pages.clone().find(|page| page.path == SUMMARY);
    let listed: Vec<String> = summary.map_or_else(Vec::new, |summary| {
        markdown::links(&summary.text).iter().filter_map(|link| link.file(SUMMARY)).collect()
    });
    let is_lost = |page: &&Source| {
        let is_of_the_site = page.path.starts_with(PAGES) && !page.path.starts_with(NOTEBOOKS) && page.path != SUMMARY;
        is_of_the_site && !listed.contains(&page.path) && summary.is_some()
    };
    found.extend(pages.clone().filter(is_lost).map(|page| page.complaint(0, format!("not a page of {SUMMARY}"))));
    found.extend(summary.into_iter().flat_map(chapters_without_page));
    let of_the_site = pages.filter(|page| listed.contains(&page.path));
    found.extend(of_the_site.flat_map(|page| links_off_the_site(page, &listed)));
    found
}

/// Links of a page of the site to pages that are not on it.
fn links_off_the_site(page: &Source, listed: &[String]) -> Vec<String> {
    let links = markdown::links(&page.text).into_iter();
    let pages = links.filter_map(|link| Some((link.line_index, link.file(&page.path).filter(|file| is_page(file))?)));
    let off = pages.filter(|(_, file)| !listed.contains(file));
    off.map(|(index, file)| page.complaint(index, format!("{file} is not a page of {SUMMARY}"))).collect()
}

fn is_page(path: &str) -> bool {
    path.ends_with(".md")
}

/// Chapters of the summary that lead to no page: mdBook reads no book with one.
fn chapters_without_page(summary: &Source) -> Vec<String> {
    let chapters = summary.text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("- "));
    let without = chapters.filter(|(_, line)| markdown::links(line).is_empty());
    without.map(|(index, _)| summary.complaint(index, "a chapter without a page")).collect()
}

/// Links of a page to files that are not there. A page that is a link to another is read there.
fn lost_links(root: &Path, page: &Source) -> Vec<String> {
    if root.join(&page.path).is_symlink() {
        return Vec::new();
    }
    let links = markdown::links(&page.text).into_iter();
    let files = links.filter_map(|link| Some((link.line_index, link.file(&page.path)?)));
    let lost = files.filter(|(_, file)| !root.join(file).exists());
    lost.map(|(line_index, file)| page.complaint(line_index, format!("{file} does not exist"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pages: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source::new(path, text);
        complaints(&crate::root(), &pages.iter().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn links_to_lost_files_are_found() {
        assert_eq!(of(&[("docs/run.md", "[a](../README.md#x) [b](json.md) [c](#d) `[e](f.md)`\n")]), [""; 0]);
        assert_eq!(of(&[("docs/run.md", "a\n[b](nowhere.md)\n")]), ["docs/run.md:2: docs/nowhere.md does not exist"]);
    }

    #[test]
    fn pages_that_the_summary_does_not_list_are_found() {
        let summary = (SUMMARY, "- [Run](run.md)\n");
        assert_eq!(of(&[summary, ("docs/run.md", ""), ("README.md", ""), ("docs/lab/a.md", "")]), [""; 0]);
        assert_eq!(of(&[summary, ("docs/json.md", "")]), ["docs/json.md:1: not a page of docs/SUMMARY.md"]);
        assert_eq!(
            of(&[(SUMMARY, "- Running\n  - [Run](run.md)\n"), ("docs/run.md", "")]),
            ["docs/SUMMARY.md:1: a chapter without a page"]
        );
    }

    #[test]
    fn links_of_the_site_to_pages_off_it_are_found() {
        let summary = (SUMMARY, "- [Run](run.md)\n");
        assert_eq!(of(&[summary, ("docs/run.md", "[a](run.md#x) [b](overview.svg)\n")]), [""; 0]);
        assert_eq!(
            of(&[
                summary,
                ("docs/run.md", "[a](../packaging/README.md)\n"),
                ("CHANGELOG.md", "[b](CONTRIBUTING.md)\n")
            ]),
            ["docs/run.md:1: packaging/README.md is not a page of docs/SUMMARY.md"]
        );
    }
}
