//! The portions of a version's manifest: what each rank needs of it to restore its variables.
//!
//! A portion has the parts whose frames the rank reads, and one part of every variable, by which
//! the variable is known. Where the manifest is in parts, rank 0 reads its top, which every rank
//! gets, and each reads its own parts. Elsewhere rank 0 knows the whole, and hands out portions.
//! Promises: a rank finds in its portion what it would find in the whole. Must not know codecs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use recoup_core::{
    Comm, CommonError, Distribution, FrameRecord, Manifest, RankFailure, Registered, RowRange, StoreError, Variable,
    VariableRecord, broadcast_json, collect_json, hand_out_bytes,
};

use super::chain_reader::ChainReader;
use crate::error::PipelineError;
use crate::session::Session;

/// The distributions of the variables of a rank, and their lengths.
pub(super) type Spreads = Vec<(Distribution, u64)>;

/// Returns how the owners' variables are spread now.
pub(super) fn spreads(owners: &[&mut dyn Registered]) -> Spreads {
    let spread = |v: Variable<'_>| (v.distribution, v.values.len() as u64);
    owners.iter().flat_map(|owner| owner.variables()).map(spread).collect()
}

/// Rows of a part: its first, the end, and the rank that has it.
type PartRows = (u64, u64, usize);

/// A manifest, looked up by ranks and rows.
pub(super) struct PartIndex<'a> {
    ranks: usize,
    parts: BTreeMap<usize, (Vec<&'a VariableRecord>, Vec<&'a FrameRecord>)>,
    /// The first rank that has a variable, by its name.
    firsts: BTreeMap<&'a str, usize>,
    /// The parts of each variable that is spread by rows, ascending, with its global rows.
    rows: BTreeMap<&'a str, (u64, Vec<PartRows>)>,
}

impl<'a> PartIndex<'a> {
    pub(super) fn of(manifest: &'a Manifest) -> Self {
        let mut index =
            Self { ranks: manifest.ranks, parts: BTreeMap::new(), firsts: BTreeMap::new(), rows: BTreeMap::new() };
        for variable in &manifest.variables {
            index.parts.entry(variable.rank).or_default().0.push(variable);
            index.firsts.entry(&variable.name).or_insert(variable.rank);
            if let Distribution::Rows { first, global } = variable.distribution {
                let (_, rows) = index.rows.entry(&variable.name).or_insert((global, Vec::new()));
                rows.push((first, first.saturating_add(variable.len), variable.rank));
            }
        }
        for frame in &manifest.frames {
            index.parts.entry(frame.rank).or_default().1.push(frame);
        }
        index.rows.values_mut().for_each(|(_, rows)| rows.sort_unstable());
        index
    }

    /// Returns the ranks of the version whose frames rank `rank` of this job reads.
    pub(super) fn read_by(&self, rank: usize, spreads: &[(Distribution, u64)]) -> BTreeSet<usize> {
        let mut ranks = BTreeSet::from([place_of(rank, self.ranks)]);
        for &(distribution, len) in spreads {
            let Distribution::Rows { first, global } = distribution else { continue };
            for (_, rows) in self.rows.values().filter(|(rows, _)| *rows == global) {
                let before = rows.partition_point(|&(_, end, _)| end <= first);
                let reached = rows[before..].iter().take_while(|&&(start, ..)| start < first.saturating_add(len));
                ranks.extend(reached.filter(|(start, end, _)| start < end).map(|&(.., rank)| rank));
            }
        }
        ranks
    }

    /// Returns the portion of these ranks, with everything else of `head`.
    fn portion(&self, head: &Manifest, ranks: &BTreeSet<usize>) -> Manifest {
        let mut portion = head.clone();
        let known = self.firsts.iter().filter(|(_, rank)| !ranks.contains(rank));
        let known: BTreeSet<(usize, &str)> = known.map(|(name, rank)| (*rank, *name)).collect();
        let owners: BTreeSet<usize> = ranks.iter().copied().chain(known.iter().map(|(rank, _)| *rank)).collect();
        for rank in owners {
            let Some((variables, frames)) = self.parts.get(&rank) else { continue };
            let is_in = |name: &str| ranks.contains(&rank) || known.contains(&(rank, name));
            portion.variables.extend(variables.iter().filter(|v| is_in(&v.name)).map(|&v| v.clone()));
            portion.frames.extend(frames.iter().filter(|f| is_in(&f.variable)).map(|&f| f.clone()));
        }
        portion
    }
}

/// The spreads that the ranks ask a version for.
pub(super) struct Asked {
    pub(super) own: Spreads,
    /// The spreads of all ranks, on rank 0, once they were collected.
    of_all: Option<Option<Vec<Spreads>>>,
}

impl Asked {
    pub(super) fn new(own: Spreads) -> Self {
        Self { own, of_all: None }
    }

    /// Brings the spreads of all ranks to rank 0, and returns them there. Collective.
    pub(super) fn of_all(&mut self, comm: &dyn Comm) -> Result<Option<&[Spreads]>, CommonError<PipelineError>> {
        if self.of_all.is_none() {
            self.of_all = Some(collect_json(comm, &self.own)?);
        }
        Ok(self.of_all.iter().flatten().next().map(Vec::as_slice))
    }
}

impl Session {
    /// Returns this rank's portion of the manifest of a version, or why there is none, on rank 0 at
    /// least. Of what the version is coded against, `reader` gets the portions. Collective.
    pub(super) fn portion(
        &self,
        version: u64,
        asked: &mut Asked,
        reader: &mut ChainReader<'_>,
    ) -> Result<Result<Manifest, Vec<PipelineError>>, CommonError<PipelineError>> {
        let comm = self.comm.as_ref();
        if comm.size() == 1 {
            return Ok(self.store.manifest(version).map_err(|error| vec![error.into()]));
        }
        let mut top = (comm.rank() == 0).then(|| self.store.top(version));
        let found = || top.iter().flatten().flat_map(|top| self.tops(top)).collect();
        let tops: Vec<Manifest> = broadcast_json(comm, found)?;
        if let [top, ancestors @ ..] = &tops[..] {
            return Ok(self.own_portion(top, ancestors, &asked.own, reader).map_err(|error| vec![error.into()]));
        }
        let asked = asked.of_all(comm)?;
        let whole = asked.zip(top.take()).map(|(asked, top)| {
            let top = top?;
            let manifest = if top.is_top() { self.store.manifest(version)? } else { top };
            let portions = portions(&manifest, &reader.ancestors(&manifest), asked)?;
            Ok::<_, PipelineError>((manifest, portions))
        });
        let all = whole.as_ref().and_then(|whole| whole.as_ref().ok()).map_or(&[][..], |(_, all)| all);
        let own = hand_out_bytes(comm, all)?;
        if let Some(whole) = whole {
            return Ok(whole.map(|(manifest, _)| manifest).map_err(|error| vec![error]));
        }
        // Nothing is here where rank 0 has nothing: it says why.
        let mut manifests: Vec<Manifest> = serde_json::from_slice(&own).unwrap_or_default();
        if manifests.is_empty() {
            return Ok(Err(Vec::new()));
        }
        let manifest = manifests.remove(0);
        reader.preload(manifests);
        Ok(Ok(manifest))
    }
}

impl Session {
    /// Returns a top, and those of all versions that it is coded against, the newest first; none
    /// where some manifest is not in parts. In virtual time, too: rank 0 then needs all frames.
    fn tops(&self, top: &Manifest) -> Vec<Manifest> {
        let mut tops = vec![top.clone()];
        let mut left = top.parents();
        while let Some(parent) = left.pop_last() {
            // One that is damaged is named by whoever needs it.
            let Ok(top) = self.store.top(parent) else { continue };
            left.extend(top.parents().into_iter().filter(|&older| older < parent));
            tops.push(top);
        }
        let are_tops = !self.costs.clock.is_virtual() && tops.iter().all(Manifest::is_top);
        if are_tops { tops } else { Vec::new() }
    }

    /// Reads the parts below a top that this rank needs, and of its ancestors those of the same
    /// ranks. Local.
    fn own_portion(
        &self,
        top: &Manifest,
        ancestors: &[Manifest],
        own: &Spreads,
        reader: &mut ChainReader<'_>,
    ) -> Result<Manifest, StoreError> {
        let rank = self.comm.rank();
        reader.know_chain(std::iter::once(top).chain(ancestors).map(|top| top.version).collect());
        let rows = own.iter().filter_map(|&(distribution, len)| match distribution {
            Distribution::Rows { first, global } => Some(RowRange { first, len, global }),
            _ => None,
        });
        let place = BTreeSet::from([place_of(rank, top.ranks)]);
        let parts = self.store.parts(top, &place, &rows.collect::<Vec<_>>())?;
        let index = PartIndex::of(&parts);
        let portion = index.portion(&top.head(), &index.read_by(rank, own));
        let owners: BTreeSet<usize> = portion.variables.iter().map(|variable| variable.rank).collect();
        let of_ancestor = |top: &Manifest| {
            // One that is damaged is named by whoever needs it.
            let parts = self.store.parts(top, &owners, &[]).ok()?;
            Some(PartIndex::of(&parts).portion(&top.head(), &owners))
        };
        reader.preload(ancestors.iter().filter_map(of_ancestor).collect());
        Ok(portion)
    }
}

/// Returns the rank of a version whose part rank `rank` of this job reads first.
fn place_of(rank: usize, ranks: usize) -> usize {
    if rank < ranks { rank } else { 0 }
}

/// Makes the portions of all ranks but rank 0, of a version and of those it is coded against.
fn portions(
    manifest: &Manifest,
    ancestors: &[Arc<Manifest>],
    asked: &[Spreads],
) -> Result<Vec<Vec<u8>>, PipelineError> {
    let all: Vec<&Manifest> = std::iter::once(manifest).chain(ancestors.iter().map(AsRef::as_ref)).collect();
    let indexed: Vec<(Manifest, PartIndex<'_>)> = all.iter().map(|of| (of.head(), PartIndex::of(of))).collect();
    let mut portions = vec![Vec::new()];
    for (rank, spreads) in asked.iter().enumerate().skip(1) {
        let ranks = indexed[0].1.read_by(rank, spreads);
        let own: Vec<Manifest> = indexed.iter().map(|(head, index)| index.portion(head, &ranks)).collect();
        let text = serde_json::to_vec(&own).map_err(|error| RankFailure::internal(rank, error.to_string()))?;
        portions.push(text);
    }
    Ok(portions)
}
