//! The sources of a program's variables in a version, whoever wrote it: the name each has there,
//! the rank's own part as it was, or pieces of the parts of others.
//!
//! Promises: contiguous rows come back by their global numbers, replicated values from any rank,
//! and what each rank has for itself only on as many ranks as wrote it. Must not know codecs or
//! stores.

use std::collections::{BTreeMap, BTreeSet};

use recoup_core::{Comm, Distribution, Manifest, Role, Variable, VariableRecord};

use crate::error::PipelineError;

/// Declared changes of a program's variables. The same on all ranks.
///
/// ```
/// let mut changes = recoup_pipeline::VariableChanges::default();
/// changes.may_lack("limiter"); // Versions without it leave the program's values as they are.
/// changes.renamed("velocity", "u"); // Versions without it hold it as u.
/// changes.dropped("scratch"); // Versions may hold it; nothing is restored from it.
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableChanges {
    defaults: BTreeSet<String>,
    /// Former names, by the names of now.
    former: BTreeMap<String, String>,
    dropped: BTreeSet<String>,
}

impl VariableChanges {
    /// Declares that versions may lack a variable. A restore then leaves the program's values as
    /// they are.
    pub fn may_lack(&mut self, name: &str) {
        self.defaults.insert(name.to_owned());
    }

    /// Declares that versions which lack a variable hold it under its former name.
    pub fn renamed(&mut self, name: &str, former: &str) {
        self.former.insert(name.to_owned(), former.to_owned());
    }

    /// Declares that versions may hold a variable which the program has no more.
    pub fn dropped(&mut self, name: &str) {
        self.dropped.insert(name.to_owned());
    }

    /// Returns whether versions may lack a variable.
    #[must_use]
    pub fn has_default(&self, name: &str) -> bool {
        self.defaults.contains(name)
    }

    /// Returns the name under which a version holds a variable. A name that is the former one of
    /// another variable, which the version lacks, is that variable's.
    pub(crate) fn saved_name<'a>(&'a self, name: &'a str, manifest: &Manifest) -> Option<&'a str> {
        let is_taken = self.renames(manifest).any(|(_, former)| former == name);
        if holds(manifest, name) && !is_taken {
            return Some(name);
        }
        self.renames(manifest).find(|(now, _)| *now == name).map(|(_, former)| former)
    }

    /// Returns the pairs of new and former names that a version is older than.
    pub(crate) fn renames<'a>(&'a self, manifest: &Manifest) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.former.iter().map(|(now, former)| (now.as_str(), former.as_str()));
        pairs.filter(|(now, former)| !holds(manifest, now) && holds(manifest, former))
    }

    /// Returns the application's variables that a version holds and that are left out: neither one
    /// of `taken`, the names in the version, nor declared.
    pub(crate) fn left_over<'a>(&self, manifest: &'a Manifest, taken: &[String]) -> Vec<&'a str> {
        let is_left = |v: &&VariableRecord| {
            v.role == Role::Dynamic && !self.dropped.contains(&v.name) && !taken.contains(&v.name)
        };
        let mut names: Vec<&str> = manifest.variables.iter().filter(is_left).map(|v| v.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn holds(manifest: &Manifest, name: &str) -> bool {
    manifest.variables.iter().any(|variable| variable.name == name)
}

/// The source of one registered variable's values on this rank.
#[derive(Debug)]
pub(crate) enum VariableSource {
    /// This rank wrote it, just as it is now.
    Own(VariableRecord),
    /// Parts of other ranks, in row order.
    Pieces {
        /// The variable as this rank has it now.
        target: VariableRecord,
        /// The pieces to read.
        pieces: Vec<SourcePiece>,
    },
}

impl VariableSource {
    /// Returns the variable as this rank has it now.
    pub(crate) fn record(&self) -> &VariableRecord {
        match self {
            Self::Own(record) | Self::Pieces { target: record, .. } => record,
        }
    }
}

/// A run of values of some rank's part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SourcePiece {
    /// The part it lies in.
    pub(crate) source: VariableRecord,
    /// First value, counted in that part.
    pub(crate) start: u64,
    /// Values.
    pub(crate) len: u64,
    /// Position of the first value in the target.
    pub(crate) at: u64,
}

/// Returns the names of all variables a rank may find in a version.
pub(crate) fn names<'a>(manifest: &'a Manifest, comm: &dyn Comm) -> Vec<&'a str> {
    let is_ours = |v: &&VariableRecord| v.rank == comm.rank() || manifest.ranks != comm.size();
    let mut names: Vec<&str> = manifest.variables.iter().filter(is_ours).map(|v| v.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Finds the values of `variable` in a version, which holds it under the name `saved`; `target` is
/// its record on this rank.
pub(crate) fn find(
    manifest: &Manifest,
    variable: &Variable<'_>,
    saved: &str,
    target: VariableRecord,
    comm: &dyn Comm,
) -> Result<VariableSource, PipelineError> {
    let refuse = |what: String| PipelineError::Variable {
        version: manifest.version,
        variable: variable.name.to_owned(),
        rank: comm.rank(),
        what,
    };
    let parts: Vec<&VariableRecord> = manifest.variables.iter().filter(|v| v.name == saved).collect();
    let own = parts.iter().find(|v| v.rank == comm.rank());
    let Some(found) = own.or(parts.first()) else {
        return Err(lacks(manifest, variable.name, comm));
    };
    if found.element != target.element {
        let what = format!("{} {} registered, {} {} saved", target.len, target.element, found.len, found.element);
        return Err(refuse(what));
    }
    if let Some(own) = own
        && manifest.ranks == comm.size()
        && is_same_part(own, &target)
    {
        return Ok(VariableSource::Own((*own).clone()));
    }
    let pieces = match (target.distribution, found.distribution) {
        (Distribution::Rows { first, global }, Distribution::Rows { global: saved, .. }) if global == saved => {
            let pieces = rows(&parts, first, target.len);
            // No rank need have seen the parts of all others: each looks for gaps and overlaps.
            let follow = |end: u64, piece: &SourcePiece| if piece.at == end { end + piece.len } else { end };
            let found = pieces.iter().fold(0, follow);
            // Rows beyond the last are the program's mistake, and are in no part.
            let saved = first.saturating_add(target.len).min(global).saturating_sub(first);
            if found != saved || pieces.iter().map(|piece| piece.len).sum::<u64>() != saved {
                let what = format!("{saved} rows saved, {found} of them in the parts this rank reads");
                return Err(refuse(what));
            }
            pieces
        }
        (Distribution::Rows { global, .. }, Distribution::Rows { global: saved, .. }) => {
            return Err(refuse(format!("{global} rows registered, {saved} saved")));
        }
        (Distribution::Replicated, Distribution::Replicated) if found.len == target.len => {
            vec![SourcePiece { source: (*found).clone(), start: 0, len: found.len, at: 0 }]
        }
        (Distribution::RankLocal, Distribution::RankLocal) if manifest.ranks != comm.size() => {
            return Err(PipelineError::RankCount {
                version: manifest.version,
                variable: variable.name.to_owned(),
                expected: comm.size(),
                found: manifest.ranks,
            });
        }
        (registered, saved) if std::mem::discriminant(&registered) != std::mem::discriminant(&saved) => {
            return Err(refuse(format!("{} registered, {} saved", spread(registered), spread(saved))));
        }
        _ => {
            let what = format!("{} {} registered, {} {} saved", target.len, target.element, found.len, found.element);
            return Err(refuse(what));
        }
    };
    Ok(VariableSource::Pieces { target, pieces })
}

/// The error of a version that does not hold a variable.
pub(crate) fn lacks(manifest: &Manifest, variable: &str, comm: &dyn Comm) -> PipelineError {
    let held = names(manifest, comm).into_iter().map(str::to_owned).collect();
    PipelineError::Lacks { version: manifest.version, variable: variable.to_owned(), held }
}

/// Returns whether a part holds the values of `target`, in the same order.
fn is_same_part(found: &VariableRecord, target: &VariableRecord) -> bool {
    found.len == target.len && found.distribution == target.distribution
}

/// Returns the pieces of `parts` that cover `len` global rows from `first` on.
fn rows(parts: &[&VariableRecord], first: u64, len: u64) -> Vec<SourcePiece> {
    let piece = |source: &&VariableRecord| {
        let Distribution::Rows { first: theirs, .. } = source.distribution else { return None };
        let start = first.max(theirs);
        let end = (first + len).min(theirs + source.len);
        (start < end).then(|| SourcePiece {
            source: (*source).clone(),
            start: start - theirs,
            len: end - start,
            at: start - first,
        })
    };
    let mut pieces: Vec<SourcePiece> = parts.iter().filter_map(piece).collect();
    pieces.sort_by_key(|piece| piece.at);
    pieces
}

fn spread(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Rows { .. } => "rows of a global array",
        Distribution::Replicated => "replicated values",
        Distribution::RankLocal => "each rank's own values",
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::{ElementType, Role};

    use super::*;

    fn part(rank: usize, first: u64, len: u64) -> VariableRecord {
        let distribution = Distribution::Rows { first, global: 20 };
        VariableRecord { distribution, ..VariableRecord::new("x", rank, Role::Iterate, ElementType::F64, len as usize) }
    }

    #[test]
    fn pieces_cover_every_row_once_in_order() {
        let parts = [part(2, 11, 9), part(0, 0, 5), part(1, 5, 6), part(3, 20, 0)];
        let parts: Vec<&VariableRecord> = parts.iter().collect();
        for first in 0..=20 {
            for len in 0..=20 - first {
                let mut next = 0;
                for piece in rows(&parts, first, len) {
                    let Distribution::Rows { first: theirs, .. } = piece.source.distribution else { unreachable!() };
                    assert_eq!(piece.at, next);
                    assert_eq!(theirs + piece.start, first + next);
                    assert!(piece.start + piece.len <= piece.source.len && piece.len > 0);
                    next += piece.len;
                }
                assert_eq!(next, len, "rows {first}..{}", first + len);
            }
        }
    }
}
