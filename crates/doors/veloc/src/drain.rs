//! The copy of a version from scratch to persistent storage, on a thread of each rank.
//!
//! Ranks need no message for it: each writes its file into the draft that rank 0 began, and hands
//! its records over in a directory next to it; rank 0 publishes when it has all of them. So a copy
//! is done without another call of the program, and one of a program that is killed never counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use recoup_comm::Solo;
use recoup_core::{
    Clock, Draft, ErrorKind, FileRecord, Filter, Frame, FrameRecord, NextCall, RankFailure, Store, StoreError,
    VariableRecord,
};
use recoup_io::{SystemClock, open_regular};
use recoup_pipeline::Retention;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::copies::PartRequest;
use crate::draft::Records;
use crate::places::NameStores;

/// Pause between two looks at the other ranks' parts: grows from the first to the second.
const NAPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// One rank's part of a copy.
pub(crate) struct DrainJob {
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) token: u64,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    pub(crate) stores: NameStores,
    pub(crate) handover: PathBuf,
    pub(crate) filters: BTreeMap<String, Vec<Filter>>,
    /// Versions kept in persistent storage.
    pub(crate) keep: Option<usize>,
    /// Longest wait for other ranks.
    pub(crate) patience: Duration,
    /// The draft that rank 0 has begun already.
    pub(crate) draft: Option<Box<dyn Draft>>,
}

/// A copy under way.
pub(crate) struct PersistentDrain {
    version: u64,
    /// The reason why there is no thread, where the system refused one.
    thread: Result<JoinHandle<Result<(), Error>>, Error>,
    stop: Arc<AtomicBool>,
}

/// The records that a rank hands over to rank 0.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HandedPart {
    variables: Vec<VariableRecord>,
    frames: Vec<FrameRecord>,
    files: Vec<FileRecord>,
    error: Option<String>,
}

impl PersistentDrain {
    /// Starts the copy, whose failure is its verdict.
    pub(crate) fn start(job: DrainJob) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let version = job.version;
        let handover = job.handover.clone();
        let work = DrainThread { job, stop: Arc::clone(&stop), clock: SystemClock::new() };
        let thread = std::thread::Builder::new().name("veloc-drain".to_owned()).spawn(move || work.run());
        let thread = thread.map_err(|error| {
            // The other ranks take it as the end.
            std::fs::remove_dir_all(handover).ok();
            failed(version, &error.to_string())
        });
        Self { version, thread, stop }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().map_or(true, JoinHandle::is_finished)
    }

    /// Waits for the verdict, the same on all ranks.
    pub(crate) fn wait(self) -> Result<(), Error> {
        let version = self.version;
        let ended = self.thread?.join().unwrap_or_else(|_| Err(failed(version, "the copying thread panicked")));
        ended.map_err(|error| match error {
            late @ Error::Drain { .. } => late,
            other => Error::Drain { version, what: other.to_string() },
        })
    }

    /// Stops the copy at its next frame; the version does not count then.
    pub(crate) fn stop(self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Release);
        self.wait()
    }
}

fn failed(version: u64, what: &str) -> Error {
    Error::Drain { version, what: what.to_owned() }
}

struct DrainThread {
    job: DrainJob,
    stop: Arc<AtomicBool>,
    clock: SystemClock,
}

impl DrainThread {
    fn run(mut self) -> Result<(), Error> {
        let draft = self.job.draft.take();
        let written = self.write(draft);
        if self.job.rank > 0 {
            // Without its part the others would wait for long: without the place for parts they do
            // not.
            let handed = self.hand_over(&written);
            handed.inspect_err(|_| drop(std::fs::remove_dir_all(&self.job.handover)))?;
            let verdict = self.await_verdict();
            return written.and(verdict);
        }
        let published = written.and_then(|records| self.publish(records));
        // The others take it as the end. Their files of a draft that failed are cleared by the
        // next one.
        std::fs::remove_dir_all(&self.job.handover).ok();
        self.job.stores.persistent.discard_drafts().ok();
        published
    }

    /// Copies this rank's frames, each verified on the way.
    fn write(&self, draft: Option<Box<dyn Draft>>) -> Result<Records, Error> {
        let DrainJob { version, rank, stores, filters, .. } = &self.job;
        let mut draft = match draft {
            Some(draft) => draft,
            None => self.await_some("the draft of rank 0", || self.join())??,
        };
        let mut records = Records::default();
        let manifest = stores.scratch.manifest(*version)?;
        for variable in &manifest.variables {
            let mut frames = Vec::new();
            for held in manifest.frames.iter().filter(|f| f.variable == variable.name) {
                self.check_stop()?;
                let mut payload = Vec::new();
                stores.scratch.read(*version, held, &mut payload)?;
                let record = FrameRecord { rank: *rank, place: None, ..held.clone() };
                let filters = filters.get(&variable.name).cloned().unwrap_or_default();
                frames.push(Frame { record, filters, payload: payload.into() });
            }
            let variable = VariableRecord { rank: *rank, ..variable.clone() };
            draft.write(&variable, &mut frames, NextCall::Write)?;
            records.variables.push(variable);
            records.frames.extend(frames.into_iter().map(|f| f.record));
        }
        self.check_stop()?;
        records.files = draft.seal()?.files;
        Ok(records)
    }

    /// Joins the draft that rank 0 has begun; `None` while the file system does not show it yet.
    fn join(&self) -> Option<Result<Box<dyn Draft>, Error>> {
        let DrainJob { version, rank, stores, handover, .. } = &self.job;
        match stores.persistent.begin(*version, *rank) {
            Err(StoreError::Missing { .. }) if handover.exists() => None,
            begun => Some(begun.map_err(Error::from)),
        }
    }

    /// Makes the version count, then removes older ones; on rank 0.
    fn publish(&self, mut records: Records) -> Result<(), Error> {
        let DrainJob { name, version, ranks, stores, keep, .. } = &self.job;
        for rank in 1..*ranks {
            let handed = self.await_part(rank)?;
            if let Some(message) = handed.error {
                return Err(RankFailure { rank, kind: ErrorKind::Io, message }.into());
            }
            records.variables.extend(handed.variables);
            records.frames.extend(handed.frames);
            records.files.extend(handed.files);
        }
        self.check_stop()?;
        stores.persistent.publish(&records.manifest(name, *version, *ranks), &Solo)?;
        if let Some(keep) = *keep {
            retain(stores.persistent.as_ref(), keep, *version, self.job.rank);
        }
        Ok(())
    }

    fn part_path(&self, rank: usize) -> PathBuf {
        self.job.handover.join(format!("rank-{rank:06}"))
    }

    /// Writes a checksum, then the text: a reader knows when it has all of it.
    fn hand_over(&self, written: &Result<Records, Error>) -> Result<(), Error> {
        let handed = match written {
            Ok(Records { variables, frames, files }) => {
                HandedPart { variables: variables.clone(), frames: frames.clone(), files: files.clone(), error: None }
            }
            Err(error) => HandedPart { error: Some(error.to_string()), ..HandedPart::default() },
        };
        let path = self.part_path(self.job.rank);
        let text = serde_json::to_string(&handed).map_err(|e| Error::file("write", &path, e.into()))?;
        let sealed = format!("{:08x}{text}", crc32c::crc32c(text.as_bytes()));
        let written = File::create_new(&path).and_then(|mut file| file.write_all(sealed.as_bytes()));
        written.map_err(|source| Error::file("write", &path, source))
    }

    fn await_part(&self, rank: usize) -> Result<HandedPart, Error> {
        let path = self.part_path(rank);
        let lost = || -> Error {
            let message = "its part could not be handed over".to_owned();
            RankFailure { rank, kind: ErrorKind::Io, message }.into()
        };
        let read = || {
            let mut bytes = Vec::new();
            open_regular(&path)?.read_to_end(&mut bytes).map(|_| bytes)
        };
        self.await_some(&format!("the part of rank {rank}"), || match read() {
            Ok(bytes) => handed(&bytes).map(Ok),
            Err(_) => (!self.job.handover.exists()).then(|| Err(lost())),
        })?
    }

    /// Waits until rank 0 has removed the place where parts are handed over; the version counts if
    /// it is this one.
    fn await_verdict(&self) -> Result<(), Error> {
        let DrainJob { version, rank, ranks, token, handover, stores, .. } = &self.job;
        self.await_some("rank 0", || (!handover.exists()).then_some(()))?;
        let wanted = PartRequest { version: *version, rank: *rank, ranks: *ranks, stored_rank: *rank };
        let counts = wanted.token(stores.persistent.as_ref()) == Some(*token);
        if counts { Ok(()) } else { Err(failed(*version, "another rank could not copy its part")) }
    }

    fn await_some<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, Error> {
        let DrainJob { version, patience, .. } = &self.job;
        let start = self.clock.now();
        let [mut nap, nap_max] = NAPS;
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            self.check_stop()?;
            if self.clock.now() - start > *patience {
                return Err(failed(*version, &format!("waited {} s for {what}", patience.as_secs())));
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(nap_max);
        }
    }

    fn check_stop(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Acquire) {
            Err(failed(self.job.version, "the program did not wait"))
        } else {
            Ok(())
        }
    }
}

/// Returns the part handed over; `None` while it is incomplete.
fn handed(bytes: &[u8]) -> Option<HandedPart> {
    let (checksum, text) = bytes.split_at_checked(8)?;
    let found = format!("{:08x}", crc32c::crc32c(text));
    (checksum == found.as_bytes()).then(|| serde_json::from_slice(text).ok())?
}

/// Removes all but the newest `keep` versions; those above `newest` are another run's. One that
/// cannot be removed stays, and is named.
pub(crate) fn retain(store: &dyn Store, keep: usize, newest: u64, rank: usize) {
    let left_over = |what: &str, error: &StoreError| crate::say(Some(rank), &format!("{what} left over: {error}"));
    match Retention::new(keep).superfluous(store, newest) {
        Err(error) => left_over("old versions are", &error),
        Ok(superfluous) => {
            for version in superfluous {
                match store.remove(version) {
                    Ok(()) | Err(StoreError::Missing { .. }) => {}
                    Err(error) => left_over(&format!("version {version} is"), &error),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use recoup_io::{Access, Hdf5Store};
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;
    use crate::coding::{META, encode_bytes};
    use crate::copies::Meta;

    const TOKEN: u64 = 77;

    /// A rank's part of version 1 in scratch.
    fn save(scratch: &Hdf5Store, rank: usize) {
        let mut draft = scratch.begin(1, 0).unwrap();
        let meta = Meta { token: TOKEN, rank, ranks: 2, files: Vec::new() };
        let mut records = Records::default();
        for (name, bytes) in [("region.0", vec![7; 1000]), (META, serde_json::to_vec(&meta).unwrap())] {
            let (record, mut frames) = encode_bytes(name, &bytes).unwrap();
            draft.write(&record, &mut frames, NextCall::Seal).unwrap();
            records.variables.push(record);
            records.frames.extend(frames.into_iter().map(|f| f.record));
        }
        records.files = draft.seal().unwrap().files;
        scratch.publish(&records.manifest("heat", 1, 1), &Solo).unwrap();
    }

    /// A copy by two ranks: `prepare` sees the place where parts are handed over. The verdicts, and
    /// the versions there.
    fn copied(saved: [bool; 2], prepare: fn(&std::path::Path)) -> ([bool; 2], Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let persistent = dir.path().join("persistent");
        let handover = persistent.join("heat/draft-parts-1");
        let mut drains = Vec::new();
        for (rank, is_saved) in saved.into_iter().enumerate() {
            let scratch = dir.path().join(format!("scratch-{rank}"));
            let scratch = Arc::new(Hdf5Store::open(scratch, "heat", Access::Write).unwrap());
            let access = if rank == 0 { Access::Write } else { Access::Join };
            let persistent = Arc::new(Hdf5Store::open(&persistent, "heat", access).unwrap());
            if is_saved {
                save(&scratch, rank);
            }
            let draft = (rank == 0).then(|| persistent.begin(1, 0).unwrap());
            if rank == 0 {
                std::fs::create_dir(&handover).unwrap();
                prepare(&handover);
            }
            let stores = NameStores { scratch, persistent };
            let name = "heat".to_owned();
            let handover = handover.clone();
            let filters = BTreeMap::new();
            let patience = Duration::from_secs(60);
            let version = 1;
            let token = TOKEN;
            let ranks = 2;
            let keep = None;
            let job = DrainJob { name, version, token, rank, ranks, stores, handover, filters, keep, patience, draft };
            drains.push(PersistentDrain::start(job));
        }
        let verdicts: Vec<bool> = drains.into_iter().map(|drain| drain.wait().is_ok()).collect();
        let store = Hdf5Store::open(&persistent, "heat", Access::Read).unwrap();
        assert!(!handover.exists());
        ([verdicts[0], verdicts[1]], store.versions().unwrap())
    }

    #[test]
    fn copy_counts_on_all_ranks_or_on_none() {
        assert_eq!(copied([true, true], |_| ()), ([true, true], vec![1]));
        assert_eq!(copied([true, false], |_| ()), ([false, false], vec![]));
        assert_eq!(copied([false, true], |_| ()), ([false, false], vec![]));
    }

    #[test]
    fn part_that_cannot_be_handed_over_is_not_waited_for() {
        let occupied = |handover: &std::path::Path| std::fs::create_dir(handover.join("rank-000001")).unwrap();
        assert_eq!(copied([true, true], occupied), ([false, false], vec![]));
        // Rank 0 waited for someone to write into the pipe.
        let pipe = |handover: &std::path::Path| {
            mknodat(CWD, handover.join("rank-000001"), FileType::Fifo, 0o600.into(), 0).unwrap();
        };
        assert_eq!(copied([true, true], pipe), ([false, false], vec![]));
    }

    #[test]
    fn half_a_part_is_no_part() {
        let text =
            serde_json::to_string(&HandedPart { error: Some("full".to_owned()), ..HandedPart::default() }).unwrap();
        let sealed = format!("{:08x}{text}", crc32c::crc32c(text.as_bytes()));
        assert_eq!(handed(sealed.as_bytes()).unwrap().error.as_deref(), Some("full"));
        for len in 0..sealed.len() {
            assert!(handed(&sealed.as_bytes()[..len]).is_none(), "{len} bytes");
        }
    }
}
