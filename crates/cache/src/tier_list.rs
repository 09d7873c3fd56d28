//! A row of tiers in words, fastest first: `memory,partner:ring1,rs:4+2,pfs`.

use std::fmt;
use std::str::FromStr;

use crate::protection::Protection;

/// The tiers a run's versions are stored in, as the options of every interface name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierList {
    /// Memory that outlives the process.
    pub memory: bool,
    /// Copies on partners and erasure sets, kept in memory.
    pub guards: Vec<Protection>,
    /// The directory of versions.
    pub pfs: bool,
}

/// Text that names no row of tiers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTiersError {
    /// A word that is no tier.
    #[error("{word:?}: expected memory, partner:ringD, partner:R/R/.., rs:K+M or pfs")]
    Word {
        /// The word.
        word: String,
    },
    /// A tier that is named twice.
    #[error("{word} is named twice")]
    Twice {
        /// The tier.
        word: String,
    },
    /// The directory is named before another tier.
    #[error("pfs is the slowest tier: it comes last")]
    PfsFirst,
}

impl TierList {
    /// Returns whether the versions are stored in memory alone, so that no directory is written.
    #[must_use]
    pub fn is_memory_alone(&self) -> bool {
        !self.pfs
    }
}

impl FromStr for TierList {
    type Err = ParseTiersError;

    fn from_str(text: &str) -> Result<Self, ParseTiersError> {
        let mut list = Self::default();
        for word in text.split(',') {
            let is_late = list.pfs;
            match word {
                "memory" if !list.memory => list.memory = true,
                "pfs" if !list.pfs => list.pfs = true,
                "memory" | "pfs" => return Err(ParseTiersError::Twice { word: word.to_owned() }),
                guard => {
                    let unknown = |_| ParseTiersError::Word { word: guard.to_owned() };
                    list.guards.push(guard.parse().map_err(unknown)?);
                }
            }
            if is_late {
                return Err(ParseTiersError::PfsFirst);
            }
        }
        // Copies and sums are kept in memory, next to the rank's own part.
        list.memory |= !list.guards.is_empty();
        Ok(list)
    }
}

impl fmt::Display for TierList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory.then(|| "memory".to_owned());
        let guards = self.guards.iter().map(ToString::to_string);
        let pfs = self.pfs.then(|| "pfs".to_owned());
        let words: Vec<String> = memory.into_iter().chain(guards).chain(pfs).collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tiers_are_read_and_nonsense_is_named() {
        let all: TierList = "memory,partner:ring2,rs:4+1,pfs".parse().unwrap();
        assert!(all.memory && all.pfs && all.guards.len() == 2);
        assert_eq!(all.to_string(), "memory,partner:ring2,rs:4+1,pfs");
        assert_eq!("rs:4+1".parse::<TierList>().map(|list| (list.memory, list.pfs)), Ok((true, false)));
        for wrong in ["", "disk", "memory,memory", "pfs,memory", "partner:ring0", "memory,,pfs"] {
            assert!(wrong.parse::<TierList>().is_err(), "{wrong}");
        }
    }
}
