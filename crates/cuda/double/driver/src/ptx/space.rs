//! The memories of a thread, by address.

use super::fault::DeviceFault;
use super::instruction::StateSpace;
use super::memory::DeviceMemory;
use super::names::FIRST_ADDRESS;

/// Start of shared memory among the addresses of any space.
pub(super) const SHARED_WINDOW: u64 = 1 << 60;
/// Start of the memory of a thread among them.
pub(super) const LOCAL_WINDOW: u64 = 1 << 61;
/// Addresses in each of the two.
const WINDOW_BYTES: u64 = 1 << 32;

/// The memories that one thread sees.
pub(super) struct Spaces<'a> {
    pub(super) shared: &'a mut [u8],
    pub(super) local: &'a mut [u8],
    pub(super) parameters: &'a [u8],
    pub(super) memory: &'a mut dyn DeviceMemory,
}

impl Spaces<'_> {
    pub(super) fn load(&mut self, space: StateSpace, address: u64, target: &mut [u8]) -> Result<(), DeviceFault> {
        let place = MemoryStretch::of(space, address, target.len())?;
        let source = match place.space {
            StateSpace::Generic | StateSpace::Global => return self.memory.load(address, target),
            StateSpace::Shared => place.within("shared", self.shared)?,
            StateSpace::Local => place.within("local", self.local)?,
            StateSpace::Parameter => place.within("parameter", self.parameters)?,
        };
        target.copy_from_slice(source);
        Ok(())
    }

    pub(super) fn store(&mut self, space: StateSpace, address: u64, source: &[u8]) -> Result<(), DeviceFault> {
        let place = MemoryStretch::of(space, address, source.len())?;
        let target = match place.space {
            StateSpace::Generic | StateSpace::Global => return self.memory.store(address, source),
            StateSpace::Shared => place.within_mut("shared", self.shared)?,
            StateSpace::Local => place.within_mut("local", self.local)?,
            StateSpace::Parameter => return Err(place.outside("parameter")),
        };
        target.copy_from_slice(source);
        Ok(())
    }
}

/// A stretch of one memory.
#[derive(Clone, Copy, Debug)]
struct MemoryStretch {
    space: StateSpace,
    address: u64,
    /// First byte in the memory; past every end for an address before the first.
    start: u64,
    bytes: usize,
}

impl MemoryStretch {
    fn of(space: StateSpace, address: u64, bytes: usize) -> Result<Self, DeviceFault> {
        if !address.is_multiple_of(bytes as u64) {
            return Err(DeviceFault::Misaligned { address, bytes });
        }
        let at = |space: StateSpace, start: u64| Ok(Self { space, address, start, bytes });
        match space {
            StateSpace::Shared | StateSpace::Local => at(space, address.wrapping_sub(FIRST_ADDRESS)),
            StateSpace::Generic if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES => {
                at(StateSpace::Shared, (address - SHARED_WINDOW).wrapping_sub(FIRST_ADDRESS))
            }
            StateSpace::Generic if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES => {
                at(StateSpace::Local, (address - LOCAL_WINDOW).wrapping_sub(FIRST_ADDRESS))
            }
            StateSpace::Generic | StateSpace::Global | StateSpace::Parameter => at(space, address),
        }
    }

    fn outside(&self, memory: &'static str) -> DeviceFault {
        DeviceFault::Outside { memory, address: self.address, bytes: self.bytes }
    }

    fn range(&self) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(self.start).ok()?;
        Some(start..start.checked_add(self.bytes)?)
    }

    fn within<'a>(&self, name: &'static str, memory: &'a [u8]) -> Result<&'a [u8], DeviceFault> {
        self.range().and_then(|range| memory.get(range)).ok_or_else(|| self.outside(name))
    }

    fn within_mut<'a>(&self, name: &'static str, memory: &'a mut [u8]) -> Result<&'a mut [u8], DeviceFault> {
        self.range().and_then(|range| memory.get_mut(range)).ok_or_else(|| self.outside(name))
    }
}
