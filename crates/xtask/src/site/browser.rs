//! Chromium without a screen.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The colours that a system may ask for.
pub(super) const SCHEMES: [&str; 2] = ["light", "dark"];

/// The browser, with a profile in a folder, on a system of light or dark colours.
pub(super) fn command(folder: &Path, scheme: &str) -> Result<Command> {
    let program = program().context("no Chromium is here: run `scripts/bootstrap.sh site`")?;
    let is_light = u8::from(scheme == SCHEMES[0]);
    let mut command = Command::new(program);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .arg(format!("--blink-settings=preferredColorScheme={is_light}"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()));
    Ok(command)
}

/// A browser on the path.
fn program() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let folders = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    found.find(|program| program.is_file())
}
