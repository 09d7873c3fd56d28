//! The time of a version and of a restore by the number of ranks: agreement, manifest and files,
//! next to the bytes themselves.
//!
//! All numbers are the caller's: calls and bytes of a rank, which can be counted on few ranks, and
//! latency, bandwidths and the time of a sync. What waits for a busy network or file system is not
//! in here.

/// Calls, bytes and seconds of one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedCosts {
    /// Reductions and broadcasts of an iteration.
    pub iteration_reductions: f64,
    /// Reductions of a version in the directory, and of its restore.
    pub directory_reductions: [f64; 2],
    /// Reductions of a version in memory with copies on partners, and of its restore.
    pub memory_reductions: [f64; 2],
    /// Bytes of a rank's part of the manifest, as it is sent.
    pub part_bytes: f64,
    /// Bytes of a rank's portion of a manifest, which it is sent to restore.
    pub portion_bytes: f64,
    /// Bytes of what a rank tells rank 0 before a restore from memory: what it holds, and its parts
    /// of the manifests.
    pub holding_bytes: f64,
    /// Bytes of what rank 0 tells a rank to do then.
    pub orders_bytes: f64,
    /// Bytes of a rank in `manifest.json`.
    pub manifest_bytes: f64,
    /// Seconds that a rank of the version costs the one who checks and writes the manifest.
    pub write_seconds: f64,
    /// Seconds that it costs the one who writes `version.h5`.
    pub index_seconds: f64,
    /// Seconds that it costs the one who reads the manifest.
    pub read_seconds: f64,
    /// Costs of a file, where the manifest is in parts.
    pub of_parts: PartsCosts,
    /// Seconds that it costs rank 0 to plan the restore of a version from memory: to find who has
    /// what, to join the manifest and to give orders.
    pub plan_seconds: f64,
}

/// Bytes and seconds of a file that has a part of the manifest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartsCosts {
    /// Ranks of a job from which on files that they share have parts.
    pub ranks: f64,
    /// Bytes that rank 0 is sent of a file.
    pub digest_bytes: f64,
    /// Bytes of a file in `manifest.json`.
    pub file_bytes: f64,
    /// Seconds that a file costs rank 0: checked, in `manifest.json` and in `version.h5`.
    pub file_seconds: f64,
    /// Seconds that its record costs a rank that reads the top of the manifest.
    pub top_seconds: f64,
}

/// A job and its machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledJob {
    /// Ranks.
    pub ranks: f64,
    /// Ranks of a node.
    pub ranks_per_node: f64,
    /// Ranks that share a file of the directory.
    pub ranks_per_file: f64,
    /// Encoded bytes of a rank in a version.
    pub rank_bytes: f64,
    /// Seconds of a message.
    pub latency_seconds: f64,
    /// Bytes per second into a node.
    pub link_bytes_per_second: f64,
    /// Bytes per second of one process to the directory.
    pub writer_bytes_per_second: f64,
    /// Bytes per second of all to the directory.
    pub directory_bytes_per_second: f64,
    /// Seconds of a sync.
    pub sync_seconds: f64,
}

/// The seconds of one step, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScaledSeconds {
    /// Reductions, broadcasts and syncs.
    pub agreement: f64,
    /// The manifest: sent, checked, written or read.
    pub manifest: f64,
    /// The encoded values.
    pub data: f64,
}

impl ScaledSeconds {
    /// Returns the sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.agreement + self.manifest + self.data
    }
}

/// The time and room of a job of this size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalePrediction {
    /// Seconds of agreement in an iteration.
    pub iteration_seconds: f64,
    /// A version in the directory, and its restore on as many ranks.
    pub directory: [ScaledSeconds; 2],
    /// A version in memory with a copy on another node, and its restore on as many ranks.
    pub memory: [ScaledSeconds; 2],
    /// Files of a version in the directory.
    pub files: f64,
    /// Bytes of `manifest.json`, which rank 0 has in memory when it writes a version.
    pub manifest_bytes: f64,
    /// Bytes that manifests of two versions take in the memory of a node, copies included.
    pub node_manifest_bytes: f64,
}

/// Predicts from these costs.
#[must_use]
pub fn predict(job: &ScaledJob, costs: &CountedCosts) -> ScalePrediction {
    let levels = job.ranks.log2().ceil().max(1.0);
    let agree = |reductions: f64| reductions * levels * job.latency_seconds;
    let of_all = |bytes: f64| job.ranks * bytes;
    let here = job.ranks_per_node.min(job.ranks);
    let parts = &costs.of_parts;
    let files = (job.ranks / job.ranks_per_file).ceil();
    let in_parts = job.ranks_per_file > 1.0 && job.ranks >= parts.ranks;
    let manifest_bytes = if in_parts { files * parts.file_bytes } else { of_all(costs.manifest_bytes) };
    // One way of the tree: log P messages, and all bytes into the node of rank 0, or out of it.
    let tree = |bytes: f64| levels * job.latency_seconds + of_all(bytes) / job.link_bytes_per_second;
    let manifest_work = if in_parts {
        // The first rank of a file checks and writes the part of its ranks, which all files do at
        // the same time.
        let of_file = costs.part_bytes / job.link_bytes_per_second + costs.write_seconds + costs.index_seconds;
        let sent = levels * job.latency_seconds + files * parts.digest_bytes / job.link_bytes_per_second;
        job.ranks_per_file.min(job.ranks) * of_file + sent + files * parts.file_seconds
    } else {
        tree(costs.part_bytes) + of_all(costs.write_seconds + costs.index_seconds)
    };
    let read_work = if in_parts {
        // Rank 0 reads the top, which every rank gets; each reads the part of its file.
        let sent = levels * (job.latency_seconds + manifest_bytes / job.link_bytes_per_second);
        let of_rank = costs.manifest_bytes / job.writer_bytes_per_second + costs.read_seconds;
        let top = manifest_bytes / job.writer_bytes_per_second + files * 2.0 * parts.top_seconds;
        sent + top + job.ranks_per_file.min(job.ranks) * of_rank
    } else {
        let read = of_all(costs.read_seconds + costs.manifest_bytes / job.writer_bytes_per_second);
        tree(costs.portion_bytes) + read
    };
    let data = of_all(job.rank_bytes) / job.directory_bytes_per_second;
    let copied = here * job.rank_bytes / job.link_bytes_per_second;
    ScalePrediction {
        iteration_seconds: agree(costs.iteration_reductions),
        directory: [
            ScaledSeconds {
                agreement: agree(costs.directory_reductions[0]) + 3.0 * job.sync_seconds,
                manifest: manifest_work + manifest_bytes / job.writer_bytes_per_second,
                data,
            },
            ScaledSeconds { agreement: agree(costs.directory_reductions[1]), manifest: read_work, data },
        ],
        memory: [
            ScaledSeconds {
                agreement: agree(costs.memory_reductions[0]),
                // Each rank seals its own part, which goes where its values go.
                manifest: costs.write_seconds,
                data: copied,
            },
            ScaledSeconds {
                agreement: agree(costs.memory_reductions[1]),
                // Of two versions.
                manifest: tree(costs.holding_bytes)
                    + tree(costs.orders_bytes + costs.portion_bytes)
                    + of_all(2.0 * costs.plan_seconds),
                data: 0.0,
            },
        ],
        files: files + 2.0,
        manifest_bytes,
        node_manifest_bytes: 4.0 * here * costs.manifest_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: ScaledJob = ScaledJob {
        ranks: 1024.0,
        ranks_per_node: 64.0,
        ranks_per_file: 64.0,
        rank_bytes: 1e9,
        latency_seconds: 2e-6,
        link_bytes_per_second: 25e9,
        writer_bytes_per_second: 1e9,
        directory_bytes_per_second: 1e12,
        sync_seconds: 0.01,
    };

    const COSTS: CountedCosts = CountedCosts {
        iteration_reductions: 3.0,
        directory_reductions: [14.0, 10.0],
        memory_reductions: [12.0, 20.0],
        part_bytes: 1_200.0,
        portion_bytes: 3_000.0,
        holding_bytes: 4_200.0,
        orders_bytes: 1_000.0,
        manifest_bytes: 1_300.0,
        write_seconds: 5e-5,
        index_seconds: 2e-5,
        read_seconds: 2e-5,
        of_parts: PartsCosts {
            ranks: 256.0,
            digest_bytes: 900.0,
            file_bytes: 170.0,
            file_seconds: 3e-5,
            top_seconds: 3e-6,
        },
        plan_seconds: 1e-4,
    };

    #[test]
    fn agreement_grows_with_the_depth_of_a_tree_and_manifests_with_the_ranks_but_in_memory() {
        let [few, many] = [1024.0, 1024.0 * 1024.0].map(|ranks| predict(&ScaledJob { ranks, ..JOB }, &COSTS));
        assert!((many.iteration_seconds / few.iteration_seconds - 2.0).abs() < 1e-12);
        assert_eq!((few.files, many.files), (18.0, 16_386.0));
        let of = |prediction: &ScalePrediction| [prediction.directory, prediction.memory];
        for (few, many) in of(&few).as_flattened().iter().zip(of(&many).as_flattened()) {
            assert!(many.agreement <= 2.0 * few.agreement);
        }
        let own = |ranks: f64| predict(&ScaledJob { ranks, ranks_per_file: 1.0, ..JOB }, &COSTS);
        let [own_few, own_files] = [1024.0, 1024.0 * 1024.0].map(own);
        for (few, many) in [(own_few.directory[1], own_files.directory[1]), (few.memory[1], many.memory[1])] {
            let grown = many.manifest / few.manifest;
            assert!((900.0..=1024.0).contains(&grown), "{grown}");
        }
        // In parts, rank 0 has files alone, which cost it less than a tenth.
        for (many, own_files) in many.directory.iter().zip(own_files.directory) {
            assert!(many.manifest * 10.0 < own_files.manifest, "{many:?}");
        }
        assert!(many.manifest_bytes * 100.0 < own_files.manifest_bytes, "{many:?}");
        assert_eq!(many.memory[0].manifest, few.memory[0].manifest);
        assert_eq!(many.node_manifest_bytes, few.node_manifest_bytes);
    }
}
