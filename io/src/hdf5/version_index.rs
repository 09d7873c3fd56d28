//! Facts that rank 0 knows of a version that it publishes: the manifest, and the parts of the whole
//! variables of `version.h5`.
//!
//! Where the manifest is in parts, rank 0 knows files in place of ranks. Each part was checked by
//! the rank that wrote it; what holds between files is checked here.

use recoup_core::{
    Comm, CommError, CommonError, FileRecord, Manifest, PARTS_FORMAT_VERSION, StoreError, collect_bytes,
};

use super::index_part::{FileDigest, IndexPart, parts_of_ranks};
use super::part;
use crate::check::{check, check_rows};

/// A version to be published.
pub(super) struct VersionIndex {
    pub(super) manifest: Manifest,
    pub(super) parts: Vec<IndexPart>,
}

/// The index on rank 0, or why there is none.
type OnRank0 = Option<Result<VersionIndex, StoreError>>;

impl VersionIndex {
    /// Brings the parts of all ranks to rank 0. Collective.
    pub(super) fn of_ranks(part: &Manifest, comm: &dyn Comm) -> Result<OnRank0, CommonError<StoreError>> {
        let index = |manifest| Self { parts: parts_of_ranks(&manifest), manifest };
        Ok(part.collected(comm)?.map(|whole| whole.map(index).map_err(StoreError::from)))
    }

    /// Brings what the ranks have written of files to rank 0. Collective.
    pub(super) fn of_files(
        part: &Manifest,
        written: &[FileDigest],
        comm: &dyn Comm,
    ) -> Result<OnRank0, CommonError<StoreError>> {
        let mine = if written.is_empty() { Vec::new() } else { serde_json::to_vec(written).unwrap_or_default() };
        let all = collect_bytes(comm, &mine)?;
        Ok(all.map(|all| Self::of_digests(part, &all)))
    }

    pub(super) fn of_digests(part: &Manifest, all: &[Vec<u8>]) -> Result<Self, StoreError> {
        let mut manifest = Manifest { format: PARTS_FORMAT_VERSION, ..part.head() };
        let mut parts = Vec::new();
        for (rank, text) in all.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
            let decoded: Result<Vec<FileDigest>, _> = serde_json::from_slice(text);
            let digests = decoded.map_err(|error| CommError::Undecodable { rank, what: error.to_string() })?;
            for digest in digests {
                if (&digest.name, digest.version) != (&part.name, part.version) {
                    let FileDigest { name, version, file, .. } = digest;
                    let what = format!("file {}: of version {version} of {name}", file.name);
                    return Err(StoreError::Manifest { version: part.version, what });
                }
                manifest.files.push(digest.file);
                parts.extend(digest.parts);
            }
        }
        part::squeeze(&mut manifest.files);
        Ok(Self { manifest, parts })
    }

    /// Adds the record of `version.h5`, and returns the manifest if it is sound.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn with_file(mut self, record: FileRecord) -> Result<Manifest, String> {
        self.manifest.files.push(record);
        let manifest = self.manifest;
        let version = manifest.version;
        if manifest.format != PARTS_FORMAT_VERSION {
            return check(&manifest, version).map(|()| manifest);
        }
        part::check_top(&manifest, version)?;
        check_rows(self.parts.iter().map(IndexPart::rows)).map(|()| manifest)
    }
}
