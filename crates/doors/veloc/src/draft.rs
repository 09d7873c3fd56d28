//! A checkpoint between its begin and its end: regions and files go into a draft in scratch, which
//! counts when every rank has ended it well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use recoup_core::{Bound, Draft, FileRecord, Filter, FrameRecord, Manifest, NextCall, Role, Scheme, VariableRecord};

use crate::coding::{self, EncodedRegion, META, encode_bytes, encode_doubles, region_name};
use crate::copies::Meta;
use crate::places::{NameStores, run_name};
use crate::regions::{Regions, Selection};
use crate::{Error, MemoryRegion};

/// The decisions that rank 0 broadcast when the checkpoint began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The number that tells it from every other checkpoint.
    pub(crate) token: u64,
    /// The version continues to persistent storage.
    pub(crate) goes_on: bool,
}

/// The records of one rank's part of a version.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) variables: Vec<VariableRecord>,
    pub(crate) frames: Vec<FrameRecord>,
    pub(crate) files: Vec<FileRecord>,
}

impl Records {
    /// Returns the manifest of a version with these records.
    pub(crate) fn manifest(self, name: &str, version: u64, ranks: usize) -> Manifest {
        let is_lossy = self.variables.iter().any(|v| v.role == Role::Iterate);
        Manifest {
            scheme: if is_lossy { Scheme::Lossy } else { Scheme::Traditional },
            variables: self.variables,
            frames: self.frames,
            files: self.files,
            ..Manifest::new(&run_name(name), version, ranks)
        }
    }
}

/// A checkpoint being taken.
pub(crate) struct Checkpoint {
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) ticket: Ticket,
    pub(crate) stores: NameStores,
    /// `None` after an error.
    draft: Option<Box<dyn Draft>>,
    records: Records,
    /// The filters of each variable's frames, which the manifest does not keep.
    filters: BTreeMap<String, Vec<Filter>>,
    held: BTreeSet<i32>,
    files_dir: PathBuf,
    files: Vec<(String, PathBuf)>,
}

/// A checkpoint whose part of this rank is durable.
pub(crate) struct SealedPart {
    pub(crate) manifest: Manifest,
    pub(crate) filters: BTreeMap<String, Vec<Filter>>,
}

impl Checkpoint {
    /// Begins a draft in scratch.
    pub(crate) fn begin(
        name: &str,
        version: u64,
        ticket: Ticket,
        stores: NameStores,
        files_dir: PathBuf,
    ) -> Result<Self, Error> {
        remove_files(&files_dir)?;
        let draft = Some(stores.scratch.begin(version, 0)?);
        Ok(Self {
            name: name.to_owned(),
            version,
            ticket,
            stores,
            draft,
            records: Records::default(),
            filters: BTreeMap::new(),
            held: BTreeSet::new(),
            files_dir,
            files: Vec::new(),
        })
    }

    /// Takes the regions selected, as they are now.
    ///
    /// # Safety
    /// The program's memory is there, and nothing else writes it meanwhile.
    ///
    /// # Errors
    /// [`Error::Argument`] for a region that is not protected or already taken, and what the store
    /// reports; the checkpoint is lost after the latter.
    pub(crate) unsafe fn take(&mut self, regions: &Regions, selection: Selection<'_>) -> Result<(), Error> {
        let refuse = |what: String| Error::Argument { call: "VELOC_Checkpoint_selective", what };
        let protected = regions.of(&self.name);
        let ids = selection.of(protected.keys().copied());
        let ids = ids.map_err(|id| refuse(format!("region {id} is not protected")))?;
        if let (Selection::Some(_), Some(id)) = (selection, ids.iter().find(|id| self.held.contains(id))) {
            return Err(refuse(format!("region {id} is in the checkpoint already")));
        }
        for id in ids.into_iter().filter(|id| !self.held.contains(id)).collect::<Vec<_>>() {
            let Some(region) = protected.get(&id) else { continue };
            // SAFETY: as the caller promises.
            let coded = unsafe { coded(id, region, regions.bound(id)) };
            self.put(coded)?;
            self.held.insert(id);
        }
        Ok(())
    }

    /// Returns the path to write the file called `original` to.
    pub(crate) fn route(&mut self, original: &str) -> Result<PathBuf, Error> {
        if let Some((_, path)) = self.files.iter().find(|(name, _)| name == original) {
            return Ok(path.clone());
        }
        let path = routed(&self.files_dir, self.files.len(), original)?;
        self.files.push((original.to_owned(), path.clone()));
        Ok(path)
    }

    /// Takes the files, and makes everything durable.
    pub(crate) fn seal(&mut self, rank: usize, ranks: usize) -> Result<SealedPart, Error> {
        for index in 0..self.files.len() {
            let path = &self.files[index].1;
            let bytes = read_file(path).map_err(|source| Error::file("read", path, source))?;
            self.put(encode_bytes(&coding::file_name(index), &bytes))?;
        }
        let files = self.files.iter().map(|(name, _)| name.clone()).collect();
        let meta = Meta { token: self.ticket.token, rank, ranks, files };
        let text = serde_json::to_vec(&meta).map_err(|e| Error::file("write", Path::new(META), e.into()))?;
        self.put(encode_bytes(META, &text))?;
        let lost = Error::Order { call: "VELOC_Checkpoint_end", what: "a part of the checkpoint could not be written" };
        self.records.files = self.draft.take().ok_or(lost)?.seal()?.files;
        let records = std::mem::take(&mut self.records);
        let manifest = records.manifest(&self.name, self.version, 1);
        Ok(SealedPart { manifest, filters: std::mem::take(&mut self.filters) })
    }

    /// Writes a region. After an error the checkpoint is lost, and its end fails.
    fn put(&mut self, coded: Result<EncodedRegion, Error>) -> Result<(), Error> {
        let lost = Error::Order { call: "VELOC_Checkpoint_mem", what: "the checkpoint is lost already" };
        let draft = self.draft.as_mut().ok_or(lost)?;
        let written = coded.and_then(|(record, mut frames)| {
            draft.write(&record, &mut frames, NextCall::Write)?;
            Ok((record, frames))
        });
        let (record, frames) = written.inspect_err(|_| self.draft = None)?;
        self.filters.insert(record.name.clone(), coding::filters(&frames));
        self.records.variables.push(record);
        self.records.frames.extend(frames.into_iter().map(|f| f.record));
        Ok(())
    }
}

impl Drop for Checkpoint {
    /// Removes the files the program wrote, which are in the version or of no use, and a draft that
    /// does not count.
    fn drop(&mut self) {
        self.draft = None;
        self.stores.scratch.discard_drafts().ok();
        remove_files(&self.files_dir).ok();
    }
}

/// # Safety
/// The program's memory is there, and nothing else writes it meanwhile.
unsafe fn coded(id: i32, region: &MemoryRegion, bound: Bound) -> Result<EncodedRegion, Error> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { region.read() }?;
    let bytes = &*bytes;
    if bound == Bound::Lossless || bound == Bound::Absolute(0.0) {
        return encode_bytes(&region_name(id), bytes);
    }
    if region.element_bytes() != size_of::<f64>() {
        let what =
            format!("region {id} is lossy, and its elements have {} bytes: doubles only", region.element_bytes());
        return Err(Error::Argument { call: "VELOC_Region_lossy", what });
    }
    encode_doubles(&region_name(id), bytes, bound)
}

/// Makes a path in `dir` for the file numbered `index`, which keeps the last part of its name.
pub(crate) fn routed(dir: &Path, index: usize, original: &str) -> Result<PathBuf, Error> {
    let last = Path::new(original).file_name().ok_or_else(|| {
        let what = format!("{original:?} does not end in a file's name");
        Error::Argument { call: "VELOC_Route_file", what }
    })?;
    let dir = dir.join(index.to_string());
    std::fs::create_dir_all(&dir).map_err(|source| Error::file("create", &dir, source))?;
    Ok(dir.join(last))
}

/// Reads a file of the program's. To open a pipe in its place would wait without end.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.is_file() {
        return std::fs::read(path);
    }
    Err(std::io::Error::other("a file expected, a directory, pipe or device found"))
}

pub(crate) fn remove_files(dir: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(dir) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::file("remove", dir, source)),
        _ => Ok(()),
    }
}
