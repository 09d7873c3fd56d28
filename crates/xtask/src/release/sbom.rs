//! Lists of what is inside: one CycloneDX document for each thing that is installed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Release;
use crate::files::files_below;
use crate::{cargo, succeed};

/// Names of the things that are installed, and the crate each is built from.
const INSTALLED: [(&str, &str); 3] =
    [("recoup", "crates/doors/cli"), ("librecoup", "crates/doors/capi"), ("python", "crates/doors/python")];

/// Writes the documents into the folder of the release.
pub(super) fn write(release: &Release) -> Result<()> {
    let mut list = cargo(&release.tree);
    list.args(["cyclonedx", "--quiet", "--format", "json", "--override-filename", "sbom"]);
    succeed(list.env("SOURCE_DATE_EPOCH", &release.epoch_seconds))
        .context("cargo install --locked cargo-cyclonedx adds the command")?;
    for (name, folder) in INSTALLED {
        let text = fs::read_to_string(release.tree.join(folder).join("sbom.json"))?;
        let file = format!("recoup-{}-{name}.cdx.json", release.version);
        fs::write(release.folder.join(file), without_place(&text, &release.tree))?;
    }
    // Those that lie beside the manifests.
    let documents = files_below(&release.tree)?.into_iter().filter(|path| path.ends_with("sbom.json"));
    let vendored = release.tree.join("vendor");
    documents.filter(|path| !path.starts_with(&vendored)).try_for_each(|path| Ok(fs::remove_file(path)?))
}

/// The same document with the folder of the build left out: it differs from machine to machine.
fn without_place(text: &str, tree: &Path) -> String {
    text.replace(&format!("{}/", tree.display()), "").replace(&tree.display().to_string(), ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_does_not_say_where_it_was_made() {
        let text = r#"["path+file:///a/b/crates/doors/cli#0.1.0", "/a/b"]"#;
        assert_eq!(without_place(text, Path::new("/a/b")), r#"["path+file://crates/doors/cli#0.1.0", "."]"#);
    }
}
