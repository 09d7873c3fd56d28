//! `recoup completions`: shell completions of the command line.

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use crate::exit::Exit;

/// Options of `recoup completions`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Example:\n  recoup completions bash > ~/.local/share/bash-completion/completions/recoup")]
pub(crate) struct Args {
    /// Shell.
    shell: Shell,
}

/// Prints the completions.
pub(crate) fn run(args: &Args, mut program: Command) -> Result<Exit> {
    // clap's own writer panics where the reader has gone.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "recoup", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script).context("writing to stdout")?;
    Ok(Exit::Done)
}
