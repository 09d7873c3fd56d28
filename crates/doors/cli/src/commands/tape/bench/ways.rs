//! Ways to keep states, and how each begins.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use recoup::core::{Bound, Codec};
#[cfg(feature = "cuda")]
use recoup::device::Device;
use recoup::tape::{PageRegion, PageSize, Tape, TouchMode, Touching};

#[cfg(feature = "cuda")]
use super::device_states::DeviceStates;
use super::keepers::{LockedStates, StateKeeper, TapedStates};
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
    pub(super) fn open(&self, way: &KeepingWay, n_states: usize) -> Result<Box<dyn StateKeeper>> {
        let whole = || Tape::builder().host(self.whole_bytes).pages(self.pages);
        let mut folder = None;
        let builder = match way {
            KeepingWay::Vec => return Ok(Box::new(Vec::<Vec<f64>>::with_capacity(n_states))),
            KeepingWay::Direct => {
                let region = locked(self.whole_bytes, self.pages)?;
                return Ok(Box::new(LockedStates { region, ends: Vec::with_capacity(n_states) }));
            }
            KeepingWay::SmallPages => whole().pages(PageSize::Small),
            KeepingWay::HugePages => whole().pages(PageSize::Huge),
            KeepingWay::Untouched => whole().touching(Touching::Fixed(TouchMode::Never)),
            KeepingWay::Coded => match &self.codec {
                Some((codec, bound)) => whole().codec(Arc::clone(codec), *bound),
                None => whole(),
            },
            KeepingWay::Spill(directory) | KeepingWay::Tmpfs(directory) => {
                let made = folder.insert(ScratchFolder::make(directory)?);
                Tape::builder().host(self.part_bytes).pages(self.pages).spill(made.path())
            }
            #[cfg(feature = "cuda")]
            KeepingWay::Device(way) => return self.open_on_device(way),
        };
        Ok(Box::new(TapedStates { tape: Box::new(builder.build()?), _folder: folder }))
    }

    #[cfg(feature = "cuda")]
    fn open_on_device(&self, way: &DeviceWay) -> Result<Box<dyn StateKeeper>> {
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
        Ok(Box::new(DeviceStates::start(builder, device, folder)?))
    }

    /// Name of the device on which states are stored, and its memory for each process.
    pub(super) fn device(&self) -> Option<(String, u64)> {
        #[cfg(feature = "cuda")]
        let found = self.device.as_ref().map(|memory| (memory.device.info().name.clone(), memory.bytes));
        #[cfg(not(feature = "cuda"))]
        let found = None;
        found
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
