//! Reading through chains: a frame, and before it every frame it was coded against, from the key
//! on.

use std::collections::BTreeMap;
use std::sync::Arc;

use recoup_core::{Chain, DeviceSnapshot, FrameRecord, Manifest, Parent, Store, ValuesMut, VariableRecord};

use super::redistribute::SourcePiece;
use crate::encode::{
    Codecs, Decoded, Payload, PayloadHash, PlacedParent, decode, decode_placed, payload_hash, read_frame,
};
use crate::error::{PipelineError, device_values_error};
use crate::staging::{Buffer, FetchedFrame, PlacedValues, frame_len, frames, padded_len};

/// Reads values of versions, each with what it was coded against.
///
/// A damaged or missing link costs every version behind it in its chain, and is named: the frame,
/// and the version whose payload or manifest it is.
pub struct ChainReader<'a> {
    store: &'a dyn Store,
    codecs: Codecs,
    /// Manifests of versions that others are coded against.
    manifests: BTreeMap<u64, Arc<Manifest>>,
}

impl<'a> ChainReader<'a> {
    /// Makes a reader of `store`.
    #[must_use]
    pub fn new(store: &'a dyn Store, codecs: Codecs) -> Self {
        Self { store, codecs, manifests: BTreeMap::new() }
    }

    /// Decodes one frame of a version; `target` has the values of a full frame, padding included.
    ///
    /// # Errors
    /// [`PipelineError::Link`] when a frame it was coded against is missing or damaged,
    /// [`PipelineError::Store`] and [`PipelineError::Codec`] when it is itself.
    pub fn frame(
        &mut self,
        version: u64,
        variable: &VariableRecord,
        frame: &FrameRecord,
        target: ValuesMut<'_>,
    ) -> Result<(), PipelineError> {
        self.walk(version, variable, frame, target).map(drop)
    }

    /// Returns the frames that are read to restore a version: its own, and all that those were
    /// coded against.
    ///
    /// # Errors
    /// [`PipelineError::Link`] when a manifest on the way is missing or damaged.
    pub fn frames_read(&mut self, manifest: &Manifest) -> Result<Vec<FrameRecord>, PipelineError> {
        let mut read = Vec::new();
        for frame in &manifest.frames {
            let variable = manifest.variables.iter().find(|v| v.name == frame.variable && v.rank == frame.rank);
            let Some(variable) = variable else { continue };
            read.extend(self.steps(manifest.version, variable, frame)?.into_iter().map(|(_, frame)| frame));
        }
        Ok(read)
    }

    /// Returns a version and those that are decoded before it, one after the other; none where a
    /// manifest on the way is missing or damaged.
    pub(crate) fn chain(&mut self, manifest: &Manifest) -> Vec<u64> {
        let mut chain = vec![manifest.version];
        let mut level = manifest.parents();
        while let Some(&newest) = level.last() {
            let manifests = level.iter().map(|&parent| self.manifest(parent)).collect::<Result<Vec<_>, _>>();
            let is_below = chain.last().is_some_and(|&child| newest < child);
            let Some(manifests) = manifests.ok().filter(|_| is_below) else { return Vec::new() };
            level = manifests.iter().flat_map(|manifest| manifest.parents()).collect();
            chain.push(newest);
        }
        chain
    }

    /// Reads and decodes a whole variable of a version, to `room` where its values are stored, or
    /// here. Every damaged frame is named.
    ///
    /// # Errors
    /// All damaged frames, in run order.
    pub(crate) fn variable(
        &mut self,
        manifest: &Manifest,
        record: &VariableRecord,
        room: Option<Box<dyn DeviceSnapshot>>,
    ) -> Result<Decoded, Vec<PipelineError>> {
        let mut values = room.map_or(PlacedValues::none(record.element), PlacedValues::Held);
        if let PlacedValues::Host(values) = &mut values {
            values.resize(padded_len(record));
        }
        // Made for the first frame with a parent, where values are to be stored elsewhere.
        let mut spare = PlacedValues::none(record.element);
        let mut fetched = [FetchedFrame::new(), FetchedFrame::new()];
        let mut hashes = Vec::new();
        let mut damaged = Vec::new();
        let ours = |f: &&FrameRecord| f.rank == record.rank && f.variable == record.name;
        let mut found = 0;
        for frame in manifest.frames.iter().filter(ours) {
            found += 1;
            let walked = match &mut values {
                PlacedValues::Host(values) => {
                    let target = values.slice_mut(frame.start as usize, frame_len(record));
                    self.walk(manifest.version, record, frame, target)
                }
                PlacedValues::Held(_) => {
                    self.walk_held(manifest.version, record, frame, [&mut values, &mut spare], &mut fetched)
                }
            };
            match walked {
                Ok(hash) => hashes.push(hash),
                Err(error) => damaged.push(error),
            }
        }
        if found != frames(record) {
            let what = format!("{} frames expected, {found} found", frames(record));
            damaged.push(PipelineError::Variable {
                version: manifest.version,
                variable: record.name.clone(),
                rank: record.rank,
                what,
            });
        }
        let decoded = Decoded { version: manifest.version, record: record.clone(), values, hashes };
        if damaged.is_empty() { Ok(decoded) } else { Err(damaged) }
    }

    /// Reads a run of values of some rank's part of a variable: decodes the frames they lie in, and
    /// no others.
    ///
    /// # Errors
    /// All damaged frames, in run order.
    pub(crate) fn piece(
        &mut self,
        manifest: &Manifest,
        piece: &SourcePiece,
        target: &mut Buffer,
    ) -> Result<(), Vec<PipelineError>> {
        let record = &piece.source;
        let end = piece.start + piece.len;
        let mut frame_values = Buffer::new(record.element);
        frame_values.resize(frame_len(record));
        let mut damaged = Vec::new();
        let of_part = |f: &&FrameRecord| f.rank == record.rank && f.variable == record.name;
        for frame in manifest.frames.iter().filter(of_part) {
            let from = piece.start.max(frame.start);
            let to = end.min(frame.start + frame.len);
            if from >= to {
                continue;
            }
            let decoded = frame_values.slice_mut(0, frame_len(record));
            if let Err(error) = self.walk(manifest.version, record, frame, decoded) {
                damaged.push(error);
                continue;
            }
            let at = (piece.at + from - piece.start) as usize;
            frame_values.copy_to((from - frame.start) as usize, target.slice_mut(at, (to - from) as usize));
        }
        if damaged.is_empty() { Ok(()) } else { Err(damaged) }
    }

    /// Decodes the chain of a frame from its key on, the frame itself into `target`. Returns the
    /// hash of its payload.
    fn walk(
        &mut self,
        version: u64,
        variable: &VariableRecord,
        frame: &FrameRecord,
        target: ValuesMut<'_>,
    ) -> Result<PayloadHash, PipelineError> {
        let mut ancestors = self.steps(version, variable, frame)?;
        ancestors.pop();
        let mut payload = Vec::new();
        let mut hash = None;
        let mut before = Buffer::new(variable.element);
        let mut values = Buffer::new(variable.element);
        for (older, step) in &ancestors {
            values.resize(frame_len(variable));
            let target = values.slice_mut(0, frame_len(variable));
            let decoded = read_frame(self.store, *older, step, &mut payload).and_then(|()| {
                let payload = Payload { variable, frame: step, bytes: &payload };
                decode(payload, chain(&before, hash), self.codecs, target)
            });
            decoded.map_err(|source| link_lost(version, frame, *older, source))?;
            hash = Some(payload_hash(&payload));
            std::mem::swap(&mut before, &mut values);
        }
        read_frame(self.store, version, frame, &mut payload)?;
        decode(Payload { variable, frame, bytes: &payload }, chain(&before, hash), self.codecs, target)?;
        Ok(payload_hash(&payload))
    }

    /// Decodes the chain of a frame as [`ChainReader::walk`] does, where its values are to rest. A
    /// frame and its parent take turns in two rooms; the frame itself ends in the first.
    fn walk_held(
        &mut self,
        version: u64,
        variable: &VariableRecord,
        frame: &FrameRecord,
        rooms: [&mut PlacedValues; 2],
        fetched: &mut [FetchedFrame; 2],
    ) -> Result<PayloadHash, PipelineError> {
        let [target, spare] = rooms;
        let steps = self.steps(version, variable, frame)?;
        if let (PlacedValues::Held(held), 2..) = (&*target, steps.len()) {
            spare.make_room_beside(held.as_ref()).map_err(device_values_error(variable))?;
        }
        let mut payload = Vec::new();
        let mut hash = None;
        for ((older, step), left) in steps.iter().zip((0..steps.len()).rev()) {
            let mut pair = [&mut *target, &mut *spare];
            pair.rotate_left(left % 2);
            let [values, before] = pair;
            let parent = hash.map(|hash| PlacedParent { values: before, hash });
            let decoded = read_frame(self.store, *older, step, &mut payload).and_then(|()| {
                let payload = Payload { variable, frame: step, bytes: &payload };
                decode_placed(payload, parent, self.codecs, values, fetched)
            });
            decoded.map_err(|source| match (left, source) {
                (0, source) | (_, source @ PipelineError::Device { .. }) => source,
                (_, source) => link_lost(version, frame, *older, source),
            })?;
            hash = Some(payload_hash(&payload));
        }
        Ok(payload_hash(&payload))
    }

    /// Finds a frame and those it was coded against, each with its version, the key first.
    fn steps(
        &mut self,
        version: u64,
        variable: &VariableRecord,
        frame: &FrameRecord,
    ) -> Result<Vec<(u64, FrameRecord)>, PipelineError> {
        let mut steps = vec![(version, frame.clone())];
        while let Some((child, coded)) = steps.last()
            && let Some(parent) = coded.parent()
        {
            let found = self.parent(*child, parent, variable, frame);
            steps.push((parent, found.map_err(|source| link_lost(version, frame, parent, source))?));
        }
        steps.reverse();
        Ok(steps)
    }

    /// Finds the frame of an older version that covers the same values.
    fn parent(
        &mut self,
        child: u64,
        parent: u64,
        variable: &VariableRecord,
        frame: &FrameRecord,
    ) -> Result<FrameRecord, PipelineError> {
        let refuse = |what: &str| PipelineError::Variable {
            version: parent,
            variable: variable.name.clone(),
            rank: variable.rank,
            what: what.to_owned(),
        };
        if parent >= child {
            return Err(refuse("not older than what is coded against it"));
        }
        let manifest = self.manifest(parent)?;
        let same_variable = |v: &&VariableRecord| v.name == variable.name && v.rank == variable.rank;
        let found = manifest.variables.iter().find(same_variable).ok_or_else(|| refuse("not in the version"))?;
        let shape = |v: &VariableRecord| (v.element, v.len, v.frame_dims);
        let same_frame = |f: &&FrameRecord| (&f.variable, f.rank, f.run) == (&frame.variable, frame.rank, frame.run);
        match manifest.frames.iter().find(same_frame) {
            Some(found_frame) if shape(found) == shape(variable) => Ok(found_frame.clone()),
            _ => Err(refuse("cut into other frames")),
        }
    }

    fn manifest(&mut self, version: u64) -> Result<Arc<Manifest>, PipelineError> {
        if let Some(manifest) = self.manifests.get(&version) {
            return Ok(manifest.clone());
        }
        let manifest = Arc::new(self.store.manifest(version)?);
        self.manifests.insert(version, manifest.clone());
        Ok(manifest)
    }
}

/// Returns the chain of a frame whose parent was decoded, or that has none.
fn chain(before: &Buffer, hash: Option<PayloadHash>) -> Chain<'_> {
    hash.map_or(Chain::Alone, |hash| Chain::Follow(Parent { values: before.all(), hash }))
}

fn link_lost(version: u64, frame: &FrameRecord, parent: u64, source: PipelineError) -> PipelineError {
    PipelineError::Link {
        version,
        variable: frame.variable.clone(),
        rank: frame.rank,
        run: frame.run,
        parent,
        source: Box::new(source),
    }
}
