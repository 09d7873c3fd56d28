//! Regions in the memory of a device: told by their address, fetched and put back as bytes.
//!
//! Only a driver that the program has loaded is asked. Errors are the device's own words.

#[cfg(feature = "cuda")]
use recoup_core::ElementType;
#[cfg(feature = "cuda")]
use recoup_device::BorrowedMemory;

/// Returns whether `bytes` bytes at `address` are on a device.
#[cfg(feature = "cuda")]
pub(crate) fn holds(address: usize, bytes: usize) -> Result<bool, String> {
    let found = BorrowedMemory::find(address, ElementType::Bytes, bytes);
    found.map(|memory| memory.is_some()).map_err(|error| error.message)
}

/// Returns `false`: without the feature `cuda` all memory is the host's.
#[cfg(not(feature = "cuda"))]
pub(crate) fn holds(_address: usize, _bytes: usize) -> Result<bool, String> {
    Ok(false)
}

/// Copies the bytes at `address` to the host.
pub(crate) fn read(address: usize, target: &mut [u8]) -> Result<(), String> {
    #[cfg(feature = "cuda")]
    if let Some(memory) = find(address, target.len())? {
        return memory.read_bytes(target).map_err(|error| error.message);
    }
    Err(given_back(address, target.len()))
}

/// Overwrites the bytes at `address`.
pub(crate) fn write(address: usize, source: &[u8]) -> Result<(), String> {
    #[cfg(feature = "cuda")]
    if let Some(mut memory) = find(address, source.len())? {
        return memory.write_bytes(source).map_err(|error| error.message);
    }
    Err(given_back(address, source.len()))
}

#[cfg(feature = "cuda")]
fn find(address: usize, bytes: usize) -> Result<Option<BorrowedMemory>, String> {
    BorrowedMemory::find(address, ElementType::Bytes, bytes).map_err(|error| error.message)
}

fn given_back(address: usize, bytes: usize) -> String {
    format!("{bytes} bytes at {address:#x} were on a device when they were protected, and are not now")
}
