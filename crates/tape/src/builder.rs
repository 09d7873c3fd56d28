//! The description of a tape.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_core::{Bound, Codec};
use recoup_pages::{PageRegion, PageSize};

use crate::coded::CodedShelf;
use crate::coder::{CodingSettings, StateCoder};
use crate::error::TapeError;
use crate::host::HostLevel;
use crate::machine::TapeMachine;
use crate::settings::{Eviction, Growth, LevelSettings, Registration, TapeSettings, Touching};
use crate::shelf::StateShelf;
use crate::spill::SpillDirectory;
use crate::tape::Tape;
use crate::touching::TouchModel;
use crate::turns::PinTurns;

/// Bytes of a spill directory where none are named: as many as its file system has.
const SPILL_BYTES_MAX: u64 = 1 << 60;
/// Bytes that are touched before they are needed.
const AHEAD_BYTES: u64 = 256 << 20;
/// Rates of a small virtual machine, to begin with; each run measures its own.
const RATES: TouchModel = TouchModel {
    copy_rate: 5e9,
    untouched_copy_rate: 1.2e9,
    touch_rate: 2e9,
    shared_copy_rate: 3e9,
    shared_touch_rate: 1.5e9,
};

/// Treatment of the states of an earlier run in the spill directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leftovers {
    #[default]
    Refuse,
    Reopen,
    Clear,
}

/// Description of a [`Tape`].
#[derive(Clone, Default)]
pub struct TapeBuilder {
    host_bytes: u64,
    spill: Option<PathBuf>,
    spill_bytes: Option<u64>,
    leftovers: Leftovers,
    coding: Option<CodingSettings>,
    threads: Option<usize>,
    key_every: Option<usize>,
    dims: Option<[usize; 3]>,
    pages: Option<PageSize>,
    touching: Option<Touching>,
    eviction: Option<Eviction>,
    locking: Option<PathBuf>,
}

impl Tape {
    /// Begins to describe a tape.
    #[must_use]
    pub fn builder() -> TapeBuilder {
        TapeBuilder::default()
    }
}

impl TapeBuilder {
    /// Keeps states in this many bytes of the host's memory. Pages come to be while the tape is
    /// used.
    #[must_use]
    pub fn host(self, bytes: u64) -> Self {
        Self { host_bytes: bytes, ..self }
    }

    /// Spills states to this directory, which one tape uses at a time. States that are still on the
    /// tape when it is dropped stay there.
    #[must_use]
    pub fn spill(self, directory: impl AsRef<Path>) -> Self {
        Self { spill: Some(directory.as_ref().to_owned()), ..self }
    }

    /// Limits the bytes of the spill directory.
    #[must_use]
    pub fn spill_bytes(self, bytes: u64) -> Self {
        Self { spill_bytes: Some(bytes), ..self }
    }

    /// Goes on with the states that an earlier run has left in the spill directory.
    #[must_use]
    pub fn reopen(self) -> Self {
        Self { leftovers: Leftovers::Reopen, ..self }
    }

    /// Removes the states that an earlier run has left in the spill directory.
    #[must_use]
    pub fn clear(self) -> Self {
        Self { leftovers: Leftovers::Clear, ..self }
    }

    /// Codes states under a bound, behind the program. States of a type that the codec does not
    /// take are kept as they are.
    #[must_use]
    pub fn codec(self, codec: Arc<dyn Codec>, bound: Bound) -> Self {
        Self { coding: Some(CodingSettings { codec, bound, threads: 1, key_every: 1 }), ..self }
    }

    /// Sets the threads that code a state; 1 if this is not called.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads.max(1)), ..self }
    }

    /// Codes every `states`-th state alone, and each other one against the state before. The way
    /// back takes room for that many decoded states. 1, all alone, if this is not called.
    #[must_use]
    pub fn key_every(self, states: usize) -> Self {
        Self { key_every: Some(states.max(1)), ..self }
    }

    /// States the extents of the grid that each state lies on, the fastest first: codecs use them.
    #[must_use]
    pub fn grid(self, dims: [usize; 3]) -> Self {
        Self { dims: Some(dims), ..self }
    }

    /// Sets the size of the pages to ask for; huge ones if this is not called.
    #[must_use]
    pub fn pages(self, size: PageSize) -> Self {
        Self { pages: Some(size), ..self }
    }

    /// Sets the order of touching and of copies. If this is not called, a model chooses it by what
    /// it measures.
    #[must_use]
    pub fn touching(self, touching: Touching) -> Self {
        Self { touching: Some(touching), ..self }
    }

    /// Sets the choice of states that leave memory first; the oldest, if this is not called.
    #[must_use]
    pub fn eviction(self, eviction: Eviction) -> Self {
        Self { eviction: Some(eviction), ..self }
    }

    /// Locks memory once it was touched, in turn with other processes that name the same file.
    #[must_use]
    pub fn lock_memory(self, turns: impl AsRef<Path>) -> Self {
        Self { locking: Some(turns.as_ref().to_owned()), ..self }
    }

    /// Makes the tape.
    ///
    /// # Errors
    /// [`TapeError::NoRoom`] without memory and directory, [`TapeError::Memory`] for more than the
    /// machine has, [`TapeError::Spill`] for a directory that cannot be used, and
    /// [`TapeError::Occupied`] if states of an earlier run are there.
    pub fn build(self) -> Result<Tape, TapeError> {
        let mut settings = TapeSettings { levels: Vec::new(), eviction: self.eviction.unwrap_or(Eviction::Fifo) };
        let mut levels = Vec::new();
        if self.host_bytes > 0 {
            check_memory(self.host_bytes)?;
            let region = PageRegion::reserve(self.host_bytes as usize, self.pages.unwrap_or(PageSize::Huge))?;
            levels.push(HostLevel::Memory(Arc::new(region)));
            settings.levels.push(LevelSettings { bytes: self.host_bytes, growth: self.growth() });
        }
        let spill = self.spill.as_deref().map(|path| self.open_spill(path)).transpose()?;
        if let Some(directory) = &spill {
            levels.push(HostLevel::Spill(Arc::clone(directory)));
            let bytes = self.spill_bytes.unwrap_or(SPILL_BYTES_MAX);
            settings.levels.push(LevelSettings { bytes, growth: Growth::Ready });
        }
        if levels.is_empty() {
            return Err(TapeError::NoRoom);
        }
        let machine = TapeMachine::start(settings, levels, self.locking.as_deref().map(PinTurns::at))?;
        let mut shelf = StateShelf::new(machine, spill);
        let damaged = shelf.reopen()?;
        let threads = self.threads.unwrap_or(1);
        let key_every = self.key_every.unwrap_or(1);
        let coder = self.coding.map(|coding| StateCoder::new(CodingSettings { threads, key_every, ..coding }));
        Tape::new(CodedShelf::new(shelf, coder), self.dims, damaged)
    }

    fn growth(&self) -> Growth {
        let chunks = Registration::Chunks { bytes: AHEAD_BYTES };
        let registration = if self.locking.is_some() { chunks } else { Registration::Never };
        let touching = self.touching.clone().unwrap_or(Touching::Modelled(RATES));
        Growth::Paged { touching, registration, ahead_bytes: AHEAD_BYTES }
    }

    fn open_spill(&self, path: &Path) -> Result<Arc<SpillDirectory>, TapeError> {
        let refused = |reason| TapeError::Spill { reason };
        let directory = SpillDirectory::open(path).map_err(refused)?;
        let found = directory.found().map_err(refused)?;
        match self.leftovers {
            Leftovers::Refuse if !found.is_empty() => {
                return Err(TapeError::Occupied { path: path.to_owned(), n_states: found.len() });
            }
            Leftovers::Clear => directory.clear(&found).map_err(refused)?,
            Leftovers::Refuse | Leftovers::Reopen => {}
        }
        Ok(Arc::new(directory))
    }
}

/// Refuses more memory than the machine has: the system would grant it, and end the program later.
fn check_memory(asked: u64) -> Result<(), TapeError> {
    #[cfg(target_os = "linux")]
    {
        let system = rustix::system::sysinfo();
        let available = system.totalram as u64 * u64::from(system.mem_unit);
        if asked > available {
            return Err(TapeError::Memory { asked, available });
        }
    }
    let _ = asked;
    Ok(())
}
