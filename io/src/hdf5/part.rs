//! A manifest in parts: each file has the variables and frames of its ranks, and the manifest lists
//! the files.
//!
//! The first rank of a file makes its part, and checks it as rank 0 does a whole manifest.
//! Promises: a part that was joined is as it was written, and one of this version. Must not know
//! codecs. See FORMAT.md.

use std::ops::Range;
use std::path::Path;

use recoup_core::{FileRecord, FrameRecord, Manifest, PARTS_FORMAT_VERSION, PartRecord, VariableRecord};
use serde::{Deserialize, Serialize};

use super::blocks::Tail;
use super::encode::{self, Datatype, GroupLink};
use super::index_part::{IndexPart, JoinedRows, virtual_dataset};
use super::stored_bytes::StoredBytes;
use crate::envelope::{MANIFEST_BYTES_MAX, from_text, to_text};

/// The part of a file, as its text has it.
#[derive(PartialEq, Serialize, Deserialize)]
struct ManifestPart {
    format: u32,
    name: String,
    version: u64,
    variables: Vec<VariableRecord>,
    frames: Vec<FrameRecord>,
}

/// Returns the part of these ranks as text.
///
/// # Errors
/// As [`crate::envelope::seal`].
pub(super) fn seal(manifest: &Manifest, ranks: &Range<usize>) -> Result<String, String> {
    let variables = manifest.variables.iter().filter(|variable| ranks.contains(&variable.rank)).cloned().collect();
    let frames = manifest.frames.iter().filter(|frame| ranks.contains(&frame.rank)).cloned().collect();
    let name = manifest.name.clone();
    to_text(&ManifestPart { format: PARTS_FORMAT_VERSION, name, version: manifest.version, variables, frames })
}

/// Puts the rows that are joined and a part's text behind the frames of a file. Gives the names of
/// both in its root, and the place of the text.
pub(super) fn put(text: &str, joined: &[JoinedRows], tail: &mut Tail) -> (Vec<GroupLink>, PartRecord) {
    let rows = |rows: &JoinedRows| {
        let parts: Vec<&IndexPart> = rows.parts.iter().collect();
        // The datasets of the ranks are in the same file.
        let address = virtual_dataset(&parts, |_| ".".to_owned(), &[], rows.whole.len, tail);
        GroupLink::here(&rows.whole.name, address)
    };
    let variables: Vec<GroupLink> = joined.iter().map(rows).collect();
    let variables = tail.object(&encode::group(&variables, &[]));
    let bytes = text.len() as u64;
    let offset = tail.put(text.as_bytes());
    let mut messages = encode::described(Datatype::U8, &[bytes]);
    messages.extend([encode::fill(&[]), encode::contiguous(offset, bytes)]);
    let links = [("variables", variables), ("manifest", tail.object(&messages))];
    let record = PartRecord { offset, bytes, crc32c: crc32c::crc32c(text.as_bytes()) };
    (links.into_iter().map(|(name, address)| GroupLink::here(name, address)).collect(), record)
}

/// Joins the parts in the files of a version to its manifest, where it is in parts.
///
/// # Errors
/// What is wrong with a part, and its file.
pub(super) fn joined(version: &Path, mut manifest: Manifest) -> Result<Manifest, String> {
    if manifest.format != PARTS_FORMAT_VERSION {
        return Ok(manifest);
    }
    if !manifest.variables.is_empty() || !manifest.frames.is_empty() {
        return Err("variables or frames in a manifest that is in parts".to_owned());
    }
    let records: Vec<(&FileRecord, PartRecord)> =
        manifest.files.iter().filter_map(|file| Some((file, file.part?))).collect();
    let bytes = records.iter().try_fold(0_u64, |sum, (_, part)| sum.checked_add(part.bytes));
    if bytes.is_none_or(|bytes| bytes > MANIFEST_BYTES_MAX) {
        return Err(format!("parts of at most {MANIFEST_BYTES_MAX} bytes together expected, more found"));
    }
    let parts: Vec<ManifestPart> =
        records.into_iter().map(|(file, part)| open(version, &manifest, file, part)).collect::<Result<_, _>>()?;
    for part in parts {
        manifest.variables.extend(part.variables);
        manifest.frames.extend(part.frames);
    }
    Ok(manifest)
}

fn open(version: &Path, manifest: &Manifest, file: &FileRecord, part: PartRecord) -> Result<ManifestPart, String> {
    let lie = |what: String| format!("part of the manifest in {}: {what}", file.name);
    let PartRecord { offset, bytes, crc32c } = part;
    let mut text = Vec::new();
    StoredBytes { file: &file.name, offset, bytes, crc32c }.read(version, None, &mut text).map_err(lie)?;
    let part: ManifestPart = from_text(&text, PARTS_FORMAT_VERSION..=PARTS_FORMAT_VERSION).map_err(lie)?;
    let is_its = |frame: &FrameRecord| frame.place.as_ref().is_some_and(|place| place.file == file.name);
    if (part.name.as_str(), part.version) != (manifest.name.as_str(), manifest.version) {
        return Err(lie(format!("of version {} of {}", part.version, part.name)));
    }
    if part.frames.iter().all(is_its) { Ok(part) } else { Err(lie("a frame of another file".to_owned())) }
}
