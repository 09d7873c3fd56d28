//! The command line of the programs with versions: where versions are, and when the next is due.

use std::error::Error;
use std::path::{Path, PathBuf};

use recoup::memory::Memory;

/// Arguments of a program: `[--memory FILE] [--every STEPS]`.
#[derive(Debug)]
pub(crate) struct Keep {
    path: PathBuf,
    every: u64,
    /// The user has not named the file: it is removed at the end.
    is_temporary: bool,
}

impl Keep {
    /// Reads the command line of the program. Without a file, there is one for this run alone.
    pub(crate) fn from_arguments(program: &str) -> Result<Self, Box<dyn Error>> {
        let own = std::env::temp_dir().join(format!("recoup-example-{program}-{}.memory", std::process::id()));
        let mut keep = Self { path: own, every: 10, is_temporary: true };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match (argument.as_str(), arguments.next()) {
                ("--memory", Some(file)) => {
                    keep.path = file.into();
                    keep.is_temporary = false;
                }
                ("--every", Some(steps)) => keep.every = steps.parse()?,
                _ => return Err(format!("{program} [--memory FILE] [--every STEPS]").into()),
            }
        }
        Ok(keep)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Decides whether the state after this many steps becomes a version: the place of a policy.
    pub(crate) fn is_due(&self, step: u64) -> bool {
        step.checked_rem(self.every) == Some(0)
    }

    /// Says where the program goes on, and what was damaged.
    pub(crate) fn report(&self, memory: &Memory, step: u64) {
        memory.findings().iter().for_each(|finding| eprintln!("damaged: {finding}"));
        if step > 0 {
            println!("goes on after step {step}");
        }
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        if self.is_temporary {
            // What cannot be removed is left to the system.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
