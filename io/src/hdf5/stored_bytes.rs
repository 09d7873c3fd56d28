//! Runs of bytes in the files of a version: frames, and parts of the manifest.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use recoup_core::FrameRecord;

use crate::check::is_plain_name;
use crate::regular;
use crate::throttle::{Throttle, in_slices};

/// Bytes of a file, and their checksum.
pub(super) struct StoredBytes<'a> {
    pub(super) file: &'a str,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) crc32c: u32,
}

impl<'a> StoredBytes<'a> {
    pub(super) fn of_frame(frame: &'a FrameRecord) -> Result<Self, String> {
        let place = frame.place.as_ref().ok_or("no place")?;
        let FrameRecord { payload_bytes: bytes, crc32c, .. } = *frame;
        Ok(Self { file: &place.file, offset: place.offset, bytes, crc32c })
    }

    /// Reads the bytes by one positioned read; the checksum decides whether they count.
    pub(super) fn read(&self, version: &Path, throttle: Option<&Throttle>, into: &mut Vec<u8>) -> Result<(), String> {
        let Self { file: name, offset, bytes: len, crc32c } = *self;
        if !is_plain_name(name) {
            return Err(format!("file {name}: not a name"));
        }
        let failed = |e: io::Error| format!("file {name}: {e}");
        let file = regular::open(&version.join(name)).map_err(failed)?;
        let bytes = file.metadata().as_ref().map(fs::Metadata::len).map_err(|e| format!("file {name}: {e}"))?;
        if offset.checked_add(len).is_none_or(|end| end > bytes) {
            return Err(format!("file {name}: {len} bytes at {offset} expected, file ends at {bytes}"));
        }
        into.clear();
        into.try_reserve_exact(len as usize).map_err(|_| format!("file {name}: no memory for {len} bytes"))?;
        into.resize(len as usize, 0);
        in_slices(throttle, into.len(), |range| {
            let at = offset + range.start as u64;
            file.read_exact_at(&mut into[range], at)
        })
        .map_err(failed)?;
        let found = crc32c::crc32c(into);
        if found == crc32c { Ok(()) } else { Err(format!("checksum {crc32c:08x} expected, {found:08x} found")) }
    }
}
