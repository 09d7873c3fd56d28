//! The store: each rank's frames on a shelf in its node's memory, and their guards on the shelves
//! of other ranks.
//!
//! The payloads of one rank lie in one file, back to back, as the codec encoded them. Partners hold
//! copies of that file, and erasure sets hold sums over the files of several ranks. Publishing
//! starts the transfers, and commits when all ranks have their parts; until then nothing of the
//! version before has been touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use recoup_core::{
    Comm, CommError, CommonError, Manifest, Note, StoreError, agreed, by_rank_0, each, gather_words, mix, text_hash,
    wrapping_sums,
};
use recoup_io::PrivateDir;
use serde::{Deserialize, Serialize};

use crate::code::encode_row;
use crate::layout::{Layout, segment};
use crate::node::{Node, NodePlace, first_positions};
use crate::part_file::PartFile;
use crate::plan::ParityHead;
use crate::protection::{Group, Guard, Protection, groups};
use crate::shelf::{Shelf, ShelfPart};

/// Bytes that travel to a partner at a time: few enough for the memory of both to be used again and
/// to stay in the caches.
const PIECE_BYTES: usize = 4 << 20;
/// Bytes that travel first: a part that has no more costs no memory for a whole piece.
const FIRST_PIECE_BYTES: usize = 64 << 10;

/// Versions in the memory of a node, guarded against its loss.
///
/// One store is one rank's. It outlives the process where its directory does, as `/dev/shm` does. A
/// rank that takes a lost one's place opens an empty store and gets the parts back by
/// [`recoup_core::Tiered::prepare_restore`].
#[derive(Debug)]
pub struct NodeStore {
    pub(crate) node: Node,
    pub(crate) rank: usize,
    pub(crate) shelf: Shelf,
    pub(crate) guards: Vec<Guard>,
    /// Leaves out guards that the ranks cannot keep.
    is_forgiving: bool,
    pub(crate) state: Mutex<NodeState>,
}

#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// The node each rank is on, by number.
    pub(crate) nodes: Vec<usize>,
    /// Versions that were to be guarded so far, on all ranks alike.
    pub(crate) sequence: u64,
    /// The guards of each version, a bit each.
    pub(crate) guarded: BTreeMap<u64, u64>,
    pub(crate) notes: Vec<Note>,
    /// Shelves on this machine that no rank uses, which this one looks after.
    pub(crate) adopted: Vec<Shelf>,
    /// On rank 0: the manifests of the versions that came back, until the next is published.
    pub(crate) wholes: BTreeMap<u64, Manifest>,
}

/// The commit mark of a version: what every rank knows of the whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommitMark {
    pub(crate) sequence: u64,
    /// Bit i: guard i.
    pub(crate) guards: u64,
    /// The sum of the hashes of all parts of the manifest: tells this version from another of the
    /// same number.
    pub(crate) id: u64,
    /// Ranks that wrote it.
    pub(crate) ranks: usize,
    /// Bytes on all ranks, without guards.
    pub(crate) bytes: u64,
    /// The versions that some frame is coded against.
    pub(crate) parents: BTreeSet<u64>,
}

/// The share of a rank's part in the sums of [`CommitMark`], and in that of its rows.
#[derive(Debug, Default)]
struct PartSums {
    id: u64,
    bytes: u64,
    row_ends: u64,
}

impl NodeStore {
    /// Names the store of `rank` under `node`, a directory that all ranks of one node share and no
    /// others: they are a failure domain. The first write makes it, with mode 0700. A directory
    /// that another user may reach is refused; those above it are taken as they are (see
    /// [`NodeStore::within`]).
    #[must_use]
    pub fn new(node: impl AsRef<Path>, rank: usize) -> Self {
        Self::on(Node::at(node.as_ref()), rank)
    }

    /// Names a store as [`NodeStore::new`] does, with the node's directory in one that is held
    /// open: no link and no exchange of a directory above it leads elsewhere.
    #[must_use]
    pub fn within(directory: Arc<PrivateDir>, node: &str, rank: usize) -> Self {
        Self::on(Node::within(directory, node), rank)
    }

    fn on(node: Node, rank: usize) -> Self {
        let shelf = Shelf::new(&node, rank);
        Self { node, rank, shelf, guards: Vec::new(), is_forgiving: false, state: Mutex::default() }
    }

    /// Adds a guard for every `every`-th version; all ranks give the same guards.
    #[must_use]
    pub fn guarded(mut self, protection: Protection, every: u64) -> Self {
        self.guards.push(Guard { protection, every: every.max(1) });
        self
    }

    /// Leaves out guards that the ranks are too few for, instead of refusing versions: after a
    /// loss, fewer guards may be possible than were asked for.
    #[must_use]
    pub fn forgiving(mut self) -> Self {
        self.is_forgiving = true;
        self
    }

    /// Returns the guards of the versions here.
    #[must_use]
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Checks that the guards can be kept on ranks that are on these nodes.
    ///
    /// # Errors
    /// [`StoreError::Ranks`] with the first that cannot.
    pub fn check_ranks(&self, nodes: &[usize]) -> Result<(), StoreError> {
        self.guards.iter().try_for_each(|guard| check_guard(guard, nodes))
    }

    /// Returns the guards that can be kept on these nodes, a bit each; all while no nodes are
    /// known.
    pub(crate) fn kept(&self, nodes: &[usize]) -> u64 {
        let is_kept = |guard: &Guard| !self.is_forgiving || nodes.is_empty() || check_guard(guard, nodes).is_ok();
        self.guards.iter().enumerate().filter(|(_, guard)| is_kept(guard)).fold(0, |mask, (i, _)| mask | 1 << i)
    }

    /// Returns the number of nodes that may be lost at once where the strongest of these guards
    /// protects ranks on these nodes.
    pub(crate) fn losses_stood(&self, mask: u64, nodes: &[usize]) -> usize {
        let stood = |guard: &Guard| match guard.protection {
            Protection::Partner(_) => 1,
            Protection::Erasure { data, parity } => groups(data, parity, nodes)
                .map_or(parity, |groups| groups.iter().map(|group| group.losses_stood(nodes)).min().unwrap_or(parity)),
        };
        let guards = self.guards.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1);
        guards.map(|(_, guard)| stood(guard)).max().unwrap_or(0)
    }

    /// Returns the shelves that this rank reads: its own, and those it looks after.
    pub(crate) fn shelves(&self) -> Vec<Shelf> {
        std::iter::once(self.shelf.clone()).chain(self.lock().adopted.iter().cloned()).collect()
    }

    /// Returns the parts of a version that this rank holds, as the names of their files.
    #[must_use]
    pub fn parts(&self, version: u64) -> Vec<String> {
        self.shelf.parts(version).unwrap_or_default().into_iter().map(ShelfPart::file).collect()
    }

    /// Returns when this rank committed a version; `None` for a draft.
    pub(crate) fn committed_at(&self, version: u64) -> Option<SystemTime> {
        self.shelf.committed_at(version)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the guards of the next version, a bit each.
    pub(crate) fn due(&self) -> u64 {
        let state = self.lock();
        let is_due = |guard: &Guard| state.sequence.is_multiple_of(guard.every);
        let due =
            self.guards.iter().enumerate().filter(|(_, guard)| is_due(guard)).fold(0, |mask, (i, _)| mask | 1 << i);
        due & self.kept(&state.nodes)
    }

    /// Returns the node of every rank, found again when the number of ranks has changed.
    /// Collective.
    fn nodes(&self, comm: &dyn Comm) -> Result<Vec<usize>, CommonError<StoreError>> {
        let known = self.lock().nodes.clone();
        if known.len() == comm.size() {
            return Ok(known);
        }
        let nodes = first_positions(&self.places(comm)?);
        self.lock().nodes.clone_from(&nodes);
        Ok(nodes)
    }

    /// Returns the place of every rank's shelf. Collective.
    pub(crate) fn places(&self, comm: &dyn Comm) -> Result<Vec<NodePlace>, CommonError<StoreError>> {
        let NodePlace { machine, node } = each(comm, self.node.place())?;
        let all = gather_words(comm, [machine, node])?;
        Ok(all.into_iter().map(|[machine, node]| NodePlace { machine, node }).collect())
    }

    /// Puts the guards of a version on the shelves of all ranks. Collective; a rank that fails
    /// returns its own error.
    pub(crate) fn guard(&self, version: u64, mask: u64, comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {
        let nodes = self.nodes(comm)?;
        if mask == 0 {
            return Ok(());
        }
        for (index, guard) in self.guards.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1) {
            match &guard.protection {
                Protection::Partner(partners) => {
                    let partners = partners.resolve(&nodes).map_err(CommonError::alike)?;
                    self.copy(version, &partners, comm)?;
                }
                Protection::Erasure { data, parity } => {
                    let groups = groups(*data, *parity, &nodes).map_err(CommonError::alike)?;
                    let Some(group) = groups.iter().find(|group| group.members.contains(&comm.rank())) else {
                        continue;
                    };
                    let own = self.shelf.get_rank(version, comm.rank());
                    let own = each(comm, own.map_err(|what| unreadable(version, what)))?;
                    self.sum(version, index, group, &own, comm)?;
                }
            }
        }
        Ok(())
    }

    /// Sends this rank's payloads and its part of the manifest to its partner, and shelves those of
    /// the ranks whose partner it is.
    fn copy(&self, version: u64, partners: &[usize], comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {
        let payloads = self.copy_parts(version, ShelfPart::Payloads, partners, comm)?;
        let manifests = self.copy_parts(version, ShelfPart::Manifest, partners, comm)?;
        agreed(comm, payloads.and(manifests))
    }

    /// Copies the parts of a kind. They travel in pieces, and one with fewer bytes than others is
    /// the last of its part. The trailers follow, by which their receivers find out what is
    /// damaged. A rank that fails sends no more, and takes part until all have ended.
    fn copy_parts(
        &self,
        version: u64,
        part: fn(usize) -> ShelfPart,
        partners: &[usize],
        comm: &dyn Comm,
    ) -> Result<Result<(), StoreError>, CommError> {
        let partner = partners[comm.rank()];
        let mut own = self.shelf.open_part(version, part(comm.rank()));
        let mut sent = Ok(());
        let mut is_sent = false;
        let mut room = Vec::new();
        let start = |from: usize| ArrivingPart::new(from, part(from), self.shelf.start(version, part(from)));
        let from: Vec<usize> = (0..partners.len()).filter(|&rank| partners[rank] == comm.rank()).collect();
        let mut parts: Vec<ArrivingPart> = from.iter().copied().map(start).collect();
        let mut bytes = FIRST_PIECE_BYTES;
        while !is_sent || parts.iter().any(|part| !part.is_here) {
            let mut sends = Vec::new();
            if !is_sent {
                let piece = own.as_mut().map_err(|what| what.clone()).and_then(|own| own.next(bytes, &mut room));
                let piece = piece.unwrap_or_else(|what| {
                    sent = Err(unreadable(version, what));
                    &[]
                });
                is_sent = piece.len() < bytes;
                sends.push((partner, piece));
            }
            let arriving = parts.iter_mut().filter(|part| !part.is_here);
            let mut receives: Vec<_> = arriving.map(|part| part.room(bytes)).collect();
            let lengths = comm.exchange_bytes_into(&sends, &mut receives)?;
            parts.iter_mut().filter(|part| !part.is_here).zip(lengths).for_each(|(part, len)| part.take(bytes, len));
            bytes = PIECE_BYTES;
        }
        let trailer = own.map(|own| own.trailer().to_vec()).unwrap_or_default();
        let trailers = comm.exchange_bytes(&[(partner, &trailer)], &from)?;
        Ok(parts
            .into_iter()
            .zip(trailers)
            .fold(sent, |so_far, (part, trailer)| so_far.and(part.finish(version, &trailer))))
    }

    /// Sends segments to the ranks that sum them up, and shelves the sums that this rank holds.
    fn sum(
        &self,
        version: u64,
        guard: usize,
        group: &Group,
        own: &[u8],
        comm: &dyn Comm,
    ) -> Result<(), CommonError<StoreError>> {
        let layout = group.layout;
        let members = &group.members;
        let lengths = each(comm, lengths(members, own.len(), comm).map_err(StoreError::from))?;
        let segment_bytes = layout.segment_bytes(lengths.iter().copied().max().unwrap_or(0));
        let member = members.iter().position(|&m| m == comm.rank()).unwrap_or(0);
        let mut sends = Vec::new();
        let mut from = Vec::new();
        for row in 0..layout.parity {
            for column in 0..layout.data {
                let stripe = layout.stripe_of_segment(member, column);
                sends.push((members[layout.row_holder(stripe, row)], segment(own, column, segment_bytes)));
                from.push(members[layout.column_giver(layout.stripe_of_row(member, row), column)]);
            }
        }
        let received = comm.exchange_bytes(&sends, &from)?;
        let Layout { data, parity } = layout;
        let head = ParityHead { data, parity, members: members.clone(), member, segment_bytes, lengths };
        agreed(comm, self.shelve_sums(version, guard, &head, &received))
    }

    fn shelve_sums(
        &self,
        version: u64,
        guard: usize,
        head: &ParityHead,
        received: &[Vec<u8>],
    ) -> Result<(), StoreError> {
        let mut file = self.shelf.start(version, ShelfPart::Parity(guard))?;
        file.append(&parity_head(head).map_err(|e| unreadable(version, e.to_string()))?)?;
        let mut sums = vec![0; head.segment_bytes];
        for (row, columns) in received.chunks(head.data).enumerate() {
            let columns: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
            encode_row(row, &columns, &mut sums);
            file.append(&sums)?;
        }
        file.finish()
    }

    /// Does the part of publishing that involves no other rank: seals the manifest of each rank
    /// that has payloads here, nearly always this one alone.
    fn prepare(&self, manifest: &Manifest, rank: usize) -> Result<PartSums, StoreError> {
        let version = manifest.version;
        let held = self.shelf.parts(version)?;
        let mut sums = PartSums { row_ends: manifest.row_ends(rank == 0), ..PartSums::default() };
        let ranks = manifest.variables.iter().map(|variable| variable.rank).chain([rank]);
        for rank in ranks.collect::<BTreeSet<_>>() {
            let payloads = ShelfPart::Payloads(rank);
            if !held.contains(&payloads) {
                return Err(StoreError::Missing { version });
            }
            let name = payloads.file();
            let files: Vec<_> = manifest.files.iter().filter(|file| file.name == name).cloned().collect();
            let bytes: u64 = files.iter().map(|file| file.bytes).sum();
            let part = Manifest { files, ..manifest.part_of(rank) };
            let text = recoup_io::manifest::check_rank(&part, version, rank)
                .and_then(|()| recoup_io::manifest::seal(&part))
                .map_err(|what| unreadable(version, what))?;
            self.shelf.put(version, ShelfPart::Manifest(rank), text.as_bytes())?;
            sums.id = sums.id.wrapping_add(part_hash(rank, text.as_bytes()));
            sums.bytes += bytes + text.len() as u64;
        }
        Ok(sums)
    }

    /// Starts and commits one version. Returns its guards, a bit each.
    pub(crate) fn publish_on_all(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<u64, CommonError<StoreError>> {
        let PartSums { id, bytes, row_ends } = each(comm, self.prepare(manifest, comm.rank()))?;
        let [id, bytes, row_ends] = wrapping_sums(comm, [id, bytes, row_ends])?;
        if row_ends != 0 {
            // Rank 0 names the rows that are wrong, or lacks a variable.
            let whole = manifest.collected(comm)?.transpose();
            by_rank_0(comm, || whole?.map_or(Ok(()), |whole| check_whole(&whole)))?;
        }
        let parents = manifest.parents_of_all(comm)?;
        self.nodes(comm)?;
        let guards = self.due();
        self.guard(manifest.version, guards, comm)?;
        let sequence = self.lock().sequence;
        let mark = CommitMark { sequence, guards, id, ranks: manifest.ranks, bytes, parents };
        // All ranks hold their parts. Until every one has made its mark, the version before stays
        // untouched.
        agreed(comm, self.commit(manifest.version, &mark))?;
        Ok(guards)
    }

    /// Makes a version count. A mark that is there stays as it is: a restart looks after each
    /// version again, and a kill between two marks would take away a version that counts.
    pub(crate) fn commit(&self, version: u64, mark: &CommitMark) -> Result<(), StoreError> {
        let text = serde_json::to_vec(mark).map_err(|e| unreadable(version, e.to_string()))?;
        if self.shelf.get(version, ShelfPart::Commit).is_ok_and(|held| held == text) {
            return Ok(());
        }
        self.shelf.put(version, ShelfPart::Commit, &text)
    }

    pub(crate) fn require(&self, version: u64) -> Result<(), StoreError> {
        match self.shelf.get(version, ShelfPart::Commit) {
            Ok(_) => Ok(()),
            Err(_) => Err(StoreError::Missing { version }),
        }
    }

    /// Reads the commit mark of a version.
    pub(crate) fn mark(&self, version: u64) -> Result<CommitMark, StoreError> {
        let text = self.shelf.get(version, ShelfPart::Commit).map_err(|_| StoreError::Missing { version })?;
        read_mark(&text).map_err(|what| unreadable(version, what))
    }

    /// Returns the ranks whose payloads are here, with their parts of the manifest.
    pub(crate) fn manifests(&self, version: u64) -> Result<Vec<(usize, FoundManifest)>, StoreError> {
        let ranks = self.shelf.parts(version)?.into_iter().filter_map(|part| match part {
            ShelfPart::Payloads(rank) => Some(rank),
            _ => None,
        });
        Ok(ranks.map(|rank| (rank, self.shelf.manifest(version, rank))).collect())
    }
}

/// A part of another rank on its way to this one.
struct ArrivingPart {
    from: usize,
    name: String,
    file: Result<PartFile, StoreError>,
    /// The place of bytes that have no file.
    lost: Vec<u8>,
    is_here: bool,
}

impl ArrivingPart {
    fn new(from: usize, part: ShelfPart, file: Result<PartFile, StoreError>) -> Self {
        Self { from, name: part.file(), file, lost: Vec::new(), is_here: false }
    }

    /// Lends room for the next piece of `bytes` at most, with the rank that it comes from.
    fn room(&mut self, bytes: usize) -> (usize, &mut [u8]) {
        let room = match &mut self.file {
            Ok(file) => file.room(bytes),
            Err(_) => {
                self.lost.resize(bytes, 0);
                &mut self.lost
            }
        };
        (self.from, room)
    }

    /// Takes a piece of `len` bytes that has come to the room for `bytes`.
    fn take(&mut self, bytes: usize, len: usize) {
        self.is_here = len < bytes;
        if let Ok(file) = &mut self.file
            && let Err(error) = file.fill(bytes, len)
        {
            self.file = Err(error);
        }
    }

    /// Shelves the part, if its trailer confirms what has come.
    fn finish(self, version: u64, trailer: &[u8]) -> Result<(), StoreError> {
        let file = self.file?;
        if file.trailer() != trailer {
            return Err(unreadable(version, format!("{}: not as it was written", self.name)));
        }
        file.finish()
    }
}

/// A part of a manifest, or what is wrong with it.
pub(crate) type FoundManifest = Result<Manifest, String>;

/// Decodes a commit mark.
pub(crate) fn read_mark(text: &[u8]) -> Result<CommitMark, String> {
    serde_json::from_slice(text).map_err(|_| "kept in memory by another build of recoup, in another form".to_owned())
}

/// Joins parts of a manifest, in rank order; `None` for none.
pub(crate) fn joined(parts: impl IntoIterator<Item = Manifest>) -> Option<Manifest> {
    parts.into_iter().reduce(|mut whole, part| {
        whole.append(part);
        whole
    })
}

/// Returns what the part of a rank adds to the identity of a version.
pub(crate) fn part_hash(rank: usize, text: &[u8]) -> u64 {
    mix(text_hash(text).wrapping_add(rank as u64))
}

/// Returns the bytes of each member of a group, this rank among them, which has `own`.
fn lengths(members: &[usize], own: usize, comm: &dyn Comm) -> Result<Vec<usize>, CommError> {
    let others: Vec<usize> = members.iter().copied().filter(|&rank| rank != comm.rank()).collect();
    let message = (own as u64).to_le_bytes();
    let sends: Vec<(usize, &[u8])> = others.iter().map(|&rank| (rank, &message[..])).collect();
    let mut received = others.iter().zip(comm.exchange_bytes(&sends, &others)?);
    let length = |&rank: &usize| {
        if rank == comm.rank() {
            return Ok(own);
        }
        let bytes = received.next().map(|(_, bytes)| bytes).unwrap_or_default();
        let length = bytes.as_slice().try_into().map(u64::from_le_bytes);
        let found = bytes.len();
        length.map(|length| length as usize).map_err(|_| CommError::Length { rank, expected: size_of::<u64>(), found })
    };
    members.iter().map(length).collect()
}

fn check_guard(guard: &Guard, nodes: &[usize]) -> Result<(), StoreError> {
    match &guard.protection {
        Protection::Partner(partners) => partners.resolve(nodes).map(drop),
        Protection::Erasure { data, parity } => groups(*data, *parity, nodes).map(drop),
    }
}

/// Encodes the head of a parity part: its length, then JSON.
fn parity_head(head: &ParityHead) -> Result<Vec<u8>, serde_json::Error> {
    let text = serde_json::to_vec(head)?;
    Ok([&(text.len() as u32).to_le_bytes()[..], &text].concat())
}

/// Takes a parity part apart: its head and its rows.
pub(crate) fn open_parity(part: &[u8]) -> Option<(ParityHead, &[u8])> {
    let (len, rest) = part.split_first_chunk::<4>()?;
    let (text, rows) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let head: ParityHead = serde_json::from_slice(text).ok()?;
    let is_sound = head.data > 0
        && head.members.len() == head.data + head.parity
        && head.lengths.len() == head.members.len()
        && head.member < head.members.len()
        && rows.len() == head.parity * head.segment_bytes;
    is_sound.then_some((head, rows))
}

/// Checks a manifest of all ranks.
pub(crate) fn check_whole(whole: &Manifest) -> Result<(), StoreError> {
    let version = whole.version;
    recoup_io::manifest::check(whole, version).map_err(|what| unreadable(version, what))
}

pub(crate) fn unreadable(version: u64, what: String) -> StoreError {
    StoreError::Manifest { version, what }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use recoup_comm::Threads;

    use super::*;

    /// Copies the parts of three ranks to their partners; one byte of a part may be damaged before.
    /// Returns what each rank said and holds of the rank before it.
    fn copied(parts: [usize; 3], damaged: Option<(usize, usize)>) -> Vec<(bool, Result<Vec<u8>, String>)> {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Threads::launch(3, |comm| {
            let rank = comm.rank();
            let store = NodeStore::new(dir.path().join(format!("node-{rank}")), rank);
            // The second version is written over the first, and read from where it is mapped.
            for version in [6, 7] {
                store.shelf.clear(version).unwrap();
                store.shelf.put(version, ShelfPart::Payloads(rank), &part(rank, parts[rank])).unwrap();
                if version == 6 {
                    store.copy_parts(6, ShelfPart::Payloads, &[1, 2, 0], &comm).unwrap().unwrap();
                    store.shelf.remove(6).unwrap();
                }
            }
            if let Some((_, byte)) = damaged.filter(|(of, _)| *of == rank) {
                let path = dir.path().join(format!("node-{rank}/rank-{rank:06}/v000000000007/blob-{rank:06}"));
                let mut bytes = fs::read(&path).unwrap();
                bytes[byte] ^= 1;
                fs::write(&path, bytes).unwrap();
            }
            store.shelf.put(7, ShelfPart::Manifest(rank), &part(rank, 5)).unwrap();
            let is_copied = store.copy(7, &[1, 2, 0], &comm).is_ok();
            let from = (rank + 2) % 3;
            assert_eq!(store.shelf.get(7, ShelfPart::Manifest(from)), Ok(part(from, 5)));
            (is_copied, store.shelf.get(7, ShelfPart::Payloads(from)))
        })
    }

    fn part(rank: usize, len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 1000 + i + rank) as u8).collect()
    }

    #[test]
    fn parts_of_any_number_of_pieces_come_to_the_partner_whole() {
        const FIRST: usize = FIRST_PIECE_BYTES;
        let ends = [FIRST + PIECE_BYTES - 1, FIRST + PIECE_BYTES, FIRST + PIECE_BYTES + 1];
        for parts in [[0, 5, FIRST], [2 * PIECE_BYTES + 5, FIRST - 1, 0], ends] {
            for (rank, (is_copied, found)) in copied(parts, None).into_iter().enumerate() {
                let from = (rank + 2) % 3;
                assert!(is_copied && found == Ok(part(from, parts[from])), "{parts:?}, rank {from}");
            }
        }
    }

    #[test]
    fn a_part_that_is_damaged_is_copied_on_no_rank() {
        for byte in [0, PIECE_BYTES, 2 * PIECE_BYTES + 4] {
            let copied = copied([3, 2 * PIECE_BYTES + 5, PIECE_BYTES], Some((1, byte)));
            assert!(copied.iter().all(|(is_copied, _)| !is_copied), "byte {byte}");
        }
    }
}
