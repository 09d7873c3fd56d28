//! `recoup memory`: the versions in the file of a versioned memory, and when to save them.

mod advise;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Subcommand;
use recoup::memory::{KeptVersion, MemoryReader};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Output, TextTable, bytes};

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

/// The versions of a file, and damage.
#[derive(Serialize)]
struct MemoryReport {
    file: String,
    block_bytes: usize,
    whole: bool,
    versions: Vec<ListedVersion>,
    damage: Vec<String>,
}

/// A version.
#[derive(Serialize)]
struct ListedVersion {
    version: u64,
    step: u64,
    bytes: u64,
    /// No block is damaged; `verify` alone knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<bool>,
    structures: Vec<ListedStructure>,
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

/// Does one task.
///
/// # Errors
/// When the file cannot be read, is no versioned memory, or a report cannot be written.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    match &args.task {
        MemoryTask::List(args) => list(args, output),
        MemoryTask::Verify(args) => verify(args, output),
        MemoryTask::Advise(args) => advise::run(args, output),
    }
}

fn open(args: &FileArgs) -> Result<(MemoryReader, MemoryReport)> {
    let named = || args.file.display().to_string();
    let reader = MemoryReader::open(&args.file).with_context(named)?;
    let (versions, findings) = reader.versions().with_context(named)?;
    let report = MemoryReport {
        file: named(),
        block_bytes: reader.block_bytes().with_context(named)?,
        whole: findings.is_empty(),
        versions: versions.into_iter().map(listed).collect(),
        damage: findings.iter().map(ToString::to_string).collect(),
    };
    Ok((reader, report))
}

fn listed(version: KeptVersion) -> ListedVersion {
    let bytes = version.bytes();
    let structures = version.structures.into_iter().map(|structure| ListedStructure {
        name: structure.name,
        element: structure.kind.name(),
        len: structure.len,
        bytes: structure.bytes,
        blocks: structure.blocks,
        new_blocks: structure.new_blocks,
    });
    ListedVersion { version: version.number, step: version.step, bytes, whole: None, structures: structures.collect() }
}

fn list(args: &FileArgs, output: &Output) -> Result<Exit> {
    let (_, report) = open(args)?;
    output.emit(&report, table)?;
    Ok(if report.versions.is_empty() { Exit::NoCheckpoint } else { Exit::Done })
}

fn verify(args: &FileArgs, output: &Output) -> Result<Exit> {
    let (reader, mut report) = open(args)?;
    for version in &mut report.versions {
        // A version that its program has retired meanwhile is no damage, but not whole either.
        let found = reader.view(version.version).and_then(|view| view.verify());
        let lines = match found {
            Ok(findings) => findings.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        version.whole = Some(lines.is_empty());
        report.damage.extend(lines);
    }
    report.whole = report.damage.is_empty();
    let usable = report.versions.iter().any(|version| version.whole == Some(true));
    output.emit(&report, table)?;
    Ok(match (usable, report.whole) {
        (false, _) => Exit::NoCheckpoint,
        (true, false) => Exit::Failed,
        (true, true) => Exit::Done,
    })
}

fn table(report: &MemoryReport) -> TextTable {
    let mut table =
        TextTable::new(&["version", "step", "structure", "type", "values", "size", "blocks", "new", "state"]);
    for version in &report.versions {
        let state = match version.whole {
            None => "not read",
            Some(true) => "whole",
            Some(false) => "damaged",
        };
        for structure in &version.structures {
            table.row([
                version.version.to_string(),
                version.step.to_string(),
                structure.name.clone(),
                structure.element.to_owned(),
                structure.len.to_string(),
                bytes(structure.bytes as f64),
                structure.blocks.to_string(),
                structure.new_blocks.to_string(),
                state.to_owned(),
            ]);
        }
    }
    for line in &report.damage {
        table.note(line.clone());
    }
    table
}
