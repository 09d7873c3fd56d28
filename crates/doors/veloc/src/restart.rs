//! Restart: the newest version that is whole on all ranks, in whatever place each of its parts is.

use std::collections::BTreeSet;
use std::path::PathBuf;

use recoup_core::{Comm, CommError, CommonError, gather_json, gathered};

use crate::Error;
use crate::copies::{FoundPart, Offer, PartRequest, RankPart, common};
use crate::draft::{remove_files, routed};
use crate::places::NameStores;
use crate::regions::{Regions, Selection};

/// The state of one version on all ranks.
pub(crate) enum RestartVerdict {
    /// Whole, with this rank's part.
    Whole(RankPart),
    /// Written by this other number of ranks.
    OtherRanks(usize),
    /// Not whole, with the findings of each rank.
    NotWhole(String),
}

/// Returns the versions of which some rank has a part, newest first. Collective.
pub(crate) fn versions(comm: &dyn Comm, stores: &NameStores) -> Result<Vec<u64>, CommonError<Error>> {
    let listed = || {
        let mut mine = stores.scratch.versions()?;
        if comm.rank() == 0 {
            mine.extend(stores.persistent.versions()?);
        }
        Ok(mine)
    };
    let all: BTreeSet<u64> = gathered(comm, listed())?.into_iter().flatten().collect();
    Ok(all.into_iter().rev().filter(|&version| i32::try_from(version).is_ok()).collect())
}

/// Reads and verifies a version: from scratch where all of it is there, otherwise part by part from
/// where it is whole. Collective.
pub(crate) fn examine(comm: &dyn Comm, stores: &NameStores, version: u64) -> Result<RestartVerdict, CommError> {
    let rank = comm.rank();
    let ranks = comm.size();
    let here = PartRequest { version, rank, ranks, stored_rank: 0 };
    let mut offer = Offer::default();
    let scratch = here.load(stores.scratch.as_ref());
    offer.add("scratch", &scratch);
    let offers = gather_json(comm, &offer)?;
    if common(&offers).is_some()
        && let FoundPart::Whole(part) = scratch
    {
        return Ok(RestartVerdict::Whole(part));
    }
    let there = PartRequest { stored_rank: rank, ..here };
    let persistent = match &scratch {
        // The same bytes, verified already.
        FoundPart::Whole(part) if there.token(stores.persistent.as_ref()) == Some(part.token) => FoundPart::Absent,
        _ => there.load(stores.persistent.as_ref()),
    };
    offer.add("persistent", &persistent);
    let offers = gather_json(comm, &offer)?;
    let Some(token) = common(&offers) else { return Ok(refused(&offers)) };
    for found in [scratch, persistent] {
        if let FoundPart::Whole(part) = found
            && part.token == token
        {
            return Ok(RestartVerdict::Whole(part));
        }
    }
    Ok(refused(&offers))
}

fn refused(offers: &[Offer]) -> RestartVerdict {
    if let Some(ranks) = offers.iter().find_map(|offer| offer.others) {
        return RestartVerdict::OtherRanks(ranks);
    }
    let damage = offers.iter().enumerate().filter(|(_, offer)| offer.tokens.is_empty());
    let lines: Vec<String> = damage.map(|(rank, o)| format!("rank {rank}: {}", o.damage.join(", "))).collect();
    let lines = if lines.is_empty() { vec!["ranks hold parts of different attempts".to_owned()] } else { lines };
    RestartVerdict::NotWhole(lines.join("; "))
}

/// A version whose values are being taken back.
pub(crate) struct Restart {
    pub(crate) name: String,
    pub(crate) version: u64,
    part: RankPart,
    files_dir: PathBuf,
    /// Files written for the program to read.
    files: Vec<(String, PathBuf)>,
}

impl Restart {
    pub(crate) fn begin(name: &str, version: u64, part: RankPart, files_dir: PathBuf) -> Result<Self, Error> {
        remove_files(&files_dir)?;
        Ok(Self { name: name.to_owned(), version, part, files_dir, files: Vec::new() })
    }

    /// Returns the bytes of a region.
    pub(crate) fn size(&self, id: i32) -> Result<usize, Error> {
        let held = self.part.regions.get(&id);
        held.map(Vec::len).ok_or_else(|| self.refuse(id, "it is not in the version".to_owned()))
    }

    /// Restores the regions selected, all of them or none.
    ///
    /// # Safety
    /// The program's memory is there, and nothing else touches it meanwhile.
    pub(crate) unsafe fn recover(&self, regions: &Regions, selection: Selection<'_>) -> Result<(), Error> {
        let protected = regions.of(&self.name);
        let ids = selection.of(self.part.regions.keys().copied());
        let ids = ids.map_err(|id| self.refuse(id, "it is not in the version".to_owned()))?;
        let mut pairs = Vec::with_capacity(ids.len());
        for id in ids {
            let Some(held) = self.part.regions.get(&id) else { continue };
            let region = protected.get(&id).ok_or_else(|| self.refuse(id, "it is not protected".to_owned()))?;
            if region.bytes() != held.len() {
                let what = format!("{} bytes protected, {} saved", region.bytes(), held.len());
                return Err(self.refuse(id, what));
            }
            pairs.push((region, held));
        }
        for (region, held) in pairs {
            // SAFETY: as the caller promises.
            unsafe { region.write(held) }?;
        }
        Ok(())
    }

    /// Writes the file that the program calls `original` to a path of its own, and returns the
    /// path.
    pub(crate) fn route(&mut self, original: &str) -> Result<PathBuf, Error> {
        let name = self.file(original).ok_or_else(|| self.no_file(original))?.to_owned();
        if let Some((_, path)) = self.files.iter().find(|(known, _)| *known == name) {
            return Ok(path.clone());
        }
        let path = routed(&self.files_dir, self.files.len(), original)?;
        std::fs::write(&path, &self.part.files[&name]).map_err(|source| Error::file("write", &path, source))?;
        self.files.push((name, path.clone()));
        Ok(path)
    }

    /// Finds a file by its name or, where that is unique, by the last part of its name. The only
    /// file of a version has any name: VELOC 1.8 derives the path from checkpoint, rank and version
    /// alone, so its programs may ask for a file under another name than they wrote it.
    fn file(&self, original: &str) -> Option<&str> {
        let last = |name: &str| name.rsplit('/').next().map(str::to_owned);
        let names: Vec<&str> = self.part.files.keys().map(String::as_str).collect();
        let alike: Vec<&str> = names.iter().copied().filter(|name| last(name) == last(original)).collect();
        match (names.as_slice(), alike.as_slice()) {
            (all, _) if all.contains(&original) => all.iter().copied().find(|name| *name == original),
            (&[only], _) | (_, &[only]) => Some(only),
            _ => None,
        }
    }

    fn no_file(&self, original: &str) -> Error {
        let names: Vec<&str> = self.part.files.keys().map(String::as_str).collect();
        let held =
            if names.is_empty() { "no routed file".to_owned() } else { format!("the files {}", names.join(", ")) };
        let what = format!("version {} holds {held}; {original} is not one of them", self.version);
        Error::Argument { call: "VELOC_Route_file", what }
    }

    fn refuse(&self, id: i32, what: String) -> Error {
        Error::Region { id, version: self.version, what }
    }
}

impl Drop for Restart {
    fn drop(&mut self) {
        remove_files(&self.files_dir).ok();
    }
}
