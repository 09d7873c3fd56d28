//! The command line of the programs with versions: where versions are, and when the next is due.

use std::error::Error;
use std::path::PathBuf;

use recoup::memory::{MediumKind, Memory, MemoryError, MemoryOptions, SavePolicy, Saver, Versioned};
use recoup::model::interval::parse_seconds;

const USAGE: &str = "[--memory FILE] [--medium auto|file|map] \
    [--policy every:STEPS|auto|young|daly|greedy|DURATION] [--mtti DURATION]";

/// Arguments of a program.
struct KeepArguments {
    /// File of the user; without one, there is a file for this run alone.
    path: Option<PathBuf>,
    medium: MediumKind,
    rule: String,
    mtti_seconds: Option<f64>,
}

/// When a version is due.
enum SaveRule {
    /// After a number of steps.
    Steps(u64),
    /// When a policy says so, from what a commit costs.
    Policy(Box<Saver>),
}

/// The versions of a program.
pub(crate) struct Keep {
    memory: Memory,
    rule: SaveRule,
    n_saved: u64,
    /// The file of this run alone, which is removed at the end.
    temporary: Option<PathBuf>,
}

impl KeepArguments {
    fn read(program: &str) -> Result<Self, Box<dyn Error>> {
        let mut read = Self { path: None, medium: MediumKind::Auto, rule: "every:10".to_owned(), mtti_seconds: None };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{program} {USAGE}"))?;
            match (argument.as_str(), value.as_str()) {
                ("--memory", file) => read.path = Some(file.into()),
                ("--medium", "auto") => read.medium = MediumKind::Auto,
                ("--medium", "file") => read.medium = MediumKind::File,
                ("--medium", "map") => read.medium = MediumKind::Map,
                ("--policy", rule) => read.rule = rule.to_owned(),
                ("--mtti", text) => {
                    let seconds = parse_seconds(text).filter(|seconds| *seconds > 0.0);
                    read.mtti_seconds = Some(seconds.ok_or_else(|| format!("{text}: expected a duration above 0"))?);
                }
                _ => return Err(format!("{program} {USAGE}").into()),
            }
        }
        Ok(read)
    }

    fn rule(&self) -> Result<SaveRule, Box<dyn Error>> {
        if let Some(steps) = self.rule.strip_prefix("every:") {
            return Ok(SaveRule::Steps(steps.parse()?));
        }
        let policy: SavePolicy = self.rule.parse()?;
        Ok(SaveRule::Policy(Box::new(Saver::new(self.mtti_seconds.map_or(policy, |mtti| policy.with_mtti(mtti))))))
    }
}

impl Keep {
    /// Reads the command line of the program, and fills the state with the newest version of its
    /// file. Says where the program continues, and what was damaged.
    pub(crate) fn resume<S: Versioned>(program: &str, state: &mut S) -> Result<Self, Box<dyn Error>> {
        let arguments = KeepArguments::read(program)?;
        let own = format!("recoup-example-{program}-{}.memory", std::process::id());
        let path = arguments.path.clone().unwrap_or_else(|| std::env::temp_dir().join(own));
        let options = MemoryOptions { medium: arguments.medium, ..S::memory_options() };
        let mut memory = Memory::open(&path, options)?;
        let temporary = arguments.path.is_none().then_some(path);
        let restored = memory.restore_newest(&mut [state])?;
        memory.findings().iter().for_each(|finding| eprintln!("damaged: {finding}"));
        if let Some(version) = restored {
            println!("continues after step {}", version.step);
        }
        // A policy counts the time of computing, which begins now.
        Ok(Self { memory, rule: arguments.rule()?, n_saved: 0, temporary })
    }

    /// Makes a version of the state if one is due.
    pub(crate) fn save_if_due<S: Versioned>(&mut self, state: &mut S) -> Result<(), MemoryError> {
        let step = state.version_step().unwrap_or_default();
        let number = match &mut self.rule {
            SaveRule::Steps(steps) if step.checked_rem(*steps) == Some(0) => Some(self.memory.commit_state(state)?),
            SaveRule::Steps(_) => None,
            SaveRule::Policy(saver) => saver.commit_if_due(&mut self.memory, step, &mut [state])?,
        };
        self.n_saved += u64::from(number.is_some());
        Ok(())
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        if let SaveRule::Policy(saver) = &self.rule
            && let Some(decision) = saver.decision()
        {
            eprintln!("{} versions; the last step: {decision}", self.n_saved);
        }
        if let Some(path) = &self.temporary {
            // What cannot be removed is left to the system.
            let _ = std::fs::remove_file(path);
        }
    }
}
