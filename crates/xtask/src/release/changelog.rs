//! The page of changes: its section of a version.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::git;

const PAGE: &str = "CHANGELOG.md";
/// The heading of what no version has yet.
const UNRELEASED: &str = "## Unreleased";

/// Gives what is unreleased the heading of the version, and commits the page.
pub(super) fn commit_section(root: &Path, version: &str) -> Result<()> {
    let page = fs::read_to_string(root.join(PAGE))?;
    let date = git(root, &["log", "-1", "--format=%cs"])?;
    fs::write(root.join(PAGE), with_heading(&page, version, &date)?)?;
    git(root, &["commit", "--quiet", "--message", &format!("Release {version}"), PAGE])?;
    Ok(())
}

/// The section of a version, or of what is unreleased where the version has none yet.
pub(super) fn section(root: &Path, version: &str) -> Result<String> {
    let page = fs::read_to_string(root.join(PAGE))?;
    let found = body(&page, &format!("## {version} ")).or_else(|| body(&page, UNRELEASED));
    found.with_context(|| format!("{PAGE} has no section of {version}"))
}

fn with_heading(page: &str, version: &str, date: &str) -> Result<String> {
    ensure!(body(page, &format!("## {version} ")).is_none(), "{PAGE} has a section of {version} already");
    ensure!(body(page, UNRELEASED).is_some(), "{PAGE} has no section {UNRELEASED}");
    Ok(page.replacen(UNRELEASED, &format!("{UNRELEASED}\n\n## {version} ({date})"), 1))
}

/// The lines below the first heading that begins with these words, up to the next of its level.
fn body(page: &str, heading: &str) -> Option<String> {
    let mut lines = page.lines().skip_while(|line| !line.starts_with(heading));
    lines.next()?;
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    Some(format!("{}\n", lines.join("\n").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# Changelog\n\n## Unreleased\n\nNew.\n\n### Fixed\n\n- b\n\n## 0.1.0 (2026-01-02)\n\nOld.\n";

    #[test]
    fn a_release_takes_what_is_unreleased_and_leaves_an_empty_section() {
        let page = with_heading(SAMPLE, "0.2.0", "2026-03-04").unwrap();
        assert_eq!(body(&page, "## 0.2.0 ").unwrap(), "New.\n\n### Fixed\n\n- b\n");
        assert_eq!(body(&page, UNRELEASED).unwrap(), "\n");
        assert_eq!(body(&page, "## 0.1.0 ").unwrap(), "Old.\n");
    }

    #[test]
    fn a_version_is_released_once() {
        assert!(with_heading(SAMPLE, "0.1.0", "2026-03-04").is_err());
        assert!(with_heading("# Changelog\n", "0.1.0", "2026-03-04").is_err());
    }
}
