//! The sources of all external crates, next to ours: cargo then needs no registry.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{cargo, succeed};

/// Import libraries of Windows, a third of all bytes. recoup does not build there.
const PRUNED: [&str; 2] = ["winapi-i686-pc-windows-gnu", "winapi-x86_64-pc-windows-gnu"];

/// Adds the folder `vendor` and tells cargo of it; checks that the lock file asks for nothing else.
pub(super) fn add(tree: &Path) -> Result<()> {
    let vendor = cargo(tree).args(["vendor", "--quiet", "--locked", "vendor"]).stderr(Stdio::inherit()).output()?;
    ensure!(vendor.status.success(), "cargo vendor failed");
    for name in PRUNED {
        prune(&tree.join("vendor").join(name))?;
    }
    let config = tree.join(".cargo/config.toml");
    let text = fs::read_to_string(&config)? + "\n" + &String::from_utf8(vendor.stdout)?;
    fs::write(&config, text)?;
    let resolve = ["metadata", "--locked", "--offline", "--format-version", "1"];
    succeed(cargo(tree).args(resolve).stdout(Stdio::null()))
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
