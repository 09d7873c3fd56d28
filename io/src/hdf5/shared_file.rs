//! One file for several ranks, which all write at the same time.
//!
//! A rank keeps its encoded frames until every rank has sealed, and tells the first rank of its
//! file how long they are. That rank answers with their places, and writes what makes the file HDF5
//! besides; each rank writes its own frames. Promises: what [`super::rank_file`] promises, for the
//! version as a whole; nothing of a rank is on disk before all have sealed; no rank knows more of
//! the version than what is in its file. See FORMAT.md.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{
    Comm, CommError, CommonError, Draft, FileRecord, Filter, Frame, FrameRecord, Manifest, NextCall,
    PARTS_FORMAT_VERSION, Place, Sealed, StoreError, VariableRecord, agreed, each,
};
use serde::{Deserialize, Serialize};

use super::blocks::SUPERBLOCK_BYTES;
use super::index_part::{FileDigest, parts_of_file};
use super::part;
use super::rank_file::{Form, WrittenVariable, file_name, structure, structure_crc32c};
use super::read_back::{WrittenFile, written_files};
use crate::check::{check_files, check_part, check_ranks};
use crate::publish;
use crate::throttle::{Throttle, in_slices};

/// Each rank's frames begin at a multiple of this, so that no two ranks write to one page.
const ALIGNMENT: u64 = 4096;

/// The name of the file of these ranks.
fn shared_name(ranks: &Range<usize>) -> String {
    format!("ranks-{:06}-{:06}.h5", ranks.start, ranks.end - 1)
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

    /// Takes the parts of these ranks.
    fn take(&self, version: u64, ranks: &BTreeSet<usize>) -> BTreeMap<usize, HeldPart> {
        let mut parts = self.lock();
        ranks.iter().filter_map(|&rank| Some((rank, parts.remove(&(version, rank))?))).collect()
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
        let file = FileRecord { opaque: self.opaque, ..FileRecord::new(name, self.bytes, 0) };
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

/// The ranks that share the file of this one.
fn sharing(rank: usize, ranks: usize, per_file: usize) -> Range<usize> {
    let first = rank - rank % per_file;
    first..ranks.min(first.saturating_add(per_file))
}

/// Gives every frame its place. Returns the files of the ranks in the manifest, by their first
/// ranks.
fn lay_out(manifest: &mut Manifest, per_file: usize) -> BTreeMap<usize, SharedFile> {
    let ranks_of = |rank: usize| sharing(rank, manifest.ranks, per_file);
    let owners = manifest.variables.iter().map(|variable| ranks_of(variable.rank));
    let mut files: BTreeMap<usize, SharedFile> =
        owners.map(|ranks| (ranks.start, SharedFile { ranks, end: SUPERBLOCK_BYTES, gaps: 0 })).collect();
    let all = manifest.ranks;
    let mut before = None;
    for frame in &mut manifest.frames {
        let Some(file) = files.get_mut(&sharing(frame.rank, all, per_file).start) else { continue };
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
    /// Each file has its part of the manifest.
    pub(super) in_parts: bool,
    pub(super) throttle: Option<&'a Throttle>,
}

/// A version on disk but for its manifest, as one rank knows it.
pub(super) struct Written {
    /// This rank's part, with the places of its frames, and the files that begin with it.
    pub(super) placed: Manifest,
    /// The files that this rank has described.
    pub(super) files: Vec<WrittenFile>,
    /// Their parts of the manifest, where it is in parts.
    pub(super) parts: Vec<FileDigest>,
}

/// The part of one rank, as it tells the first of its file.
#[derive(Serialize, Deserialize)]
struct SealedLists {
    variables: Vec<VariableRecord>,
    frames: Vec<FrameRecord>,
    forms: BTreeMap<usize, Vec<Filters>>,
}

/// The filters of a variable's chunks; none for one that is encoded bytes.
type Filters = Option<Vec<(u32, Vec<u32>)>>;

/// The files that begin with a rank of this process, planned.
struct Planned {
    /// The variables and frames of all ranks in them, placed, and their records.
    placed: Manifest,
    files: Vec<(SharedFile, Structure)>,
    parts: Vec<FileDigest>,
}

/// Writes the sealed parts of all ranks, durably. Collective.
pub(super) fn write(
    target: &SharedFiles<'_>,
    parts: &HeldParts,
    part: &Manifest,
    comm: &dyn Comm,
) -> Result<Written, CommonError<StoreError>> {
    let own: BTreeSet<usize> = part.variables.iter().map(|variable| variable.rank).collect();
    let mine = parts.take(part.version, &own);
    let per_file = target.per_file.clamp(1, part.ranks.max(1));
    let target = SharedFiles { per_file, ..*target };
    let (planned, placed) = plan(&target, part, &mine, comm)?;
    let path = |ranks: &Range<usize>| target.draft.join(shared_name(ranks));
    let planned_files = planned.iter().flat_map(|planned| &planned.files);
    let created = planned_files.clone().try_for_each(|(file, _)| publish::create_file(&path(&file.ranks)).map(drop));
    agreed(comm, created)?;
    let firsts: BTreeSet<usize> = own.iter().map(|&rank| sharing(rank, part.ranks, per_file).start).collect();
    let write_one = |&first: &usize| {
        let ranks = sharing(first, part.ranks, per_file);
        let held: Vec<(&usize, &HeldPart)> = mine.range(ranks.clone()).collect();
        let planned = planned_files.clone().find(|(file, _)| file.ranks == ranks);
        let structure = planned.map(|(file, structure)| (file.end, structure));
        write_file(&path(&ranks), &held, structure, &placed, target.throttle)
    };
    agreed(comm, firsts.iter().try_for_each(write_one))?;
    let files = planned.iter().flat_map(|planned| written_files(&planned.placed)).collect();
    let parts = planned.map(|planned| planned.parts).unwrap_or_default();
    Ok(Written { placed, files, parts })
}

/// Plans the files: each rank gets the places of its frames from the first of its file. Collective.
fn plan(
    target: &SharedFiles<'_>,
    part: &Manifest,
    mine: &BTreeMap<usize, HeldPart>,
    comm: &dyn Comm,
) -> Result<(Option<Planned>, Manifest), CommonError<StoreError>> {
    let forms = mine.iter().map(|(rank, part)| (*rank, part.forms.iter().map(filters).collect())).collect();
    let own = SealedLists { variables: part.variables.clone(), frames: part.frames.clone(), forms };
    let mut placed = part.clone();
    placed.files.clear();
    if comm.size() == 1 {
        let planned = each(comm, planned(target, part, vec![own]))?;
        placed.frames.clone_from(&planned.placed.frames);
        placed.files.clone_from(&planned.placed.files);
        return Ok((Some(planned), placed));
    }
    let rank = comm.rank();
    let sharing = sharing(rank, part.ranks, target.per_file);
    let first = sharing.start;
    let text = serde_json::to_vec(&own).unwrap_or_default();
    if rank != first {
        comm.exchange_bytes(&[(first, &text)], &[])?;
        let answer = comm.exchange_bytes(&[], &[first])?;
        // Where there are no places, the first rank says why.
        let places: Vec<Place> = serde_json::from_slice(&answer.concat()).unwrap_or_default();
        each(comm, Ok::<_, StoreError>(()))?;
        placed.frames.iter_mut().zip(places).for_each(|(frame, place)| frame.place = Some(place));
        return Ok((None, placed));
    }
    let others: Vec<usize> = sharing.skip(1).collect();
    let received = comm.exchange_bytes(&[], &others)?;
    let decode = |(&rank, text): (&usize, Vec<u8>)| {
        serde_json::from_slice(&text).map_err(|error| CommError::Undecodable { rank, what: error.to_string() })
    };
    let lists: Result<Vec<SealedLists>, _> =
        std::iter::once(Ok(own)).chain(others.iter().zip(received).map(decode)).collect();
    let planned = lists.map_err(StoreError::from).and_then(|lists| planned(target, part, lists));
    let places = |of: usize| {
        let frames = planned.iter().flat_map(|planned| &planned.placed.frames).filter(|frame| frame.rank == of);
        serde_json::to_vec(&frames.filter_map(|frame| frame.place.as_ref()).collect::<Vec<_>>()).unwrap_or_default()
    };
    let answers: Vec<Vec<u8>> = others.iter().map(|&of| places(of)).collect();
    let sends: Vec<(usize, &[u8])> = others.iter().copied().zip(answers.iter().map(Vec::as_slice)).collect();
    comm.exchange_bytes(&sends, &[])?;
    let planned = each(comm, planned)?;
    placed.frames = planned.placed.frames.iter().filter(|frame| frame.rank == rank).cloned().collect();
    placed.files.clone_from(&planned.placed.files);
    Ok((Some(planned), placed))
}

/// Plans the files of these ranks.
fn planned(target: &SharedFiles<'_>, part: &Manifest, lists: Vec<SealedLists>) -> Result<Planned, StoreError> {
    let mut placed = Manifest::new(&part.name, part.version, part.ranks);
    let mut forms: BTreeMap<usize, Vec<Form>> = BTreeMap::new();
    for lists in lists {
        placed.variables.extend(lists.variables);
        placed.frames.extend(lists.frames);
        forms.extend(lists.forms.into_iter().map(|(rank, of)| (rank, of.into_iter().map(form).collect())));
    }
    // What lies is refused before any place follows from it.
    let version = placed.version;
    let lie = |what| StoreError::Manifest { version, what };
    check_part(&placed, version).map_err(lie)?;
    let mut planned = Planned { placed, files: Vec::new(), parts: Vec::new() };
    for file in lay_out(&mut planned.placed, target.per_file).into_values() {
        let placed = &mut planned.placed;
        let written = written(&file, placed, &forms)?;
        let mut record = FileRecord { opaque: opaque(&written), ..FileRecord::new(shared_name(&file.ranks), 0, 0) };
        let mut index = None;
        let structure = if target.in_parts {
            let sealed = part::seal(placed, &file.ranks).map_err(lie)?;
            let parts = parts_of_file(placed, &file.ranks, &record.opaque);
            let structure = structure(file.end, version, &written, |tail| {
                let (links, part) = part::put(sealed, &parts.joined, tail);
                record.part = Some(part);
                links
            });
            index = Some(parts.into_index().collect());
            structure
        } else {
            structure(file.end, version, &written, |_| Vec::new())
        };
        let (head, tail) = &structure;
        record.bytes = file.end + tail.len() as u64;
        record.structure_crc32c = structure_crc32c(head, file.gaps, tail);
        if let Some(parts) = index {
            planned.parts.push(FileDigest { name: part.name.clone(), version, file: record.clone(), parts });
        }
        placed.files.push(record);
        planned.files.push((file, structure));
    }
    if target.in_parts {
        planned.placed.format = PARTS_FORMAT_VERSION;
        let ranks = planned.files.iter().map(|(file, _)| file.ranks.len()).sum();
        check_ranks(&planned.placed, ranks).and_then(|()| check_files(&planned.placed)).map_err(lie)?;
    }
    Ok(planned)
}

fn filters(form: &Form) -> Filters {
    match form {
        Form::Chunked(filters) => Some(filters.iter().map(|filter| (filter.id, filter.values.clone())).collect()),
        Form::Opaque => None,
    }
}

fn form(filters: Filters) -> Form {
    let filter = |(id, values)| Filter { id, values };
    filters.map_or(Form::Opaque, |filters| Form::Chunked(filters.into_iter().map(filter).collect()))
}

/// Returns the variables of the file's ranks, rank by rank.
fn written(
    file: &SharedFile,
    manifest: &Manifest,
    forms: &BTreeMap<usize, Vec<Form>>,
) -> Result<Vec<(usize, Vec<WrittenVariable>)>, StoreError> {
    let mut parts = Vec::new();
    for rank in file.ranks.clone() {
        let variables = manifest.variables.iter().filter(|variable| variable.rank == rank);
        let forms = forms.get(&rank).filter(|forms| forms.len() == variables.clone().count());
        let forms = forms.ok_or(StoreError::Missing { version: manifest.version })?;
        let written = variables.zip(forms).map(|(variable, form)| {
            let is_its = |frame: &&FrameRecord| frame.rank == rank && frame.variable == variable.name;
            let frames = manifest.frames.iter().filter(is_its).cloned().collect();
            WrittenVariable { variable: variable.clone(), frames, form: form.clone() }
        });
        parts.push((rank, written.collect()));
    }
    Ok(parts)
}

/// Returns the names of the variables that are encoded bytes to other readers.
fn opaque(written: &[(usize, Vec<WrittenVariable>)]) -> Vec<String> {
    let all = written.iter().flat_map(|(_, written)| written).filter(|written| written.form == Form::Opaque);
    all.map(|written| written.variable.name.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Writes the frames of these ranks, and for the first of a file its structure, durably.
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
