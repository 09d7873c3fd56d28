//! One rank's file of a version: frames as they come, then what makes them HDF5 datasets.
//!
//! Promises: a payload is written once, where the manifest says; the file is an HDF5 file from the
//! moment it is sealed; dropped unsealed, it is gone. See FORMAT.md.

use std::path::{Path, PathBuf};

use recoup_core::{
    CodecId, Distribution, Draft, FileRecord, Filter, Frame, FrameRecord, NextCall, Place, Sealed, Storage, StoreError,
    VariableRecord,
};
use serde::Serialize;

use super::blocks::{Chunk, SUPERBLOCK_BYTES, Tail};
use super::encode::{self, Attribute, Datatype, GroupLink, HeaderMessage, UNDEFINED};
use crate::direct::{BYTES_MIN, DirectFile, PAGE, WholeFile};
use crate::publish;
use crate::throttle::{Throttle, in_slices};

/// The name of a rank's file.
pub(super) fn file_name(rank: usize) -> String {
    format!("rank-{rank:06}.h5")
}

/// The file being written.
pub(super) struct RankFile {
    path: PathBuf,
    /// `None` once sealed.
    file: Option<DirectFile>,
    version: u64,
    rank: usize,
    throttle: Option<Throttle>,
    /// The place of the next payload.
    end: u64,
    /// Bytes left out before variables, which are 0.
    gaps: u64,
    /// The rank, and what it has written.
    written: [(usize, Vec<WrittenVariable>); 1],
    /// The last of these variables has more frames.
    has_more: bool,
    /// The record of a file that was written at once, with its one variable.
    whole: Option<FileRecord>,
}

/// One variable whose frames have their places.
pub(super) struct WrittenVariable {
    pub(super) variable: VariableRecord,
    pub(super) frames: Vec<FrameRecord>,
    pub(super) form: Form,
}

/// The form in which other readers see a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// A dataset whose chunks went through these filters, or skipped them.
    Chunked(Vec<Filter>),
    /// Encoded bytes.
    Opaque,
}

impl RankFile {
    /// Makes the file in the draft's directory, of the one that is left there where one may be.
    pub(super) fn create(
        draft: &Path,
        version: u64,
        rank: usize,
        throttle: Option<Throttle>,
        may_reuse: bool,
    ) -> Result<Self, StoreError> {
        let path = draft.join(file_name(rank));
        let (file, is_reused) = publish::make_file(&path, may_reuse)?;
        let file = Some(DirectFile::new(file, is_reused));
        let end = SUPERBLOCK_BYTES;
        let gaps = 0;
        let written = [(rank, Vec::new())];
        Ok(Self { path, file, version, rank, throttle, end, gaps, written, has_more: false, whole: None })
    }

    /// The file of this payload, in one write, where nothing else is in it and it is large enough;
    /// says whether it is there.
    fn write_whole(&mut self, payload: &[u8]) -> Result<bool, StoreError> {
        let [WrittenVariable { frames, .. }] = &*self.written[0].1 else { return Ok(false) };
        if frames.len() != 1 || self.throttle.is_some() {
            return Ok(false);
        }
        let (mut head, mut tail) = structure(self.end, self.version, &self.written, |_| Vec::new());
        head.resize(head.len() + self.gaps as usize, 0);
        let whole = WholeFile { head: &head, payload, tail: &tail };
        let bytes = whole.padded_bytes();
        let file = self.file.as_mut().expect("a sealed draft cannot be written: seal takes it");
        if !publish::write_whole(file, &self.path, &whole)? {
            return Ok(false);
        }
        tail.resize((bytes - self.end) as usize, 0);
        self.whole = Some(self.record(&head, &tail, 0));
        Ok(true)
    }

    /// Begins a variable, whose first frame is `first`, behind a gap where it pays.
    fn begin_variable(&mut self, variable: &VariableRecord, first: Option<&Frame>) {
        let gap = first.map_or(0, |frame| gap(&frame.payload, self.end));
        self.gaps += gap;
        self.end += gap;
        let written =
            WrittenVariable { variable: variable.clone(), frames: Vec::new(), form: Form::without_frames(variable) };
        self.written[0].1.push(written);
    }

    /// Writes frames back to back.
    fn write_frames(&mut self, frames: &[Frame], start: u64) -> Result<(), StoreError> {
        let file = self.file.as_mut().expect("a sealed draft cannot be written: seal takes it");
        let mut offset = start;
        for frame in frames {
            match &self.throttle {
                None => publish::write_large_at(file, &self.path, &frame.payload, offset)?,
                Some(throttle) => in_slices(Some(throttle), frame.payload.len(), |range| {
                    let at = offset + range.start as u64;
                    publish::write_large_at(file, &self.path, &frame.payload[range], at)
                })?,
            }
            offset += frame.payload.len() as u64;
        }
        Ok(())
    }

    /// Writes what is not frames.
    fn write_structure(&mut self) -> Result<FileRecord, StoreError> {
        let (superblock, tail) = structure(self.end, self.version, &self.written, |_| Vec::new());
        let file = self.file.as_mut().expect("a draft is sealed once: seal takes it");
        publish::write_large_at(file, &self.path, &tail, self.end)?;
        publish::write_large_at(file, &self.path, &superblock, 0)?;
        Ok(self.record(&superblock, &tail, self.gaps))
    }

    /// Returns the file's entry in the manifest.
    fn record(&self, head: &[u8], tail: &[u8], gaps: u64) -> FileRecord {
        let opaque = self.written[0].1.iter().filter(|w| w.form == Form::Opaque).map(|w| w.variable.name.clone());
        let bytes = self.end + tail.len() as u64;
        let crc = structure_crc32c(head, gaps, tail);
        FileRecord { opaque: opaque.collect(), ..FileRecord::new(file_name(self.rank), bytes, crc) }
    }
}

/// Returns the bytes to leave out after `end` so that the payload lies in the file at the same
/// place of a page as in memory. Its whole pages then go to the device without a copy.
fn gap(payload: &[u8], end: u64) -> u64 {
    if payload.len() < BYTES_MIN {
        return 0;
    }
    (payload.as_ptr().addr() as u64).wrapping_sub(end) % PAGE as u64
}

/// Everything of a file but the frames, which end at `end`: the superblock, and what goes behind
/// them. The root has the names that `more` puts there besides the datasets of the ranks.
pub(super) fn structure(
    end: u64,
    version: u64,
    parts: &[(usize, Vec<WrittenVariable>)],
    more: impl FnOnce(&mut Tail) -> Vec<GroupLink>,
) -> (Vec<u8>, Vec<u8>) {
    let mut tail = Tail::at(end);
    let mut datasets = Vec::new();
    let mut encoded = Vec::new();
    for (rank, written) in parts {
        let mut chunked = Vec::new();
        let mut opaque = Vec::new();
        for written in written {
            let name = &written.variable.name;
            match &written.form {
                Form::Chunked(filters) => {
                    chunked.push(GroupLink::here(name, written.dataset(filters, version, &mut tail)))
                }
                Form::Opaque => opaque.push(GroupLink::here(name, written.bytes(version, &mut tail))),
            }
        }
        datasets.push((rank, chunked));
        if !opaque.is_empty() {
            encoded.push((rank, opaque));
        }
    }
    let mut roots = Vec::new();
    for (name, of_ranks) in [("ranks", datasets), ("encoded", encoded)].into_iter().filter(|(_, of)| !of.is_empty()) {
        let inner = of_ranks.iter().map(|(rank, links)| (rank, tail.object(&encode::group(links, &[]))));
        let links: Vec<GroupLink> = inner.map(|(rank, group)| GroupLink::here(rank.to_string(), group)).collect();
        roots.push(GroupLink::here(name, tail.object(&encode::group(&links, &[]))));
    }
    roots.extend(more(&mut tail));
    let mut attributes = vec![Attribute::count("iteration", version)];
    match parts {
        [(rank, _)] => attributes.push(Attribute::count("rank", *rank as u64)),
        parts => attributes.extend(Attribute::list("ranks", parts.iter().map(|(rank, _)| *rank as u64))),
    }
    let root = tail.object(&encode::group(&roots, &attributes));
    tail.finish(root)
}

/// The checksum of all that is no frame: what is before the frames, the zeros between them, and
/// what is behind.
pub(super) fn structure_crc32c(head: &[u8], gaps: u64, tail: &[u8]) -> u32 {
    let zeros = vec![0; gaps as usize];
    [head, &zeros, tail].into_iter().fold(0, crc32c::crc32c_append)
}

impl Draft for RankFile {
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame], next: NextCall) -> Result<(), StoreError> {
        assert!(self.whole.is_none(), "nothing is written behind the last variable");
        if !self.has_more {
            self.begin_variable(variable, frames.first());
        }
        self.has_more = next == NextCall::Frames;
        let start = self.end;
        let written = self.written[0].1.last_mut().expect("a variable was begun: its frames follow");
        for frame in frames.iter_mut() {
            frame.record.place = Some(Place { file: file_name(self.rank), offset: self.end });
            self.end += frame.payload.len() as u64;
            written.form.add(variable, frame);
            written.frames.push(frame.record.clone());
        }
        if let [frame] = frames
            && next == NextCall::Seal
            && self.write_whole(&frame.payload)?
        {
            return Ok(());
        }
        self.write_frames(frames, start)
    }

    fn seal(mut self: Box<Self>) -> Result<Sealed, StoreError> {
        let record = match self.whole.take() {
            Some(record) => record,
            None => self.write_structure()?,
        };
        let file = self.file.as_ref().expect("a draft is sealed once: seal takes it");
        publish::sync_large(file, &self.path)?;
        self.file = None;
        Ok(Sealed { files: vec![record] })
    }
}

impl Drop for RankFile {
    /// An unsealed file is removed. Rank 0, which made the directory, removes that if it is empty:
    /// others may be about to begin there.
    fn drop(&mut self) {
        if self.file.take().is_some() {
            publish::discard_file(&self.path, self.rank == 0);
        }
    }
}

impl WrittenVariable {
    /// The variable as a dataset; gives its address.
    fn dataset(&self, filters: &[Filter], version: u64, tail: &mut Tail) -> u64 {
        let datatype = Datatype::from(self.variable.element);
        let extents = extents(self.variable.dims);
        let mut messages = encode::described(datatype, &extents);
        messages.push(encode::fill(&[]));
        if self.frames.is_empty() {
            messages.push(encode::contiguous(UNDEFINED, 0));
        } else {
            let chunk: Vec<u64> =
                self.variable.frame_dims[..extents.len()].iter().rev().map(|&extent| extent as u64).collect();
            let chunk_bytes = chunk.iter().product::<u64>() * u64::from(datatype.size());
            let skipped = (1 << filters.len()) - 1;
            let chunks: Vec<Chunk> = self.frames.iter().map(|frame| at(frame, skipped)).collect();
            let filtered = (!filters.is_empty()).then_some(chunk_bytes);
            let index = tail.fixed_array(&chunks, filtered);
            messages.push(encode::chunked(&chunk, datatype.size(), &index));
            if !filters.is_empty() {
                messages.push(encode::pipeline(filters));
            }
        }
        messages.extend(self.attributes(version));
        tail.object(&messages)
    }

    /// The payloads one after another as a dataset of bytes; gives its address.
    fn bytes(&self, version: u64, tail: &mut Tail) -> u64 {
        let bytes = self.frames.iter().map(|f| f.payload_bytes).sum();
        let start = self.frames.first().and_then(|f| f.place.as_ref()).map_or(UNDEFINED, |place| place.offset);
        let mut messages = encode::described(Datatype::U8, &[bytes]);
        messages.extend([encode::fill(&[]), encode::contiguous(start, bytes)]);
        messages.extend(self.attributes(version));
        let lengths = self.frames.iter().map(|f| f.payload_bytes);
        messages.extend(Attribute::list("frame_bytes", lengths).iter().map(Attribute::message));
        tail.object(&messages)
    }

    fn attributes(&self, version: u64) -> Vec<HeaderMessage> {
        let v = &self.variable;
        let error = self.frames.iter().map(|f| f.achieved_error).fold(0.0, f64::max);
        let mut attributes = vec![
            Attribute::text("role", &text(&v.role)),
            Attribute::text("element", &v.element.to_string()),
            Attribute::count("iteration", version),
            Attribute::count("stride", v.stride as u64),
            Attribute::float("achieved_error", error),
        ];
        attributes.extend(layout(v.distribution));
        if let Some(first) = self.frames.first() {
            attributes.push(Attribute::text("codec", first.codec.name()));
            attributes.push(Attribute::text("bound", &first.bound.to_string()));
        }
        attributes.extend(Attribute::list("frame_crc32c", self.frames.iter().map(|f| u64::from(f.crc32c))));
        if self.frames.iter().any(|f| f.parent().is_some()) {
            // One entry for each frame; a frame that stands alone names its own version.
            let parents = self.frames.iter().map(|f| f.parent().unwrap_or(version));
            attributes.extend(Attribute::list("frame_parents", parents));
        }
        attributes.iter().map(Attribute::message).collect()
    }
}

/// Returns the variable's distribution over the ranks as attributes.
fn layout(distribution: Distribution) -> Vec<Attribute> {
    match distribution {
        Distribution::Rows { first, global } => vec![
            Attribute::text("distribution", "rows"),
            Attribute::count("first", first),
            Attribute::count("global", global),
        ],
        Distribution::Replicated => vec![Attribute::text("distribution", "replicated")],
        Distribution::RankLocal => vec![Attribute::text("distribution", "rank-local")],
    }
}

/// A value of our vocabulary in the words of the manifest.
pub(super) fn text(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// Extents as HDF5 has them: slowest first, without trailing ones.
pub(super) fn extents(dims: [usize; 3]) -> Vec<u64> {
    let axes = dims.iter().rposition(|&extent| extent != 1).map_or(1, |last| last + 1);
    dims[..axes].iter().rev().map(|&extent| extent as u64).collect()
}

/// Returns the place of a frame's chunk; a raw one skipped all filters in `skipped`.
fn at(frame: &FrameRecord, skipped: u32) -> Chunk {
    let address = frame.place.as_ref().map_or(UNDEFINED, |place| place.offset);
    let filter_mask = if frame.storage == Storage::Raw { skipped } else { 0 };
    Chunk { address, bytes: frame.payload_bytes, filter_mask }
}

impl Form {
    /// Returns the form of a variable before its first frame.
    pub(super) fn without_frames(variable: &VariableRecord) -> Self {
        if are_chunks(variable) { Self::Chunked(Vec::new()) } else { Self::Opaque }
    }

    /// Takes note of a frame: chunks where HDF5 can read every frame, encoded bytes otherwise.
    pub(super) fn add(&mut self, variable: &VariableRecord, frame: &Frame) {
        let Self::Chunked(filters) = self else { return };
        let frame_bytes = variable.frame_dims.iter().product::<usize>() * variable.element.size();
        let is_raw = frame.record.storage == Storage::Raw || frame.record.codec == CodecId::Raw;
        let fits = if is_raw {
            frame.payload.len() == frame_bytes
        } else if filters.is_empty() {
            // The first frame that is not raw gives the filters of all.
            filters.clone_from(&frame.filters);
            !filters.is_empty()
        } else {
            *filters == frame.filters
        };
        if !fits {
            *self = Self::Opaque;
        }
    }
}

/// Returns whether runs of values are boxes of the grid, in the order HDF5 counts them: all faster
/// extents whole, all slower ones 1, and the cut one divided evenly unless nothing is slower.
fn are_chunks(variable: &VariableRecord) -> bool {
    let dims = variable.dims;
    let frame = variable.frame_dims;
    let Some(cut) = (0..3).find(|&axis| frame[axis] != dims[axis]) else { return true };
    let slower = cut + 1..3;
    let is_last = dims[slower.clone()].iter().all(|&extent| extent == 1);
    frame[slower].iter().all(|&extent| extent == 1)
        && frame[cut] > 0
        && (is_last || dims[cut].is_multiple_of(frame[cut]))
}

#[cfg(test)]
mod tests {
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;

    #[test]
    fn only_runs_that_are_boxes_become_chunks() {
        let mut variable = SampleVersion::new(1, 1).parts.pop().unwrap().record;
        let mut chunks = |dims, frame_dims| {
            (variable.dims, variable.frame_dims) = (dims, frame_dims);
            are_chunks(&variable)
        };
        assert!(chunks([20, 1, 1], [8, 1, 1]));
        assert!(chunks([5, 1, 1], [8, 1, 1]));
        assert!(chunks([4, 3, 5], [4, 3, 2]));
        assert!(chunks([4, 6, 5], [4, 3, 1]));
        assert!(!chunks([4, 5, 5], [4, 3, 1]), "a frame would reach into the next plane");
        assert!(!chunks([4, 3, 5], [2, 3, 5]), "a frame would not be a run");
    }

    /// Entries for those frames alone that have a parent could not be matched to frames.
    #[test]
    fn parents_are_listed_frame_by_frame() {
        let part = SampleVersion::new(9, 1).parts.pop().unwrap();
        let frames = |parents: [&[u64]; 3]| {
            let records = part.frames.iter().map(|f| f.record.clone()).zip(parents);
            records.map(|(record, parents)| FrameRecord { parents: parents.to_vec(), ..record }).collect()
        };
        let listed = |parents| {
            let variable = part.record.clone();
            let form = Form::Opaque;
            WrittenVariable { variable, frames: frames(parents), form }.attributes(9)
        };
        let expected = Attribute::list("frame_parents", [4, 9, 4].into_iter()).unwrap().message();
        assert!(listed([&[4], &[], &[4]]).contains(&expected));
        let alone = listed([&[], &[], &[]]);
        assert!(alone.iter().all(|(_, message)| !message.windows(7).any(|name| name == b"parents")));
    }

    #[test]
    fn extents_are_slowest_first() {
        assert_eq!(extents([7, 1, 1]), [7]);
        assert_eq!(extents([1, 1, 1]), [1]);
        assert_eq!(extents([0, 1, 1]), [0]);
        assert_eq!(extents([4, 1, 5]), [5, 1, 4]);
    }
}
