//! The memories of a thread, by address.

use super::fault::DeviceFault;
use super::instruction::StateSpace;
use super::memory::DeviceMemory;
use super::names::FIRST_ADDRESS;

/// The memories that one thread sees.
pub(super) struct Spaces<'a> {
    pub(super) shared: &'a mut [u8],
    pub(super) parameters: &'a [u8],
    pub(super) memory: &'a mut dyn DeviceMemory,
}

impl Spaces<'_> {
    pub(super) fn load(&mut self, space: StateSpace, address: u64, target: &mut [u8]) -> Result<(), DeviceFault> {
        let place = MemoryStretch::of(space, address, target.len())?;
        let source = match place.space {
            StateSpace::Global => return self.memory.load(address, target),
            StateSpace::Shared => place.within("shared", self.shared)?,
            StateSpace::Parameter => place.within("parameter", self.parameters)?,
        };
        target.copy_from_slice(source);
        Ok(())
    }

    pub(super) fn store(&mut self, space: StateSpace, address: u64, source: &[u8]) -> Result<(), DeviceFault> {
        let place = MemoryStretch::of(space, address, source.len())?;
        let target = match place.space {
            StateSpace::Global => return self.memory.store(address, source),
            StateSpace::Shared => place.within_mut("shared", self.shared)?,
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
        let start = if space == StateSpace::Shared { address.wrapping_sub(FIRST_ADDRESS) } else { address };
        Ok(Self { space, address, start, bytes })
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
