//! Recipes of Spack, conda and EasyBuild that name the source archive by its SHA-256, which no file
//! inside it can hold.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::sha256;

/// Place of the archive's checksum in a recipe.
const CHECKSUM: &str = "@SHA256@";

/// A recipe of the tree, and the end of its name in the release.
const RECIPES: [(&str, &str); 3] = [
    ("packaging/spack/package.py", "spack-package.py"),
    ("packaging/conda/recipe.yaml", "conda-recipe.yaml"),
    ("packaging/easybuild/recoup.eb", "easybuild.eb"),
];

/// Writes the recipes into the folder of the release, beside the archive.
pub(super) fn write(tree: &Path, folder: &Path, version: &str) -> Result<()> {
    let sum = sha256(folder, &[OsString::from(format!("recoup-{version}.tar.gz"))])?;
    let sum = sum.split_whitespace().next().context("sha256sum printed nothing")?;
    for (recipe, name) in RECIPES {
        let text = fs::read_to_string(tree.join(recipe))?;
        ensure!(text.contains(CHECKSUM), "{recipe} has no place for the checksum");
        fs::write(folder.join(format!("recoup-{version}-{name}")), text.replace(CHECKSUM, sum))?;
    }
    Ok(())
}
