//! The style rules that can be checked by reading.
//!
//! Sources are formatted by rustfmt, so a look at lines, or at words and signs, is enough.

mod circles;
mod code;
mod collective;
mod figures;
mod glossary;
mod layout;
mod lets;
mod names;
mod pages;
mod prose;
mod rust;
mod rustdoc;
mod signatures;
mod sizes;
mod text;
mod versions;

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use code::CodeToken;

use crate::golden;

/// Directories that hold nothing written by hand.
const SKIPPED: [&str; 4] = ["target", "demo-report", "golden", "data"];

/// A file and what it says.
#[derive(Debug)]
struct Source {
    /// Path below the repository, with forward slashes.
    path: String,
    text: String,
    tokens: OnceCell<Vec<CodeToken>>,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), tokens: OnceCell::new() }
    }

    /// The words and signs of a Rust file.
    fn tokens(&self) -> &[CodeToken] {
        self.tokens.get_or_init(|| code::tokens(&self.text))
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// `path:line: what`, the form editors jump to. Lines count from 1.
    fn complaint(&self, line_index: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{}: {what}", self.path, line_index + 1)
    }
}

/// Runs every check and lists all complaints.
pub(crate) fn run(root: &Path) -> Result<()> {
    let sources = sources(root)?;
    let mut complaints: Vec<String> = sources.iter().flat_map(check).collect();
    complaints.extend(layout::complaints(root, &sources));
    complaints.extend(pages::complaints(root, &sources));
    complaints.extend(sizes::complaints(&sources));
    complaints.extend(circles::complaints(&sources));
    complaints.extend(signatures::complaints(&sources));
    complaints.extend(collective::complaints(&sources));
    complaints.extend(lets::complaints(&sources));
    complaints.extend(rustdoc::complaints(&sources));
    complaints.extend(names::complaints(&sources));
    complaints.extend(glossary::complaints(&sources));
    complaints.extend(versions::complaints(&sources));
    complaints.extend(golden::complaints(root)?);
    if complaints.is_empty() {
        println!("tidy: {} files", sources.len());
        return Ok(());
    }
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    bail!("tidy: {} complaints", complaints.len());
}

fn check(source: &Source) -> Vec<String> {
    let mut complaints = text::complaints(source);
    complaints.extend(prose::complaints(source));
    complaints.extend(figures::complaints(source));
    if source.is_rust() {
        complaints.extend(rust::complaints(source));
    }
    complaints
}

/// Everything written by hand, in a fixed order.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut pending: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                    pending.push(path);
                }
            } else if is_text(&name) {
                let below = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                found.push(Source::new(&below, &fs::read_to_string(&path)?));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn is_text(name: &str) -> bool {
    let endings = ["rs", "toml", "md", "sh", "py", "c", "h", "cuh", "css", "js", "html", "yaml", "def"];
    name == "Makefile" || name.rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_is_read_without_what_was_built() {
        let sources = sources(&crate::root()).unwrap();
        assert!(sources.iter().any(|source| source.path == "crates/xtask/src/tidy.rs"));
        assert!(sources.iter().all(|source| !source.path.starts_with("target/") && !source.path.starts_with(".venv")));
    }
}
