//! `recoup memory`: the versions in the file of a versioned memory, and when to save them.

mod advise;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;
use recoup::memory::{MemoryLook, MemoryReader, ReadBlocks, StructureSummary, VersionView};
use serde::{Serialize, Serializer};

use crate::exit::Exit;
use crate::output::{Output, bytes, write_rows};

/// Text of the help of `list` after the options.
const LIST_EXAMPLES: &str = "Examples:
  recoup memory list /dev/shm/heat.memory
  recoup memory list /dev/shm/heat.memory --json

Roots, the list of versions and block tables are checked. Blocks are not: see
recoup memory verify.

Exit codes: 0 there is a version, 4 there is none.";

/// Text of the help of `verify` after the options.
const VERIFY_EXAMPLES: &str = "Examples:
  recoup memory verify /dev/shm/heat.memory
  recoup memory verify /dev/shm/heat.memory --json

Exit codes: 0 all is whole, 1 something is damaged but a version is whole,
4 no version is whole.";

/// The task.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: MemoryTask,
}

#[derive(Debug, Subcommand)]
enum MemoryTask {
    /// List the versions of a versioned memory: names, types, sizes, new blocks. Its program may
    /// continue meanwhile.
    #[command(after_help = LIST_EXAMPLES)]
    List(FileArgs),
    /// Read and check every block of every version of a versioned memory, and name all damage.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(FileArgs),
    /// Time between two versions under each policy, and the part of all time that is left for the
    /// program: by formula and simulated.
    #[command(after_help = advise::EXAMPLES)]
    Advise(advise::Args),
}

#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The file of the versioned memory.
    file: PathBuf,
}

/// Most lines of damage that are told one by one.
const DAMAGE_LINES_MOST: usize = 10_000;

/// The versions of a file, and damage. Versions and structures are made when they are written: a
/// list of them can be longer than the file.
#[derive(Serialize)]
struct MemoryReport {
    file: String,
    block_bytes: usize,
    whole: bool,
    versions: ListedVersions,
    damage: Vec<String>,
}

/// The versions, the oldest first.
struct ListedVersions {
    look: MemoryLook,
    /// No block of a version is damaged; `verify` alone knows.
    whole: Vec<bool>,
}

impl ListedVersions {
    fn each(&self) -> impl Iterator<Item = ListedVersion> {
        let whole = self.whole.iter().copied().map(Some).chain(std::iter::repeat(None));
        self.look.views().zip(whole).map(|(view, whole)| ListedVersion {
            version: view.number(),
            step: view.step(),
            bytes: view.structures().map(|structure| structure.bytes).sum(),
            whole,
            structures: view,
        })
    }
}

impl Serialize for ListedVersions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.each())
    }
}

/// A version.
#[derive(Serialize)]
struct ListedVersion {
    version: u64,
    step: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<bool>,
    #[serde(serialize_with = "structures")]
    structures: VersionView,
}

fn structures<S: Serializer>(view: &VersionView, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(view.structures().map(ListedStructure::from))
}

/// A structure of a version.
#[derive(Serialize)]
struct ListedStructure {
    name: String,
    element: &'static str,
    len: u64,
    bytes: u64,
    blocks: usize,
    new_blocks: usize,
}

impl From<StructureSummary> for ListedStructure {
    fn from(structure: StructureSummary) -> Self {
        let StructureSummary { name, kind, len, bytes, blocks, new_blocks } = structure;
        Self { name, element: kind.name(), len, bytes, blocks, new_blocks }
    }
}

/// Does one task.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    match &args.task {
        MemoryTask::List(args) => list(args, output),
        MemoryTask::Verify(args) => verify(args, output),
        MemoryTask::Advise(args) => advise::run(args, output),
    }
}

fn open(args: &FileArgs) -> Result<MemoryReport> {
    let file = args.file.display().to_string();
    let look = MemoryReader::open(&args.file).and_then(|reader| reader.look()).with_context(|| file.clone())?;
    Ok(MemoryReport {
        file,
        block_bytes: look.block_bytes(),
        whole: look.findings().is_empty(),
        damage: look.findings().iter().map(ToString::to_string).collect(),
        versions: ListedVersions { look, whole: Vec::new() },
    })
}

fn list(args: &FileArgs, output: &Output) -> Result<Exit> {
    let report = open(args)?;
    output.emit(&report, MemoryLines)?;
    let is_empty = report.versions.each().next().is_none();
    Ok(if is_empty { Exit::NoCheckpoint } else { Exit::Done })
}

fn verify(args: &FileArgs, output: &Output) -> Result<Exit> {
    let mut report = open(args)?;
    let mut read = ReadBlocks::default();
    let mut n_more = 0;
    for view in report.versions.look.views() {
        // A version that its program has retired meanwhile is no damage, but not whole either.
        let lines = match view.verify_unread(&mut read) {
            Ok(findings) => findings.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        report.versions.whole.push(lines.is_empty());
        let n_told = lines.len().min(DAMAGE_LINES_MOST.saturating_sub(report.damage.len()));
        n_more += lines.len() - n_told;
        report.damage.extend(lines.into_iter().take(n_told));
    }
    if n_more > 0 {
        report.damage.push(format!("and {n_more} more"));
    }
    report.whole = report.damage.is_empty();
    let usable = report.versions.whole.contains(&true);
    output.emit(&report, MemoryLines)?;
    Ok(match (usable, report.whole) {
        (false, _) => Exit::NoCheckpoint,
        (true, false) => Exit::Failed,
        (true, true) => Exit::Done,
    })
}

/// The report for people.
struct MemoryLines<'a>(&'a MemoryReport);

impl fmt::Display for MemoryLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["version", "step", "structure", "type", "values", "size", "blocks", "new", "state"];
        write_rows(f, &header.map(str::to_owned), |write| {
            self.0.versions.each().try_for_each(|version| write_version(&version, write))
        })?;
        self.0.damage.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

fn write_version(version: &ListedVersion, write: &mut dyn FnMut(&[String]) -> fmt::Result) -> fmt::Result {
    let state = match version.whole {
        None => "not read",
        Some(true) => "whole",
        Some(false) => "damaged",
    };
    version.structures.structures().try_for_each(|structure| {
        write(&[
            version.version.to_string(),
            version.step.to_string(),
            structure.name,
            structure.kind.name().to_owned(),
            structure.len.to_string(),
            bytes(structure.bytes as f64),
            structure.blocks.to_string(),
            structure.new_blocks.to_string(),
            state.to_owned(),
        ])
    })
}
