//! Counters that survive a SIGKILL: a run writes them to a small file after every step, and the
//! page cache keeps them when the process is gone.
//!
//! Layout: [`WORDS`] little-endian 64-bit words, in the order of [`HeartbeatCounters`]. The file
//! has no readers but this program. A life whose process survives it, because only another rank was
//! killed, keeps the counters in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use recoup::SystemClock;
use recoup::core::{
    Clock, Comm, CommonError, Draft, Manifest, NextBegin, Store, StoreDecorator, StoreError, wrapping_sums,
};

use crate::inject::last_words;
use crate::observe::history::SavedBytes;
use crate::observe::saves::Saves;

/// Words of the file.
const WORDS: usize = 9;

/// The counters of one life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeartbeatCounters {
    /// 1 once the run proper has begun: the problem is read, a restore or the first step comes
    /// next.
    pub(crate) started: u64,
    /// The version the life continued from; 0 for the start.
    pub(crate) restored: u64,
    /// Index of the last iteration.
    pub(crate) iteration: u64,
    /// Iterations executed in this life.
    pub(crate) executed: u64,
    /// Versions that counted.
    pub(crate) checkpoints: u64,
    /// Their values' bytes.
    pub(crate) raw_bytes: u64,
    /// Their payloads' bytes.
    pub(crate) payload_bytes: u64,
    /// Time from the start of the run to the first step.
    pub(crate) recovery_nanoseconds: u64,
    /// Between steps: checkpoints, as far as they block the solver.
    pub(crate) blocking_nanoseconds: u64,
}

impl HeartbeatCounters {
    fn words(self) -> [u64; WORDS] {
        [
            self.started,
            self.restored,
            self.iteration,
            self.executed,
            self.checkpoints,
            self.raw_bytes,
            self.payload_bytes,
            self.recovery_nanoseconds,
            self.blocking_nanoseconds,
        ]
    }

    fn of_words(words: [u64; WORDS]) -> Self {
        let [started, restored, iteration, executed, checkpoints, raw_bytes, payload_bytes, recovery, blocking] = words;
        let recovery_nanoseconds = recovery;
        let blocking_nanoseconds = blocking;
        Self {
            started,
            restored,
            iteration,
            executed,
            checkpoints,
            raw_bytes,
            payload_bytes,
            recovery_nanoseconds,
            blocking_nanoseconds,
        }
    }

    /// Reads the counters of a life; all zeros if it left none.
    pub(crate) fn read(path: &Path) -> Self {
        let mut bytes = [0; 8 * WORDS];
        match File::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0)) {
            Ok(()) => Self::of_words(std::array::from_fn(|w| {
                u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * w + byte]))
            })),
            Err(_) => Self::default(),
        }
    }
}

/// The first and last step of a life, on a clock that outlives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The problem was read: a restore or the first step comes next.
    pub(crate) ready: Option<Duration>,
    /// The first step began.
    pub(crate) first: Option<Duration>,
    /// The last step so far ended.
    pub(crate) last: Option<Duration>,
}

/// The writing end, shared by the solver and the checkpoint worker.
pub(crate) struct Heartbeat {
    file: Option<File>,
    words: [AtomicU64; WORDS],
    clock: Arc<SystemClock>,
    steps: Mutex<Steps>,
}

impl Heartbeat {
    /// Makes the file at `path`, all counters zero.
    ///
    /// # Errors
    /// When something is there, a link included, or the file cannot be made.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create_new(path)?;
        Ok(Self { file: Some(file), ..Self::in_memory(Arc::new(SystemClock::new())) })
    }

    /// Counters that die with this process, and the times of its steps on `clock`.
    pub(crate) fn in_memory(clock: Arc<SystemClock>) -> Self {
        last_words::has_stepped(false);
        Self { file: None, words: std::array::from_fn(|_| AtomicU64::new(0)), clock, steps: Mutex::default() }
    }

    /// The counters now.
    pub(crate) fn beats(&self) -> HeartbeatCounters {
        HeartbeatCounters::of_words(std::array::from_fn(|w| self.words[w].load(Ordering::Relaxed)))
    }

    /// Returns the times of its steps.
    pub(crate) fn steps(&self) -> Steps {
        *self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, mark: impl FnOnce(&mut Steps, Duration)) {
        mark(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner), self.clock.now());
    }

    /// The problem is read.
    pub(crate) fn ready(&self) {
        self.mark(|steps, now| steps.ready = Some(now));
        self.beat(|beat| beat.started = 1);
    }

    /// A step begins.
    pub(crate) fn begin_step(&self) {
        last_words::has_stepped(true);
        self.mark(|steps, now| steps.first = steps.first.or(Some(now)));
    }

    /// A step has ended.
    pub(crate) fn end_step(&self) {
        self.mark(|steps, now| steps.last = Some(now));
    }

    /// Changes the counters and writes them. A write that fails costs a line of a report, not the
    /// run.
    pub(crate) fn beat(&self, change: impl FnOnce(&mut HeartbeatCounters)) {
        let before = self.beats();
        let mut beat = before;
        change(&mut beat);
        // Only what this call changed is stored: the solver and the worker own different counters.
        for ((word, old), new) in self.words.iter().zip(before.words()).zip(beat.words()) {
            if old != new {
                word.store(new, Ordering::Relaxed);
            }
        }
        let Some(file) = &self.file else { return };
        let now: Vec<u8> = self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        if let Err(error) = file.write_all_at(&now, 0) {
            tracing::debug!(%error, "heartbeat not written");
        }
    }
}

/// A store that counts what is published.
pub(crate) struct CountedStore {
    pub(crate) inner: Arc<dyn Store>,
    /// The counters of a life, if they are read.
    pub(crate) heartbeat: Option<Arc<Heartbeat>>,
    pub(crate) saves: Arc<Saves>,
}

impl StoreDecorator for CountedStore {
    fn inner(&self) -> &dyn Store {
        self.inner.as_ref()
    }

    fn begin_draft(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.saves.begun();
        self.inner.begin(version, rank)
    }

    fn publish_version(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        let next_begin = last_words::committing(|| self.inner.publish(manifest, comm))?;
        let [raw_bytes, stored_bytes] = wrapping_sums(comm, [manifest.raw_bytes(), manifest.payload_bytes()])?;
        self.saves.counted(SavedBytes { version: manifest.version, raw_bytes, stored_bytes });
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.beat(|beat| {
                beat.checkpoints += 1;
                beat.raw_bytes += raw_bytes;
                beat.payload_bytes += stored_bytes;
            });
        }
        Ok(next_begin)
    }
}

#[cfg(test)]
mod tests {
    use recoup_testkit::decorator_suite::decorator_suite;

    use super::*;

    #[test]
    fn a_counted_store_passes_every_call_on() {
        let dir = tempfile::tempdir().unwrap();
        let heartbeat = Arc::new(Heartbeat::create(&dir.path().join("beat")).unwrap());
        let heartbeat = Some(heartbeat);
        let saves = Arc::default();
        decorator_suite(|inner| CountedStore { inner: Arc::new(inner), heartbeat, saves });
    }

    #[test]
    fn last_beat_is_read_back_and_a_missing_file_is_all_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("beat");
        assert_eq!(HeartbeatCounters::read(&path), HeartbeatCounters::default());
        let heartbeat = Heartbeat::create(&path).unwrap();
        heartbeat.beat(|beat| beat.started = 1);
        heartbeat.beat(|beat| (beat.iteration, beat.executed) = (40, 7));
        heartbeat.beat(|beat| beat.checkpoints += 2);
        let expected = HeartbeatCounters {
            started: 1,
            iteration: 40,
            executed: 7,
            checkpoints: 2,
            ..HeartbeatCounters::default()
        };
        assert_eq!(HeartbeatCounters::read(&path), expected);
    }

    #[test]
    fn a_heartbeat_is_a_new_file_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("beat");
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "values").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        assert!(Heartbeat::create(&path).is_err());
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "values");
    }
}
