//! The folder of a report, and the files in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::io::put_result;

use super::plot::{self, Figure};

/// Returns the path of a report's page.
pub(crate) fn page(folder: &Path) -> PathBuf {
    folder.join("index.html")
}

/// Makes the folder of a report.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the report's folder {}", folder.display()))
}

/// Writes one drawing as SVG and PNG.
pub(super) fn write_figure(figure: &Figure, folder: &Path) -> Result<()> {
    write_file(&folder.join(format!("{}.svg", figure.name)), plot::standalone(&figure.svg).as_bytes())?;
    write_file(&folder.join(format!("{}.png", figure.name)), &figure.png)
}

/// Writes a file of a report.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(put_result(path, |out| out.write_all(bytes))?)
}
