//! Repair: before a restore, rank 0 learns which parts of each version each rank holds, and has
//! them brought back to the ranks that read them.
//!
//! Each rank gets its orders from rank 0, along a tree, so their verdicts cannot differ, and no
//! other rank knows the whole. A version with a lost part that nothing brings back is dropped on
//! all ranks; what was brought back is guarded again.

use std::collections::{BTreeMap, BTreeSet};

use recoup_core::{
    Comm, CommError, CommonError, Note, Reads, StoreError, agreed, collect_bytes, collect_json, hand_out_json,
};

use crate::code::combine;
use crate::layout::segment;
use crate::node::{Node, NodePlace, first_positions};
use crate::orders::{FoundVersion, Holding, Orders, find_versions};
use crate::part;
use crate::plan::{Transfer, TransferContent, Way};
use crate::shelf::{Shelf, ShelfPart};
use crate::store::{CommitMark, NodeStore, open_parity, read_mark};

/// Implements [`recoup_core::Tiered::prepare_restore`].
pub(crate) fn repair(store: &NodeStore, comm: &dyn Comm, reads: &Reads<'_>) -> Result<(), CommonError<StoreError>> {
    agreed(comm, store.shelf.remove_drafts())?;
    let places = store.places(comm)?;
    store.lock().adopted = orphans(store, &places, comm.rank());
    let mine = look(store);
    let sequence = i64::try_from(store.lock().sequence).unwrap_or(i64::MAX);
    let sequence = comm.max(sequence)?;
    {
        let mut state = store.lock();
        state.sequence = u64::try_from(sequence).unwrap_or(0);
        state.nodes = first_positions(&places);
        state.guarded.clear();
        state.wholes.clear();
    }
    let holdings = collect_json(comm, &mine)?;
    let mut found = holdings.map(|holdings: Vec<Vec<Holding>>| find_versions(&holdings)).unwrap_or_default();
    let kept = bring_back(store, &mut found, comm, reads)?;
    store.lock().wholes.retain(|version, _| kept.contains(version));
    let removed = store.shelf.versions().and_then(|versions| {
        let mut left = versions.into_iter().filter(|version| !kept.contains(version));
        left.try_for_each(|version| store.shelf.remove(version))
    });
    agreed(comm, removed)
}

/// Brings versions, which rank 0 has found, to the ranks that read them. Returns those that are
/// whole now. Collective.
fn bring_back(
    store: &NodeStore,
    found: &mut Vec<FoundVersion>,
    comm: &dyn Comm,
    reads: &Reads<'_>,
) -> Result<BTreeSet<u64>, CommonError<StoreError>> {
    // What lost parts say of the manifest is not known before they are rebuilt.
    let rebuilds = hand_out_json(comm, || Ok(by_rank(found.iter_mut().map(|one| one.rebuild(comm.size())), comm)))?;
    let mut left = BTreeSet::new();
    for orders in &rebuilds {
        let is_idle = orders.dropped.is_none() && !orders.is_moving;
        if is_idle || follow(store, orders, comm)? {
            left.insert(orders.version);
        }
    }
    found.retain(|one| left.contains(&one.version));
    let told = rebuilds.iter().filter(|orders| left.contains(&orders.version)).flat_map(|orders| tell(store, orders));
    let told = collect_bytes(comm, &told.collect::<Vec<u8>>())?;
    let orders = hand_out_json(comm, || {
        let nodes = store.lock().nodes.clone();
        let mut told: Vec<_> = told.into_iter().flatten().map(|bytes| Texts { bytes, at: 0 }).collect();
        let orders = found.iter().map(|one| {
            let whole = one.whole(&mut told);
            let losses = store.losses_stood(one.guards() & store.kept(&nodes), &nodes);
            let orders = one.bring(whole.as_ref(), reads, &nodes, losses);
            store.lock().wholes.extend(whole.ok().map(|whole| (one.version, whole)));
            orders
        });
        Ok(by_rank(orders, comm))
    })?;
    let mut kept = BTreeSet::new();
    for orders in &orders {
        if follow(store, orders, comm)? {
            if orders.mark.ranks == comm.size() {
                guard_again(store, orders, comm)?;
            }
            kept.insert(orders.version);
        }
    }
    Ok(kept)
}

/// Sorts the orders of each version by the rank that they are for.
fn by_rank(of_versions: impl Iterator<Item = Vec<Orders>>, comm: &dyn Comm) -> Vec<Vec<Orders>> {
    let mut of_ranks = vec![Vec::new(); comm.size()];
    for orders in of_versions {
        of_ranks.iter_mut().zip(orders).for_each(|(of_rank, orders)| of_rank.push(orders));
    }
    of_ranks
}

/// Returns the parts of the manifest that this rank was told to give, each behind its length. One
/// that cannot be read any more is empty, and opens as no manifest.
fn tell(store: &NodeStore, orders: &Orders) -> Vec<u8> {
    let parts = PartCache::new(store, orders);
    let text = |&owner: &usize| {
        let manifest = ShelfPart::Manifest(owner);
        let mut found = parts.shelves_with(manifest).filter_map(|shelf| shelf.get(orders.version, manifest).ok());
        let text = found.next().unwrap_or_default();
        [&(text.len() as u64).to_le_bytes()[..], &text].concat()
    };
    orders.told.iter().flat_map(text).collect()
}

/// The texts that one rank told, one after the other.
struct Texts {
    bytes: Vec<u8>,
    at: usize,
}

impl Iterator for Texts {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let (length, rest) = self.bytes.get(self.at..)?.split_first_chunk()?;
        let text = rest.get(..u64::from_le_bytes(*length) as usize)?.to_vec();
        self.at += size_of::<u64>() + text.len();
        Some(text)
    }
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
    store.shelves().iter().flat_map(|shelf| look_at(store, shelf)).collect()
}

fn look_at(store: &NodeStore, shelf: &Shelf) -> Vec<Holding> {
    let holding = |version: u64| {
        let mark = match read_mark(&shelf.get(version, ShelfPart::Commit).ok()?) {
            Ok(mark) => mark,
            Err(what) => {
                store.lock().notes.push(Note::Dropped { version, what });
                return None;
            }
        };
        let mut payloads = Vec::new();
        let mut parities = Vec::new();
        for part in passed_over(shelf.parts(version)) {
            match (part, shelf.get(version, part)) {
                (ShelfPart::Payloads(rank), Ok(_)) if shelf.manifest(version, rank).is_ok() => payloads.push(rank),
                (ShelfPart::Parity(guard), Ok(bytes)) => {
                    parities.extend(open_parity(&bytes).map(|(head, _)| (guard, head)))
                }
                _ => {}
            }
        }
        Some(Holding { version, mark, payloads, parities })
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

/// Does this rank's share in bringing a version back. Returns whether it is whole so far, on all
/// ranks. Collective.
fn follow(store: &NodeStore, orders: &Orders, comm: &dyn Comm) -> Result<bool, CommonError<StoreError>> {
    let version = orders.version;
    let drop_it = |what: String| {
        store.lock().notes.push(Note::Dropped { version, what });
        Ok(false)
    };
    if let Some(what) = &orders.dropped {
        return drop_it(what.clone());
    }
    let arrived = if orders.is_moving { carry(store, orders, comm)? } else { Vec::new() };
    // On another number of ranks parts move, which is no repair.
    match agreed(comm, place(store, orders, arrived, orders.mark.ranks == comm.size())) {
        Ok(()) => Ok(true),
        Err(error) if matches!(*error, StoreError::Comm(_)) => Err(error),
        Err(error) => drop_it(error.to_string()),
    }
}

/// Makes the transfers, and returns those to this rank in the order of the plan. Collective.
fn carry(store: &NodeStore, orders: &Orders, comm: &dyn Comm) -> Result<Vec<Vec<u8>>, CommError> {
    let rank = comm.rank();
    let transfers = &orders.transfers;
    let mut parts = PartCache::new(store, orders);
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
fn place(store: &NodeStore, orders: &Orders, arrived: Vec<Vec<u8>>, is_repair: bool) -> Result<(), StoreError> {
    let version = orders.version;
    let shelf = &store.shelf;
    if !is_of(shelf, version, &orders.mark) {
        shelf.clear(version)?;
    }
    let mut parts = PartCache::new(store, orders);
    // One for each transfer to this rank, in the order of the plan; none too few passes the check.
    let mut arrived = arrived.into_iter();
    for order in &orders.parts {
        let owner = order.owner;
        let (bytes, source) = match &order.way {
            Way::Held if shelf.get_rank(version, owner).is_ok() => continue,
            Way::Held => {
                let content = TransferContent::Payloads { rank: owner };
                parts.load(&content);
                (parts.take(&content), "a shelf that no rank used".to_owned())
            }
            Way::Copy(transfer) => (arrived.next().unwrap_or_default(), format!("a copy on rank {}", transfer.from)),
            Way::Rebuilt { columns, segment_bytes, length } => {
                (rebuild(columns, *segment_bytes, *length, &mut arrived), "its erasure set".to_owned())
            }
        };
        let put = part::check(&bytes, version, owner).and_then(|()| shelf.put_rank(version, owner, &bytes));
        match put {
            // The version is whole without it.
            Err(error) if order.is_spare => tracing::warn!(version, %error, "not copied again"),
            put => put?,
        }
        if is_repair {
            store.lock().notes.push(Note::Repaired { version, rank: owner, source });
        }
    }
    store.commit(version, &orders.mark)
}

/// Returns whether a shelf has this version, and no other of its number.
fn is_of(shelf: &Shelf, version: u64, mark: &CommitMark) -> bool {
    let found = shelf.get(version, ShelfPart::Commit).and_then(|text| read_mark(&text));
    found.is_ok_and(|found| found.id == mark.id)
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

/// Guards a version again that has lost a part of its guards. Collective.
fn guard_again(store: &NodeStore, orders: &Orders, comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {
    let version = orders.version;
    let guards = orders.mark.guards & store.kept(&store.lock().nodes);
    let expected = |index: usize| guards >> index & 1 == 1;
    // A rank that had lost its own part has lost what it held for others, too.
    let is_damaged = (0..store.guards.len()).filter(|&i| expected(i)).any(|i| is_short(store, version, i));
    let is_short = comm.max(i64::from(!orders.was_whole || is_damaged))? > 0;
    if is_short && guards != 0 {
        match store.guard(version, guards, comm) {
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
fn is_short(store: &NodeStore, version: u64, guard: usize) -> bool {
    use crate::protection::Protection;
    match &store.guards[guard].protection {
        Protection::Erasure { .. } => store.shelf.get(version, ShelfPart::Parity(guard)).is_err(),
        Protection::Partner(partners) => {
            let nodes = store.lock().nodes.clone();
            let Ok(partners) = partners.resolve(&nodes) else { return true };
            let ours = (0..partners.len()).filter(|&rank| partners[rank] == store.rank);
            ours.into_iter().any(|rank| store.shelf.get_rank(version, rank).is_err())
        }
    }
}

/// The parts of a version that were read from the shelves of this node, each once.
struct PartCache<'a> {
    orders: &'a Orders,
    /// The shelves with the version.
    shelves: Vec<Shelf>,
    /// The positions of the shelves that have a part.
    places: BTreeMap<ShelfPart, Vec<usize>>,
    read: BTreeMap<(ShelfPart, usize), Vec<u8>>,
}

impl<'a> PartCache<'a> {
    fn new(store: &NodeStore, orders: &'a Orders) -> Self {
        let mut shelves = store.shelves();
        shelves.retain(|shelf| is_of(shelf, orders.version, &orders.mark));
        let mut places: BTreeMap<ShelfPart, Vec<usize>> = BTreeMap::new();
        for (index, shelf) in shelves.iter().enumerate() {
            passed_over(shelf.parts(orders.version))
                .into_iter()
                .for_each(|part| places.entry(part).or_default().push(index));
        }
        Self { orders, shelves, places, read: BTreeMap::new() }
    }

    fn shelves_with(&self, part: ShelfPart) -> impl Iterator<Item = &Shelf> {
        self.places.get(&part).into_iter().flatten().map(|&index| &self.shelves[index])
    }

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
        let found = self.shelves_with(key.0).find_map(|shelf| {
            let bytes = match key.0 {
                ShelfPart::Payloads(rank) => shelf.get_rank(self.orders.version, rank).ok()?,
                part => shelf.get(self.orders.version, part).ok()?,
            };
            let is_it = match key.0 {
                ShelfPart::Parity(_) => open_parity(&bytes).is_some_and(|(head, _)| head.members[head.member] == key.1),
                _ => true,
            };
            is_it.then_some(bytes)
        });
        // A part that has vanished since arrives empty, which no checksum accepts.
        self.read.insert(key, found.unwrap_or_default());
    }

    /// Takes the bytes of a part.
    fn take(&mut self, content: &TransferContent) -> Vec<u8> {
        self.read.remove(&Self::key(content)).unwrap_or_default()
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
