//! The store: each rank's frames on a shelf in its node's memory, and what guards them on the
//! shelves of others.
//!
//! A version of one rank is one blob, its payloads back to back, compressed as the codec left them:
//! that is what partners hold copies of and what erasure sets sum up. Publishing starts the
//! transfers and commits when all ranks have what they are to hold; until then nothing of the
//! version before has been touched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use recoup_core::{Comm, FrameRecord, Manifest, Note, StoreError, agreed, gather_bytes};
use recoup_io::PrivateDir;
use serde::{Deserialize, Serialize};

use crate::code::encode_row;
use crate::layout::segment;
use crate::node::Node;
use crate::plan::ParityHead;
use crate::protection::{Group, Guard, Protection, groups};
use crate::shelf::{Part, Shelf};

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
    /// Guards that the ranks cannot keep are left out.
    is_forgiving: bool,
    pub(crate) state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// The node each rank is on, by number.
    pub(crate) nodes: Vec<usize>,
    /// Versions that were to be guarded so far, on all ranks alike.
    pub(crate) sequence: u64,
    /// Which guards each version has.
    pub(crate) guarded: BTreeMap<u64, u64>,
    pub(crate) notes: Vec<Note>,
    /// Shelves of ranks that are no more, which this one looks after.
    pub(crate) adopted: Vec<usize>,
}

/// What the commit mark says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) sequence: u64,
    /// Bit i: guard i.
    pub(crate) guards: u64,
}

impl NodeStore {
    /// The store of `rank` under `node`, the directory that all ranks of one node share and no
    /// other: what is lost together with it is a failure domain. It is made with mode 0700 when
    /// first written to. One that another user may reach is refused; what is above it is taken as
    /// it is (see [`NodeStore::within`]).
    #[must_use]
    pub fn new(node: impl AsRef<Path>, rank: usize) -> Self {
        Self::on(Node::at(node.as_ref()), rank)
    }

    /// The same with the node's directory in one that is held open: no link and no exchange of a
    /// directory above it leads elsewhere.
    #[must_use]
    pub fn within(directory: Arc<PrivateDir>, node: &str, rank: usize) -> Self {
        Self::on(Node::within(directory, node), rank)
    }

    fn on(node: Node, rank: usize) -> Self {
        let shelf = Shelf::new(&node, rank);
        Self { node, rank, shelf, guards: Vec::new(), is_forgiving: false, state: Mutex::default() }
    }

    /// The same store with versions guarded; all ranks give the same guards.
    #[must_use]
    pub fn guarded(mut self, protection: Protection, every: u64) -> Self {
        self.guards.push(Guard { protection, every: every.max(1) });
        self
    }

    /// The same store, which leaves out guards that the ranks are too few for instead of refusing
    /// versions: after a loss less may be possible than was asked for.
    #[must_use]
    pub fn forgiving(mut self) -> Self {
        self.is_forgiving = true;
        self
    }

    /// What guards the versions here.
    #[must_use]
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Whether the guards can be kept on ranks that are on these nodes.
    ///
    /// # Errors
    /// [`StoreError::Ranks`] with the first that cannot.
    pub fn check_ranks(&self, nodes: &[usize]) -> Result<(), StoreError> {
        self.guards.iter().try_for_each(|guard| check_guard(guard, nodes))
    }

    /// The guards that can be kept on these nodes, or on any while they are not known.
    pub(crate) fn kept(&self, nodes: &[usize]) -> u64 {
        let is_kept = |guard: &Guard| !self.is_forgiving || nodes.is_empty() || check_guard(guard, nodes).is_ok();
        self.guards.iter().enumerate().filter(|(_, guard)| is_kept(guard)).fold(0, |mask, (i, _)| mask | 1 << i)
    }

    /// Losses at once that the strongest of these guards stands.
    pub(crate) fn losses_stood(&self, mask: u64) -> usize {
        let stood = |guard: &Guard| match guard.protection {
            Protection::Partner(_) => 1,
            Protection::Erasure { parity, .. } => parity,
        };
        let guards = self.guards.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1);
        guards.map(|(_, guard)| stood(guard)).max().unwrap_or(0)
    }

    /// The parts of a version this rank holds, as the names of their files.
    #[must_use]
    pub fn parts(&self, version: u64) -> Vec<String> {
        self.shelf.parts(version).unwrap_or_default().into_iter().map(Part::file).collect()
    }

    /// Returns when this rank committed a version; `None` for a draft.
    pub(crate) fn committed_at(&self, version: u64) -> Option<SystemTime> {
        self.shelf.committed_at(version)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guards the next version gets.
    pub(crate) fn due(&self) -> u64 {
        let state = self.lock();
        let is_due = |guard: &Guard| state.sequence.is_multiple_of(guard.every);
        let due =
            self.guards.iter().enumerate().filter(|(_, guard)| is_due(guard)).fold(0, |mask, (i, _)| mask | 1 << i);
        due & self.kept(&state.nodes)
    }

    /// The node of every rank, found anew when their number has changed. Collective.
    fn nodes(&self, comm: &dyn Comm) -> Result<Vec<usize>, StoreError> {
        let known = self.lock().nodes.clone();
        if known.len() == comm.size() {
            return Ok(known);
        }
        let nodes = self.find_nodes(comm)?;
        self.lock().nodes.clone_from(&nodes);
        Ok(nodes)
    }

    /// Numbers the nodes by their first ranks. Collective.
    pub(crate) fn find_nodes(&self, comm: &dyn Comm) -> Result<Vec<usize>, StoreError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = format!("{}:{}", host.trim(), self.node.path().display());
        let names = gather_bytes(comm, name.as_bytes())?;
        let first = |name: &Vec<u8>| names.iter().position(|other| other == name).unwrap_or(0);
        Ok(names.iter().map(first).collect())
    }

    /// Puts what guards a version on the shelves of all ranks. Collective; what a rank could not do
    /// is its own error.
    pub(crate) fn guard(&self, manifest: &Manifest, mask: u64, comm: &dyn Comm) -> Result<(), StoreError> {
        let nodes = self.nodes(comm)?;
        if mask == 0 {
            return Ok(());
        }
        let version = manifest.version;
        let own = self.shelf.get(version, Part::Blob(comm.rank())).map_err(|what| lie(version, what));
        agreed(comm, own.as_ref().map(drop).map_err(|e| lie(version, e.to_string())))?;
        let own = own?;
        for (index, guard) in self.guards.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1) {
            match &guard.protection {
                Protection::Partner(partners) => self.copy(version, &own, &partners.resolve(&nodes)?, comm)?,
                Protection::Erasure { data, parity } => {
                    let groups = groups(*data, *parity, &nodes)?;
                    let Some(group) = groups.iter().find(|group| group.members.contains(&comm.rank())) else {
                        continue;
                    };
                    self.sum(manifest, (index, group), &own, comm)?;
                }
            }
        }
        Ok(())
    }

    /// Sends this rank's blob to its partner, and shelves those of the ranks whose partner it is.
    fn copy(&self, version: u64, own: &[u8], partners: &[usize], comm: &dyn Comm) -> Result<(), StoreError> {
        let from: Vec<usize> = (0..partners.len()).filter(|&rank| partners[rank] == comm.rank()).collect();
        let received = comm.exchange_bytes(&[(partners[comm.rank()], own)], &from)?;
        let shelved =
            from.iter().zip(&received).try_for_each(|(rank, blob)| self.shelf.put(version, Part::Blob(*rank), blob));
        agreed(comm, shelved)
    }

    /// Sends segments to those who sum them up, and shelves the sums that are this rank's to hold.
    fn sum(
        &self,
        manifest: &Manifest,
        (index, group): (usize, &Group),
        own: &[u8],
        comm: &dyn Comm,
    ) -> Result<(), StoreError> {
        let (layout, members) = (group.layout, &group.members);
        let longest = members.iter().map(|&rank| blob_bytes(manifest, rank)).max().unwrap_or(0);
        let segment_bytes = layout.segment_bytes(longest);
        let member = members.iter().position(|&m| m == comm.rank()).unwrap_or(0);
        let (mut sends, mut from) = (Vec::new(), Vec::new());
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
        agreed(comm, self.shelve_sums(manifest.version, index, &head, &received))
    }

    fn shelve_sums(
        &self,
        version: u64,
        index: usize,
        head: &ParityHead,
        received: &[Vec<u8>],
    ) -> Result<(), StoreError> {
        let mut file = self.shelf.start(version, Part::Parity(index))?;
        file.append(&parity_head(head))?;
        let mut sums = vec![0; head.segment_bytes];
        for (row, columns) in received.chunks(head.data).enumerate() {
            let columns: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
            encode_row(row, &columns, &mut sums);
            file.append(&sums)?;
        }
        file.finish()
    }

    /// What can be done before other ranks are involved.
    fn prepare(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<(), StoreError> {
        let version = manifest.version;
        recoup_io::manifest::check(manifest, version).map_err(|what| lie(version, what))?;
        if !self.shelf.parts(version)?.contains(&Part::Blob(comm.rank())) {
            return Err(StoreError::Missing { version });
        }
        let text = recoup_io::manifest::seal(manifest).map_err(|what| lie(version, what))?;
        self.shelf.put(version, Part::Manifest, text.as_bytes())
    }

    /// Start and commit of one version.
    pub(crate) fn publish_on_all(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<u64, StoreError> {
        agreed(comm, self.prepare(manifest, comm))?;
        self.nodes(comm)?;
        let mask = self.due();
        self.guard(manifest, mask, comm)?;
        let mark = Mark { sequence: self.lock().sequence, guards: mask };
        // All ranks hold what they should. Until every one has made its mark, the version before
        // stays untouched.
        agreed(comm, self.commit(manifest.version, mark))?;
        Ok(mask)
    }

    pub(crate) fn commit(&self, version: u64, mark: Mark) -> Result<(), StoreError> {
        let text = serde_json::to_vec(&mark).map_err(|e| lie(version, e.to_string()))?;
        self.shelf.put(version, Part::Commit, &text)
    }

    pub(crate) fn require(&self, version: u64) -> Result<(), StoreError> {
        match self.shelf.get(version, Part::Commit) {
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

/// Bytes of a rank's payloads together.
pub(crate) fn blob_bytes(manifest: &Manifest, rank: usize) -> usize {
    manifest.frames.iter().filter(|f| f.rank == rank).map(|f| f.payload_bytes as usize).sum()
}

/// The head of a parity part: its length, then JSON.
fn parity_head(head: &ParityHead) -> Vec<u8> {
    let text = serde_json::to_vec(head).unwrap_or_default();
    [&(text.len() as u32).to_le_bytes()[..], &text].concat()
}

/// A parity part taken apart: its head and its rows.
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
    let manifest = recoup_io::manifest::open(text).map_err(|what| lie(version, what))?;
    recoup_io::manifest::check(&manifest, version).map_err(|what| lie(version, what))?;
    Ok(manifest)
}

pub(crate) fn lie(version: u64, what: String) -> StoreError {
    StoreError::Manifest { version, what }
}
