//! The sources of all external crates, next to ours: cargo then needs no registry.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{cargo, succeed};

/// Import libraries of Windows, a third of all bytes. recoup does not build there.
const PRUNED: [&str; 2] = ["winapi-i686-pc-windows-gnu", "winapi-x86_64-pc-windows-gnu"];

/// Tells cargo of the folder. `cargo vendor` prints the same, but not where it is asked to be
/// quiet.
const SOURCES: &str = r#"
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
"#;

/// Adds the folder `vendor` and tells cargo of it; checks that the lock file asks for nothing else.
pub(super) fn add(tree: &Path) -> Result<()> {
    succeed(cargo(tree).args(["vendor", "--quiet", "--locked", "vendor"]).stdout(Stdio::null()))?;
    for name in PRUNED {
        prune(&tree.join("vendor").join(name))?;
    }
    let config = tree.join(".cargo/config.toml");
    fs::write(&config, fs::read_to_string(&config)? + SOURCES)?;
    resolve(tree)
}

/// Resolves all crates without a network, and without those that this machine has fetched before.
fn resolve(tree: &Path) -> Result<()> {
    let home = tree.join("target/empty-home");
    fs::create_dir_all(&home)?;
    let arguments = ["metadata", "--locked", "--offline", "--format-version", "1"];
    let resolved = succeed(cargo(tree).args(arguments).env("CARGO_HOME", &home).stdout(Stdio::null()));
    fs::remove_dir_all(tree.join("target"))?;
    resolved.context("the sources of a crate are missing in the archive")
}

/// Removes the libraries of a crate and their checksums.
fn prune(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder.join("lib"))?;
    let list = folder.join(".cargo-checksum.json");
    let mut sums: Value = serde_json::from_slice(&fs::read(&list)?)?;
    let files = sums["files"].as_object_mut().with_context(|| format!("{} lists no files", list.display()))?;
    files.retain(|name, _| !name.starts_with("lib/"));
    fs::write(&list, serde_json::to_vec(&sums)?)?;
    Ok(())
}
