//! The folder of compiled engines, and the compiler. What is there was put there whole.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use recoup::io::put_result;

/// A source, by the name that others include it by.
pub(super) struct SourceText {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

/// A library to compile.
pub(super) struct Recipe<'a> {
    pub(super) compiler: &'a str,
    pub(super) flags: &'a [String],
    /// The first is compiled; the others are what it includes.
    pub(super) sources: &'a [SourceText],
    /// Libraries that it is linked with, by their files.
    pub(super) libraries: &'a [PathBuf],
    /// A library that it finds next to it, under a name.
    pub(super) neighbour: Option<(&'static str, &'a Path)>,
    pub(super) target: &'static str,
}

/// Returns the library a recipe makes, compiled now unless it was before. Two jobs may do so at
/// once.
///
/// # Errors
/// When there is no compiler, or it refuses, or no folder can be written to.
pub(super) fn compiled(recipe: &Recipe<'_>) -> Result<PathBuf> {
    let folder = root()?.join(format!("{:016x}", key(recipe)));
    let target = folder.join(recipe.target);
    if target.exists() {
        return Ok(target);
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for source in recipe.sources {
        put_result(&folder.join(source.name), |out| out.write_all(source.text.as_bytes()))?;
    }
    let mut libraries = recipe.libraries.to_vec();
    if let Some((name, library)) = recipe.neighbour {
        let link = folder.join(name);
        std::os::unix::fs::symlink(library, &link)
            .or_else(fine_if_there)
            .with_context(|| link.display().to_string())?;
        libraries.push(link);
    }
    let Some(source) = recipe.sources.first() else { bail!("a recipe without a source") };
    let draft = folder.join(format!("draft-{}.so", std::process::id()));
    let mut command = Command::new(recipe.compiler);
    command.args(["-std=gnu11", "-O2", "-shared", "-fPIC", "-o"]).arg(&draft).arg("-I").arg(&folder);
    command.arg(folder.join(source.name)).args(recipe.flags).args(&libraries).arg("-Wl,-rpath,$ORIGIN");
    let made = command.output().with_context(|| format!("{} cannot be started", recipe.compiler))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        let first = said.lines().find(|line| line.contains("error")).unwrap_or("it says nothing");
        bail!("{} refuses {}: {first}", recipe.compiler, source.name);
    }
    let bytes = std::fs::read(&draft);
    std::fs::remove_file(&draft).ok();
    let bytes = bytes.with_context(|| format!("{} cannot be read", draft.display()))?;
    put_result(&target, |out| out.write_all(&bytes))?;
    Ok(target)
}

fn fine_if_there(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

/// Returns the folder of all engines.
fn root() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = cache.context("neither XDG_CACHE_HOME nor HOME says where compiled engines go")?;
    Ok(cache.join("recoup").join("engine"))
}

/// Everything that the library depends on, in one number.
fn key(recipe: &Recipe<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), recipe.compiler, recipe.flags, recipe.libraries, recipe.neighbour).hash(&mut hasher);
    for source in recipe.sources {
        source.text.hash(&mut hasher);
    }
    for library in recipe.libraries {
        identity(library).hash(&mut hasher);
    }
    hasher.finish()
}

/// The size and the time of a file, which a new build of it changes.
fn identity(file: &Path) -> Option<(u64, std::time::SystemTime)> {
    let found = file.metadata().ok()?;
    Some((found.len(), found.modified().ok()?))
}
