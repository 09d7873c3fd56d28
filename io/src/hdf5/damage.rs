//! Every byte of a version compared with what the manifest says of it, without decoding any.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use recoup_core::{Damage, FileRecord, FrameRecord, Manifest};

use crate::regular;

/// Returns the frames and files that are not as they were written, in the manifest's order.
pub(super) fn inspect(version: &Path, manifest: &Manifest) -> Vec<Damage> {
    manifest.files.iter().flat_map(|file| inspect_file(version, file, manifest)).collect()
}

fn inspect_file(version: &Path, record: &FileRecord, manifest: &Manifest) -> Vec<Damage> {
    let frames = frames_of(record, manifest);
    let whole = |what: &str| Damage::File { file: record.name.clone(), what: what.to_owned() };
    let lost = |frame: &FrameRecord, what: String| Damage::Frame { frame: Box::new(frame.clone()), what };

    let opened = regular::open(&version.join(&record.name)).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (bytes, file) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let lost = frames.into_iter().map(|frame| lost(frame, format!("file {}: {error}", record.name)));
            return std::iter::once(whole(&error.to_string())).chain(lost).collect();
        }
    };
    let mut damage = Vec::new();
    if bytes != record.bytes {
        damage.push(whole(&format!("{} bytes expected, {bytes} found", record.bytes)));
    }
    let mut file = BufReader::with_capacity(1 << 20, file);
    let mut at = 0;
    let mut structure = Ok(0);
    for frame in frames {
        let start = offset(frame);
        structure = structure.and_then(|crc| pass(&mut file, start - at, crc));
        at = start + frame.payload_bytes;
        match structure
            .as_ref()
            .map_err(io::Error::to_string)
            .and_then(|_| pass(&mut file, frame.payload_bytes, 0).map_err(|error| error.to_string()))
        {
            Ok(found) if found == frame.crc32c => {}
            Ok(found) => damage.push(lost(frame, format!("checksum {:08x} expected, {found:08x} found", frame.crc32c))),
            Err(error) => damage.push(lost(frame, format!("file {}: {error}", record.name))),
        }
    }
    match structure.and_then(|crc| pass(&mut file, record.bytes - at, crc)) {
        Ok(found) if found == record.structure_crc32c => {}
        Ok(_) => damage.push(whole("bytes outside the frames differ from what was written")),
        // A file that is too short was named above.
        Err(_) if bytes < record.bytes => {}
        Err(error) => damage.push(whole(&error.to_string())),
    }
    damage
}

/// Returns the checksum of a file's bytes outside its frames, which are in order; they alone are
/// read.
pub(super) fn structure_crc32c(file: &mut File, bytes: u64, frames: &[FrameExtent]) -> io::Result<u32> {
    let bounds = frames.iter().copied().chain([(bytes, 0)]);
    let mut at = 0;
    let mut crc = 0;
    for (start, len) in bounds {
        let gap = start.checked_sub(at).ok_or_else(|| io::Error::other("frames overlap"))?;
        file.seek(SeekFrom::Start(at))?;
        crc = pass(file, gap, crc)?;
        at = start.saturating_add(len);
    }
    Ok(crc)
}

/// Offset and bytes of a frame in its file.
pub(super) type FrameExtent = (u64, u64);

/// Returns where the frames of a file are, in their order there.
pub(super) fn extents_of(file: &FileRecord, manifest: &Manifest) -> Vec<FrameExtent> {
    frames_of(file, manifest).into_iter().map(|frame| (offset(frame), frame.payload_bytes)).collect()
}

/// Returns the frames that are in a file, in their order there.
fn frames_of<'a>(file: &FileRecord, manifest: &'a Manifest) -> Vec<&'a FrameRecord> {
    let mut frames: Vec<&FrameRecord> = manifest.frames.iter().filter(|f| lies_in(f, file)).collect();
    frames.sort_unstable_by_key(|frame| offset(frame));
    frames
}

fn lies_in(frame: &FrameRecord, file: &FileRecord) -> bool {
    frame.place.as_ref().is_some_and(|place| place.file == file.name)
}

fn offset(frame: &FrameRecord) -> u64 {
    frame.place.as_ref().map_or(0, |place| place.offset)
}

/// Reads the next `bytes` and appends them to the checksum `crc`.
fn pass(file: &mut impl Read, bytes: u64, crc: u32) -> io::Result<u32> {
    const PIECE_BYTES: usize = 1 << 13;
    let mut piece = [0; PIECE_BYTES];
    let mut crc = crc;
    let mut rest = bytes;
    while rest > 0 {
        let len = rest.min(PIECE_BYTES as u64) as usize;
        file.read_exact(&mut piece[..len])?;
        crc = crc32c::crc32c_append(crc, &piece[..len]);
        rest -= len as u64;
    }
    Ok(crc)
}
