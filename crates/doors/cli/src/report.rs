//! The output of `recoup compare --report` and `recoup report`: pages that need no other files, and
//! their plots as files.
//!
//! Promises: `index.html` is self-contained (inline style and SVG, no script, no font, no address),
//! reads in light and dark and on a phone, states every number of its plots in a table, and
//! explains its terms. Must not know how a run is made: it is given figures and curves.

mod comparison;
pub(crate) mod course;
pub(crate) mod decisions;
pub(crate) mod figures;
mod files;
mod index;
mod page;
pub(crate) mod parts;
pub(crate) mod plot;
pub(crate) mod run_page;
#[cfg(test)]
mod sample;
pub(crate) mod spread;

use std::path::Path;

use anyhow::Result;

use files::write_figure;

pub(crate) use comparison::{Comparison, Curve, CurvePoint, Fact, Moment, MomentKind};
pub(crate) use files::{make_folder, page, write_file};
pub(crate) use index::{IndexEntry, IndexedScheme, overall, write as write_index};
#[cfg(test)]
pub(crate) use sample::{comparison as sample, run as sample_run};

/// Writes the page and its plots into `folder`.
pub(crate) fn write(comparison: &Comparison, folder: &Path) -> Result<()> {
    make_folder(folder)?;
    let figures = plot::figures(comparison)?;
    figures.iter().try_for_each(|figure| write_figure(figure, folder))?;
    write_file(&page(folder), page::render(comparison, &figures).as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn report_needs_no_other_file_and_no_network() {
        let folder = tempfile::tempdir().unwrap();
        write(&sample(), folder.path()).unwrap();
        let page = fs::read_to_string(page(folder.path())).unwrap();
        let names = ["overhead", "parts", "time", "iterations", "sizes"];
        // Each for wide and for narrow screens.
        assert_eq!(page.matches("<svg").count(), 2 * names.len());
        let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
        let without_namespace = page.replace(namespace, "").replace("url(#", "");
        for outside in ["http://", "https://", "<script", "@import", "url("] {
            assert!(!without_namespace.contains(outside), "{outside}");
        }
        for name in names {
            assert!(folder.path().join(format!("{name}.svg")).exists());
            let png = fs::read(folder.path().join(format!("{name}.png"))).unwrap();
            assert!(png.starts_with(b"\x89PNG"), "{name}");
        }
    }
}
