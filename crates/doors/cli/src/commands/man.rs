//! `recoup man`: the help texts as manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Command;

use crate::exit::Exit;

/// Options of `recoup man`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Example: recoup man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Folder for the pages, one for each command; made if it is missing.
    folder: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(args: &Args, program: Command) -> Result<Exit> {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot make {folder}"))?;
    clap_mangen::generate_to(program, &args.folder).with_context(|| format!("cannot write pages to {folder}"))?;
    Ok(Exit::Done)
}
