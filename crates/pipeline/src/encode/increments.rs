//! Increments: frames of variables saved exactly that hold only what changed since the published
//! version.
//!
//! What changed is told by an owner that announces its writes, or found by the hashes of zones. No
//! value of the version before is kept: 16 bytes per zone, and the hash of each frame's payload.
//! Which of the two pays, and whether any, is the rule of `recoup_model::increments`.
//!
//! XXH3 gives 128 bits. Two zones that differ are taken for equal with a chance of 2^-128: never
//! among all zones of all versions that will be written. A checksum of 32 bits would miss a change
//! in two runs of ten thousand versions of a million zones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use recoup_core::{Chain, Clock, Codec, CodecId, Frame, IncrementMode, KnownChanges, Values, VariableRecord};
use recoup_model::increments::{ChangeHistory, ChangeSource, IncrementRates, MOST_DIRTY};
use xxhash_rust::xxh3::xxh3_128;

use super::chain::{Chains, Tracked, payload_hash};
use super::context::{CheckpointJob, WorkerContext};
use super::frame_codec::encode_exactly;
use crate::costs::since;
use crate::error::{PipelineError, device_values_error};
use crate::staging::{FetchedFrame, Staged, append_run, frame_len, padded_len, raw_bytes};

/// Variables up to this size are saved whole: a record costs as much as they do.
const SMALL_BYTES: u64 = 4096;
/// Announced runs that are less apart are one.
const GAP_BYTES: usize = 512;
/// Bytes of a zone; the last one of a frame may be shorter.
const ZONE_BYTES: usize = 64 << 10;

/// The increments of a run: which variables have them, and why.
#[derive(Debug)]
pub(crate) struct Increments {
    mode: IncrementMode,
    histories: BTreeMap<String, ChangeHistory>,
    rates: IncrementRates,
    /// Rates are not measured: they would change what is saved in virtual time.
    is_virtual: bool,
    /// Reasons of decisions since they were last taken, with the variables they are about.
    reasons: Vec<(String, Vec<String>)>,
}

impl Increments {
    pub(crate) fn new(mode: IncrementMode, is_virtual: bool) -> Self {
        Self { mode, histories: BTreeMap::new(), rates: IncrementRates::default(), is_virtual, reasons: Vec::new() }
    }

    /// Returns how the changes of a staged variable are found; `None` where nothing looks at them.
    fn source(&mut self, staged: &Staged) -> Option<ChangeSource> {
        if self.mode == IncrementMode::Off || raw_bytes(&staged.record) <= SMALL_BYTES {
            return None;
        }
        let history = self.histories.entry(staged.record.name.clone()).or_default();
        let looks = history.looks() || self.mode == IncrementMode::Hash;
        let source = if staged.writes.is_some() { ChangeSource::Owner } else { ChangeSource::Hashes };
        looks.then_some(source)
    }

    /// Begins to track a staged variable of a version, which `codec` saves if it is whole; `None`
    /// where it is saved whole and nothing looks at it.
    pub(crate) fn track<'a>(
        &mut self,
        job: &CheckpointJob,
        staged: &'a Staged,
        codec: CodecId,
        chains: &'a Chains,
        context: &'a WorkerContext,
    ) -> Option<ChangeTracker<'a>> {
        let reaches = |held| context.codecs.find(codec).is_ok_and(|codec| codec.reaches(held));
        // Values that are coded where they rest are not fetched to be hashed.
        let is_left_there = staged.writes.is_none() && staged.held().is_some_and(reaches);
        if !chains.has_links() || is_left_there {
            return None;
        }
        let version = job.progress.iteration;
        let packs = codec != CodecId::Raw;
        let codec = context.codecs.find(CodecId::Increment).ok()?;
        let source = self.source(staged)?;
        let before = chains.tracked(&staged.record);
        let announced = before.and_then(|before| staged.writes.as_ref()?.get(&before.staging)).map(Vec::as_slice);
        let zones = (source == ChangeSource::Hashes).then(Vec::new);
        let record = staged.record.clone();
        let tracked = Tracked { version, staging: job.staging.number, record, zones, hashes: Vec::new() };
        let parent = before.filter(|before| chains.may_follow(version, before.version, context.store.as_ref()));
        Some(ChangeTracker {
            staged,
            codec,
            packs,
            source,
            before,
            parent,
            announced,
            tracked,
            changed_len: before.map(|_| 0),
            fetched: FetchedFrame::new(),
            fetched_run: None,
            clock: context.clock.as_ref(),
            hash_seconds: 0.0,
            identity_seconds: 0.0,
        })
    }

    /// Takes what was found out about a variable.
    pub(crate) fn saw(&mut self, tracker: &ChangeTracker<'_>) {
        let record = &tracker.staged.record;
        if !self.is_virtual && tracker.hash_seconds > 0.0 {
            self.rates.hash_seconds_per_byte = Some(tracker.hash_seconds / raw_bytes(record) as f64);
        }
        let (Some(changed), Some(history)) = (tracker.changed_len, self.histories.get_mut(&record.name)) else {
            return;
        };
        let dirty = changed as f64 / padded_len(record).max(1) as f64;
        if let Some(reason) = history.saw(dirty, tracker.source, self.rates)
            && self.mode == IncrementMode::Auto
        {
            self.explain(&record.name, reason);
        }
    }

    /// Takes the time in which a whole variable was encoded and written.
    pub(crate) fn saved_whole(&mut self, record: &VariableRecord, seconds: f64) {
        if !self.is_virtual && seconds > 0.0 {
            self.rates.save_seconds_per_byte = Some(seconds / raw_bytes(record).max(1) as f64);
        }
    }

    /// Takes note of a decision; variables with the same reason are told together.
    fn explain(&mut self, variable: &str, reason: String) {
        match self.reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, variables)) => variables.push(variable.to_owned()),
            None => self.reasons.push((reason, vec![variable.to_owned()])),
        }
    }

    /// Takes the reasons of decisions since this was last called.
    pub(crate) fn take_reasons(&mut self) -> Vec<String> {
        self.reasons.drain(..).map(|(reason, variables)| format!("{}: {reason}", variables.join(", "))).collect()
    }
}

/// One variable of the version under way whose changes are looked at.
pub(crate) struct ChangeTracker<'a> {
    staged: &'a Staged,
    codec: Arc<dyn Codec>,
    /// Changed values are compressed where that takes fewer bytes.
    packs: bool,
    source: ChangeSource,
    /// The variable in the published version.
    before: Option<&'a Tracked>,
    /// The same, where this version may be coded against it.
    parent: Option<&'a Tracked>,
    /// Values written since the published version was staged.
    announced: Option<&'a [Range<usize>]>,
    tracked: Tracked,
    /// Values that changed, of all frames so far; `None` where some frame's changes are not known.
    changed_len: Option<usize>,
    fetched: FetchedFrame,
    /// The frame there, where it was fetched as a whole.
    fetched_run: Option<usize>,
    clock: &'a dyn Clock,
    hash_seconds: f64,
    identity_seconds: f64,
}

impl ChangeTracker<'_> {
    /// Looks at a frame, and makes it of what changed in the memory of `payload`, where that is
    /// less than the frame; `None` where it is to be saved whole. Frames come in order.
    ///
    /// # Errors
    /// [`PipelineError::Device`] when the place of the values fails, [`PipelineError::Codec`].
    pub(crate) fn frame(&mut self, run: usize, payload: &mut Vec<u8>) -> Result<Option<Frame<'static>>, PipelineError> {
        let record = &self.staged.record;
        let announced = self.announced.map(|written| announced_runs(record, run, written));
        let is_small = |changed: usize| changed as f64 <= MOST_DIRTY * frame_len(record) as f64;
        let hashes = if self.source == ChangeSource::Hashes { self.hash_on_device(run)? } else { None };
        let is_hashed = hashes.is_some();
        let known = announced.or_else(|| self.differing(run, hashes?));
        let mut fetched = std::mem::replace(&mut self.fetched, FetchedFrame::new());
        self.fetched_run = None;
        // Otherwise nothing is fetched, as frozen values are fetched once only.
        let values = match (&known, self.source) {
            (Some(runs), _) if self.parent.is_some() && is_small(runs_len(runs)) => {
                Some(self.staged.frame_runs(run, runs, &mut fetched)?)
            }
            (None, ChangeSource::Hashes) if !is_hashed => {
                self.fetched_run = self.staged.held().map(|_| run);
                Some(self.staged.frame(run, &mut fetched)?)
            }
            _ => None,
        };
        let runs = known.or_else(|| self.hash_frame(run, values?));
        let changed = runs.as_deref().map(runs_len);
        self.changed_len = self.changed_len.zip(changed).map(|(all, changed)| all + changed);
        let mut made = None;
        if let (Some(values), Some(runs), Some(parent)) = (values, runs, self.parent)
            && changed.is_some_and(is_small)
        {
            let known = KnownChanges { runs: &runs, hash: parent.hashes[run], packs: self.packs };
            let chain = Chain::Changed(known);
            let memory = std::mem::take(payload);
            let codec = self.codec.as_ref();
            let frame = encode_exactly(record, run, values, codec, chain, Some(parent.version), memory)?;
            match frame.record.parent() {
                Some(_) => made = Some(frame),
                None => *payload = frame.payload.into_owned(),
            }
        }
        self.fetched = fetched;
        Ok(made)
    }

    /// Hashes a frame; returns the runs that differ from the published version's.
    fn hash_frame(&mut self, run: usize, values: Values<'_>) -> Option<Vec<Range<usize>>> {
        let start = self.clock.now();
        let now = hash_zones(values);
        self.hash_seconds += since(self.clock.now(), start);
        if now.is_none() {
            self.tracked.zones = None;
        }
        self.differing(run, now?)
    }

    /// Hashes a frame where it is stored; `None` where it is to be hashed here.
    fn hash_on_device(&mut self, run: usize) -> Result<Option<Vec<u128>>, PipelineError> {
        let record = &self.staged.record;
        let Some(held) = self.staged.held() else { return Ok(None) };
        let start = self.clock.now();
        let hashes = held.zone_hashes(run * frame_len(record), frame_len(record), ZONE_BYTES);
        let hashes = hashes.map_err(device_values_error(record))?;
        self.hash_seconds += if hashes.is_some() { since(self.clock.now(), start) } else { 0.0 };
        Ok(hashes)
    }

    /// Takes the hashes of a frame; returns the runs that differ from the published version's.
    fn differing(&mut self, run: usize, now: Vec<u128>) -> Option<Vec<Range<usize>>> {
        let record = &self.staged.record;
        let before = self.before.and_then(|before| before.zones.as_ref()?.get(zones_of_frame(record, run)));
        let runs = before.map(|before| differing_zones(record, before, &now));
        if let Some(zones) = &mut self.tracked.zones {
            zones.extend(now);
        }
        runs
    }

    /// Returns the values of a frame that was fetched as a whole to be looked at.
    pub(crate) fn fetched(&self, run: usize) -> Option<Values<'_>> {
        (self.fetched_run == Some(run)).then(|| self.fetched.values())
    }

    /// Returns the bytes that were fetched.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.fetched.bytes
    }

    /// Takes the frame that was made, whole or of what changed.
    pub(crate) fn made(&mut self, frame: &Frame<'_>) {
        let start = self.clock.now();
        self.tracked.hashes.push(payload_hash(&frame.payload));
        self.identity_seconds += since(self.clock.now(), start);
    }

    /// Returns the time spent for later versions, where this one is whole; `None` where it may hold
    /// what changed.
    pub(crate) fn seconds_of_whole(&self) -> Option<f64> {
        self.parent.is_none().then_some(self.hash_seconds + self.identity_seconds)
    }

    /// Returns what a later version needs.
    pub(crate) fn finish(self) -> Tracked {
        self.tracked
    }
}

/// Returns the number of values in runs.
fn runs_len(runs: &[Range<usize>]) -> usize {
    runs.iter().map(Range::len).sum()
}

/// Returns the written runs of one frame, in values from its first one. A frame whose last value
/// was written has its padding written too.
fn announced_runs(record: &VariableRecord, run: usize, written: &[Range<usize>]) -> Vec<Range<usize>> {
    let len = frame_len(record);
    let first = run * len;
    let end = (first + len).min(record.len as usize);
    let gap = GAP_BYTES / record.element.size();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for range in written {
        let start = range.start.max(first);
        let stop = range.end.min(end);
        if start >= stop {
            continue;
        }
        let stop = if stop == end { first + len } else { stop };
        append_run(&mut runs, start - first..stop - first, gap);
    }
    runs
}

/// Returns the number of values in a zone.
fn zone_len(record: &VariableRecord) -> usize {
    ZONE_BYTES / record.element.size()
}

/// Returns the hashes of a frame's zones; `None` on machines where memory is not what is saved.
fn hash_zones(values: Values<'_>) -> Option<Vec<u128>> {
    Some(values.as_raw()?.chunks(ZONE_BYTES).map(xxh3_128).collect())
}

/// Returns the zones of a frame within those of its variable.
fn zones_of_frame(record: &VariableRecord, run: usize) -> Range<usize> {
    let zones = frame_len(record).div_ceil(zone_len(record));
    run * zones..(run + 1) * zones
}

/// Returns the runs of values of a frame whose zones differ.
fn differing_zones(record: &VariableRecord, before: &[u128], now: &[u128]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let differing = before.iter().zip(now).enumerate().filter(|(_, (before, now))| before != now);
    for (zone, _) in differing {
        let start = zone * zone_len(record);
        append_run(&mut runs, start..(start + zone_len(record)).min(frame_len(record)), 0);
    }
    runs
}
