//! The description of a tape.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_core::{Bound, Codec};
use recoup_pages::{PageRegion, PageSize};

use crate::coded::CodedShelf;
use crate::coder::StateCoder;
use crate::coding::CodingSettings;
use crate::error::TapeError;
use crate::host_memory::host_memory_bytes;
use crate::machine::TapeMachine;
use crate::record::has_word_for;
use crate::record_coder::RecordCoder;
use crate::settings::{Eviction, Growth, LevelSettings, Registration, TapeSettings, Touching};
use crate::shelf::StateShelf;
use crate::spill::SpillDirectory;
use crate::storage::LevelStorage;
use crate::tape::Tape;
use crate::touching::TouchModel;
use crate::turns::PinTurns;

/// Bytes of a spill directory where none are named: as many as its file system has.
const SPILL_BYTES_MAX: u64 = 1 << 60;
/// Bytes of the host's memory that are touched before they are needed, and registered at a time.
const AHEAD_BYTES: u64 = 256 << 20;
/// Bytes of device memory that are mapped at a time: smaller chunks take longer.
#[cfg(feature = "cuda")]
const MAPPED_BYTES: u64 = 1 << 30;
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
    device_bytes: u64,
    #[cfg(feature = "cuda")]
    device: Option<recoup_device::Device>,
    chunk_bytes: Option<u64>,
    is_prepared: bool,
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

/// A level before its tape is made.
struct OpenLevel {
    storage: LevelStorage,
    bytes: u64,
    growth: Growth,
    is_coded: bool,
}

impl Tape {
    /// Begins to describe a tape.
    #[must_use]
    pub fn builder() -> TapeBuilder {
        TapeBuilder::default()
    }
}

impl TapeBuilder {
    /// Keeps states in this many bytes of the memory of a CUDA device, the first one if none is
    /// named. It is mapped while the tape is used. Memory of the host consists of huge pages then,
    /// and is registered by chunks, in turn with the user's other processes on this machine.
    ///
    /// With a codec, states are coded when they leave the device, one by one. Those that never
    /// leave it come back bit for bit.
    #[must_use]
    pub fn device(self, bytes: u64) -> Self {
        Self { device_bytes: bytes, ..self }
    }

    /// Names the device.
    #[cfg(feature = "cuda")]
    #[must_use]
    pub fn on(self, device: &recoup_device::Device) -> Self {
        Self { device: Some(device.clone()), ..self }
    }

    /// Sets the bytes of device memory that are mapped at a time, and of memory of the host that
    /// are registered at a time. If this is not called, they are 1 GiB and 256 MiB.
    #[must_use]
    pub fn chunks(self, bytes: u64) -> Self {
        Self { chunk_bytes: Some(bytes.max(1)), ..self }
    }

    /// Makes all memory before the tape is used, as runtimes do that know no other way: maps,
    /// touches and registers it.
    #[must_use]
    pub fn prepared(self) -> Self {
        Self { is_prepared: true, ..self }
    }

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

    /// Continues with the states that an earlier run has left in the spill directory.
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

    /// Locks memory once it was touched, in turn with other processes that name the same file. With
    /// a device, memory is registered in any case, and the file is that of these turns.
    #[must_use]
    pub fn lock_memory(self, turns: impl AsRef<Path>) -> Self {
        Self { locking: Some(turns.as_ref().to_owned()), ..self }
    }

    /// Makes the tape.
    ///
    /// # Errors
    /// [`TapeError::CodecName`] for a codec of versions, [`TapeError::CodecBound`] for a bound that
    /// the codec does not take, [`TapeError::Turns`] for a file of turns that cannot be used,
    /// [`TapeError::NoRoom`] without memory and
    /// directory, [`TapeError::Memory`] for more than the machine has, [`TapeError::Spill`] for a
    /// directory that cannot be used, and [`TapeError::Occupied`] if states of an earlier run are
    /// there. With a device, [`TapeError::Device`] if there is none or it refuses,
    /// [`TapeError::CodedDevice`], [`TapeError::ChainedDevice`] and [`TapeError::NotBuilt`].
    pub fn build(self) -> Result<Tape, TapeError> {
        self.check_codec()?;
        let coder = self.coder_below_device()?;
        let mut levels = self.open_memory(coder.as_ref())?;
        let spill = self.spill.as_deref().map(|path| self.open_spill(path)).transpose()?;
        if let Some(directory) = &spill {
            let bytes = self.spill_bytes.unwrap_or(SPILL_BYTES_MAX);
            levels.push(OpenLevel {
                storage: LevelStorage::Spill(Arc::clone(directory)),
                bytes,
                growth: Growth::Ready,
                is_coded: coder.is_some(),
            });
        }
        if levels.is_empty() {
            return Err(TapeError::NoRoom);
        }
        let of_level = |level: &OpenLevel| LevelSettings {
            bytes: level.bytes,
            growth: level.growth.clone(),
            is_coded: level.is_coded,
        };
        let eviction = self.eviction.unwrap_or(Eviction::Fifo);
        let settings = TapeSettings { levels: levels.iter().map(of_level).collect(), eviction };
        let storage = levels.into_iter().map(|level| level.storage).collect();
        let machine = TapeMachine::start(settings, storage, self.turns()?)?;
        let before = if coder.is_none() { self.coding() } else { None };
        let mut shelf = StateShelf::new(machine, spill, coder);
        let damaged = shelf.reopen()?;
        Tape::new(CodedShelf::new(shelf, before.map(StateCoder::new)), self.dims, damaged)
    }

    fn check_codec(&self) -> Result<(), TapeError> {
        let Some(coding) = &self.coding else { return Ok(()) };
        let codec = coding.codec.id();
        if !has_word_for(codec) {
            return Err(TapeError::CodecName { codec });
        }
        Ok(codec.check_bound(coding.bound)?)
    }

    fn coding(&self) -> Option<CodingSettings> {
        let threads = self.threads.unwrap_or(1);
        let key_every = self.key_every.unwrap_or(1);
        self.coding.clone().map(|coding| CodingSettings { threads, key_every, ..coding })
    }

    /// Returns the codec that works between a device and the levels below it. Without a device,
    /// states are coded before they reach the first level.
    fn coder_below_device(&self) -> Result<Option<Arc<RecordCoder>>, TapeError> {
        match self.coding() {
            Some(coding) if self.device_bytes > 0 => {
                if coding.key_every > 1 {
                    return Err(TapeError::ChainedDevice);
                }
                if self.host_bytes == 0 && self.spill.is_none() {
                    return Err(TapeError::CodedDevice);
                }
                Ok(Some(Arc::new(RecordCoder::new(coding))))
            }
            _ => Ok(None),
        }
    }

    /// Opens the levels in memory.
    fn open_memory(&self, coder: Option<&Arc<RecordCoder>>) -> Result<Vec<OpenLevel>, TapeError> {
        let bytes = self.host_bytes;
        if bytes > 0 {
            check_memory(bytes)?;
        }
        if self.device_bytes > 0 {
            return self.open_device(coder);
        }
        self.open_pages(false)
    }

    /// Opens memory of the host that no device copies to, if there shall be any.
    fn open_pages(&self, is_coded: bool) -> Result<Vec<OpenLevel>, TapeError> {
        let bytes = self.host_bytes;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let region = PageRegion::reserve(bytes as usize, self.pages.unwrap_or(PageSize::Huge))?;
        let mut growth = self.paged(if self.locking.is_some() { self.registration() } else { Registration::Never });
        if self.is_prepared {
            region.touch(0..bytes as usize);
            if self.locking.is_some() {
                region.lock(0..bytes as usize)?;
            }
            growth = Growth::Ready;
        }
        Ok(vec![OpenLevel { storage: LevelStorage::Pages(Arc::new(region)), bytes, growth, is_coded }])
    }

    /// Opens memory of the device, and memory of the host below it, if there shall be any.
    #[cfg(feature = "cuda")]
    fn open_device(&self, coder: Option<&Arc<RecordCoder>>) -> Result<Vec<OpenLevel>, TapeError> {
        use recoup_core::{DeviceValuesError, DeviceValuesErrorKind};
        use recoup_device::{Device, DeviceError, HostBuffer, device_values_error};

        use crate::device_cache::DeviceCache;

        let refused = |error: DeviceError| TapeError::Device(device_values_error(error));
        let unregistered =
            |message| TapeError::Device(DeviceValuesError { message, kind: DeviceValuesErrorKind::Failed });
        let device = self.device.clone().map_or_else(|| Device::open(0), Ok).map_err(refused)?;
        let bytes = self.device_bytes;
        let chunk_bytes = self.chunk_bytes.unwrap_or(MAPPED_BYTES).min(bytes);
        let cache = DeviceCache::reserve(&device, bytes, chunk_bytes, coder.cloned()).map_err(refused)?;
        let mut growth = Growth::Mapped { chunk_bytes };
        if self.is_prepared {
            cache.prepare().map_err(refused)?;
            growth = Growth::Ready;
        }
        let storage = LevelStorage::Device(Arc::new(cache));
        let mut levels = vec![OpenLevel { storage, bytes, growth, is_coded: false }];
        if coder.is_some() {
            // Payloads come through memory of the codec, so no copy of the device goes to this one.
            levels.extend(self.open_pages(true)?);
        } else if self.host_bytes > 0 {
            let bytes = self.host_bytes;
            let chunk_bytes = self.chunk_bytes.unwrap_or(AHEAD_BYTES).min(bytes);
            let buffer = HostBuffer::reserve(&device, bytes as usize, chunk_bytes as usize).map_err(refused)?;
            let mut growth = self.paged(self.registration());
            if self.is_prepared {
                let _turn = self.turns()?.map(|turns| turns.take()).transpose().map_err(unregistered)?;
                buffer.register(bytes as usize).map_err(refused)?;
                growth = Growth::Ready;
            }
            let storage = LevelStorage::Buffer(Arc::new(buffer));
            levels.push(OpenLevel { storage, bytes, growth, is_coded: false });
        }
        Ok(levels)
    }

    #[cfg(not(feature = "cuda"))]
    fn open_device(&self, _coder: Option<&Arc<RecordCoder>>) -> Result<Vec<OpenLevel>, TapeError> {
        Err(TapeError::NotBuilt { feature: "cuda" })
    }

    /// Returns the turns at locking or registering memory.
    fn turns(&self) -> Result<Option<PinTurns>, TapeError> {
        let of_user = || (self.device_bytes > 0).then(PinTurns::of_user);
        Ok(self.locking.as_deref().map(PinTurns::at).transpose()?.or_else(of_user))
    }

    fn registration(&self) -> Registration {
        Registration::Chunks { bytes: self.chunk_bytes.unwrap_or(AHEAD_BYTES) }
    }

    fn paged(&self, registration: Registration) -> Growth {
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
            Leftovers::Clear => directory.clear().map_err(refused)?,
            Leftovers::Refuse | Leftovers::Reopen => {}
        }
        Ok(Arc::new(directory))
    }
}

/// Refuses more memory than the machine has: the system would grant it, and end the program later.
fn check_memory(asked: u64) -> Result<(), TapeError> {
    let available = host_memory_bytes();
    if asked > available { Err(TapeError::Memory { asked, available }) } else { Ok(()) }
}
