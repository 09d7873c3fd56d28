//! One file for several ranks, which all write at the same time.
//!
//! A rank keeps its encoded frames until every rank has sealed. The manifest then states the sizes
//! of all frames, so each rank finds the same place for each of them without asking, and writes its
//! own; the first rank of a file writes what makes it HDF5 besides. Promises: what
//! [`super::rank_file`] promises, for the version as a whole; nothing of a rank is on disk before
//! all have sealed. See FORMAT.md.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{
    Comm, CommError, CommonError, Draft, FileRecord, Filter, Frame, Manifest, NextCall, Place, Sealed, StoreError,
    VariableRecord, agreed, gather_json,
};

use super::blocks::SUPERBLOCK_BYTES;
use super::rank_file::{Form, WrittenVariable, file_name, structure, structure_crc32c};
use crate::publish;
use crate::throttle::{Throttle, in_slices};

/// Each rank's frames begin at a multiple of this, so that no two ranks write to one page.
const ALIGNMENT: u64 = 4096;

/// The name of the file of these ranks.
fn shared_name(ranks: &Range<usize>) -> String {
    format!("ranks-{:06}-{:06}.h5", ranks.start, ranks.end - 1)
}

/// The file of a version that a rank's frames are in, or would be.
pub(super) fn file_of(manifest: &Manifest, rank: usize) -> String {
    let holds = |name: &str| {
        let (first, last) = name.strip_prefix("ranks-")?.strip_suffix(".h5")?.split_once('-')?;
        Some((first.parse::<usize>().ok()?..=last.parse().ok()?).contains(&rank))
    };
    let shared = manifest.files.iter().find(|file| holds(&file.name) == Some(true));
    shared.map_or_else(|| file_name(rank), |file| file.name.clone())
}

/// The sealed part of one rank.
#[derive(Debug, Default)]
struct HeldPart {
    /// The form in which other readers see each variable, in order.
    forms: Vec<Form>,
    /// Payloads, in the order of the manifest's frames of the rank.
    payloads: Vec<Vec<u8>>,
}

/// The sealed parts of this process' ranks, by version and rank.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldParts(Arc<Mutex<BTreeMap<(u64, usize), HeldPart>>>);

impl HeldParts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(u64, usize), HeldPart>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A draft of `rank`; what it sealed of other versions before counts no more.
    pub(super) fn draft(&self, version: u64, rank: usize) -> Box<dyn Draft> {
        self.lock().retain(|&(sealed, of), _| sealed == version && of != rank);
        let part = HeldPart::default();
        let bytes = SUPERBLOCK_BYTES;
        let opaque = Vec::new();
        Box::new(SharedFileDraft { parts: self.clone(), version, rank, part, bytes, opaque, form: None })
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn take(&self, version: u64) -> BTreeMap<usize, HeldPart> {
        let parts = std::mem::take(&mut *self.lock());
        parts.into_iter().filter(|((sealed, _), _)| *sealed == version).map(|((_, rank), part)| (rank, part)).collect()
    }
}

/// A rank's part as it grows.
struct SharedFileDraft {
    parts: HeldParts,
    version: u64,
    rank: usize,
    part: HeldPart,
    bytes: u64,
    opaque: Vec<String>,
    /// The form of a variable that has more frames.
    form: Option<Form>,
}

impl Draft for SharedFileDraft {
    /// The places are those of a file of the rank's own; publishing moves them.
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame], next: NextCall) -> Result<(), StoreError> {
        let mut form = self.form.take().unwrap_or_else(|| Form::without_frames(variable));
        for frame in frames.iter_mut() {
            form.add(variable, frame);
            frame.record.place = Some(Place { file: file_name(self.rank), offset: self.bytes });
            self.bytes += frame.payload.len() as u64;
            self.part.payloads.push(frame.payload.to_vec());
        }
        if next == NextCall::Frames {
            self.form = Some(form);
            return Ok(());
        }
        if form == Form::Opaque {
            self.opaque.push(variable.name.clone());
        }
        self.part.forms.push(form);
        Ok(())
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        let name = file_name(self.rank);
        let file = FileRecord { name, bytes: self.bytes, structure_crc32c: 0, opaque: self.opaque };
        self.parts.lock().insert((self.version, self.rank), self.part);
        Ok(Sealed { files: vec![file] })
    }
}

/// A file to be written.
struct SharedFile {
    ranks: Range<usize>,
    /// The end of its frames.
    end: u64,
    /// Bytes between the ranks' frames.
    gaps: u64,
}

/// Gives every frame its place; the files they are in.
fn lay_out(manifest: &mut Manifest, per_file: usize) -> Vec<SharedFile> {
    let ranks = manifest.ranks;
    let starts = (0..ranks).step_by(per_file.clamp(1, ranks.max(1)));
    let mut files: Vec<SharedFile> = starts
        .map(|start| SharedFile {
            ranks: start..ranks.min(start.saturating_add(per_file)),
            end: SUPERBLOCK_BYTES,
            gaps: 0,
        })
        .collect();
    let mut before = None;
    for frame in &mut manifest.frames {
        let Some(file) = files.iter_mut().find(|file| file.ranks.contains(&frame.rank)) else { continue };
        if before.replace(frame.rank) != Some(frame.rank) {
            let start = file.end.next_multiple_of(ALIGNMENT);
            file.gaps += start - file.end;
            file.end = start;
        }
        frame.place = Some(Place { file: shared_name(&file.ranks), offset: file.end });
        file.end += frame.payload_bytes;
    }
    files
}

/// A file's superblock, and what goes behind the frames.
type Structure = (Vec<u8>, Vec<u8>);

/// The directory of a draft, and how it is written.
pub(super) struct SharedFiles<'a> {
    pub(super) draft: &'a Path,
    /// Ranks in a row that share a file.
    pub(super) per_file: usize,
    pub(super) throttle: Option<&'a Throttle>,
}

/// Writes the sealed parts of all ranks, durably; the manifest with the places they are at.
/// Collective.
pub(super) fn write(
    target: &SharedFiles<'_>,
    parts: &HeldParts,
    manifest: &Manifest,
    comm: &dyn Comm,
) -> Result<Manifest, CommonError<StoreError>> {
    let version = manifest.version;
    let mine = parts.take(version);
    let forms = gather_forms(&mine, comm)?;
    let mut placed = manifest.clone();
    let files = lay_out(&mut placed, target.per_file);
    placed.files.clear();
    let mut tails = Vec::new();
    for file in &files {
        let (head, tail) = describe(file, &placed, &forms).map_err(CommonError::alike)?;
        placed.files.push(record(file, &head, &tail, &placed, &forms));
        tails.push((head, tail));
    }
    let is_first = |file: &SharedFile| mine.contains_key(&file.ranks.start);
    let path = |file: &SharedFile| target.draft.join(shared_name(&file.ranks));
    let created =
        files.iter().filter(|file| is_first(file)).try_for_each(|file| publish::create_file(&path(file)).map(drop));
    agreed(comm, created)?;
    let mut written = Ok(());
    for (file, structure) in files.iter().zip(&tails) {
        let held: Vec<(&usize, &HeldPart)> = mine.range(file.ranks.clone()).collect();
        if written.is_ok() && !held.is_empty() {
            let structure = is_first(file).then_some((file.end, structure));
            written = write_file(&path(file), &held, structure, &placed, target.throttle);
        }
    }
    agreed(comm, written)?;
    Ok(placed)
}

/// The forms of every rank's variables. Collective; all ranks find the same missing.
fn gather_forms(mine: &BTreeMap<usize, HeldPart>, comm: &dyn Comm) -> Result<BTreeMap<usize, Vec<Form>>, CommError> {
    type Filters = Option<Vec<(u32, Vec<u32>)>>;
    let plain = |form: &Form| match form {
        Form::Chunked(filters) => Some(filters.iter().map(|filter| (filter.id, filter.values.clone())).collect()),
        Form::Opaque => None,
    };
    let own: Vec<(usize, Vec<Filters>)> =
        mine.iter().map(|(rank, part)| (*rank, part.forms.iter().map(plain).collect())).collect();
    let mut all = BTreeMap::new();
    for told in gather_json(comm, &own)? {
        let form = |filters: Filters| {
            let filter = |(id, values)| Filter { id, values };
            filters.map_or(Form::Opaque, |filters| Form::Chunked(filters.into_iter().map(filter).collect()))
        };
        all.extend(told.into_iter().map(|(rank, forms)| (rank, forms.into_iter().map(form).collect())));
    }
    Ok(all)
}

/// Makes the structure that makes a file HDF5.
fn describe(
    file: &SharedFile,
    manifest: &Manifest,
    forms: &BTreeMap<usize, Vec<Form>>,
) -> Result<Structure, StoreError> {
    let mut parts = Vec::new();
    for rank in file.ranks.clone() {
        let variables = manifest.variables.iter().filter(|variable| variable.rank == rank);
        let forms = forms.get(&rank).filter(|forms| forms.len() == variables.clone().count());
        let forms = forms.ok_or(StoreError::Missing { version: manifest.version })?;
        let written = variables.zip(forms).map(|(variable, form)| {
            let is_its = |frame: &&recoup_core::FrameRecord| frame.rank == rank && frame.variable == variable.name;
            let frames = manifest.frames.iter().filter(is_its).cloned().collect();
            WrittenVariable { variable: variable.clone(), frames, form: form.clone() }
        });
        parts.push((rank, written.collect::<Vec<_>>()));
    }
    Ok(structure(file.end, manifest.version, &parts))
}

fn record(
    file: &SharedFile,
    head: &[u8],
    tail: &[u8],
    manifest: &Manifest,
    forms: &BTreeMap<usize, Vec<Form>>,
) -> FileRecord {
    let crc = structure_crc32c(head, file.gaps, tail);
    let mut opaque: Vec<String> = Vec::new();
    for rank in file.ranks.clone() {
        let variables = manifest.variables.iter().filter(|variable| variable.rank == rank);
        let with_form = variables.zip(forms.get(&rank).into_iter().flatten());
        opaque.extend(with_form.filter(|(_, form)| **form == Form::Opaque).map(|(variable, _)| variable.name.clone()));
    }
    opaque.sort_unstable();
    opaque.dedup();
    FileRecord { name: shared_name(&file.ranks), bytes: file.end + tail.len() as u64, structure_crc32c: crc, opaque }
}

/// The frames of these ranks, and for the first of a file its structure, durably.
fn write_file(
    path: &Path,
    held: &[(&usize, &HeldPart)],
    structure: Option<(u64, &Structure)>,
    manifest: &Manifest,
    throttle: Option<&Throttle>,
) -> Result<(), StoreError> {
    let version = manifest.version;
    let file = publish::open_file(path)?;
    for (rank, part) in held {
        let mut frames = manifest.frames.iter().filter(|frame| frame.rank == **rank);
        for payload in &part.payloads {
            let frame = frames.next().filter(|frame| frame.payload_bytes == payload.len() as u64);
            let place = frame.and_then(|frame| frame.place.as_ref()).ok_or(StoreError::Missing { version })?;
            in_slices(throttle, payload.len(), |range| {
                let at = place.offset + range.start as u64;
                publish::write_at(&file, path, &payload[range], at)
            })?;
        }
    }
    if let Some((end, (head, tail))) = structure {
        publish::write_at(&file, path, tail, end)?;
        publish::write_at(&file, path, head, 0)?;
    }
    publish::sync_file(&file, path)
}
