//! Every link of the built site leads to a file, and to a place on it; nothing is fetched from the
//! network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::files::{files_below, name_below};
use crate::markdown::beside;
use crate::site::html::{self, HtmlTag};

/// Complaints that are printed; the rest is counted.
const PRINTED_MAX: usize = 40;

/// The files of a site, as far as links need them.
#[derive(Debug, Default)]
struct SiteFiles {
    /// All files, as paths from the top.
    paths: BTreeSet<String>,
    /// Names of the places of each page.
    places: BTreeMap<String, BTreeSet<String>>,
    /// Pages that only lead to another one.
    redirects: BTreeMap<String, String>,
    /// All that pages and styles point to, each with its page.
    pointers: Vec<SitePointer>,
}

/// One link, picture, script or style.
#[derive(Debug)]
struct SitePointer {
    page: String,
    target: String,
    /// Set if a browser fetches it to show the page.
    is_fetched: bool,
}

/// Checks the pages and styles below a folder.
pub(super) fn check(book: &Path) -> Result<()> {
    let mut site = SiteFiles::default();
    for path in files_below(book)? {
        let name = name_below(book, &path)?;
        if name.ends_with(".html") || name.ends_with(".css") {
            site.read(&name, &fs::read_to_string(&path)?);
        }
        site.paths.insert(name);
    }
    let complaints: Vec<String> = site.pointers.iter().filter_map(|pointer| site.complaint(pointer)).collect();
    for complaint in complaints.iter().take(PRINTED_MAX) {
        eprintln!("{complaint}");
    }
    if !complaints.is_empty() {
        bail!("site: {} of {} links are broken", complaints.len(), site.pointers.len());
    }
    ensure!(!site.pointers.is_empty(), "site: no page has a link");
    println!("site: {} files, {} pages, {} links", site.paths.len(), site.places.len(), site.pointers.len());
    Ok(())
}

impl SiteFiles {
    fn read(&mut self, name: &str, text: &str) {
        if name.ends_with(".css") {
            let urls = text.split("url(").skip(1).filter_map(|rest| rest.split_once(')'));
            for (url, _) in urls {
                let target = url.trim_matches(['"', '\'']).to_owned();
                self.pointers.push(SitePointer { page: name.to_owned(), target, is_fetched: true });
            }
            return;
        }
        let mut places = BTreeSet::new();
        for tag in html::tags(text) {
            if let Some(target) = redirect(&tag) {
                self.redirects.insert(name.to_owned(), beside(name, target));
            }
            places.extend(["id", "name"].iter().filter_map(|key| tag.attribute(key)).map(str::to_owned));
            let leads = ["a", "area"].contains(&tag.name.as_str());
            for target in ["href", "src"].iter().filter_map(|key| tag.attribute(key)) {
                let target = target.to_owned();
                self.pointers.push(SitePointer { page: name.to_owned(), target, is_fetched: !leads });
            }
        }
        self.places.insert(name.to_owned(), places);
    }

    fn complaint(&self, pointer: &SitePointer) -> Option<String> {
        let target = pointer.target.as_str();
        let complain = |what: &str| Some(format!("{}: {target}: {what}", pointer.page));
        if ["data:", "mailto:", "javascript:"].iter().any(|start| target.starts_with(start)) {
            return None;
        }
        if target.contains("://") || target.starts_with("//") {
            return if pointer.is_fetched { complain("fetched from the network") } else { None };
        }
        let (path, place) = target.split_once('#').unwrap_or((target, ""));
        let path = percent_decoded(path.split('?').next().unwrap_or_default());
        let file = if path.is_empty() { pointer.page.clone() } else { beside(&pointer.page, &path) };
        let in_folder = format!("{}/index.html", file.trim_end_matches('/'));
        let Some(file) = [file, in_folder].into_iter().find(|file| self.paths.contains(file)) else {
            return complain("no such file");
        };
        // A page that leads on takes the place along.
        match self.places.get(self.redirects.get(&file).unwrap_or(&file)) {
            // rustdoc writes codes into the names of places, too.
            Some(places) if ![place, &percent_decoded(place)].iter().any(|place| is_a_place(place, places)) => {
                complain("no such place on that page")
            }
            _ => None,
        }
    }
}

/// The page to which a tag leads a browser on.
fn redirect(tag: &HtmlTag) -> Option<&str> {
    let is_redirect = tag.name == "meta" && tag.attribute("http-equiv") == Some("refresh");
    let content = tag.attribute("content").filter(|_| is_redirect)?;
    content.split_once('=').map(|(_, target)| target.trim())
}

/// Returns whether a page has a place. Lines of a source that rustdoc shows may be a range.
fn is_a_place(place: &str, places: &BTreeSet<String>) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ends: Vec<&str> = place.split('-').collect();
    let is_range = ends.len() == 2 && ends.iter().all(|end| is_number(end));
    place.is_empty() || places.contains(place) || is_range && ends.iter().all(|end| places.contains(*end))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(page: &str) -> Vec<String> {
        let mut site = SiteFiles::default();
        for (name, text) in [("a/b.html", page), ("c.html", "<h1 id=top>"), ("d/index.html", "<i id=3><i id=9>")] {
            site.paths.insert(name.to_owned());
            site.read(name, text);
        }
        site.pointers.iter().filter_map(|pointer| site.complaint(pointer)).collect()
    }

    #[test]
    fn links_to_files_folders_places_and_other_sites_are_good() {
        let good = "<a href=../c.html#top><a href=../d/><a href=../d#3-9><a href='#x'><b id=x><a href=https://a.org>\
                    <img src=data:x><a href=../c.html?a=b>";
        assert_eq!(broken(good), [""; 0]);
    }

    #[test]
    fn lost_files_and_places_and_what_the_network_would_give_are_found() {
        for bad in [
            "<a href=c.html>",
            "<a href=../c.html#bottom>",
            "<img src=https://a.org/b.png>",
            "<a href='#y'>",
            "<link href=//a.org/b.css>",
            "<a href=../d#3-8>",
            "<script src=e.js>",
        ] {
            assert_eq!(broken(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_page_that_leads_on_has_the_places_of_the_other() {
        let mut site = SiteFiles::default();
        let pages = [
            ("a/b.html", "<meta http-equiv=\"refresh\" content=\"0;URL=../c.html\">"),
            ("c.html", "<i id=x>"),
            ("d.html", "<a href=a/b.html#x><a href=a/b.html#y>"),
        ];
        for (name, text) in pages {
            site.paths.insert(name.to_owned());
            site.read(name, text);
        }
        let complaints: Vec<_> = site.pointers.iter().filter_map(|pointer| site.complaint(pointer)).collect();
        assert_eq!(complaints, ["d.html: a/b.html#y: no such place on that page"]);
    }

    #[test]
    fn styles_are_read_for_what_they_fetch() {
        let mut site = SiteFiles::default();
        site.read("a.css", "b{src:url(\"https://a.org/c.woff\")} d{background:url(e.svg)}");
        let complaints: Vec<_> = site.pointers.iter().filter_map(|pointer| site.complaint(pointer)).collect();
        assert_eq!(complaints.len(), 2);
    }

    #[test]
    fn signs_in_addresses_are_decoded() {
        assert_eq!(percent_decoded("a%20b%2"), "a b%2");
    }
}
