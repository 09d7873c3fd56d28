//! One rank's part of a version, read back: only verified values are given out.

use std::collections::{BTreeMap, BTreeSet};

use recoup_core::{Manifest, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::coding::{META, decode, file_name, region_id};

/// The description that a version holds of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// The same on all ranks, and another one for every checkpoint: parts that belong together have
    /// it in common.
    pub(crate) token: u64,
    /// The rank whose part it is.
    pub(crate) rank: usize,
    /// Number of ranks that wrote it.
    pub(crate) ranks: usize,
    /// The program's names of its files.
    pub(crate) files: Vec<String>,
}

/// A part, whole and in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankPart {
    pub(crate) token: u64,
    pub(crate) regions: BTreeMap<i32, Vec<u8>>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// The part of one rank that a store holds of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundPart {
    /// All of it.
    Whole(RankPart),
    /// A version of another number of ranks.
    Others {
        /// Ranks that wrote it.
        ranks: usize,
    },
    /// A part that cannot be used, and why.
    Damaged(String),
    /// No part.
    Absent,
}

/// One rank's part of a version, to be looked for in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartRequest {
    pub(crate) version: u64,
    /// The number of this rank.
    pub(crate) rank: usize,
    /// Number of ranks.
    pub(crate) ranks: usize,
    /// The rank in the store: scratch holds one rank, its own 0.
    pub(crate) stored_rank: usize,
}

impl PartRequest {
    /// Reads the whole part and checks all of it.
    pub(crate) fn load(self, store: &dyn Store) -> FoundPart {
        match self.try_load(store) {
            Ok(found) => found,
            Err(error) => FoundPart::Damaged(error.to_string()),
        }
    }

    fn try_load(self, store: &dyn Store) -> Result<FoundPart, Error> {
        let Some((manifest, meta)) = self.meta(store)? else { return Ok(FoundPart::Absent) };
        if meta.ranks != self.ranks {
            return Ok(FoundPart::Others { ranks: meta.ranks });
        }
        let Some(meta) = meta.of(self.rank) else {
            return Ok(FoundPart::Damaged(format!("the part of rank {} lies where this rank's should", meta.rank)));
        };
        let mut part = RankPart { token: meta.token, regions: BTreeMap::new(), files: BTreeMap::new() };
        for record in manifest.variables.iter().filter(|v| v.rank == self.stored_rank) {
            if let Some(id) = region_id(&record.name) {
                part.regions.insert(id, decode(store, &manifest, record)?);
            }
        }
        for (index, name) in meta.files.iter().enumerate() {
            let held = |v: &&recoup_core::VariableRecord| v.rank == self.stored_rank && v.name == file_name(index);
            match manifest.variables.iter().find(held) {
                Some(record) => drop(part.files.insert(name.clone(), decode(store, &manifest, record)?)),
                None => return Ok(FoundPart::Damaged(format!("file {name} is not in it"))),
            }
        }
        Ok(FoundPart::Whole(part))
    }

    /// Reads the token of the version alone; `None` if it cannot be read.
    pub(crate) fn token(self, store: &dyn Store) -> Option<u64> {
        let (_, meta) = self.meta(store).ok()??;
        Some(meta.of(self.rank).filter(|meta| meta.ranks == self.ranks)?.token)
    }

    /// Reads the number of ranks that wrote a version from any of its parts: one of another number
    /// of ranks may have no part of ours.
    fn meta(self, store: &dyn Store) -> Result<Option<(Manifest, Meta)>, Error> {
        let manifest = match store.manifest(self.version) {
            Err(StoreError::Missing { .. }) => return Ok(None),
            manifest => manifest?,
        };
        let ours = manifest.variables.iter().find(|v| v.name == META && v.rank == self.stored_rank);
        let any = || manifest.variables.iter().find(|v| v.name == META);
        let Some(record) = ours.or_else(any) else {
            let version = self.version;
            return Err(StoreError::Manifest { version, what: "not a version of this interface".to_owned() }.into());
        };
        let bytes = decode(store, &manifest, record)?;
        let damaged =
            |e: serde_json::Error| StoreError::Manifest { version: self.version, what: format!("{META}: {e}") };
        let meta = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(Some((manifest, meta)))
    }
}

impl Meta {
    fn of(&self, rank: usize) -> Option<&Self> {
        (self.rank == rank).then_some(self)
    }
}

/// The copies of its part that one rank offers to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) tokens: BTreeSet<u64>,
    /// Ranks that wrote it, where their number is another one.
    pub(crate) others: Option<usize>,
    /// The damage of the copies that are not offered.
    pub(crate) damage: Vec<String>,
}

impl Offer {
    pub(crate) fn add(&mut self, place: &str, found: &FoundPart) {
        match found {
            FoundPart::Whole(part) => drop(self.tokens.insert(part.token)),
            FoundPart::Others { ranks } => self.others = Some(*ranks),
            FoundPart::Damaged(what) => self.damage.push(format!("{place}: {what}")),
            FoundPart::Absent => self.damage.push(format!("{place}: not there")),
        }
    }
}

/// A token that every rank offers.
pub(crate) fn common(offers: &[Offer]) -> Option<u64> {
    let (first, others) = offers.split_first()?;
    first.tokens.iter().copied().find(|token| others.iter().all(|offer| offer.tokens.contains(token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_different_attempts_have_nothing_in_common() {
        let offer = |tokens: &[u64]| Offer { tokens: tokens.iter().copied().collect(), ..Offer::default() };
        assert_eq!(common(&[offer(&[1]), offer(&[2])]), None);
        assert_eq!(common(&[offer(&[1, 2]), offer(&[2])]), Some(2));
        assert_eq!(common(&[offer(&[1]), offer(&[])]), None);
    }
}
