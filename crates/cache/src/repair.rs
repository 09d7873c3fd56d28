//! Repair: before a restore, the ranks agree on the parts of each version that each rank holds, and
//! bring them back to the ranks that read them.
//!
//! All ranks see the same list of what is there and follow the same plan, so their verdicts cannot
//! differ. A version with a lost part that nothing brings back is dropped on all ranks; what was
//! brought back is guarded again.

use std::collections::{BTreeMap, BTreeSet};

use recoup_core::{
    Comm, CommError, CommonError, Manifest, Note, Reads, StoreError, agreed, broadcast_bytes, gather_json,
};
use serde::{Deserialize, Serialize};

use crate::code::combine;
use crate::layout::segment;
use crate::node::{Node, NodePlace, first_positions};
use crate::plan::{Held, ParityHead, Transfer, TransferContent, Way, more_copies};
use crate::shelf::{Shelf, ShelfPart};
use crate::store::{CommitMark, NodeStore, check_frame, open_manifest, open_parity, rank_payload_bytes};

/// The whole parts of a version that one rank found on one shelf.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Holding {
    version: u64,
    /// Tells this version from another of the same number.
    id: u32,
    mark: CommitMark,
    /// The position of the shelf among those that the rank reads.
    shelf: usize,
    payloads: Vec<usize>,
    parities: Vec<(usize, ParityHead)>,
}

/// A version, as all ranks know it.
struct AgreedVersion {
    version: u64,
    id: u32,
    mark: CommitMark,
    held: Held,
    manifest: Manifest,
    text: Vec<u8>,
}

/// Implements [`recoup_core::Tiered::prepare_restore`].
pub(crate) fn repair(store: &NodeStore, comm: &dyn Comm, reads: &Reads<'_>) -> Result<(), CommonError<StoreError>> {
    agreed(comm, store.shelf.remove_drafts())?;
    let places = store.places(comm)?;
    store.lock().adopted = orphans(store, &places, comm.rank());
    let mine = look(store);
    let all = gather_json(comm, &(mine.clone(), store.lock().sequence))?;
    {
        let mut state = store.lock();
        state.sequence = all.iter().map(|(_, sequence)| *sequence).max().unwrap_or(0);
        state.nodes = first_positions(&places);
        state.guarded.clear();
    }
    let holdings: Vec<Vec<Holding>> = all.into_iter().map(|(holdings, _)| holdings).collect();
    let agreed_version = agree_on_versions(store, &holdings, comm)?;
    let wants = gather_json(
        comm,
        &agreed_version.iter().map(|agreed_version| reads(&agreed_version.manifest)).collect::<Vec<_>>(),
    )?;
    let mut kept = BTreeSet::new();
    for (index, agreed_version) in agreed_version.iter().enumerate() {
        let wants: Vec<&[usize]> = wants.iter().map(|of_rank| of_rank[index].as_slice()).collect();
        if repair_version(store, agreed_version, &wants, comm)? {
            kept.insert(agreed_version.version);
        }
    }
    let removed = store.shelf.versions().and_then(|versions| {
        let mut left = versions.into_iter().filter(|version| !kept.contains(version));
        left.try_for_each(|version| store.shelf.remove(version))
    });
    agreed(comm, removed)
}

/// Returns the shelves on this machine that no rank of this job uses, if this rank is the first
/// there: those of ranks that are gone, and of ranks that had another place in the list of hosts.
fn orphans(store: &NodeStore, places: &[NodePlace], rank: usize) -> Vec<Shelf> {
    let is_here = |place: &NodePlace| place.machine == places[rank].machine;
    if places.iter().position(is_here) != Some(rank) {
        return Vec::new();
    }
    let used: BTreeSet<(u64, usize)> = places.iter().enumerate().map(|(rank, place)| (place.node, rank)).collect();
    let of_node = |node: Node| {
        let name = node.place().map(|place| place.node).unwrap_or_default();
        let shelves = passed_over(Shelf::on(&node)).into_iter();
        shelves.filter(|(rank, _)| !used.contains(&(name, *rank))).map(|(_, shelf)| shelf).collect::<Vec<_>>()
    };
    passed_over(store.node.neighbours()).into_iter().flat_map(of_node).collect()
}

/// Returns all whole parts on this rank's shelf and on those it has adopted.
fn look(store: &NodeStore) -> Vec<Holding> {
    store.shelves().iter().enumerate().flat_map(|(index, shelf)| look_at(shelf, index)).collect()
}

fn look_at(shelf: &Shelf, index: usize) -> Vec<Holding> {
    let holding = |version: u64| {
        let mark = serde_json::from_slice(&shelf.get(version, ShelfPart::Commit).ok()?).ok()?;
        let text = shelf.get(version, ShelfPart::Manifest).ok()?;
        let mut payloads = Vec::new();
        let mut parities = Vec::new();
        for part in passed_over(shelf.parts(version)) {
            match (part, shelf.get(version, part)) {
                (ShelfPart::Payloads(rank), Ok(_)) => payloads.push(rank),
                (ShelfPart::Parity(guard), Ok(bytes)) => {
                    parities.extend(open_parity(&bytes).map(|(head, _)| (guard, head)))
                }
                _ => {}
            }
        }
        Some(Holding { version, id: crc32c::crc32c(&text), mark, shelf: index, payloads, parities })
    };
    passed_over(shelf.versions()).into_iter().filter_map(holding).collect()
}

/// Returns an empty result, and logs a warning, for a refused directory: the rank's own was looked
/// at before.
fn passed_over<T: Default>(found: Result<T, StoreError>) -> T {
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, "passed over");
        T::default()
    })
}

/// Returns every version that some rank has, with its manifest, on all ranks. Of two versions of
/// the same number, the one that more ranks have counts.
fn agree_on_versions(
    store: &NodeStore,
    holdings: &[Vec<Holding>],
    comm: &dyn Comm,
) -> Result<Vec<AgreedVersion>, CommError> {
    let mut found: BTreeMap<u64, BTreeMap<u32, usize>> = BTreeMap::new();
    for holding in holdings.iter().flatten() {
        *found.entry(holding.version).or_default().entry(holding.id).or_default() += 1;
    }
    let mut agreed_version = Vec::new();
    for (version, ids) in found {
        let Some((&id, _)) = ids.iter().max_by_key(|(_, count)| **count) else { continue };
        let is_it = |h: &&Holding| (h.version, h.id) == (version, id);
        let with = |rank: usize| holdings[rank].iter().find(is_it);
        let Some(root) = (0..holdings.len()).find(|&rank| with(rank).is_some()) else { continue };
        let Some(mark) = with(root).map(|holding| holding.mark) else { continue };
        let mut text = Vec::new();
        if comm.rank() == root {
            let index = with(root).map_or(0, |holding| holding.shelf);
            // Text that cannot be read any more opens as no manifest, on all ranks alike.
            text = store.shelves()[index].get(version, ShelfPart::Manifest).unwrap_or_default();
        }
        let text = broadcast_bytes(comm, root, text)?;
        if let Ok(manifest) = open_manifest(&text, version) {
            agreed_version.push(AgreedVersion { version, id, mark, held: held(holdings, version, id), manifest, text });
        }
    }
    Ok(agreed_version)
}

fn held(holdings: &[Vec<Holding>], version: u64, id: u32) -> Held {
    let mut held = Held::default();
    for (rank, holding) in holdings.iter().enumerate().flat_map(|(rank, all)| all.iter().map(move |h| (rank, h))) {
        if (holding.version, holding.id) != (version, id) {
            continue;
        }
        for &owner in &holding.payloads {
            held.payloads.entry(owner).or_default().push(rank);
        }
        for (guard, head) in &holding.parities {
            held.parities.entry((*guard, head.members[head.member])).or_insert_with(|| (rank, head.clone()));
        }
    }
    held
}

/// Brings one version to the ranks that read it. Returns whether it is whole now.
fn repair_version(
    store: &NodeStore,
    agreed_version: &AgreedVersion,
    wants: &[&[usize]],
    comm: &dyn Comm,
) -> Result<bool, CommonError<StoreError>> {
    let version = agreed_version.version;
    let all = wants.iter().enumerate().flat_map(|(to, owners)| owners.iter().map(move |&owner| (to, owner)));
    let ways: Vec<(usize, usize, Option<Way>)> =
        all.map(|(to, owner)| (to, owner, agreed_version.held.way(owner, to))).collect();
    let lost: BTreeSet<usize> = ways.iter().filter(|(_, _, way)| way.is_none()).map(|(_, owner, _)| *owner).collect();
    if !lost.is_empty() {
        let lost: Vec<String> = lost.iter().map(usize::to_string).collect();
        let what = format!("the part of rank {} is lost", lost.join(", "));
        store.lock().notes.push(Note::Dropped { version, what });
        return Ok(false);
    }
    let ways: Vec<(usize, usize, Way)> =
        ways.into_iter().filter_map(|(to, owner, way)| Some((to, owner, way?))).collect();
    let transfers: Vec<&Transfer> = ways.iter().flat_map(|(_, _, way)| way.transfers()).collect();
    let arrived = carry(store, agreed_version, &transfers, comm)?;
    // On another number of ranks parts move, which is no repair.
    let is_repair = agreed_version.manifest.ranks == comm.size();
    let placed = place(store, agreed_version, &ways, arrived, is_repair);
    if let Err(error) = agreed(comm, placed) {
        if matches!(*error, StoreError::Comm(_)) {
            return Err(error);
        }
        store.lock().notes.push(Note::Dropped { version, what: error.to_string() });
        return Ok(false);
    }
    if is_repair {
        guard_again(store, agreed_version, comm)?;
    } else {
        copy_again(store, agreed_version, wants, comm)?;
    }
    Ok(true)
}

/// Makes the transfers, and returns those to this rank in the order of the plan. Collective.
fn carry(
    store: &NodeStore,
    agreed_version: &AgreedVersion,
    transfers: &[&Transfer],
    comm: &dyn Comm,
) -> Result<Vec<Vec<u8>>, CommError> {
    let rank = comm.rank();
    let mut parts = PartCache { store, version: agreed_version.version, id: agreed_version.id, read: BTreeMap::new() };
    for transfer in transfers.iter().filter(|t| t.from == rank) {
        parts.load(&transfer.content);
    }
    let sent = transfers.iter().filter(|t| t.from == rank && t.to != rank);
    let sends: Vec<(usize, &[u8])> = sent.map(|t| (t.to, parts.bytes(&t.content))).collect();
    let ours = || transfers.iter().filter(|t| t.to == rank);
    let from: Vec<usize> = ours().filter(|t| t.from != rank).map(|t| t.from).collect();
    let mut received = comm.exchange_bytes(&sends, &from)?.into_iter();
    // As many came as `from` names; a message too few would be empty, which no checksum accepts.
    let arrived = ours().map(|t| match t.from == rank {
        true => parts.bytes(&t.content).to_vec(),
        false => received.next().unwrap_or_default(),
    });
    Ok(arrived.collect())
}

/// Puts the parts that arrived on this rank's shelf, and makes the version count there.
fn place(
    store: &NodeStore,
    agreed_version: &AgreedVersion,
    ways: &[(usize, usize, Way)],
    arrived: Vec<Vec<u8>>,
    is_repair: bool,
) -> Result<(), StoreError> {
    let version = agreed_version.version;
    let shelf = &store.shelf;
    let is_here = shelf.get(version, ShelfPart::Manifest).is_ok_and(|text| text == agreed_version.text);
    if !is_here {
        shelf.clear(version)?;
        shelf.put(version, ShelfPart::Manifest, &agreed_version.text)?;
    }
    // One for each transfer to this rank, in the order of `ways`; none too few passes
    // `check_payloads`.
    let mut arrived = arrived.into_iter();
    for (_, owner, way) in ways.iter().filter(|(to, _, _)| *to == store.rank) {
        let (bytes, source) = match way {
            Way::Held if shelf.get(version, ShelfPart::Payloads(*owner)).is_ok() => continue,
            Way::Held => (adopted_payloads(store, agreed_version, *owner)?, "a shelf that no rank used".to_owned()),
            Way::Copy(transfer) => (arrived.next().unwrap_or_default(), format!("a copy on rank {}", transfer.from)),
            Way::Rebuilt { columns, segment_bytes } => {
                let bytes = rebuild(
                    columns,
                    *segment_bytes,
                    rank_payload_bytes(&agreed_version.manifest, *owner),
                    &mut arrived,
                );
                (bytes, "its erasure set".to_owned())
            }
        };
        check_payloads(&agreed_version.manifest, *owner, &bytes)?;
        shelf.put(version, ShelfPart::Payloads(*owner), &bytes)?;
        if is_repair {
            store.lock().notes.push(Note::Repaired { version, rank: *owner, source });
        }
    }
    store.commit(version, agreed_version.mark)
}

fn adopted_payloads(store: &NodeStore, agreed_version: &AgreedVersion, owner: usize) -> Result<Vec<u8>, StoreError> {
    let mut parts = PartCache { store, version: agreed_version.version, id: agreed_version.id, read: BTreeMap::new() };
    parts.load(&TransferContent::Payloads { rank: owner });
    Ok(parts.bytes(&TransferContent::Payloads { rank: owner }).to_vec())
}

/// Rebuilds the payloads of a rank: each column is the sum of the transfers that arrived for it.
fn rebuild(
    columns: &[Vec<(u8, Transfer)>],
    segment_bytes: usize,
    bytes: usize,
    arrived: &mut impl Iterator<Item = Vec<u8>>,
) -> Vec<u8> {
    let mut payloads = vec![0; columns.len() * segment_bytes];
    for (column, target) in columns.iter().zip(payloads.chunks_mut(segment_bytes)) {
        let pieces: Vec<(u8, Vec<u8>)> =
            column.iter().map(|(constant, _)| (*constant, arrived.next().unwrap_or_default())).collect();
        let sources: Vec<(u8, &[u8])> = pieces.iter().map(|(constant, bytes)| (*constant, bytes.as_slice())).collect();
        combine(target, &sources);
    }
    payloads.truncate(bytes);
    payloads
}

/// Checks every frame of a rank's payloads against the manifest.
fn check_payloads(manifest: &Manifest, rank: usize, bytes: &[u8]) -> Result<(), StoreError> {
    let version = manifest.version;
    for frame in manifest.frames.iter().filter(|frame| frame.rank == rank) {
        let start = frame.place.as_ref().map_or(usize::MAX, |place| place.offset as usize);
        let payload = bytes.get(start..start.saturating_add(frame.payload_bytes as usize)).unwrap_or_default();
        check_frame(frame, payload).map_err(|what| {
            let variable = frame.variable.clone();
            let run = frame.run;
            StoreError::Frame { version, variable, rank, run, what }
        })?;
    }
    Ok(())
}

/// Copies a version of another number of ranks, which has no partners or sets here, to as many
/// nodes as it takes to survive the losses that its guards would. Collective.
fn copy_again(
    store: &NodeStore,
    agreed_version: &AgreedVersion,
    wants: &[&[usize]],
    comm: &dyn Comm,
) -> Result<(), CommError> {
    let nodes = store.lock().nodes.clone();
    let losses = store.losses_stood(agreed_version.mark.guards & store.kept(&nodes), &nodes);
    let transfers = |rank: usize| {
        let has_it = |&holder: &usize| {
            wants[holder].contains(&rank)
                || agreed_version.held.payloads.get(&rank).is_some_and(|held| held.contains(&holder))
        };
        let holders: Vec<usize> = (0..comm.size()).filter(has_it).collect();
        let copies = more_copies(&holders, &nodes, 1 + losses);
        copies.into_iter().map(move |(from, to)| Transfer { from, to, content: TransferContent::Payloads { rank } })
    };
    let transfers: Vec<Transfer> = (0..agreed_version.manifest.ranks).flat_map(transfers).collect();
    let arrived = carry(store, agreed_version, &transfers.iter().collect::<Vec<_>>(), comm)?;
    let ours = transfers.iter().filter(|t| t.to == comm.rank());
    for (transfer, bytes) in ours.zip(arrived) {
        let TransferContent::Payloads { rank } = transfer.content else { continue };
        if let Err(error) = store.shelf.put(agreed_version.version, ShelfPart::Payloads(rank), &bytes) {
            // The version is whole without it.
            tracing::warn!(version = agreed_version.version, %error, "not copied again");
        }
    }
    Ok(())
}

/// Guards a version again that has lost a part of its guards. Collective.
fn guard_again(
    store: &NodeStore,
    agreed_version: &AgreedVersion,
    comm: &dyn Comm,
) -> Result<(), CommonError<StoreError>> {
    let version = agreed_version.version;
    let guards = agreed_version.mark.guards & store.kept(&store.lock().nodes);
    let expected = |index: usize| guards >> index & 1 == 1;
    let is_held = |rank: usize| agreed_version.held.payloads.get(&rank).is_some_and(|holders| holders.contains(&rank));
    // A rank that had lost its own part has lost what it held for others, too.
    let is_whole = (0..comm.size()).all(is_held);
    let is_damaged = (0..store.guards.len()).filter(|&i| expected(i)).any(|i| is_short(store, agreed_version, i));
    let is_short = comm.max(i64::from(!is_whole || is_damaged))? > 0;
    if is_short && guards != 0 {
        match store.guard(&agreed_version.manifest, guards, comm) {
            Err(error) if matches!(*error, StoreError::Comm(_)) => return Err(error),
            Err(error) => {
                // The version is whole, but no longer guarded.
                tracing::warn!(version, %error, "not guarded again");
                return Ok(());
            }
            Ok(()) => {}
        }
    }
    store.lock().guarded.insert(version, guards);
    Ok(())
}

/// Returns whether a part this rank should hold for a guard is missing or damaged.
fn is_short(store: &NodeStore, agreed_version: &AgreedVersion, guard: usize) -> bool {
    use crate::protection::Protection;
    match &store.guards[guard].protection {
        Protection::Erasure { .. } => store.shelf.get(agreed_version.version, ShelfPart::Parity(guard)).is_err(),
        Protection::Partner(partners) => {
            let nodes = store.lock().nodes.clone();
            let Ok(partners) = partners.resolve(&nodes) else { return true };
            let ours = (0..partners.len()).filter(|&rank| partners[rank] == store.rank);
            ours.into_iter().any(|rank| store.shelf.get(agreed_version.version, ShelfPart::Payloads(rank)).is_err())
        }
    }
}

/// The parts of a version that were read from the shelves of this node, each once.
struct PartCache<'a> {
    store: &'a NodeStore,
    version: u64,
    id: u32,
    read: BTreeMap<(ShelfPart, usize), Vec<u8>>,
}

impl PartCache<'_> {
    fn key(content: &TransferContent) -> (ShelfPart, usize) {
        match content {
            TransferContent::Payloads { rank } | TransferContent::Segment { rank, .. } => {
                (ShelfPart::Payloads(*rank), 0)
            }
            TransferContent::Row { guard, rank, .. } => (ShelfPart::Parity(*guard), *rank),
        }
    }

    fn load(&mut self, content: &TransferContent) {
        let key = Self::key(content);
        if self.read.contains_key(&key) {
            return;
        }
        let found = self.store.shelves().into_iter().find_map(|shelf| {
            let text = shelf.get(self.version, ShelfPart::Manifest).ok()?;
            let bytes = shelf.get(self.version, key.0).ok().filter(|_| crc32c::crc32c(&text) == self.id)?;
            let is_it = match key.0 {
                ShelfPart::Parity(_) => open_parity(&bytes).is_some_and(|(head, _)| head.members[head.member] == key.1),
                _ => true,
            };
            is_it.then_some(bytes)
        });
        // A part that has vanished since arrives empty, which no checksum accepts.
        self.read.insert(key, found.unwrap_or_default());
    }

    fn bytes(&self, content: &TransferContent) -> &[u8] {
        let bytes = self.read.get(&Self::key(content)).map(Vec::as_slice).unwrap_or_default();
        match *content {
            TransferContent::Payloads { .. } => bytes,
            TransferContent::Segment { column, segment_bytes, .. } => segment(bytes, column, segment_bytes),
            TransferContent::Row { row, segment_bytes, .. } => {
                let rows = open_parity(bytes).map(|(_, rows)| rows).unwrap_or_default();
                segment(rows, row, segment_bytes)
            }
        }
    }
}
