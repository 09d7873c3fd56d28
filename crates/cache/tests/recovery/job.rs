//! A job of some ranks and nodes whose versions are saved, lost and restored.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use recoup_cache::{NodeStore, Partners, Protection, Tiers};
use recoup_comm::Threads;
use recoup_core::{Clock, Comm, FrameRecord, Manifest, NextCall, Note, Store, StoreError, Tier, Tiered};
use recoup_io::{MemoryStore, PrivateDir};
use recoup_testkit::store_suite::SampleVersion;

pub(crate) const RING: Protection = Protection::Partner(Partners::Ring(1));

/// A directory in memory if there is one, as shared memory is.
pub(crate) fn machine() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn node(machine: &Path, node: usize) -> PathBuf {
    machine.join(format!("node-{node}"))
}

/// The name of a host's folder, by the host and its place in the list.
pub(crate) type FolderName = fn(usize, usize) -> String;

/// Some ranks to a node, and the guards of their versions.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) ranks: usize,
    pub(crate) per_node: usize,
    pub(crate) guards: Vec<(Protection, u64)>,
}

impl Job {
    pub(crate) fn new(ranks: usize, guards: &[Protection]) -> Self {
        Self { ranks, per_node: 1, guards: guards.iter().map(|guard| (guard.clone(), 1)).collect() }
    }

    pub(crate) fn store(&self, machine: &Path, rank: usize) -> NodeStore {
        self.store_on(machine, rank / self.per_node, rank)
    }

    pub(crate) fn store_on(&self, machine: &Path, node_index: usize, rank: usize) -> NodeStore {
        let store = NodeStore::new(node(machine, node_index), rank);
        self.guards.iter().fold(store, |store, (guard, every)| store.guarded(guard.clone(), *every))
    }

    /// A store of this rank on the hosts in this list, each of which sees its own directory alone.
    pub(crate) fn store_at(&self, machine: &Path, hosts: &[usize], name: FolderName, rank: usize) -> NodeStore {
        let place = rank / self.per_node;
        let host = PrivateDir::make(machine.join(format!("host-{}", hosts[place]))).unwrap();
        let store = NodeStore::within(Arc::new(host), &name(hosts[place], place), rank);
        self.guards.iter().fold(store, |store, (guard, every)| store.guarded(guard.clone(), *every))
    }

    /// Publishes these versions on all ranks.
    pub(crate) fn save(&self, machine: &Path, versions: &[u64]) {
        Threads::launch(self.ranks, |comm| {
            let store = self.store(machine, comm.rank());
            versions.iter().for_each(|&version| publish(&store, version, &comm).unwrap());
        });
    }

    /// Repairs on all ranks. Returns the versions, checked frame by frame, and the notes of all.
    pub(crate) fn restored(&self, machine: &Path) -> (Vec<u64>, BTreeSet<Note>) {
        self.restored_on(machine, &(0..self.ranks).map(|rank| rank / self.per_node).collect::<Vec<_>>())
    }

    /// As [`Job::restored`], on as many ranks as are given nodes, which keep the guards they can.
    pub(crate) fn restored_on(&self, machine: &Path, nodes: &[usize]) -> (Vec<u64>, BTreeSet<Note>) {
        let results = Threads::launch(nodes.len(), |comm| {
            let store = self.store_on(machine, nodes[comm.rank()], comm.rank()).forgiving();
            store.prepare_restore(&comm, &|manifest| needed_by_all(manifest, &comm)).unwrap();
            let versions = store.versions().unwrap();
            for &version in &versions {
                assert_readable(&store, version, &comm);
            }
            (versions, store.take_notes())
        });
        assert!(results.iter().all(|(versions, _)| versions == &results[0].0), "ranks disagree: {results:?}");
        (results[0].0.clone(), results.iter().flat_map(|(_, notes)| notes.clone()).collect())
    }
}

/// The parts that each rank reads.
pub(crate) fn needed_by_all(manifest: &Manifest, comm: &dyn Comm) -> Vec<Vec<usize>> {
    (0..comm.size()).map(|rank| needed_by(manifest, rank, comm.size())).collect()
}

/// The parts a rank reads: its own, or its share where another number wrote them.
fn needed_by(manifest: &Manifest, rank: usize, size: usize) -> Vec<usize> {
    if manifest.ranks == size {
        return vec![rank];
    }
    (0..manifest.ranks).filter(|part| part % size == rank || *part == 0).collect()
}

/// Writes one rank's part of a sample, and publishes it with the others'.
pub(crate) fn publish(store: &dyn Store, version: u64, comm: &dyn Comm) -> Result<(), StoreError> {
    let mut sample = SampleVersion::new(version, comm.size());
    let mut draft = store.begin(version, comm.rank())?;
    for part in sample.parts.iter_mut().filter(|part| part.record.rank == comm.rank()) {
        draft.write(&part.record, &mut part.frames, NextCall::Write)?;
    }
    let files = draft.seal()?.files;
    store.publish(&sample.of_rank(comm.rank()).manifest(files), comm)?;
    Ok(())
}

/// Every frame this rank needs is bit for bit what was written.
pub(crate) fn assert_readable(store: &dyn Store, version: u64, comm: &dyn Comm) {
    let manifest = store.manifest(version).unwrap();
    let sample = SampleVersion::new(version, manifest.ranks);
    let needed = needed_by(&manifest, comm.rank(), comm.size());
    let mut payload = Vec::new();
    let frames = sample.parts.iter().flat_map(|part| &part.frames).filter(|f| needed.contains(&f.record.rank));
    for expected in frames {
        let same = |f: &&FrameRecord| {
            let record = &expected.record;
            (f.rank, f.run, &f.variable) == (record.rank, record.run, &record.variable)
        };
        store.read(version, manifest.frames.iter().find(same).unwrap(), &mut payload).unwrap();
        assert_eq!(payload, expected.payload.as_ref(), "frame of rank {}", expected.record.rank);
    }
}

pub(crate) fn lose(machine: &Path, nodes: &[usize]) {
    nodes.iter().for_each(|&n| fs::remove_dir_all(node(machine, n)).unwrap());
}

pub(crate) fn payloads(machine: &Path, node_index: usize, shelf: usize, version: u64, rank: usize) -> PathBuf {
    node(machine, node_index).join(format!("rank-{shelf:06}/v{version:012}/blob-{rank:06}"))
}

pub(crate) fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// A tier row of one rank: its node's memory, then a store all ranks share.
pub(crate) fn tiers(job: &Job, machine: &Path, rank: usize, pfs: &MemoryStore, every: u64) -> Tiers {
    tiers_over(job.store(machine, rank), Arc::new(pfs.clone()), every, rank)
}

pub(crate) fn tiers_over(memory: NodeStore, pfs: Arc<dyn Store>, every: u64, rank: usize) -> Tiers {
    let tier =
        |name: &str, store: Arc<dyn Store>, every| Tier { name: name.into(), store, every, keep: 2, max_bytes: None };
    Tiers::new(vec![tier("memory", Arc::new(memory), 1), tier("pfs", pfs, every)], rank)
}

/// A clock whose time stands still until it is opened.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

impl Clock for Gate {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _: Duration) {
        let is_open = self.is_open.lock().unwrap();
        drop(self.changed.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}
