//! A manifest as text: sealed under its checksum before it is written, opened after it is read.
//!
//! The text is exactly `{"checksum":"crc32c:xxxxxxxx","manifest":BODY}` and a line feed; every
//! other byte sequence is refused, so no flipped bit passes. See FORMAT.md.

use std::ops::RangeInclusive;

use recoup_core::{FORMAT_VERSION, Manifest, PARTS_FORMAT_VERSION};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Most bytes of a manifest, and of all its parts together.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 30;
const OPENING: &str = "{\"checksum\":\"crc32c:";
const MIDDLE: &str = "\",\"manifest\":";
const CLOSING: &str = "}\n";
const DIGITS: usize = 8;

#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The manifest's text.
///
/// # Errors
/// When the manifest does not survive its own text, as with an infinite norm.
pub fn seal(manifest: &Manifest) -> Result<String, String> {
    let body = to_text(manifest)?;
    Ok(format!("{OPENING}{:08x}{MIDDLE}{body}{CLOSING}", crc32c::crc32c(body.as_bytes())))
}

/// The manifest in a text.
///
/// # Errors
/// What is wrong with it.
pub fn open(text: &[u8]) -> Result<Manifest, String> {
    let (checksum, body) = split(text).ok_or("not a manifest, or cut short")?;
    let found = format!("{:08x}", crc32c::crc32c(body));
    if checksum != found.as_bytes() {
        let expected = String::from_utf8_lossy(checksum);
        return Err(format!("checksum {expected} expected, {found} found"));
    }
    from_text(body, FORMAT_VERSION..=PARTS_FORMAT_VERSION)
}

/// Returns a manifest or a part of one as text.
pub(crate) fn to_text<T: Serialize + DeserializeOwned + PartialEq>(value: &T) -> Result<String, String> {
    let text = serde_json::to_string(value).map_err(|e| e.to_string())?;
    let is_same = serde_json::from_str::<T>(&text).is_ok_and(|found| found == *value);
    if is_same { Ok(text) } else { Err("holds a number that is NaN or infinite".to_owned()) }
}

/// Returns what a text of one of these formats holds.
pub(crate) fn from_text<T: DeserializeOwned>(text: &[u8], formats: RangeInclusive<u32>) -> Result<T, String> {
    let Format { format } = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    if !formats.contains(&format) {
        let newest = formats.end();
        return Err(format!("format version {newest} expected, {format} found"));
    }
    serde_json::from_slice(text).map_err(|e| e.to_string())
}

fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = text.strip_prefix(OPENING.as_bytes())?;
    let (checksum, rest) = rest.split_at_checked(DIGITS)?;
    let body = rest.strip_prefix(MIDDLE.as_bytes())?.strip_suffix(CLOSING.as_bytes())?;
    Some((checksum, body))
}

#[cfg(test)]
mod tests {
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;

    fn manifest() -> Manifest {
        SampleVersion::new(7, 2).manifest(Vec::new())
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_of_a_manifest_is_refused() {
        let text = seal(&manifest()).unwrap().into_bytes();
        assert_eq!(open(&text).unwrap(), manifest());
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..text.len() {
            assert!(open(&text[..len]).is_err(), "length {len}");
        }
    }

    #[test]
    fn newer_format_is_named_before_its_fields_are_read() {
        let body = "{\"format\":3,\"novelty\":true}";
        let text = format!("{OPENING}{:08x}{MIDDLE}{body}{CLOSING}", crc32c::crc32c(body.as_bytes()));
        assert_eq!(open(text.as_bytes()), Err("format version 2 expected, 3 found".to_owned()));
    }

    #[test]
    fn unknown_codec_is_named() {
        let sealed = seal(&manifest()).unwrap();
        let body = sealed.strip_suffix(CLOSING).unwrap().split_once(MIDDLE).unwrap().1.replace("\"raw\"", "\"zfq\"");
        let text = format!("{OPENING}{:08x}{MIDDLE}{body}{CLOSING}", crc32c::crc32c(body.as_bytes()));
        let error = open(text.as_bytes()).unwrap_err();
        assert!(error.contains("zfq") && error.contains("zstd"), "{error}");
    }

    #[test]
    fn infinite_norm_is_refused_before_it_is_written() {
        let mut manifest = manifest();
        manifest.residual.norm = f64::INFINITY;
        assert!(seal(&manifest).is_err());
    }
}
