//! Structures that the driver reads, as cuda.h lays them out.

/// The place of memory: `CUmemLocation`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct MemoryLocation {
    kind: i32,
    id: i32,
}

/// The kind of memory asked for: `CUmemAllocationProp`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct AllocationProperties {
    kind: i32,
    handle_types: i32,
    location: MemoryLocation,
    windows: usize,
    flags: u64,
}

/// The right to read and write: `CUmemAccessDesc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct AccessDescription {
    location: MemoryLocation,
    flags: i32,
}

/// Memory of the kind that stays where it is.
const PINNED: i32 = 1;
/// A location that is a device.
const DEVICE: i32 = 1;
const READ_AND_WRITE: i32 = 3;

fn location(device: i32) -> MemoryLocation {
    MemoryLocation { kind: DEVICE, id: device }
}

impl AllocationProperties {
    /// Memory of device `device`.
    pub(super) fn of(device: i32) -> Self {
        Self { kind: PINNED, handle_types: 0, location: location(device), windows: 0, flags: 0 }
    }
}

impl AccessDescription {
    /// Device `device` reads and writes.
    pub(super) fn of(device: i32) -> Self {
        Self { location: location(device), flags: READ_AND_WRITE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_header() {
        assert_eq!(size_of::<MemoryLocation>(), 8);
        assert_eq!(size_of::<AllocationProperties>(), 32);
        assert_eq!(size_of::<AccessDescription>(), 12);
    }
}
