//! The duties of every store: to keep versions whole, to let drafts count for nothing, and to name
//! what is missing.
//!
//! Promises: a store that passes gives back every payload bit for bit, shows a version only after
//! it was published, and continues after refused calls. Must not know where a store puts its bytes.

#![expect(clippy::unwrap_used, reason = "a suite is a test: it fails by panicking")]

use recoup_comm::{Solo, Threads};
use recoup_core::{
    CodecId, Comm as _, CommonError, Distribution, Draft, ElementType, FileRecord, Filter, Frame, FrameRecord,
    Manifest, NextBegin, NextCall, ResidualRecord, Role, Scheme, Storage, Store, StoreError, VariableRecord,
};

use crate::crashing_store::{Crash, CrashingStore};

/// A small version of several ranks that has one variable of every kind a store treats differently.
#[derive(Clone, Debug)]
pub struct SampleVersion {
    /// Number of the version.
    pub version: u64,
    /// Ranks that write it.
    pub ranks: usize,
    /// All variables, by rank.
    pub parts: Vec<SamplePart>,
}

/// One variable of one rank, with its frames.
#[derive(Clone, Debug)]
pub struct SamplePart {
    /// Record of the variable in the manifest.
    pub record: VariableRecord,
    /// Values of the variable; empty if they are not doubles.
    pub values: Vec<f64>,
    /// Frames of the variable, not yet placed.
    pub frames: Vec<Frame<'static>>,
}

/// Writes variables to a draft, which is sealed next.
fn write<'a>(parts: impl Iterator<Item = &'a mut SamplePart>, draft: &mut dyn Draft) -> Result<(), StoreError> {
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let next = if parts.peek().is_none() { NextCall::Seal } else { NextCall::Write };
        draft.write(&part.record, &mut part.frames, next)?;
    }
    Ok(())
}

/// Publishes a sample from as many ranks as it has, each of which opens its own store and gives the
/// manifest of its own part.
///
/// # Errors
/// What the store of the first rank that failed reports.
pub fn publish_on_ranks<S: Store>(
    sample: &SampleVersion,
    open: impl Fn(usize) -> Result<S, StoreError> + Sync,
) -> Result<(), StoreError> {
    let published = Threads::launch(sample.ranks, |comm| {
        let rank = comm.rank();
        let first = (rank == 0).then(|| open(rank));
        comm.barrier()?;
        let store = first.unwrap_or_else(|| open(rank));
        let begun = store.as_ref().ok().filter(|_| rank == 0).map(|store| store.begin(sample.version, rank));
        comm.barrier()?;
        let store = store?;
        let mut draft = begun.unwrap_or_else(|| store.begin(sample.version, rank))?;
        let mut own = sample.of_rank(rank);
        let files = write(own.parts.iter_mut(), draft.as_mut()).and_then(|()| draft.seal())?.files;
        store.publish(&own.manifest(files), &comm).map(drop).map_err(CommonError::into_inner)
    });
    published.into_iter().collect()
}

/// Encoding of the frames of a sample variable.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Raw values.
    Raw,
    /// Shuffled bytes under a filter HDF5 has built in, every second frame raw.
    Shuffled,
    /// Bytes no filter opens.
    Opaque,
}

impl SampleVersion {
    /// A sample whose values depend on version and rank. The last variable is `x`, spread by rows.
    pub fn new(version: u64, ranks: usize) -> Self {
        let parts = (0..ranks).flat_map(|rank| {
            let rows = |len: usize| Distribution::Rows { first: (rank * len) as u64, global: (ranks * len) as u64 };
            let shape = |kind, dims, frame_dims, distribution| Shape { kind, dims, frame_dims, distribution };
            let part = |name, shape| part(version, rank, name, shape);
            [
                bytes_part(version, rank),
                part("empty", shape(Kind::Raw, [0, 1, 1], [1, 1, 1], Distribution::RankLocal)),
                part("grid", shape(Kind::Raw, [4, 3, 5], [4, 3, 2], rows(60))),
                part("rho", shape(Kind::Raw, [1, 1, 1], [1, 1, 1], Distribution::Replicated)),
                part("opaque", shape(Kind::Opaque, [11, 1, 1], [6, 1, 1], rows(11))),
                part("x", shape(Kind::Shuffled, [20, 1, 1], [8, 1, 1], rows(20))),
            ]
        });
        Self { version, ranks, parts: parts.collect() }
    }

    /// A sample of one variable of raw values, `len` on each rank.
    pub fn of_one_variable(version: u64, ranks: usize, len: usize) -> Self {
        let parts = (0..ranks).map(|rank| {
            let distribution = Distribution::Rows { first: (rank * len) as u64, global: (ranks * len) as u64 };
            let dims = [len, 1, 1];
            part(version, rank, "x", Shape { kind: Kind::Raw, dims, frame_dims: dims, distribution })
        });
        Self { version, ranks, parts: parts.collect() }
    }

    /// The manifest of the sample as it stands, frames unplaced.
    pub fn manifest(&self, files: Vec<FileRecord>) -> Manifest {
        Manifest {
            scheme: Scheme::Lossless,
            residual: ResidualRecord { norm: 0.1, rhs_norm: 2.0, true_norm: Some(0.1), tries: 1, ..Default::default() },
            variables: self.parts.iter().map(|p| p.record.clone()).collect(),
            frames: self.parts.iter().flat_map(|p| p.frames.iter().map(|f| f.record.clone())).collect(),
            files,
            ..Manifest::new("solve", self.version, self.ranks)
        }
    }

    /// Writes and seals every rank's part, and gives the manifest to be published.
    ///
    /// # Errors
    /// What the store reports.
    pub fn seal(&mut self, store: &dyn Store) -> Result<Manifest, StoreError> {
        let drafts: Result<Vec<_>, _> = (0..self.ranks).map(|rank| store.begin(self.version, rank)).collect();
        self.seal_drafts(drafts?)
    }

    /// Writes, seals and publishes the drafts that the ranks have begun.
    ///
    /// # Errors
    /// What the store reports.
    pub fn publish_drafts(&mut self, store: &dyn Store, drafts: Vec<Box<dyn Draft>>) -> Result<NextBegin, StoreError> {
        Ok(store.publish(&self.seal_drafts(drafts)?, &Solo)?)
    }

    /// Returns the variables of one rank alone.
    pub fn of_rank(&self, rank: usize) -> Self {
        Self { parts: self.parts.iter().filter(|part| part.record.rank == rank).cloned().collect(), ..*self }
    }

    fn seal_drafts(&mut self, drafts: Vec<Box<dyn Draft>>) -> Result<Manifest, StoreError> {
        let mut files = Vec::new();
        for (rank, mut draft) in drafts.into_iter().enumerate() {
            write(self.parts.iter_mut().filter(|part| part.record.rank == rank), draft.as_mut())?;
            files.extend(draft.seal()?.files);
        }
        Ok(self.manifest(files))
    }

    /// Writes, seals and publishes.
    ///
    /// # Errors
    /// What the store reports.
    pub fn publish(&mut self, store: &dyn Store) -> Result<NextBegin, StoreError> {
        Ok(store.publish(&self.seal(store)?, &Solo)?)
    }

    /// Asserts that the store gives every frame back bit for bit.
    ///
    /// # Panics
    /// When it does not.
    pub fn assert_whole(&self, store: &dyn Store) {
        let manifest = store.manifest(self.version).unwrap();
        assert_eq!(manifest.variables, self.manifest(Vec::new()).variables);
        let payloads = self.parts.iter().flat_map(|p| p.frames.iter().map(|f| &f.payload));
        let expected: Vec<&[u8]> = payloads.map(|payload| &payload[..]).collect();
        assert_eq!(manifest.frames.len(), expected.len());
        let mut payload = vec![0xff; 3];
        for (record, expected) in manifest.frames.iter().zip(expected) {
            store.read(self.version, record, &mut payload).unwrap();
            assert_eq!(payload, expected, "frame {}/{} of rank {}", record.variable, record.run, record.rank);
        }
        assert_eq!(store.inspect_damage(self.version).unwrap(), []);
    }
}

/// Encoding, extents and distribution of a sample variable.
struct Shape {
    kind: Kind,
    dims: [usize; 3],
    frame_dims: [usize; 3],
    distribution: Distribution,
}

fn part(version: u64, rank: usize, name: &str, shape: Shape) -> SamplePart {
    let Shape { kind, dims, frame_dims, distribution } = shape;
    let len: usize = dims.iter().product();
    let frame_len: usize = frame_dims.iter().product();
    let values: Vec<f64> = (0..len).map(|i| ((version * 1000 + rank as u64 * 100 + i as u64) as f64).sqrt()).collect();
    let record = VariableRecord {
        dims,
        frame_dims,
        distribution,
        ..VariableRecord::new(name, rank, Role::Dynamic, ElementType::F64, len)
    };
    let frames = (0..len.div_ceil(frame_len)).map(|run| {
        let own = &values[run * frame_len..len.min((run + 1) * frame_len)];
        let mut padded = own.to_vec();
        padded.resize(frame_len, own[own.len() - 1]);
        let raw: Vec<u8> = padded.iter().flat_map(|v| v.to_le_bytes()).collect();
        frame(&record, run, encode(kind, run, raw))
    });
    let frames = frames.collect();
    SamplePart { record, values, frames }
}

fn bytes_part(version: u64, rank: usize) -> SamplePart {
    let dims = [5, 1, 1];
    let shape = Shape { kind: Kind::Raw, dims, frame_dims: dims, distribution: Distribution::RankLocal };
    let record = VariableRecord { element: ElementType::Bytes, ..part(version, rank, "note", shape).record };
    let payload = (0..5).map(|i| version as u8 ^ (rank as u8).wrapping_mul(16).wrapping_add(i)).collect();
    let frames = vec![frame(&record, 0, encode(Kind::Raw, 0, payload))];
    SamplePart { record, values: Vec::new(), frames }
}

/// A payload as a codec would hand it over.
struct Coded {
    codec: CodecId,
    storage: Storage,
    filters: Vec<Filter>,
    payload: Vec<u8>,
}

fn encode(kind: Kind, run: usize, raw: Vec<u8>) -> Coded {
    match kind {
        Kind::Shuffled if run.is_multiple_of(2) => {
            let shuffled = (0..8).flat_map(|byte| raw.iter().skip(byte).step_by(8).copied()).collect();
            let filters = vec![Filter { id: 2, values: vec![8] }];
            Coded { codec: CodecId::Zstd, storage: Storage::Coded, filters, payload: shuffled }
        }
        Kind::Shuffled => Coded { codec: CodecId::Zstd, storage: Storage::Raw, filters: vec![], payload: raw },
        Kind::Opaque => {
            let payload = raw.iter().take(5 + run).map(|b| b ^ 0x5a).collect();
            Coded { codec: CodecId::Pco, storage: Storage::Coded, filters: vec![], payload }
        }
        Kind::Raw => Coded { codec: CodecId::Raw, storage: Storage::Raw, filters: vec![], payload: raw },
    }
}

fn frame(variable: &VariableRecord, run: usize, coded: Coded) -> Frame<'static> {
    let raw = variable.raw_frame(run, &coded.payload, crc32c::crc32c(&coded.payload));
    let record = FrameRecord { codec: coded.codec, storage: coded.storage, ..raw };
    Frame { record, filters: coded.filters, payload: coded.payload.into() }
}

/// Runs every claim, each against a fresh store of `make`.
///
/// # Panics
/// When a claim does not hold.
pub fn store_suite<S: Store>(make: impl Fn() -> S) {
    versions_come_back_bit_for_bit(&make());
    drafts_never_count(&make());
    frames_written_one_by_one_are_the_version_written_at_once(&make());
    dropped_draft_is_gone(&make());
    version_that_is_there_is_refused_and_missing_one_named(&make());
    damaged_frame_is_named_not_returned(&make());
    lying_manifest_is_not_published(&make());
    newer_versions_are_set_aside_and_written_again(&make());
    removed_version_is_gone(&make());
    failure_at_any_operation_leaves_the_older_version_whole_and_room_for_a_new_one(&make());
}

fn failure_at_any_operation_leaves_the_older_version_whole_and_room_for_a_new_one(store: &dyn Store) {
    let mut older = SampleVersion::new(1, 2);
    older.publish(store).unwrap();
    let publish_newer = |crash| {
        let crashing = CrashingStore::new(store, crash);
        let published = SampleVersion::new(2, 2).publish(&crashing).is_ok();
        (published, crashing.operations())
    };
    let (published, operations) = publish_newer(Crash::Never);
    assert!(published && operations > 10);
    store.remove(2).unwrap();
    for n in 0..operations {
        for crash in [Crash::At(n), Crash::From(n), Crash::FullFrom(n)] {
            assert!(!publish_newer(crash).0);
            assert_eq!(store.versions().unwrap(), [1]);
            older.assert_whole(store);
        }
    }
    assert!(publish_newer(Crash::Never).0);
}

fn versions_come_back_bit_for_bit(store: &dyn Store) {
    assert_eq!(store.versions().unwrap(), [0_u64; 0]);
    let samples = [(30, 3), (4, 1), (20, 2)].map(|(version, ranks)| {
        let mut sample = SampleVersion::new(version, ranks);
        sample.publish(store).unwrap();
        sample
    });
    assert_eq!(store.versions().unwrap(), [4, 20, 30]);
    assert_eq!([4, 5, 30].map(|version| store.holds(version).unwrap()), [true, false, true]);
    samples.iter().for_each(|sample| sample.assert_whole(store));
}

fn drafts_never_count(store: &dyn Store) {
    let mut kept = SampleVersion::new(1, 2);
    kept.publish(store).unwrap();
    let mut draft = SampleVersion::new(2, 2);
    draft.seal(store).unwrap();
    assert_eq!(store.versions().unwrap(), [1]);
    assert!(store.manifest(2).is_err() && !store.holds(2).unwrap());
    store.discard_drafts().unwrap();
    let unsealed = draft.manifest(Vec::new());
    assert!(store.publish(&unsealed, &Solo).is_err(), "discarded drafts cannot be published");
    assert_eq!(store.versions().unwrap(), [1]);
    draft.publish(store).unwrap();
    draft.assert_whole(store);
    kept.assert_whole(store);
}

/// Their sizes and checksums of structure are compared with the manifest, and payloads one by one.
fn frames_written_one_by_one_are_the_version_written_at_once(store: &dyn Store) {
    let mut sample = SampleVersion::new(4, 2);
    sample.publish(store).unwrap();
    let at_once = store.manifest(4).unwrap();
    store.remove(4).unwrap();
    let mut files = Vec::new();
    for rank in 0..sample.ranks {
        let mut draft = store.begin(4, rank).unwrap();
        let mut parts = sample.parts.iter_mut().filter(|part| part.record.rank == rank).peekable();
        while let Some(part) = parts.next() {
            let last = if parts.peek().is_none() { NextCall::Seal } else { NextCall::Write };
            let count = part.frames.len().max(1);
            for run in 0..count {
                let next = if run + 1 == count { last } else { NextCall::Frames };
                let range = run..(run + 1).min(part.frames.len());
                draft.write(&part.record, &mut part.frames[range], next).unwrap();
            }
        }
        files.extend(draft.seal().unwrap().files);
    }
    store.publish(&sample.manifest(files), &Solo).unwrap();
    assert_eq!(store.manifest(4).unwrap(), at_once);
    sample.assert_whole(store);
}

fn dropped_draft_is_gone(store: &dyn Store) {
    let mut sample = SampleVersion::new(3, 1);
    let mut draft = store.begin(3, 0).unwrap();
    let part = &mut sample.parts[0];
    draft.write(&part.record, &mut part.frames, NextCall::Seal).unwrap();
    drop(draft);
    assert_eq!(store.versions().unwrap(), [0_u64; 0]);
    sample.publish(store).unwrap();
    sample.assert_whole(store);
}

fn version_that_is_there_is_refused_and_missing_one_named(store: &dyn Store) {
    let mut sample = SampleVersion::new(5, 1);
    sample.publish(store).unwrap();
    assert!(matches!(store.begin(5, 0).err(), Some(StoreError::Exists { version: 5 })));
    assert!(matches!(store.manifest(6), Err(StoreError::Missing { version: 6 })));
    assert!(matches!(store.inspect_damage(6), Err(StoreError::Missing { version: 6 })));
    assert!(matches!(store.remove(6), Err(StoreError::Missing { version: 6 })));
    sample.assert_whole(store);
}

fn damaged_frame_is_named_not_returned(store: &dyn Store) {
    SampleVersion::new(5, 2).publish(store).unwrap();
    let manifest = store.manifest(5).unwrap();
    let mut record = manifest.frames.last().unwrap().clone();
    record.crc32c ^= 1;
    let mut payload = vec![7];
    let error = store.read(5, &record, &mut payload).unwrap_err();
    assert!(matches!(&error, StoreError::Frame { version: 5, rank: 1, run: 2, variable, .. } if variable == "x"));
    assert_eq!(payload, [0_u8; 0], "bytes that failed their checksum are not handed out");
    record.crc32c ^= 1;
    record.place.as_mut().unwrap().offset = u64::MAX - 3;
    // A store may find frames by their names alone; what it then gives is the frame.
    match store.read(5, &record, &mut payload) {
        Ok(()) => assert_eq!(crc32c::crc32c(&payload), record.crc32c),
        Err(error) => assert!(matches!(error, StoreError::Frame { .. })),
    }
    record.payload_bytes = u64::MAX;
    assert!(matches!(store.read(5, &record, &mut payload), Err(StoreError::Frame { .. })));
}

fn lying_manifest_is_not_published(store: &dyn Store) {
    let mut sample = SampleVersion::new(8, 1);
    let mut manifest = sample.seal(store).unwrap();
    manifest.frames.pop();
    assert!(matches!(
        store.publish(&manifest, &Solo).map_err(CommonError::into_inner),
        Err(StoreError::Manifest { version: 8, .. })
    ));
    assert_eq!(store.versions().unwrap(), [0_u64; 0]);
    store.discard_drafts().unwrap();
    sample.publish(store).unwrap();
    sample.assert_whole(store);
}

fn newer_versions_are_set_aside_and_written_again(store: &dyn Store) {
    for version in [1, 2, 3] {
        SampleVersion::new(version, 1).publish(store).unwrap();
    }
    assert_eq!(store.set_aside_newer(Some(1)).unwrap(), [2, 3]);
    assert_eq!(store.versions().unwrap(), [1]);
    for _ in 0..2 {
        let mut again = SampleVersion::new(2, 1);
        again.publish(store).unwrap();
        again.assert_whole(store);
        assert_eq!(store.set_aside_newer(Some(1)).unwrap(), [2]);
    }
    assert_eq!(store.set_aside_newer(None).unwrap(), [1]);
    assert_eq!(store.versions().unwrap(), [0_u64; 0]);
}

fn removed_version_is_gone(store: &dyn Store) {
    for version in [1, 2] {
        SampleVersion::new(version, 2).publish(store).unwrap();
    }
    store.remove(1).unwrap();
    assert_eq!(store.versions().unwrap(), [2]);
    assert!(matches!(store.manifest(1), Err(StoreError::Missing { version: 1 })));
    SampleVersion::new(1, 2).publish(store).unwrap();
    assert_eq!(store.versions().unwrap(), [1, 2]);
}
