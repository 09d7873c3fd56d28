//! Reading through chains: a frame, and before it every frame it was coded against, from the key
//! on. Whole variables, the parts of all ranks put together, are for those who only look at a
//! version.

use std::collections::BTreeMap;
use std::sync::Arc;

use recoup_core::{
    Chain, DeviceSnapshot, Distribution, ElementType, FrameRecord, Manifest, Parent, Role, Store, ValuesMut,
    VariableRecord,
};

use super::sources::SourcePiece;
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
    /// A version and all that it is coded against, where that is known without their frames.
    known_chain: Vec<u64>,
}

impl<'a> ChainReader<'a> {
    /// Makes a reader of `store`.
    #[must_use]
    pub fn new(store: &'a dyn Store, codecs: Codecs) -> Self {
        Self { store, codecs, manifests: BTreeMap::new(), known_chain: Vec::new() }
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
        if self.known_chain.first() == Some(&manifest.version) {
            return self.known_chain.clone();
        }
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

    /// Takes the manifests of versions that others are coded against, as far as this rank needs
    /// them: they are not read.
    pub(crate) fn preload(&mut self, manifests: Vec<Manifest>) {
        self.manifests.extend(manifests.into_iter().map(|manifest| (manifest.version, Arc::new(manifest))));
    }

    /// Takes the numbers of a version and of those that are decoded before it, the newest first.
    pub(crate) fn know_chain(&mut self, chain: Vec<u64>) {
        self.known_chain = chain;
    }

    /// Returns the manifests of all versions that are decoded before one, as far as they can be
    /// read.
    pub(crate) fn ancestors(&mut self, manifest: &Manifest) -> Vec<Arc<Manifest>> {
        let mut found = BTreeMap::new();
        let mut left = manifest.parents();
        while let Some(version) = left.pop_last() {
            let Ok(ancestor) = self.manifest(version) else { continue };
            // Versions ascend along a chain, so no walk is endless.
            left.extend(ancestor.parents().into_iter().filter(|&parent| parent < version));
            found.insert(version, ancestor);
        }
        found.into_values().collect()
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

/// A variable of a version, of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// Name of the variable.
    pub name: String,
    /// Role in the solver.
    pub role: Role,
    /// Extents, fastest first; `[n, 1, 1]` for a vector, and for parts of several ranks that are
    /// no slices of one grid.
    pub dims: [usize; 3],
    /// The values, as many as the extents multiply to.
    pub values: Buffer,
    /// Each two of them are the parts of a complex number.
    pub is_complex: bool,
}

impl Whole {
    /// Returns the type of its elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.values.all().element()
    }
}

impl ChainReader<'_> {
    /// Decodes a variable of a version: the parts of all ranks in the order of their rows; of a
    /// replicated one, one part.
    ///
    /// # Errors
    /// Every frame that is damaged, or was coded against one that is; [`PipelineError::Variable`]
    /// when the version does not hold the variable.
    pub fn whole(&mut self, manifest: &Manifest, name: &str) -> Result<Whole, Vec<PipelineError>> {
        let parts = parts(manifest, name);
        let Some(&first) = parts.first() else {
            let what = "the version does not hold it".to_owned();
            let variable = name.to_owned();
            return Err(vec![PipelineError::Variable { version: manifest.version, variable, rank: 0, what }]);
        };
        let mut values = Buffer::new(first.element);
        let mut damaged = Vec::new();
        for part in &parts {
            match self.variable(manifest, part, None) {
                Ok(Decoded { values: PlacedValues::Host(read), .. }) if damaged.is_empty() => {
                    values.append(read, part.len as usize);
                }
                Ok(_) => {}
                Err(errors) => damaged.extend(errors),
            }
        }
        if !damaged.is_empty() {
            return Err(damaged);
        }
        let parts: Vec<[usize; 3]> = parts.iter().map(|part| part.dims).collect();
        let dims = joined(&parts).unwrap_or([values.all().len(), 1, 1]);
        let is_complex = first.is_complex;
        Ok(Whole { name: first.name.clone(), role: first.role, dims, values, is_complex })
    }

    /// Finds frames whose own bytes are as written, yet do not decode: one line each. Those that
    /// fail their checksum are what [`recoup_core::Store::inspect_damage`] finds.
    pub fn undecodable(&mut self, manifest: &Manifest) -> Vec<String> {
        manifest.frames.iter().filter_map(|frame| self.complaint(manifest, frame)).collect()
    }

    fn complaint(&mut self, manifest: &Manifest, frame: &FrameRecord) -> Option<String> {
        let name = format!("frame {}/{} of rank {}", frame.variable, frame.run, frame.rank);
        let variable = manifest.variables.iter().find(|v| v.name == frame.variable && v.rank == frame.rank);
        let Some(variable) = variable else { return Some(format!("{name}: no such variable")) };
        let mut values = Buffer::new(variable.element);
        values.resize(frame_len(variable));
        match self.frame(manifest.version, variable, frame, values.slice_mut(0, frame_len(variable))) {
            Ok(()) | Err(PipelineError::Store(_)) => None,
            Err(error @ PipelineError::Link { .. }) => Some(error.to_string()),
            Err(error) => Some(format!("{name}: {error}")),
        }
    }
}

/// Returns the extents of parts one behind the other, where all are slices of one grid across its
/// slowest direction.
fn joined(parts: &[[usize; 3]]) -> Option<[usize; 3]> {
    let slowest = (0..3).rev().find(|axis| parts.iter().any(|part| part[*axis] > 1)).unwrap_or(0);
    let mut whole = *parts.first()?;
    whole[slowest] = parts.iter().map(|part| part[slowest]).sum();
    let is_slice = |part: &[usize; 3]| (0..3).all(|axis| axis == slowest || part[axis] == whole[axis]);
    parts.iter().all(is_slice).then_some(whole)
}

/// Returns the parts of a variable that make it whole, in order.
fn parts<'a>(manifest: &'a Manifest, name: &str) -> Vec<&'a VariableRecord> {
    let mut parts: Vec<&VariableRecord> = manifest.variables.iter().filter(|v| v.name == name).collect();
    parts.sort_by_key(|part| match part.distribution {
        Distribution::Rows { first, .. } => (first, part.rank),
        _ => (0, part.rank),
    });
    if parts.first().is_some_and(|part| part.distribution == Distribution::Replicated) {
        parts.truncate(1);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_grid_join_and_other_parts_do_not() {
        assert_eq!(joined(&[[5, 4, 2], [5, 4, 1], [5, 4, 3]]), Some([5, 4, 6]));
        assert_eq!(joined(&[[5, 4, 1], [5, 2, 1]]), Some([5, 6, 1]));
        assert_eq!(joined(&[[5, 1, 1], [3, 1, 1]]), Some([8, 1, 1]));
        assert_eq!(joined(&[[5, 4, 2]]), Some([5, 4, 2]));
        assert_eq!(joined(&[[5, 4, 2], [9, 1, 1]]), None);
        assert_eq!(joined(&[[5, 4, 2], [5, 3, 2]]), None);
    }
}
