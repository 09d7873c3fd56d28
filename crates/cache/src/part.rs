//! A rank's part of a version's manifest. It travels behind the payloads of the rank, in the same
//! bytes, so that whatever guards those guards it, too.
//!
//! The bytes are all payloads, then the manifest of this rank alone as sealed text, then the length
//! of that text (8 bytes, little-endian). Promises: a part that opens is one rank's and as it was
//! sealed. Must not know where the bytes are.

use recoup_core::{FrameRecord, Manifest, StoreError};

/// Bytes behind the text.
pub(crate) const LENGTH_BYTES: usize = size_of::<u64>();

/// Puts the text of a part behind the payloads.
pub(crate) fn join(mut payloads: Vec<u8>, text: &[u8]) -> Vec<u8> {
    payloads.reserve_exact(text.len() + LENGTH_BYTES);
    payloads.extend(text);
    payloads.extend((text.len() as u64).to_le_bytes());
    payloads
}

/// Returns the payloads, and the text behind them.
pub(crate) fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (rest, length) = bytes.split_last_chunk().ok_or("no manifest behind the payloads")?;
    let length = u64::from_le_bytes(*length);
    let at = (rest.len() as u64).checked_sub(length);
    let at = at.ok_or_else(|| format!("manifest of {length} bytes, {} held", rest.len()))?;
    Ok(rest.split_at(at as usize))
}

/// Opens the text of the part of `rank`.
pub(crate) fn open(text: &[u8], version: u64, rank: usize) -> Result<Manifest, String> {
    let part = recoup_io::manifest::open(text)?;
    recoup_io::manifest::check_rank(&part, version, rank).map(|()| part)
}

/// Checks the bytes of a rank: its part, and every frame of it.
pub(crate) fn check(bytes: &[u8], version: u64, rank: usize) -> Result<(), StoreError> {
    let found = split(bytes).and_then(|(payloads, text)| Ok((payloads, open(text, version, rank)?)));
    let lost = |what| StoreError::Manifest { version, what: format!("part of rank {rank}: {what}") };
    let (payloads, part) = found.map_err(lost)?;
    part.frames.iter().try_for_each(|frame| {
        let start = frame.place.as_ref().map_or(usize::MAX, |place| place.offset as usize);
        let payload = payloads.get(start..start.saturating_add(frame.payload_bytes as usize)).unwrap_or_default();
        check_frame(frame, payload).map_err(|what| StoreError::frame(version, frame, what))
    })
}

/// Checks a payload against its entry in a manifest.
pub(crate) fn check_frame(frame: &FrameRecord, payload: &[u8]) -> Result<(), String> {
    let found = crc32c::crc32c(payload);
    if found == frame.crc32c {
        return Ok(());
    }
    Err(format!("checksum {:08x} expected, {found:08x} found", frame.crc32c))
}

#[cfg(test)]
mod tests {
    use recoup_core::{FileRecord, Place};
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;

    #[test]
    fn every_flipped_bit_and_every_truncation_of_a_rank_s_bytes_is_found() {
        let sample = SampleVersion::new(7, 2).of_rank(1);
        let payloads: Vec<u8> =
            sample.parts.iter().flat_map(|part| &part.frames).flat_map(|f| f.payload.to_vec()).collect();
        let mut manifest = sample.manifest(Vec::new());
        let mut offset = 0;
        for frame in &mut manifest.frames {
            frame.place = Some(Place { file: "file".to_owned(), offset });
            offset += frame.payload_bytes;
        }
        manifest.files = vec![FileRecord::new("file", offset, 0)];
        let text = recoup_io::manifest::seal(&manifest).unwrap();
        let bytes = join(payloads.clone(), text.as_bytes());
        assert_eq!(split(&bytes).unwrap(), (payloads.as_slice(), text.as_bytes()));
        check(&bytes, 7, 1).unwrap();
        assert!(check(&bytes, 7, 0).is_err() && check(&bytes, 8, 1).is_err(), "another rank's, another version's");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&flipped, 7, 1).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(check(&bytes[..len], 7, 1).is_err(), "length {len}");
        }
    }
}
