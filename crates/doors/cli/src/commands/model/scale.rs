//! `recoup model scale`: the time of a version and of a restore by the number of ranks.

use anyhow::Result;
use recoup::TierOptions;
use recoup::model::scale::{CountedCosts, PartsCosts, ScalePrediction, ScaledJob, ScaledSeconds, predict};
use serde::Serialize;

use super::machine::size;
use crate::options::duration;
use crate::output::{Output, TextTable, bytes, seconds};

/// Shown below the help.
pub(super) const EXAMPLES: &str = "\
Examples:
  recoup model scale --ranks 100000
  recoup model scale --ranks 1000,10000,100000 --bytes 50M --ranks-per-node 64";

/// The job, and its machine.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Ranks; several numbers are compared.
    #[arg(long, value_name = "N,..", value_delimiter = ',', required = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Vec<u32>,
    /// Ranks of a node.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_node: u32,
    /// Ranks that share a file of the directory [default: as where `--files` is left out: 1, and
    /// those of a node from 256 ranks on].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_file: Option<u32>,
    /// Encoded bytes of a rank in a version.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "100M")]
    bytes: f64,
    /// Time of a message.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2e-6")]
    latency: f64,
    /// Bytes per second into a node.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "25G")]
    link: f64,
    /// Bytes per second of one process to the directory.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1G")]
    writer: f64,
    /// Bytes per second of all processes to the directory.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1T")]
    bandwidth: f64,
    /// Time of a sync.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0.01")]
    sync: f64,
}

/// Calls and bytes of a rank as `table` of `tests/scale.rs` counts them, with three variables and
/// files that ranks share. The seconds are those of `work_of_rank_0` in `io`, with four variables,
/// and in `cache`, in a test build.
const COUNTED: CountedCosts = CountedCosts {
    iteration_reductions: 3.0,
    directory_reductions: [14.0, 11.0],
    // The restore has four more ways along the tree than those whose bytes count.
    memory_reductions: [18.0, 23.0 + 4.0],
    part_bytes: 1_237.0,
    portion_bytes: 3_105.0,
    // With its parts of the version before, which comes back as well.
    holding_bytes: 4_237.0,
    orders_bytes: 1_027.0,
    manifest_bytes: 1_237.0,
    write_seconds: 50e-6,
    index_seconds: 20e-6,
    read_seconds: 22e-6,
    of_parts: PartsCosts {
        ranks: 256.0,
        digest_bytes: 704.0,
        file_bytes: 154.0,
        file_seconds: 7e-6,
        top_seconds: 2e-6,
    },
    plan_seconds: 25e-6,
};

/// The results of the model.
#[derive(Debug, Serialize)]
struct ScaledJobs {
    jobs: Vec<JobJson>,
}

#[derive(Debug, Serialize)]
struct JobJson {
    ranks: u32,
    iteration_s: f64,
    directory_version: SecondsJson,
    directory_restore: SecondsJson,
    memory_version: SecondsJson,
    memory_restore: SecondsJson,
    files: f64,
    manifest_bytes: f64,
    node_manifest_bytes: f64,
}

#[derive(Debug, Serialize)]
struct SecondsJson {
    agreement_s: f64,
    manifest_s: f64,
    data_s: f64,
    total_s: f64,
}

impl From<ScaledSeconds> for SecondsJson {
    fn from(of: ScaledSeconds) -> Self {
        Self { agreement_s: of.agreement, manifest_s: of.manifest, data_s: of.data, total_s: of.total() }
    }
}

/// Answers.
pub(super) fn run(args: &Args, output: &Output) -> Result<()> {
    let found = ScaledJobs { jobs: args.ranks.iter().map(|&ranks| job(args, ranks)).collect() };
    output.emit(&found, table)
}

fn job(args: &Args, ranks: u32) -> JobJson {
    let shared = || TierOptions::default_ranks_per_file(args.ranks_per_node as usize, ranks as usize) as f64;
    let job = ScaledJob {
        ranks: f64::from(ranks),
        ranks_per_node: f64::from(args.ranks_per_node),
        ranks_per_file: args.ranks_per_file.map_or_else(shared, f64::from),
        rank_bytes: args.bytes,
        latency_seconds: args.latency,
        link_bytes_per_second: args.link,
        writer_bytes_per_second: args.writer,
        directory_bytes_per_second: args.bandwidth,
        sync_seconds: args.sync,
    };
    let ScalePrediction { iteration_seconds, directory, memory, files, manifest_bytes, node_manifest_bytes } =
        predict(&job, &COUNTED);
    let [directory_version, directory_restore] = directory.map(SecondsJson::from);
    let [memory_version, memory_restore] = memory.map(SecondsJson::from);
    JobJson {
        ranks,
        iteration_s: iteration_seconds,
        directory_version,
        directory_restore,
        memory_version,
        memory_restore,
        files,
        manifest_bytes,
        node_manifest_bytes,
    }
}

fn table(found: &ScaledJobs) -> TextTable {
    let mut table = TextTable::new(&["ranks", "step", "agreement", "manifest", "data", "in all"]);
    for job in &found.jobs {
        let steps = [
            ("version, directory", &job.directory_version),
            ("restore, directory", &job.directory_restore),
            ("version, memory", &job.memory_version),
            ("restore, memory", &job.memory_restore),
        ];
        for (step, of) in steps {
            let times = [of.agreement_s, of.manifest_s, of.data_s, of.total_s].map(seconds);
            table.row([job.ranks.to_string(), step.to_owned()].into_iter().chain(times));
        }
    }
    for job in &found.jobs {
        let JobJson { ranks, files, manifest_bytes, node_manifest_bytes, .. } = job;
        table.note(format!("{ranks} ranks: {files} files of a version; manifest {}", bytes(*manifest_bytes)));
        table.note(format!("  manifests in the memory of a node: {}", bytes(*node_manifest_bytes)));
        table.note(format!("  agreement in an iteration: {}", seconds(job.iteration_s)));
    }
    table.note("Calls and bytes are counted on up to 1,024 ranks, with three variables each.");
    table.note("Latency, bandwidths and syncs are as given; nothing was run on more ranks.");
    table
}
