//! The orders of a repair: rank 0 learns what all ranks hold, and tells each what to send, to take
//! and to keep, so that no other rank knows more than its own share.
//!
//! Promises: the orders of all ranks fit together, and a version is made whole on all of them or
//! dropped on all. Must not know shelves.

use std::collections::BTreeMap;

use recoup_core::{Manifest, Reads};
use serde::{Deserialize, Serialize};

use crate::part;
use crate::plan::{Held, ParityHead, Transfer, TransferContent, Way, more_copies};
use crate::store::{CommitMark, check_whole, joined, part_hash};

/// The whole parts of a version that one rank found on one shelf.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Holding {
    pub(crate) version: u64,
    pub(crate) mark: CommitMark,
    pub(crate) payloads: Vec<usize>,
    pub(crate) parities: Vec<(usize, ParityHead)>,
}

/// One rank's share in bringing a version back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) version: u64,
    pub(crate) mark: CommitMark,
    /// The reason why it is dropped, where it is.
    pub(crate) dropped: Option<String>,
    /// Some rank has a transfer: all take part.
    pub(crate) is_moving: bool,
    /// The transfers from this rank and to it, in the order of the plan.
    pub(crate) transfers: Vec<Transfer>,
    /// The parts that this rank gets, or has.
    pub(crate) parts: Vec<PartOrder>,
    /// The ranks whose parts of the manifest this rank tells rank 0.
    pub(crate) told: Vec<usize>,
    /// Every rank had its own part before.
    pub(crate) was_whole: bool,
}

/// A part that a rank gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartOrder {
    /// The rank that wrote it.
    pub(crate) owner: usize,
    pub(crate) way: Way,
    /// Kept against losses alone: the version is whole without it.
    pub(crate) is_spare: bool,
}

/// A version that some rank has, on rank 0.
pub(crate) struct FoundVersion {
    pub(crate) version: u64,
    mark: CommitMark,
    held: Held,
    was_whole: bool,
    /// The rank that tells each part of the manifest, by the rank that wrote it.
    tellers: Vec<usize>,
}

/// The holdings of ranks of the versions of one number, by their identity.
type OfVersion<'a> = BTreeMap<u64, Vec<(usize, &'a Holding)>>;

/// Returns every version that some rank has. Of two versions of the same number, the one that more
/// shelves have counts.
pub(crate) fn find_versions(holdings: &[Vec<Holding>]) -> Vec<FoundVersion> {
    let mut found: BTreeMap<u64, OfVersion<'_>> = BTreeMap::new();
    for (rank, holding) in holdings.iter().enumerate().flat_map(|(rank, of)| of.iter().map(move |h| (rank, h))) {
        found.entry(holding.version).or_default().entry(holding.mark.id).or_default().push((rank, holding));
    }
    let of_version = |(version, ids): (u64, OfVersion<'_>)| {
        let held_by = ids.into_values().max_by_key(Vec::len)?;
        let mark = held_by.first()?.1.mark.clone();
        let held = held(&held_by);
        let is_held = |rank: usize| held.payloads.get(&rank).is_some_and(|holders| holders.contains(&rank));
        let was_whole = (0..holdings.len()).all(is_held);
        Some(FoundVersion { version, mark, held, was_whole, tellers: Vec::new() })
    };
    found.into_iter().filter_map(of_version).collect()
}

fn held(held_by: &[(usize, &Holding)]) -> Held {
    let mut held = Held::default();
    for (rank, holding) in held_by {
        for &owner in &holding.payloads {
            held.payloads.entry(owner).or_default().push(*rank);
        }
        for (guard, head) in &holding.parities {
            held.parities.entry((*guard, head.members[head.member])).or_insert_with(|| (*rank, head.clone()));
        }
    }
    held
}

impl FoundVersion {
    /// Orders the parts that no rank has any more from their erasure sets, and the whole manifest
    /// from those who have its parts. Returns the orders of `size` ranks.
    pub(crate) fn rebuild(&mut self, size: usize) -> Vec<Orders> {
        let mut orders = vec![self.orders(); size];
        let lost: Vec<usize> = (0..self.mark.ranks).filter(|owner| !self.held.payloads.contains_key(owner)).collect();
        let ways: Vec<(usize, Option<Way>)> =
            lost.into_iter().map(|owner| (owner, self.held.way(owner, owner % size))).collect();
        let gone: Vec<usize> = ways.iter().filter(|(_, way)| way.is_none()).map(|(owner, _)| *owner).collect();
        if !gone.is_empty() {
            return dropped(orders, &lost_words(&gone));
        }
        for (owner, way) in ways.into_iter().filter_map(|(owner, way)| Some((owner, way?))) {
            give(&mut orders, owner % size, PartOrder { owner, way, is_spare: false });
            self.held.payloads.insert(owner, vec![owner % size]);
        }
        self.tellers = (0..self.mark.ranks).map(|owner| self.held.payloads[&owner][0]).collect();
        for (owner, &teller) in self.tellers.iter().enumerate() {
            orders[teller].told.push(owner);
        }
        orders
    }

    /// Joins the parts of the manifest, which each rank told in the order that it was asked for
    /// them, and takes them out of `told`.
    ///
    /// # Errors
    /// The reason why they are no manifest.
    pub(crate) fn whole(&self, told: &mut [impl Iterator<Item = Vec<u8>>]) -> Result<Manifest, String> {
        let version = self.version;
        let texts: Vec<Vec<u8>> = self.tellers.iter().map(|&teller| told[teller].next().unwrap_or_default()).collect();
        let part = |(rank, text): (usize, &Vec<u8>)| {
            part::open(text, version, rank).map_err(|what| format!("the part of rank {rank} is lost: {what}"))
        };
        let parts = texts.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?;
        let id = texts.iter().enumerate().fold(0, |id: u64, (rank, text)| id.wrapping_add(part_hash(rank, text)));
        if id != self.mark.id {
            return Err("its parts are of more than one attempt".to_owned());
        }
        let whole = joined(parts).ok_or("no part")?;
        check_whole(&whole).map_err(|error| error.to_string()).map(|()| whole)
    }

    /// Orders the parts that each of the ranks reads, and, where the version has no guards of these
    /// ranks, as many copies as stand `losses` lost `nodes`.
    pub(crate) fn bring(
        &self,
        whole: Result<&Manifest, &String>,
        reads: &Reads<'_>,
        nodes: &[usize],
        losses: usize,
    ) -> Vec<Orders> {
        let size = nodes.len();
        let mut orders = vec![self.orders(); size];
        let wants = match whole {
            Ok(whole) => reads(whole),
            Err(what) => return dropped(orders, what),
        };
        let mut gone = Vec::new();
        let mut holders = self.held.payloads.clone();
        for (to, owner) in wants.iter().enumerate().flat_map(|(to, owners)| owners.iter().map(move |&of| (to, of))) {
            match self.held.way(owner, to) {
                Some(way) => give(&mut orders, to, PartOrder { owner, way, is_spare: false }),
                None => gone.push(owner),
            }
            holders.entry(owner).or_default().push(to);
        }
        if !gone.is_empty() {
            return dropped(orders, &lost_words(&gone));
        }
        if self.mark.ranks != size {
            for (owner, holders) in &mut holders {
                holders.sort_unstable();
                holders.dedup();
                let from = self.held.payloads[owner][0];
                for (_, to) in more_copies(holders, nodes, 1 + losses) {
                    let way = Way::Copy(Transfer { from, to, content: TransferContent::Payloads { rank: *owner } });
                    give(&mut orders, to, PartOrder { owner: *owner, way, is_spare: true });
                }
            }
        }
        orders
    }

    /// Returns the guards of the version, a bit each.
    pub(crate) fn guards(&self) -> u64 {
        self.mark.guards
    }

    fn orders(&self) -> Orders {
        Orders {
            version: self.version,
            mark: self.mark.clone(),
            dropped: None,
            is_moving: false,
            transfers: Vec::new(),
            parts: Vec::new(),
            told: Vec::new(),
            was_whole: self.was_whole,
        }
    }
}

/// Orders a part for rank `to`, and the transfers that bring it.
fn give(orders: &mut [Orders], to: usize, part: PartOrder) {
    for transfer in part.way.transfers() {
        orders[transfer.from].transfers.push(transfer.clone());
        if transfer.to != transfer.from {
            orders[transfer.to].transfers.push(transfer.clone());
        }
    }
    if !part.way.transfers().is_empty() {
        orders.iter_mut().for_each(|orders| orders.is_moving = true);
    }
    orders[to].parts.push(part);
}

fn dropped(mut orders: Vec<Orders>, what: &str) -> Vec<Orders> {
    orders.iter_mut().for_each(|orders| orders.dropped = Some(what.to_owned()));
    orders
}

fn lost_words(ranks: &[usize]) -> String {
    let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
    format!("the part of rank {} is lost", ranks.join(", "))
}

#[cfg(test)]
mod tests {
    use recoup_core::{Distribution, ElementType, FileRecord, Place, Role, VariableRecord};

    use super::*;

    /// The sealed part of a rank, with three variables of one value.
    fn part_text(rank: usize, ranks: usize) -> Vec<u8> {
        let mut part = Manifest::new("run", 6, ranks);
        let file = format!("rank-{rank}");
        for (index, name) in ["x", "r", "p"].into_iter().enumerate() {
            let distribution = Distribution::Rows { first: rank as u64, global: ranks as u64 };
            let record = VariableRecord::new(name, rank, Role::Dynamic, ElementType::F64, 1);
            let mut frame = record.raw_frame(0, &[0; 8], 0x1234_5678);
            frame.place = Some(Place { file: file.clone(), offset: 8 * index as u64 });
            part.frames.push(frame);
            part.variables.push(VariableRecord { distribution, ..record });
        }
        part.files.push(FileRecord::new(file, 24, 0));
        recoup_io::manifest::seal(&part).unwrap().into_bytes()
    }

    /// What each rank tells: its own part, and that of the rank before it.
    fn holdings(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let ranks = texts.len();
        let id = texts.iter().enumerate().fold(0, |id: u64, (rank, text)| id.wrapping_add(part_hash(rank, text)));
        let mark = CommitMark { sequence: 3, guards: 1, id, ranks, bytes: 24 * ranks as u64, parents: [].into() };
        let of_rank = |rank: usize| {
            let payloads = vec![rank, (rank + ranks - 1) % ranks];
            serde_json::to_vec(&[Holding { version: 6, mark: mark.clone(), payloads, parities: Vec::new() }]).unwrap()
        };
        (0..ranks).map(of_rank).collect()
    }

    /// The time that the processor has given this thread.
    fn processor_seconds() -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        1e-9 * text.split(' ').next().unwrap().parse::<f64>().unwrap()
    }

    #[test]
    #[ignore = "prints what rank 0 takes for the plan of a restore from memory, by the number of ranks"]
    fn work_of_rank_0() {
        println!(
            "ranks, microseconds of the processor a rank and version: to find versions, to join the manifest, to give orders"
        );
        for ranks in [1_000, 10_000, 100_000] {
            let texts: Vec<Vec<u8>> = (0..ranks).map(|rank| part_text(rank, ranks)).collect();
            let told = holdings(&texts);
            let mut before = processor_seconds();
            let mut passed = || {
                let now = processor_seconds();
                1e6 * (now - std::mem::replace(&mut before, now)) / ranks as f64
            };
            let told: Vec<Vec<Holding>> = told.iter().map(|text| serde_json::from_slice(text).unwrap()).collect();
            let mut found = find_versions(&told);
            let orders = found[0].rebuild(ranks);
            let bytes = |orders: &[Orders]| -> usize {
                orders.iter().map(|orders| serde_json::to_vec(&[orders]).unwrap().len()).sum()
            };
            let mut orders_bytes = bytes(&orders);
            let looked = passed();
            let of_rank = |orders: &Orders| orders.told.iter().map(|&owner| texts[owner].clone()).collect::<Vec<_>>();
            let mut texts: Vec<_> = orders.iter().map(|orders| of_rank(orders).into_iter()).collect();
            passed();
            let whole = found[0].whole(&mut texts).unwrap();
            let joined = passed();
            let nodes: Vec<usize> = (0..ranks).map(|rank| rank / 128).collect();
            let own = |_: &Manifest| (0..ranks).map(|rank| vec![rank]).collect();
            let orders = found[0].bring(Ok(&whole), &own, &nodes, 1);
            orders_bytes += bytes(&orders);
            let ordered = passed();
            println!("{ranks:>7} {looked:>8.1} {joined:>8.1} {ordered:>8.1}; {} bytes of orders", orders_bytes / ranks);
        }
    }
}
