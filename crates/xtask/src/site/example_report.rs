//! The report that docs/report.md explains: made by its command, and photographed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::files::{clear, copy, copy_all};
use crate::site::browser;
use crate::succeed;

/// The page whose command makes the report.
const PAGE: &str = "docs/report.md";
/// The folder of its pictures.
const PICTURES: &str = "docs/report";
const PLOTS: [&str; 5] = ["overhead.svg", "parts.svg", "time.svg", "iterations.svg", "sizes.svg"];

/// A photograph of the page.
struct Photograph {
    name: &'static str,
    scheme: &'static str,
    /// Columns and rows of pixels.
    extent: [u32; 2],
}

const PHOTOGRAPHS: [Photograph; 3] = [
    Photograph { name: "light.png", scheme: "light", extent: [1280, 1150] },
    Photograph { name: "dark.png", scheme: "dark", extent: [1280, 1150] },
    // Chromium without a screen has no window below 500 columns.
    Photograph { name: "narrow.png", scheme: "light", extent: [500, 1100] },
];

/// Makes the report in `place`, and puts it and its pictures into the sources of the book. With
/// `is_renewed` the pictures of the repository become these.
pub(super) fn make(root: &Path, place: &Path, is_renewed: bool) -> Result<()> {
    let folder = place.join("report");
    clear(&folder)?;
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let command = command(&page).with_context(|| format!("{PAGE} has no command that makes a report"))?;
    let mut words = command.split_whitespace();
    ensure!(words.next() == Some("recoup"), "{PAGE}: `{command}` is no command of recoup");
    let mut recoup = Command::new(root.join("target/debug/recoup"));
    succeed(recoup.args(words).current_dir(&folder).stdout(fs::File::create(place.join("report.txt"))?))?;
    let report = folder.join("report");
    PHOTOGRAPHS.iter().try_for_each(|photograph| photograph.take(place, &report))?;
    for name in PLOTS.into_iter().chain(PHOTOGRAPHS.map(|photograph| photograph.name)) {
        copy(&report.join(name), &place.join("src").join(PICTURES).join(name))?;
        if is_renewed {
            copy(&report.join(name), &root.join(PICTURES).join(name))?;
        }
    }
    copy_all(&report, &place.join("src/reference/report"))
}

/// The command of the page's block that makes a report, as one line.
fn command(page: &str) -> Option<String> {
    let blocks = page.split("```bash\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let block = blocks.map(|(block, _)| block.replace("\\\n", " ")).find(|block| block.contains(" --report "))?;
    Some(block.trim().to_owned())
}

impl Photograph {
    fn take(&self, place: &Path, report: &Path) -> Result<()> {
        let profile = place.join("browser");
        let [columns, rows] = self.extent;
        let target = report.join(self.name);
        let mut command = browser::command(&profile, self.scheme)?;
        command.arg(format!("--window-size={columns},{rows}")).arg(format!("--screenshot={}", target.display()));
        let output = command.arg(format!("file://{}", report.join("index.html").display())).output()?;
        ensure!(target.is_file(), "no picture was taken: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_command_that_makes_its_report() {
        let page = fs::read_to_string(crate::root().join(PAGE)).unwrap();
        let command = command(&page).unwrap();
        assert!(command.starts_with("recoup compare ") && command.ends_with(" --report report"), "{command}");
        assert!(!command.contains(['\n', '\'', '"']), "{command}");
        for name in PLOTS.into_iter().chain(PHOTOGRAPHS.map(|photograph| photograph.name)) {
            assert!(page.contains(&format!("](report/{name})")), "{name} is not shown");
        }
    }
}
