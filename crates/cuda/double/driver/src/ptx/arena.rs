//! Memory for tests of kernels alone, without a driver.

use super::fault::DeviceFault;
use super::memory::DeviceMemory;

/// First address of the first allocation.
const FIRST: u64 = 0x7_0000_0000;
/// Bytes from the end of an allocation to the next, so that a step past an end is seen.
const GAP: u64 = 4096;
const ALIGNMENT: u64 = 256;
/// The byte fresh memory is full of.
const FRESH: u8 = 0xa5;

/// Allocations with gaps between them.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    /// Allocations in ascending order of their addresses.
    allocations: Vec<Allocation>,
}

#[derive(Clone, Debug)]
struct Allocation {
    address: u64,
    bytes: Vec<u8>,
}

impl Arena {
    /// Allocates memory without a value; returns its address.
    pub fn allocate(&mut self, bytes: usize) -> u64 {
        let end = self.allocations.last().map_or(FIRST, |last| last.address + last.bytes.len() as u64);
        let address = (end + GAP).next_multiple_of(ALIGNMENT);
        self.allocations.push(Allocation { address, bytes: vec![FRESH; bytes] });
        address
    }

    /// Allocates memory with these bytes; returns its address.
    pub fn upload(&mut self, bytes: &[u8]) -> u64 {
        let address = self.allocate(bytes.len());
        self.write(address, bytes);
        address
    }

    /// Fills the allocation at an address.
    ///
    /// # Panics
    /// Without an allocation of that address and length.
    pub fn write(&mut self, address: u64, bytes: &[u8]) {
        let found = self.allocations.iter_mut().find(|allocation| allocation.address == address);
        found.expect("the address of an allocation").bytes.copy_from_slice(bytes);
    }

    /// Returns the bytes of the allocation at an address; none where there is none.
    pub fn bytes(&self, address: u64) -> &[u8] {
        let found = self.allocations.iter().find(|allocation| allocation.address == address);
        found.map_or(&[], |allocation| &allocation.bytes)
    }

    /// The bytes of an access, if they lie within one allocation.
    fn range(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], DeviceFault> {
        let outside = DeviceFault::Address { address, bytes };
        let after = self.allocations.partition_point(|allocation| allocation.address <= address);
        let Some(allocation) = after.checked_sub(1).and_then(|number| self.allocations.get_mut(number)) else {
            return Err(outside);
        };
        let start = (address - allocation.address) as usize;
        allocation.bytes.get_mut(start..start + bytes).ok_or(outside)
    }
}

impl DeviceMemory for Arena {
    fn load(&mut self, address: u64, target: &mut [u8]) -> Result<(), DeviceFault> {
        target.copy_from_slice(self.range(address, target.len())?);
        Ok(())
    }

    fn store(&mut self, address: u64, source: &[u8]) -> Result<(), DeviceFault> {
        self.range(address, source.len())?.copy_from_slice(source);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_stays_within_one_allocation() {
        let mut arena = Arena::default();
        let first = arena.upload(&[1, 2, 3, 4]);
        let second = arena.allocate(8);
        let mut two = [0; 2];
        arena.load(first + 2, &mut two).unwrap();
        assert_eq!(two, [3, 4]);
        arena.store(second, &[7]).unwrap();
        assert_eq!(arena.bytes(second), [7, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5]);
        for address in [0, first - 1, first + 3, second + 7, u64::MAX - 1] {
            assert_eq!(arena.load(address, &mut two), Err(DeviceFault::Address { address, bytes: 2 }));
        }
    }
}
