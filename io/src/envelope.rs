//! A manifest as text: sealed under its checksum before it is written, opened after it is read.
//!
//! The text is exactly `{"checksum":"crc32c:xxxxxxxx","manifest":BODY}` and a line feed; every
//! other byte sequence is refused, so no flipped bit passes. See FORMAT.md.

use recoup_core::{FORMAT_VERSION, Manifest};
use serde::Deserialize;

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
    let body = serde_json::to_string(manifest).map_err(|e| e.to_string())?;
    if serde_json::from_str::<Manifest>(&body).ok().as_ref() != Some(manifest) {
        return Err("holds a number that is NaN or infinite".to_owned());
    }
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
    let Format { format } = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    if format != FORMAT_VERSION {
        return Err(format!("format version {FORMAT_VERSION} expected, {format} found"));
    }
    serde_json::from_slice(body).map_err(|e| e.to_string())
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
        let body = "{\"format\":2,\"novelty\":true}";
        let text = format!("{OPENING}{:08x}{MIDDLE}{body}{CLOSING}", crc32c::crc32c(body.as_bytes()));
        assert_eq!(open(text.as_bytes()), Err("format version 1 expected, 2 found".to_owned()));
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
