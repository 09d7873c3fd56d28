//! Every page fits a phone, a tablet and a desktop, has one title, and can be read in light and in
//! dark.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::files::{files_below, name_below};
use crate::site::browser;

/// Columns of pixels of a phone, a tablet and a desktop.
const WIDTHS: [u32; 3] = [360, 768, DESKTOP];
/// No table is cut on a screen of this width.
const DESKTOP: u32 = 1280;
/// Contrast of text and background, at least (WCAG 2.1, 1.4.3).
const CONTRAST_MIN: f64 = 4.5;
/// Milliseconds of the browser's own time that all pages may take.
const BUDGET_MILLISECONDS: u32 = 900_000;
/// The page that looks at the others, in frames of their width.
const HARNESS: &str = include_str!("widths/measure.html");

/// Looks at the pages of a folder.
pub(super) fn check(book: &Path) -> Result<()> {
    let pages = pages(book)?;
    let mut complaints = Vec::new();
    for scheme in browser::SCHEMES {
        let found = measured(book, &pages, scheme)?;
        ensure!(
            found.len() == pages.len() * WIDTHS.len(),
            "{} of {} pages were seen",
            found.len(),
            pages.len() * WIDTHS.len()
        );
        complaints.extend(found.iter().filter_map(|page| complaint(page, scheme)));
    }
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("site: {} complaints", complaints.len());
    }
    println!("site: {} pages fit {WIDTHS:?} pixels, light and dark", pages.len());
    Ok(())
}

/// The complaint about a page in one width, if there is one.
fn complaint(page: &Value, scheme: &str) -> Option<String> {
    let number = |key: &str| page[key].as_f64().unwrap_or(f64::NAN);
    let name = format!("{}, {} pixels, {scheme}", page["page"].as_str().unwrap_or_default(), page["width"]);
    // A value that was not measured is no number, and fits nothing.
    let fits = number("scroll") <= number("inner");
    if !fits {
        return Some(format!("{name}: {} pixels wide, by {}", page["scroll"], page["widest"]));
    }
    if number("titles") > 1.0 {
        return Some(format!("{name}: {} headings of the first level", page["titles"]));
    }
    let cut = page["cut"].as_str().unwrap_or_default();
    if page["width"] == DESKTOP && !cut.is_empty() {
        return Some(format!("{name}: the table {cut:?} is cut at the right"));
    }
    let is_readable = number("contrast") >= CONTRAST_MIN;
    (!is_readable).then(|| format!("{name}: contrast {} of {}", page["contrast"], page["faint"]))
}

/// The pages of the book, and the first page of each crate and module.
fn pages(book: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    for path in files_below(book)? {
        let name = name_below(book, &path)?;
        let is_first = name.matches('/').count() == 3 && name.ends_with("/index.html");
        let is_shown = !name.starts_with("reference/rust/") || is_first;
        // The list of pages that browsers without scripts show in a frame.
        if name.ends_with(".html") && is_shown && name != "toc.html" {
            pages.push(name);
        }
    }
    Ok(pages)
}

/// The measurements of the browser, one object for each page and width.
fn measured(book: &Path, pages: &[String], scheme: &str) -> Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let harness = folder.path().join("measure.html");
    let json = |value: &[String]| serde_json::to_string(value);
    let page = HARNESS.replace("PAGES", &json(pages)?).replace("WIDTHS", &format!("{WIDTHS:?}"));
    std::fs::write(&harness, page.replace("BOOK", &format!("file://{}/", book.display())))?;
    let mut command = browser::command(folder.path(), scheme)?;
    command.args(["--allow-file-access-from-files", "--dump-dom", "--window-size=1600,1200"]);
    command.arg(format!("--virtual-time-budget={BUDGET_MILLISECONDS}")).arg(format!("file://{}", harness.display()));
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let dom = String::from_utf8_lossy(&output.stdout);
    let found = dom.split("FOUND:").nth(1).and_then(|rest| rest.split(":END").next());
    let found =
        found.with_context(|| format!("the browser said nothing: {}", String::from_utf8_lossy(&output.stderr)))?;
    let text: Vec<u8> = found.split_whitespace().filter_map(|code| code.parse().ok()).collect();
    serde_json::from_slice(&text).context("what the browser said is no list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wide_pages_faint_text_and_what_was_not_measured_are_found() {
        let page = |scroll: u32, contrast: Option<f64>| json!({"page": "a.html", "width": 360, "inner": 360, "scroll": scroll, "contrast": contrast});
        assert_eq!(complaint(&page(360, Some(4.5)), "light"), None);
        for bad in [page(361, Some(21.0)), page(360, Some(4.4)), page(360, None), json!({"page": "a.html"})] {
            assert!(complaint(&bad, "dark").is_some(), "{bad}");
        }
    }

    /// The table of batch systems showed half of each line, and the page on C had eight titles.
    #[test]
    fn cut_tables_and_several_titles_are_found() {
        let page = |width: u32, cut: &str, titles: u32| json!({"page": "a.html", "width": width, "inner": width, "scroll": width, "contrast": 9, "cut": cut, "titles": titles});
        assert_eq!([page(1280, "", 1), page(768, "key", 1)].map(|page| complaint(&page, "light")), [None, None]);
        let found = [page(1280, "key", 1), page(360, "", 8)].map(|page| complaint(&page, "light").unwrap());
        assert!(found[0].ends_with("the table \"key\" is cut at the right"), "{}", found[0]);
        assert!(found[1].ends_with("8 headings of the first level"), "{}", found[1]);
    }
}
