//! The store: each rank's frames on a shelf in its node's memory, and their guards on the shelves
//! of other ranks.
//!
//! The payloads of one rank lie in one file, back to back, as the codec encoded them. Partners hold
//! copies of that file, and erasure sets hold sums over the files of several ranks. Publishing
//! starts the transfers, and commits when all ranks have their parts; until then nothing of the
//! version before has been touched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use recoup_core::{Comm, CommonError, FrameRecord, Manifest, Note, StoreError, agreed, each, gather_words};
use recoup_io::PrivateDir;
use serde::{Deserialize, Serialize};

use crate::code::encode_row;
use crate::layout::segment;
use crate::node::{Node, NodePlace, first_positions};
use crate::plan::ParityHead;
use crate::protection::{Group, Guard, Protection, groups};
use crate::shelf::{PartFile, Shelf, ShelfPart};

/// Bytes that travel to a partner at a time: few enough for the memory of both to be used again and
/// to stay in the caches.
const PIECE_BYTES: usize = 4 << 20;

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
}

/// The commit mark of a version.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommitMark {
    pub(crate) sequence: u64,
    /// Bit i: guard i.
    pub(crate) guards: u64,
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
    pub(crate) fn guard(&self, manifest: &Manifest, mask: u64, comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {
        let nodes = self.nodes(comm)?;
        if mask == 0 {
            return Ok(());
        }
        let version = manifest.version;
        for (index, guard) in self.guards.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1) {
            match &guard.protection {
                Protection::Partner(partners) => {
                    let partners = partners.resolve(&nodes).map_err(CommonError::alike)?;
                    self.copy(version, ShelfPart::Payloads, &partners, comm)?;
                }
                Protection::Erasure { data, parity } => {
                    let groups = groups(*data, *parity, &nodes).map_err(CommonError::alike)?;
                    let Some(group) = groups.iter().find(|group| group.members.contains(&comm.rank())) else {
                        continue;
                    };
                    let own = self.shelf.get(version, ShelfPart::Payloads(comm.rank()));
                    let own = each(comm, own.map_err(|what| unreadable(version, what)))?;
                    self.sum(manifest, index, group, &own, comm)?;
                }
            }
        }
        Ok(())
    }

    /// Sends this rank's part of a kind to its partner, and shelves those of the ranks whose partner
    /// it is. They travel in pieces, and one with fewer bytes than others is the last of its part. A
    /// rank that fails sends no more, and takes part until all have ended.
    fn copy(
        &self,
        version: u64,
        part: fn(usize) -> ShelfPart,
        partners: &[usize],
        comm: &dyn Comm,
    ) -> Result<(), CommonError<StoreError>> {
        let partner = partners[comm.rank()];
        let mut own = self.shelf.open_part(version, part(comm.rank()));
        let mut is_sent = false;
        let mut piece = Vec::new();
        let copy = |from: usize| (from, self.shelf.start(version, part(from)));
        let mut arriving: Vec<_> = (0..partners.len()).filter(|&r| partners[r] == comm.rank()).map(copy).collect();
        let mut shelved = Ok(());
        while !is_sent || !arriving.is_empty() {
            let mut sends = Vec::new();
            if !is_sent {
                if let Err(what) = own.as_mut().map_err(|e| e.clone()).and_then(|own| own.read(PIECE_BYTES, &mut piece))
                {
                    piece.clear();
                    shelved = shelved.and(Err(unreadable(version, what)));
                }
                is_sent = piece.len() < PIECE_BYTES;
                sends.push((partner, piece.as_slice()));
            }
            let from: Vec<usize> = arriving.iter().map(|(from, _)| *from).collect();
            let received = comm.exchange_bytes(&sends, &from)?;
            let arrived = arriving.into_iter().zip(received);
            (arriving, shelved) = arrived.fold((Vec::new(), shelved), |(mut left, shelved), ((from, file), bytes)| {
                let appended = file.and_then(|mut file| file.append(&bytes).map(|()| file));
                if bytes.len() == PIECE_BYTES {
                    left.push((from, appended));
                    return (left, shelved);
                }
                (left, shelved.and(appended.and_then(PartFile::finish)))
            });
        }
        agreed(comm, shelved)
    }

    /// Sends segments to the ranks that sum them up, and shelves the sums that this rank holds.
    fn sum(
        &self,
        manifest: &Manifest,
        guard: usize,
        group: &Group,
        own: &[u8],
        comm: &dyn Comm,
    ) -> Result<(), CommonError<StoreError>> {
        let layout = group.layout;
        let members = &group.members;
        let longest = members.iter().map(|&rank| rank_payload_bytes(manifest, rank)).max().unwrap_or(0);
        let segment_bytes = layout.segment_bytes(longest);
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
        let head =
            ParityHead { data: layout.data, parity: layout.parity, members: members.clone(), member, segment_bytes };
        agreed(comm, self.shelve_sums(manifest.version, guard, &head, &received))
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

    /// Does the part of publishing that involves no other rank.
    fn prepare(&self, manifest: &Manifest, rank: usize) -> Result<(), StoreError> {
        let version = manifest.version;
        recoup_io::manifest::check(manifest, version).map_err(|what| unreadable(version, what))?;
        if !self.shelf.parts(version)?.contains(&ShelfPart::Payloads(rank)) {
            return Err(StoreError::Missing { version });
        }
        let text = recoup_io::manifest::seal(manifest).map_err(|what| unreadable(version, what))?;
        self.shelf.put(version, ShelfPart::Manifest, text.as_bytes())
    }

    /// Starts and commits one version. Returns its guards, a bit each.
    pub(crate) fn publish_on_all(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<u64, CommonError<StoreError>> {
        agreed(comm, self.prepare(manifest, comm.rank()))?;
        self.nodes(comm)?;
        let mask = self.due();
        self.guard(manifest, mask, comm)?;
        let mark = CommitMark { sequence: self.lock().sequence, guards: mask };
        // All ranks hold their parts. Until every one has made its mark, the version before stays
        // untouched.
        agreed(comm, self.commit(manifest.version, mark))?;
        Ok(mask)
    }

    /// Makes a version count. A mark that is there stays as it is: a restart looks after each
    /// version again, and a kill between two marks would take away a version that counts.
    pub(crate) fn commit(&self, version: u64, mark: CommitMark) -> Result<(), StoreError> {
        let text = serde_json::to_vec(&mark).map_err(|e| unreadable(version, e.to_string()))?;
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
}

fn check_guard(guard: &Guard, nodes: &[usize]) -> Result<(), StoreError> {
    match &guard.protection {
        Protection::Partner(partners) => partners.resolve(nodes).map(drop),
        Protection::Erasure { data, parity } => groups(*data, *parity, nodes).map(drop),
    }
}

pub(crate) fn check_frame(frame: &FrameRecord, payload: &[u8]) -> Result<(), String> {
    let found = crc32c::crc32c(payload);
    if found == frame.crc32c {
        return Ok(());
    }
    Err(format!("checksum {:08x} expected, {found:08x} found", frame.crc32c))
}

/// Returns the bytes of a rank's payloads together.
pub(crate) fn rank_payload_bytes(manifest: &Manifest, rank: usize) -> usize {
    manifest.frames.iter().filter(|f| f.rank == rank).map(|f| f.payload_bytes as usize).sum()
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
        && head.member < head.members.len()
        && rows.len() == head.parity * head.segment_bytes;
    is_sound.then_some((head, rows))
}

pub(crate) fn open_manifest(text: &[u8], version: u64) -> Result<Manifest, StoreError> {
    let manifest = recoup_io::manifest::open(text).map_err(|what| unreadable(version, what))?;
    recoup_io::manifest::check(&manifest, version).map_err(|what| unreadable(version, what))?;
    Ok(manifest)
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
        let dir = tempfile::tempdir().unwrap();
        Threads::launch(3, |comm| {
            let rank = comm.rank();
            let store = NodeStore::new(dir.path().join(format!("node-{rank}")), rank);
            store.shelf.clear(7).unwrap();
            store.shelf.put(7, ShelfPart::Payloads(rank), &part(rank, parts[rank])).unwrap();
            if let Some((_, byte)) = damaged.filter(|(of, _)| *of == rank) {
                let path = dir.path().join(format!("node-{rank}/rank-{rank:06}/v000000000007/blob-{rank:06}"));
                let mut bytes = fs::read(&path).unwrap();
                bytes[byte] ^= 1;
                fs::write(&path, bytes).unwrap();
            }
            let is_copied = store.copy(7, ShelfPart::Payloads, &[1, 2, 0], &comm).is_ok();
            (is_copied, store.shelf.get(7, ShelfPart::Payloads((rank + 2) % 3)))
        })
    }

    fn part(rank: usize, len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 1000 + i + rank) as u8).collect()
    }

    #[test]
    fn parts_of_any_number_of_pieces_come_to_the_partner_whole() {
        for parts in [[0, 5, PIECE_BYTES], [2 * PIECE_BYTES + 5, PIECE_BYTES - 1, 0]] {
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
