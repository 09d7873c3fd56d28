//! `cargo xtask release`: the files of a release, made from one commit.
//!
//! Promises: the same commit gives the same bytes, on any day and in any folder. The source archive
//! builds without a network, and is the source distribution of the Python package too. Nothing is
//! uploaded.

mod changelog;
mod recipes;
mod sbom;
mod vendor;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::files::clear;
use crate::{cargo, ci, succeed};

/// Folder of the files, below the repository.
const FOLDER: &str = "target/release-files";

/// A commit that is released.
struct Release {
    version: String,
    /// Seconds since 1970 of the commit: the time of every file.
    epoch_seconds: String,
    /// The commit's files and what is added to them, in a folder of their own.
    tree: PathBuf,
    /// Folder of the files of the release.
    folder: PathBuf,
}

/// Makes the files of the version that Cargo.toml names; with `tag`, commits its section of the
/// changelog and tags it first.
pub(crate) fn run(root: &Path, tag: bool) -> Result<()> {
    let version = version(root)?;
    ensure!(git(root, &["status", "--porcelain"])?.is_empty(), "the work tree has changes that no commit has");
    compare_with_last(root)?;
    if tag {
        changelog::commit_section(root, &version)?;
        let message = format!("recoup {version}");
        git(root, &["tag", "--annotate", &format!("v{version}"), "--message", &message])?;
    }
    let folder = root.join(FOLDER);
    let release = Release {
        epoch_seconds: git(root, &["log", "-1", "--format=%ct"])?,
        tree: folder.join(format!("recoup-{version}")),
        folder,
        version,
    };
    make(root, &release)
}

/// The version that all crates have.
fn version(root: &Path) -> Result<String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let line =
        manifest.lines().find_map(|line| line.strip_prefix("version = \"")).context("Cargo.toml has no version")?;
    Ok(line.trim_end_matches('"').to_owned())
}

fn make(root: &Path, release: &Release) -> Result<()> {
    clear(&release.folder)?;
    export(root, release)?;
    vendor::add(&release.tree)?;
    add_pages(root, &release.tree)?;
    add_python_metadata(&release.tree)?;
    sbom::write(release)?;
    let section = changelog::section(root, &release.version)?;
    fs::write(release.folder.join(format!("recoup-{}-changes.md", release.version)), section)?;
    pack(release)?;
    recipes::write(&release.tree, &release.folder, &release.version)?;
    fs::remove_dir_all(&release.tree)?;
    checksums(&release.folder)?;
    print!("{}", fs::read_to_string(release.folder.join("SHA256SUMS"))?);
    Ok(())
}

/// Compares the interfaces of the crates with those of the last tag. The first release has none.
fn compare_with_last(root: &Path) -> Result<()> {
    let tags = git(root, &["tag", "--list", "v*", "--sort=-version:refname"])?;
    let Some(last) = tags.lines().next() else {
        println!("no version is tagged yet: there is no interface to compare with");
        return Ok(());
    };
    succeed(cargo(root).args(["semver-checks", "--workspace", "--baseline-rev", last]))
        .context("cargo install --locked cargo-semver-checks adds the command; else raise the version")
}

/// Copies the files of the commit into the tree.
fn export(root: &Path, release: &Release) -> Result<()> {
    let prefix = format!("--prefix=recoup-{}/", release.version);
    let mut archive =
        Command::new("git").args(["archive", &prefix, "HEAD"]).current_dir(root).stdout(Stdio::piped()).spawn()?;
    let files = archive.stdout.take().context("git archive has no output")?;
    succeed(Command::new("tar").arg("--extract").arg("--directory").arg(&release.folder).stdin(files))?;
    ensure!(archive.wait()?.success(), "git archive failed");
    Ok(())
}

/// Adds manual pages and completions, which the program writes.
fn add_pages(root: &Path, tree: &Path) -> Result<()> {
    // As `make build` does, whose program it is.
    let packages = ["--package", "recoup-cli", "--package", "recoup-h5plugin"];
    succeed(cargo(root).args(["build", "--quiet", "--release", "--locked"]).args(packages))?;
    let metadata = ci::metadata(root)?;
    let program =
        Path::new(metadata["target_directory"].as_str().context("no target directory")?).join("release/recoup");
    succeed(Command::new(&program).arg("man").arg(tree.join("man/man1")).stdout(Stdio::null()))?;
    let completions = tree.join("completions");
    fs::create_dir_all(&completions)?;
    for shell in ["bash", "fish", "zsh"] {
        let output = Command::new(&program).args(["completions", shell]).output()?;
        ensure!(output.status.success(), "no completions for {shell}");
        fs::write(completions.join(format!("recoup.{shell}")), output.stdout)?;
    }
    Ok(())
}

/// Adds PKG-INFO, which makes the source archive a source distribution of the Python package.
fn add_python_metadata(tree: &Path) -> Result<()> {
    let scratch = tree.join("target/metadata");
    // The backend fills this folder when it builds.
    fs::create_dir_all(tree.join("target/wheel-data"))?;
    let mut maturin = Command::new("maturin");
    maturin.args(["pep517", "write-dist-info", "--metadata-directory"]).arg(&scratch).stdout(Stdio::null());
    succeed(maturin.current_dir(tree)).context("pip install maturin adds the command")?;
    let info = fs::read_dir(&scratch)?.next().context("maturin wrote no metadata")??.path();
    fs::copy(info.join("METADATA"), tree.join("PKG-INFO"))?;
    fs::remove_dir_all(tree.join("target"))?;
    Ok(())
}

/// Packs the tree: names in order, one time and one owner for all files, no time in the envelope.
fn pack(release: &Release) -> Result<()> {
    let name = format!("recoup-{}", release.version);
    let archive = release.folder.join(format!("{name}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u+rw,go=rX,a-s", &format!("--mtime=@{}", release.epoch_seconds)]);
    succeed(tar.arg("--file").arg(&archive).arg("--directory").arg(&release.folder).arg(&name))?;
    succeed(Command::new("gzip").args(["--best", "--no-name"]).arg(&archive))
}

/// The SHA-256 of files in a folder, as sha256sum prints it.
fn sha256(folder: &Path, names: &[OsString]) -> Result<String> {
    let output = Command::new("sha256sum").args(names).current_dir(folder).output()?;
    ensure!(output.status.success(), "sha256sum failed");
    Ok(String::from_utf8(output.stdout)?)
}

/// Writes the SHA-256 of every file of the release.
fn checksums(folder: &Path) -> Result<()> {
    let names = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<std::io::Result<Vec<OsString>>>()?;
    names.sort();
    fs::write(folder.join("SHA256SUMS"), sha256(folder, &names)?)?;
    Ok(())
}

/// Output of git, without the last newline.
fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is linked as a whole is compiled as its last package says: for size, no loop of a
    /// solver or codec uses vectors.
    #[test]
    fn no_program_or_library_with_solvers_is_compiled_for_size() {
        let manifest = fs::read_to_string(crate::root().join("Cargo.toml")).unwrap();
        let (_, chosen) = manifest.split_once("[profile.release.package]\n").unwrap();
        let lines = chosen.lines().take_while(|line| !line.is_empty());
        let sized: Vec<&str> = lines.filter_map(|line| Some(line.split_once(".opt-level")?.0)).collect();
        let metadata = ci::metadata(&crate::root()).unwrap();
        for package in metadata["packages"].as_array().unwrap() {
            let mut kinds = package["targets"].as_array().unwrap().iter().flat_map(|of| of["kind"].as_array().unwrap());
            let is_linked = kinds.any(|kind| kind == "bin" || kind == "cdylib");
            let mut needed = package["dependencies"].as_array().unwrap().iter();
            let has_solvers = needed.any(|of| of["name"].as_str().unwrap().starts_with("recoup"));
            let name = package["name"].as_str().unwrap();
            assert!(!is_linked || !has_solvers || !sized.contains(&name), "{name} is compiled for size");
        }
        assert!(sized.contains(&"clap_builder"), "{sized:?}");
    }
}
