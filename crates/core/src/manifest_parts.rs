//! The parts of a manifest, one a rank, and the whole made of them.
//!
//! Every rank has the head of a version, and the variables, frames and files of its own. Promises:
//! the whole has the parts in rank order, and only those ranks hold it that asked for it. Must not
//! know what becomes of it.

use std::collections::BTreeSet;

use crate::collective::{collect_bytes, gather_unlike};
use crate::{
    Comm, CommError, Distribution, FORMAT_VERSION, FileRecord, FrameRecord, Manifest, VariableRecord, mix, text_hash,
};

/// The lists of one part, as they are sent.
type PartLists = (Vec<VariableRecord>, Vec<FrameRecord>, Vec<FileRecord>);

impl Manifest {
    /// Returns the part of one rank, without its files: a manifest of one text.
    #[must_use]
    pub fn part_of(&self, rank: usize) -> Self {
        let variables = self.variables.iter().filter(|variable| variable.rank == rank).cloned().collect();
        let frames = self.frames.iter().filter(|frame| frame.rank == rank).cloned().collect();
        Self { format: FORMAT_VERSION, variables, frames, ..self.head() }
    }

    /// Returns everything of a manifest but its lists, which may have a hundred thousand ranks and
    /// are not copied.
    #[must_use]
    pub fn head(&self) -> Self {
        Self {
            format: self.format,
            fingerprint: self.fingerprint,
            nonzeros: self.nonzeros,
            method: self.method.clone(),
            scheme: self.scheme,
            resume: self.resume,
            rule: self.rule,
            residual: self.residual,
            columns: self.columns.clone(),
            system: self.system,
            extra_iterations_predicted: self.extra_iterations_predicted,
            measured: self.measured.clone(),
            ..Self::new(&self.name, self.version, self.ranks)
        }
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

    /// Puts the lists of `part` behind its own.
    pub fn append(&mut self, part: Self) {
        self.variables.extend(part.variables);
        self.frames.extend(part.frames);
        self.files.extend(part.files);
    }

    /// Returns a number whose sum over the parts of a version, modulo 2^64, is zero where the rows
    /// of each variable follow each other from the first to the last, and hardly ever elsewhere.
    /// The first part, which has `is_first`, must have all variables that are spread by rows.
    #[must_use]
    pub fn row_ends(&self, is_first: bool) -> u64 {
        let mut sum = 0_u64;
        let mut seen = BTreeSet::new();
        for variable in &self.variables {
            let Distribution::Rows { first, global } = variable.distribution else { continue };
            let name = mix(text_hash(variable.name.as_bytes()) ^ global);
            let end = |row: u64| mix(name ^ mix(row.wrapping_add(1)));
            // Where parts meet, the end of one takes away the start of the next.
            sum = sum.wrapping_add(end(first.wrapping_add(variable.len))).wrapping_sub(end(first));
            if is_first && seen.insert(&variable.name) {
                sum = sum.wrapping_sub(end(global)).wrapping_add(end(0));
            }
        }
        sum
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

#[cfg(test)]
mod tests {
    use crate::{ElementType, Role};

    use super::*;

    /// Parts with rows of two variables, as `(first, len, global)`.
    fn sum(parts: &[(u64, u64, u64)]) -> u64 {
        let part = |(rank, &(first, len, global)): (usize, &(u64, u64, u64))| {
            let variable = |name: &str| VariableRecord {
                distribution: Distribution::Rows { first, global },
                ..VariableRecord::new(name, rank, Role::Iterate, ElementType::F64, len as usize)
            };
            let manifest = Manifest { variables: vec![variable("x"), variable("p")], ..Manifest::new("s", 1, 3) };
            manifest.row_ends(rank == 0)
        };
        parts.iter().enumerate().map(part).fold(0, u64::wrapping_add)
    }

    #[test]
    fn row_ends_sum_up_to_zero_where_parts_tile_the_rows_and_nowhere_else() {
        for tiled in [&[(0, 9, 9)][..], &[(0, 4, 9), (4, 0, 9), (4, 5, 9)], &[(4, 5, 9), (0, 4, 9)], &[(0, 0, 0)]] {
            assert_eq!(sum(tiled), 0, "{tiled:?}");
        }
        for other in [
            &[(0, 8, 9)][..],
            &[(0, 0, 9)],
            &[(0, 9, 9), (0, 9, 9)],
            &[(0, 4, 9), (5, 4, 9)],
            &[(0, 5, 9), (4, 5, 9)],
            &[(0, 4, 9), (4, 5, 8)],
            &[(1, 9, 9)],
            &[(u64::MAX, 2, 9)],
        ] {
            assert_ne!(sum(other), 0, "{other:?}");
        }
    }
}
