//! Ways to keep states in memory of this machine, with the same calls.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use recoup::core::{Bound, Codec, Values, ValuesMut};
#[cfg(feature = "cuda")]
use recoup::device::Device;
use recoup::tape::{PageRegion, PageSize, Tape, TapeBuilder, TouchMode, Touching};

#[cfg(feature = "cuda")]
use super::device_states::DeviceStates;
use super::scratch::ScratchFolder;

/// Bytes of a place beyond those of its state, and more.
const PLACE_EXTRA_BYTES: u64 = 4096;

/// A way to keep states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeepingWay {
    /// A new `Vec` for each state.
    Vec,
    /// All memory made and locked before the first push.
    Direct,
    /// The tape with small pages.
    SmallPages,
    /// The tape with huge pages.
    HugePages,
    /// The tape with no page touched ahead.
    Untouched,
    /// The tape with a part of its memory, and this directory.
    Spill(PathBuf),
    /// The same, with a directory in memory.
    Tmpfs(PathBuf),
    /// The tape with a codec.
    Coded,
    /// States on a device.
    #[cfg(feature = "cuda")]
    Device(DeviceWay),
}

/// A device, and its memory for each process.
#[cfg(feature = "cuda")]
#[derive(Clone, Debug)]
pub(super) struct BenchDevice {
    pub(super) device: Device,
    pub(super) bytes: u64,
}

/// A way to keep states of a device.
#[cfg(feature = "cuda")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceWay {
    /// All memory mapped and registered before the first push.
    Prepared,
    /// Memory that grows.
    Grown,
    /// Memory of the host alone.
    Fetched,
    /// Memory that grows, a part of the host's, and this directory.
    Spill(PathBuf),
    /// Memory that grows, and a codec for the states that leave the device.
    Coded,
}

/// Sizes and settings that the ways share.
#[derive(Clone)]
pub(super) struct KeeperPlan {
    /// Pages of the ways that are not about pages.
    pub(super) pages: PageSize,
    /// Memory that holds all states of a process.
    pub(super) whole_bytes: u64,
    /// Memory of a tape that spills.
    pub(super) part_bytes: u64,
    pub(super) codec: Option<(Arc<dyn Codec>, Bound)>,
    /// The device, and its memory for each process.
    #[cfg(feature = "cuda")]
    pub(super) device: Option<BenchDevice>,
}

/// States of a process that are kept.
pub(super) enum StateKeeper {
    Vecs(Vec<Vec<f64>>),
    Locked {
        region: PageRegion,
        /// End of each state.
        ends: Vec<usize>,
    },
    Tape {
        /// Ends before its folder.
        tape: Box<Tape>,
        _folder: Option<ScratchFolder>,
    },
    #[cfg(feature = "cuda")]
    Device(DeviceStates),
}

impl KeepingWay {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Vec => "vec",
            Self::Direct => "direct",
            Self::SmallPages => "small-pages",
            Self::HugePages => "huge-pages",
            Self::Untouched => "untouched",
            Self::Spill(_) => "spill",
            Self::Tmpfs(_) => "tmpfs",
            Self::Coded => "coded",
            #[cfg(feature = "cuda")]
            Self::Device(way) => way.name(),
        }
    }

    /// Returns whether states go through the codec.
    pub(super) fn is_coded(&self) -> bool {
        match self {
            Self::Coded => true,
            #[cfg(feature = "cuda")]
            Self::Device(way) => *way == DeviceWay::Coded,
            _ => false,
        }
    }
}

#[cfg(feature = "cuda")]
impl DeviceWay {
    fn name(&self) -> &'static str {
        match self {
            Self::Prepared => "direct",
            Self::Grown => "grown",
            Self::Fetched => "no-device",
            Self::Spill(_) => "spill",
            Self::Coded => "coded",
        }
    }
}

impl KeeperPlan {
    /// Returns the memory that holds states of this many bytes in all.
    pub(super) fn memory_bytes(n_states: usize, state_bytes: u64) -> u64 {
        state_bytes + PLACE_EXTRA_BYTES * (n_states as u64 + 1)
    }

    /// Prepares a way, until the first push may come.
    ///
    /// # Errors
    /// Those of the system and of the tape.
    pub(super) fn open(&self, way: &KeepingWay, n_states: usize) -> Result<StateKeeper> {
        let whole = || Tape::builder().host(self.whole_bytes).pages(self.pages);
        let tape = |builder: TapeBuilder| StateKeeper::of_tape(builder, None);
        match way {
            KeepingWay::Vec => Ok(StateKeeper::Vecs(Vec::with_capacity(n_states))),
            KeepingWay::Direct => {
                let region = locked(self.whole_bytes, self.pages)?;
                Ok(StateKeeper::Locked { region, ends: Vec::with_capacity(n_states) })
            }
            KeepingWay::SmallPages => tape(whole().pages(PageSize::Small)),
            KeepingWay::HugePages => tape(whole().pages(PageSize::Huge)),
            KeepingWay::Untouched => tape(whole().touching(Touching::Fixed(TouchMode::Never))),
            KeepingWay::Coded => match &self.codec {
                Some((codec, bound)) => tape(whole().codec(Arc::clone(codec), *bound)),
                None => tape(whole()),
            },
            KeepingWay::Spill(directory) | KeepingWay::Tmpfs(directory) => {
                let folder = ScratchFolder::make(directory)?;
                let builder = Tape::builder().host(self.part_bytes).pages(self.pages).spill(folder.path());
                StateKeeper::of_tape(builder, Some(folder))
            }
            #[cfg(feature = "cuda")]
            KeepingWay::Device(way) => self.open_on_device(way),
        }
    }

    #[cfg(feature = "cuda")]
    fn open_on_device(&self, way: &DeviceWay) -> Result<StateKeeper> {
        let BenchDevice { device, bytes } = self.device.as_ref().context("no device was opened")?;
        let tape = || Tape::builder().device(*bytes).on(device);
        let mut folder = None;
        let builder = match way {
            DeviceWay::Prepared => tape().host(self.whole_bytes).prepared(),
            DeviceWay::Grown => tape().host(self.whole_bytes),
            DeviceWay::Fetched => Tape::builder().host(self.whole_bytes),
            DeviceWay::Spill(directory) => {
                let made = folder.insert(ScratchFolder::make(directory)?);
                tape().host(self.part_bytes).spill(made.path())
            }
            DeviceWay::Coded => {
                let (codec, bound) = self.codec.as_ref().context("no codec was named")?;
                tape().host(self.whole_bytes).codec(Arc::clone(codec), *bound)
            }
        };
        Ok(StateKeeper::Device(DeviceStates::start(builder, device, folder)?))
    }

    /// Name of the device on which states are stored.
    pub(super) fn device_name(&self) -> Option<String> {
        #[cfg(feature = "cuda")]
        let name = self.device.as_ref().map(|memory| memory.device.info().name.clone());
        #[cfg(not(feature = "cuda"))]
        let name = None;
        name
    }

    /// Memory of the device for each process.
    pub(super) fn device_bytes(&self) -> Option<u64> {
        #[cfg(feature = "cuda")]
        let bytes = self.device.as_ref().map(|memory| memory.bytes);
        #[cfg(not(feature = "cuda"))]
        let bytes = None;
        bytes
    }
}

/// Returns memory whose pages are there for good.
///
/// # Errors
/// The system's: a process may lock as many bytes as `ulimit -l` says.
pub(super) fn locked(bytes: u64, pages: PageSize) -> Result<PageRegion> {
    let region = PageRegion::reserve(bytes as usize, pages)?;
    region.lock(0..bytes as usize).with_context(|| format!("locking {bytes} bytes (see ulimit -l)"))?;
    Ok(region)
}

impl StateKeeper {
    fn of_tape(builder: TapeBuilder, folder: Option<ScratchFolder>) -> Result<Self> {
        Ok(Self::Tape { tape: Box::new(builder.build()?), _folder: folder })
    }

    /// Computes a state where the program has it, before its push.
    pub(super) fn stage(&mut self, state: &[f64]) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Device(states) => states.compute(state),
            _ => {
                let _ = state;
                Ok(())
            }
        }
    }

    /// Makes room for a state where the program wants it, before its pop.
    pub(super) fn make_room(&mut self, len: usize) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Device(states) => states.make_room(len),
            _ => {
                let _ = len;
                Ok(())
            }
        }
    }

    /// Shows a state that was popped.
    pub(super) fn look(&self, target: &mut [f64]) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Device(states) => states.look(target),
            _ => {
                let _ = target;
                Ok(())
            }
        }
    }

    pub(super) fn push(&mut self, step: u64, state: &[f64]) -> Result<()> {
        match self {
            Self::Vecs(kept) => kept.push(state.to_vec()),
            Self::Locked { region, ends } => {
                let start = ends.last().copied().unwrap_or(0);
                let end = start + size_of_val(state);
                region.write(start..end).copy_from_slice(bytemuck::cast_slice(state));
                ends.push(end);
            }
            Self::Tape { tape, .. } => tape.push(step, Values::F64(state))?,
            #[cfg(feature = "cuda")]
            Self::Device(states) => states.push(step)?,
        }
        Ok(())
    }

    /// Begins the way back.
    pub(super) fn turn(&mut self) -> Result<()> {
        match self {
            Self::Tape { tape, .. } => tape.turn()?,
            #[cfg(feature = "cuda")]
            Self::Device(states) => states.turn()?,
            Self::Vecs(_) | Self::Locked { .. } => {}
        }
        Ok(())
    }

    /// Pops the newest state.
    pub(super) fn pop(&mut self, target: &mut [f64]) -> Result<()> {
        match self {
            Self::Vecs(kept) => {
                let state = kept.pop().context("no state is left")?;
                target.copy_from_slice(&state);
            }
            Self::Locked { region, ends } => {
                let end = ends.pop().context("no state is left")?;
                let start = ends.last().copied().unwrap_or(0);
                bytemuck::cast_slice_mut(target).copy_from_slice(&region.read(start..end));
            }
            Self::Tape { tape, .. } => _ = tape.pop(ValuesMut::F64(target))?,
            #[cfg(feature = "cuda")]
            Self::Device(states) => states.pop()?,
        }
        Ok(())
    }

    /// Bytes that the kept states take on a tape.
    pub(super) fn stored_bytes(&self) -> Option<u64> {
        match self {
            Self::Tape { tape, .. } => Some(tape.report().stored_bytes),
            #[cfg(feature = "cuda")]
            Self::Device(states) => Some(states.stored_bytes()),
            Self::Vecs(_) | Self::Locked { .. } => None,
        }
    }
}
