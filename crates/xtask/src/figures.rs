//! `cargo xtask figures`: runs the commands of docs/figures, and puts what they print below them.
//!
//! Promises: a command is read from its page, so the page names what was run; the text above the
//! command stays. Must not know what a figure means.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, succeed};

/// The folder of the pages, below the repository.
pub(crate) const FOLDER: &str = "docs/figures";
/// The beginning of the line between the text of a figure and what is replaced.
const STAMP: &str = "Taken on ";

/// A section of a page: a command, and what it printed.
#[derive(Debug, PartialEq, Eq)]
struct PageFigure<'a> {
    title: &'a str,
    command: &'a str,
    /// The text that is replaced: from the stamp to the next heading.
    replaced: &'a str,
}

impl PageFigure<'_> {
    /// The name of the section in links: words in lower case, joined.
    fn name(&self) -> String {
        let kept = |sign: &char| sign.is_alphanumeric() || matches!(sign, ' ' | '-');
        self.title.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    }
}

/// Takes the figures of the pages and sections that are named, or all of them; or lists them.
pub(crate) fn run(root: &Path, only: &[String], is_list: bool) -> Result<()> {
    let mut pages: Vec<PathBuf> =
        fs::read_dir(root.join(FOLDER))?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    pages.sort();
    let mut n_found = 0;
    for path in pages {
        let page = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut text = fs::read_to_string(&path)?;
        let names: Vec<String> = figures(&text).iter().map(PageFigure::name).collect();
        let is_asked = |name: &String| only.is_empty() || only.contains(&page) || only.contains(name);
        for name in names.iter().filter(|name| is_asked(name)) {
            n_found += 1;
            let found = figures(&text);
            let figure = found.iter().find(|figure| figure.name() == *name).context("a figure is lost")?;
            if is_list {
                println!("{page}: {name}\n    {}", figure.command.replace('\n', "\n    "));
                continue;
            }
            eprintln!("{page}: {name}");
            text = text.replacen(figure.replaced, &taken(root, figure)?, 1);
            fs::write(&path, &text)?;
        }
    }
    ensure!(n_found > 0, "no figure is named so: see `cargo xtask figures --list`");
    Ok(())
}

/// The figures of a page, in order.
fn figures(page: &str) -> Vec<PageFigure<'_>> {
    page.split("\n## ").skip(1).filter_map(figure).collect()
}

/// The figure of a section.
fn figure(section: &str) -> Option<PageFigure<'_>> {
    let replaced = &section[section.find(&format!("\n{STAMP}"))? + 1..];
    let (_, command) = replaced.split_once("```text\n")?;
    Some(PageFigure { title: section.lines().next()?, command: command.split_once("\n```")?.0, replaced })
}

/// Runs the command of a figure; the new text from the stamp on.
fn taken(root: &Path, figure: &PageFigure<'_>) -> Result<String> {
    if figure.command.lines().any(|line| line.starts_with("recoup ")) {
        succeed(cargo(root).args(["build", "--release", "--locked", "-p", "recoup-cli"]))?;
    }
    let said = |program: &str, words: &[&str]| -> Result<String> {
        let output = Command::new(program).args(words).current_dir(root).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = said("git", &["rev-parse", "--short=8", "HEAD"])?;
    let changes = said("git", &["status", "--porcelain", "--", ".", &format!(":!{FOLDER}")])?;
    let changed = if changes.is_empty() { "" } else { " with changes" };
    let stamp = format!("{STAMP}{}, commit `{commit}`{changed}, {}", said("date", &["+%F"])?, machine()?);
    let programs = root.join("target/release").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", figure.command]).current_dir(root).env("PATH", format!("{programs}:{path}"));
    let output = shell.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("{}: {}", figure.command, output.status);
    }
    let printed = shown(&String::from_utf8_lossy(&output.stdout));
    Ok(format!("{stamp}:\n\n```text\n{}\n```\n\n{printed}", figure.command))
}

/// The processor and its cores, in words.
fn machine() -> Result<String> {
    let about = fs::read_to_string("/proc/cpuinfo").context("no /proc/cpuinfo says which machine this is")?;
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism()?;
    Ok(format!("{cores} cores of {}", model.map_or("an unnamed processor", |(_, name)| name.trim())))
}

/// The part of an output that is shown: its tables, or all of it but the words of test runners.
fn shown(printed: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let tables: Vec<String> = printed.lines().filter(|line| line.starts_with('|')).map(words).collect();
    if !tables.is_empty() {
        return format!("{}\n", tables.join("\n"));
    }
    let is_runner = |line: &&str| ["running ", "test ", "test result"].iter().any(|start| line.starts_with(start));
    let lines: Vec<&str> = printed.lines().filter(|line| !is_runner(line)).map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n").trim_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n## PETSc's CG\n\nText.\n\nTaken on a day:\n\n```text\ncargo bench\n```\n\n| 1 |\n\n## No figure\n\nText.\n";

    #[test]
    fn a_section_with_a_stamp_and_a_command_is_a_figure() {
        let found = figures(PAGE);
        let replaced = "Taken on a day:\n\n```text\ncargo bench\n```\n\n| 1 |\n";
        assert_eq!(found, [PageFigure { title: "PETSc's CG", command: "cargo bench", replaced }]);
        assert_eq!(found[0].name(), "petscs-cg");
    }

    #[test]
    fn tables_are_shown_alone_and_other_text_without_the_words_of_test_runners() {
        assert_eq!(shown("some words\n| a   |\n|---|\n"), "| a |\n|---|\n");
        assert_eq!(shown("\nrunning 1 test\n4+2   5.8 \ntest x ... ok\n"), "```text\n4+2   5.8\n```\n");
    }

    #[test]
    fn every_section_of_the_pages_is_a_figure() {
        for entry in fs::read_dir(crate::root().join(FOLDER)).unwrap() {
            let path = entry.unwrap().path();
            let page = fs::read_to_string(&path).unwrap();
            assert_eq!(figures(&page).len(), page.matches("\n## ").count(), "{}", path.display());
        }
    }

    /// Two commands named tests that had become modules of one program, and ran nothing.
    #[test]
    fn commands_name_programs_of_tests_that_exist() {
        let metadata = crate::ci::metadata(&crate::root()).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        for entry in fs::read_dir(crate::root().join(FOLDER)).unwrap() {
            let page = fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in figures(&page).iter().flat_map(|figure| figure.command.lines()) {
                let after = |word: &str| line.split(' ').skip_while(|other| *other != word).nth(1);
                let (Some(package), Some(test)) = (after("-p"), after("--test")) else { continue };
                let found = packages.iter().find(|of| of["name"] == package).unwrap_or_else(|| panic!("{line}"));
                let targets = found["targets"].as_array().unwrap();
                assert!(targets.iter().any(|target| target["name"] == test && target["kind"][0] == "test"), "{line}");
            }
        }
    }
}
