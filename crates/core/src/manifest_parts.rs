//! The parts of a manifest, one a rank, and the whole made of them.
//!
//! Every rank has the head of a version, and the variables, frames and files of its own. Promises:
//! the whole has the parts in rank order, and only those ranks hold it that asked for it. Must not
//! know what becomes of it.

use std::collections::BTreeSet;

use crate::collective::{collect_bytes, gather_bytes, gather_unlike};
use crate::{Comm, CommError, FileRecord, FrameRecord, Manifest, VariableRecord};

/// The lists of one part, as they are sent.
type PartLists = (Vec<VariableRecord>, Vec<FrameRecord>, Vec<FileRecord>);

impl Manifest {
    /// Returns the part of one rank, without its files.
    #[must_use]
    pub fn part_of(&self, rank: usize) -> Self {
        let variables = self.variables.iter().filter(|variable| variable.rank == rank).cloned().collect();
        let frames = self.frames.iter().filter(|frame| frame.rank == rank).cloned().collect();
        Self { variables, frames, files: Vec::new(), ..self.clone() }
    }

    /// Brings the parts of all ranks to rank 0, and returns there the whole, or why there is none.
    /// Collective.
    ///
    /// # Errors
    /// As [`collect_bytes`].
    pub fn collected(&self, comm: &dyn Comm) -> Result<Option<Result<Self, CommError>>, CommError> {
        if comm.size() == 1 {
            return Ok(Some(Ok(self.clone())));
        }
        let parts = collect_bytes(comm, &self.lists())?;
        Ok(parts.map(|parts| self.joined(&parts, comm.size())))
    }

    /// Returns the whole of the parts of all ranks, on every rank. Collective.
    ///
    /// # Errors
    /// As [`Comm::gather`], and [`CommError::Undecodable`].
    pub fn gathered(&self, comm: &dyn Comm) -> Result<Self, CommError> {
        if comm.size() == 1 {
            return Ok(self.clone());
        }
        self.joined(&gather_bytes(comm, &self.lists())?, comm.size())
    }

    /// Returns the versions that frames of any rank's part are coded against. Collective.
    ///
    /// # Errors
    /// As [`gather_unlike`].
    pub fn parents_of_all(&self, comm: &dyn Comm) -> Result<BTreeSet<u64>, CommError> {
        Ok(gather_unlike(comm, &self.parents())?.into_iter().flatten().collect())
    }

    fn lists(&self) -> Vec<u8> {
        // What has no form cannot be decoded, either: there is no whole then.
        serde_json::to_vec(&(&self.variables, &self.frames, &self.files)).unwrap_or_default()
    }

    fn joined(&self, parts: &[Vec<u8>], ranks: usize) -> Result<Self, CommError> {
        let mut whole = self.clone();
        (whole.variables, whole.frames, whole.files) = PartLists::default();
        for rank in 0..ranks {
            let text = parts.get(rank).map(Vec::as_slice).unwrap_or_default();
            let lists: Result<PartLists, _> = serde_json::from_slice(text);
            let lists = lists.map_err(|error| CommError::Undecodable { rank, what: error.to_string() })?;
            whole.variables.extend(lists.0);
            whole.frames.extend(lists.1);
            whole.files.extend(lists.2);
        }
        Ok(whole)
    }
}
