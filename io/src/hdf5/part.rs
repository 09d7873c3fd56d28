//! A manifest in parts: each file has the variables and frames of its ranks, and the manifest lists
//! the files.
//!
//! The first rank of a file makes its part, and checks it as rank 0 does a whole manifest.
//! Promises: a part that was joined is as it was written, and one of this version. Must not know
//! codecs. See FORMAT.md.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use recoup_core::{
    Distribution, FileRecord, FrameRecord, Manifest, PARTS_FORMAT_VERSION, PartRecord, RowRange, VariableRecord,
};
use serde::{Deserialize, Serialize};

use super::blocks::Tail;
use super::encode::{self, Datatype, GroupLink};
use super::files_by_rank::{FilesByRank, ranks_of};
use super::index_part::{IndexPart, JoinedRows, virtual_dataset};
use super::stored_bytes::StoredBytes;
use crate::check::{check_files, check_head};
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

impl ManifestPart {
    /// Returns what the top says of the part, wherever its text is.
    fn told(&self) -> PartRecord {
        let mut ranges: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for variable in &self.variables {
            let Distribution::Rows { first, global } = variable.distribution else { continue };
            let (start, end) = ranges.entry(global).or_insert((first, first));
            *start = first.min(*start);
            *end = first.saturating_add(variable.len).max(*end);
        }
        let globals = Some(ranges.keys().copied().collect());
        let rows = Some(ranges.into_values().flat_map(|(first, end)| [first, end - first]).collect());
        let names: BTreeSet<&str> = self.variables.iter().map(|variable| variable.name.as_str()).collect();
        let names = names.iter().fold(0, |crc, name| crc32c::crc32c_append(crc, format!("{name}/").as_bytes()));
        let parents: BTreeSet<u64> = self.frames.iter().filter_map(FrameRecord::parent).collect();
        let parents = parents.into_iter().collect();
        PartRecord { rows, globals, names: Some(names), parents, ..PartRecord::default() }
    }
}

/// A part as it is put into its file.
pub(super) struct PartText {
    text: String,
    record: PartRecord,
}

/// Returns the part of these ranks.
///
/// # Errors
/// As [`crate::envelope::seal`].
pub(super) fn seal(manifest: &Manifest, ranks: &Range<usize>) -> Result<PartText, String> {
    let variables = manifest.variables.iter().filter(|variable| ranks.contains(&variable.rank)).cloned().collect();
    let frames = manifest.frames.iter().filter(|frame| ranks.contains(&frame.rank)).cloned().collect();
    let name = manifest.name.clone();
    let part = ManifestPart { format: PARTS_FORMAT_VERSION, name, version: manifest.version, variables, frames };
    Ok(PartText { text: to_text(&part)?, record: part.told() })
}

/// Puts the rows that are joined and a part's text behind the frames of a file. Gives the names of
/// both in its root, and the place of the text.
pub(super) fn put(part: PartText, joined: &[JoinedRows], tail: &mut Tail) -> (Vec<GroupLink>, PartRecord) {
    let PartText { text, record } = part;
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
    let record = PartRecord { offset, bytes, crc32c: crc32c::crc32c(text.as_bytes()), ..record };
    (links.into_iter().map(|(name, address)| GroupLink::here(name, address)).collect(), record)
}

/// Leaves out what the records of parts have as the first has it.
pub(super) fn squeeze(files: &mut [FileRecord]) {
    let mut parts = files.iter_mut().filter_map(|file| file.part.as_mut());
    let first = parts.next().cloned().unwrap_or_default();
    for part in parts {
        part.names = part.names.filter(|_| part.names != first.names);
        part.globals = part.globals.take().filter(|globals| Some(globals) != first.globals.as_ref());
    }
}

/// Returns the records of the parts of all files, with what was left out of them.
fn records(top: &Manifest) -> Vec<Option<PartRecord>> {
    let first = top.files.iter().find_map(|file| file.part.clone()).unwrap_or_default();
    let fill = |part: &PartRecord| PartRecord {
        names: part.names.or(first.names),
        globals: part.globals.as_ref().or(first.globals.as_ref()).cloned(),
        ..part.clone()
    };
    top.files.iter().map(|file| file.part.as_ref().map(fill)).collect()
}

/// Returns whether each file below a top is to be read, for the parts with these ranks or rows. The
/// first of those that name other variables is, too.
pub(super) fn wanted(top: &Manifest, ranks: &BTreeSet<usize>, rows: &[RowRange]) -> Vec<bool> {
    let records = records(top);
    let has_any = |(file, part): (&FileRecord, &Option<PartRecord>)| {
        let Some(PartRecord { rows: Some(ends), globals: Some(globals), .. }) = part else { return false };
        let (pairs, _) = ends.as_chunks::<2>();
        let mut ranges = pairs.iter().zip(globals).map(|(&[first, len], &global)| RowRange { first, len, global });
        let own = ranks_of(&file.name).is_some_and(|(first, last)| ranks.range(first..=last).next().is_some());
        own || ranges.any(|range| rows.iter().any(|other| range.meets(other)))
    };
    let mut wanted: Vec<bool> = top.files.iter().zip(&records).map(has_any).collect();
    let names = |part: &Option<PartRecord>| part.as_ref().map(|part| part.names);
    let known = records.iter().zip(&wanted).filter(|(_, is_wanted)| **is_wanted).map(|(part, _)| names(part));
    let mut known: BTreeSet<_> = known.chain([None]).collect();
    for (part, is_wanted) in records.iter().zip(&mut wanted) {
        *is_wanted |= known.insert(names(part));
    }
    wanted
}

/// Checks the top of a manifest as far as it can be without its parts.
pub(super) fn check_top(top: &Manifest, version: u64) -> Result<(), String> {
    check_head(top, version)?;
    check_files(top)?;
    let is_apart = |file: &&FileRecord| file.part.is_none() && ranks_of(&file.name).is_some();
    match top.files.iter().find(is_apart) {
        Some(file) => Err(format!("file {}: no part of the manifest", file.name)),
        None => FilesByRank::of(top).require_all(top.ranks),
    }
}

/// Joins the parts in these files of a version to the top of its manifest, with these files alone.
///
/// # Errors
/// What is wrong with a part, and its file.
pub(super) fn joined(version: &Path, top: &Manifest, is_read: impl Fn(usize) -> bool) -> Result<Manifest, String> {
    if !top.variables.is_empty() || !top.frames.is_empty() {
        return Err("variables or frames in a manifest that is in parts".to_owned());
    }
    let mut manifest = top.head();
    let read = top.files.iter().zip(records(top)).enumerate().filter(|(position, _)| is_read(*position));
    let read: Vec<(&FileRecord, Option<PartRecord>)> = read.map(|(_, file)| file).collect();
    let bytes = read.iter().filter_map(|(_, part)| part.as_ref());
    let bytes = bytes.map(|part| part.bytes).try_fold(0_u64, u64::checked_add);
    if bytes.is_none_or(|bytes| bytes > MANIFEST_BYTES_MAX) {
        return Err(format!("parts of at most {MANIFEST_BYTES_MAX} bytes together expected, more found"));
    }
    for (file, record) in read {
        manifest.files.push(file.clone());
        let Some(record) = record else { continue };
        let part = open(version, top, file, &record)?;
        manifest.variables.extend(part.variables);
        manifest.frames.extend(part.frames);
    }
    Ok(manifest)
}

fn open(version: &Path, top: &Manifest, file: &FileRecord, record: &PartRecord) -> Result<ManifestPart, String> {
    let lie = |what: String| format!("part of the manifest in {}: {what}", file.name);
    let PartRecord { offset, bytes, crc32c, .. } = *record;
    let mut text = Vec::new();
    StoredBytes { file: &file.name, offset, bytes, crc32c }.read(version, None, &mut text).map_err(lie)?;
    let part: ManifestPart = from_text(&text, PARTS_FORMAT_VERSION..=PARTS_FORMAT_VERSION).map_err(lie)?;
    let is_its = |frame: &FrameRecord| frame.place.as_ref().is_some_and(|place| place.file == file.name);
    if (part.name.as_str(), part.version) != (top.name.as_str(), top.version) {
        return Err(lie(format!("of version {} of {}", part.version, part.name)));
    }
    if record.rows.is_some() && (PartRecord { offset, bytes, crc32c, ..part.told() }) != *record {
        return Err(lie("other rows, variables or parents than the manifest says".to_owned()));
    }
    let ranks: BTreeSet<usize> = part.variables.iter().map(|variable| variable.rank).collect();
    let is_named = |(first, last): (usize, usize)| (first..=last).eq(ranks.iter().copied());
    if !ranks_of(&file.name).is_some_and(is_named) {
        return Err(lie("other ranks than the file's name says".to_owned()));
    }
    if part.frames.iter().all(is_its) { Ok(part) } else { Err(lie("a frame of another file".to_owned())) }
}
