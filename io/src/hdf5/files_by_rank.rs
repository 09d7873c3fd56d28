//! The files of a version by the ranks that share each, as their names say.

use std::collections::BTreeMap;

use recoup_core::{FileRecord, Manifest};

use super::rank_file::file_name;

/// Returns the first and the last of the ranks whose file has this name.
pub(super) fn ranks_of(name: &str) -> Option<(usize, usize)> {
    let range = name.strip_suffix(".h5")?;
    match (range.strip_prefix("ranks-"), range.strip_prefix("rank-")) {
        (Some(range), _) => range.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))),
        (_, Some(rank)) => rank.parse().ok().map(|rank| (rank, rank)),
        _ => None,
    }
}

/// The files of a version, by the first and the last of the ranks that share each.
pub(super) struct FilesByRank<'a>(BTreeMap<usize, (usize, &'a FileRecord)>);

impl<'a> FilesByRank<'a> {
    pub(super) fn of(manifest: &'a Manifest) -> Self {
        let files = manifest.files.iter().filter_map(|file| ranks_of(&file.name).map(|ranks| (ranks, file)));
        Self(files.map(|((first, last), file)| (first, (last, file))).collect())
    }

    /// Returns the record of the file of a rank.
    pub(super) fn record(&self, rank: usize) -> Option<&'a FileRecord> {
        let (_, (last, file)) = self.0.range(..=rank).next_back()?;
        (rank <= *last).then_some(*file)
    }

    /// Checks that each of these ranks has one file.
    pub(super) fn require_all(&self, ranks: usize) -> Result<(), String> {
        let mut next = 0;
        for (first, (last, file)) in &self.0 {
            if *first != next || last < first {
                return Err(format!("file {}: of ranks {first} to {last}, rank {next} expected", file.name));
            }
            next = last + 1;
        }
        if next == ranks { Ok(()) } else { Err(format!("files of {next} ranks, {ranks} expected")) }
    }

    /// Returns the names of the files, each behind the first and the last of its ranks.
    pub(super) fn names(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(first, (last, file))| (format!("{first}-{last}"), file.name.clone()))
    }

    /// Returns the name of the file that a rank's frames are in, or would be.
    pub(super) fn name(&self, rank: usize) -> String {
        self.record(rank).map_or_else(|| file_name(rank), |file| file.name.clone())
    }
}
