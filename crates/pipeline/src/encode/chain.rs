//! Chains: a version coded against the one before it, and what that takes on the way out.
//!
//! What the next version may be coded against is the newest published one, kept as a decoder gives
//! it back: 8 n bytes of memory. Of variables that are saved exactly, hashes are kept instead: see
//! `increments`. A draft becomes it only when the draft is published, so that
//! nothing is ever coded against a version that is not there. [`crate::ChainReader`] walks the same
//! road back.
//!
//! A chain is counted in versions, not in frames: a store keeps whole versions, and a version needs
//! its parent if any frame of any rank does. All variables of a version therefore start a new chain
//! together. Were each keyed at its own turn, some frame would follow in every version, and the
//! versions a store has to keep would never end.

use recoup_core::{Chain, Codec, DeviceParent, Parent, Store, VariableRecord};

use crate::error::PipelineError;
use crate::staging::{FetchedFrame, PlacedValues};

/// Bytes of a payload's hash that a frame coded against it carries.
const HASH_BYTES: usize = 16;

/// The identity of a parent's payload: the first bytes of its BLAKE3 hash.
pub(crate) type PayloadHash = [u8; HASH_BYTES];

/// Hashes a payload.
pub(crate) fn payload_hash(payload: &[u8]) -> PayloadHash {
    let hash = blake3::hash(payload);
    std::array::from_fn(|i| hash.as_bytes()[i])
}

/// One variable of a version that was saved exactly, without its values: what a later version needs
/// to hold only what changed.
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) version: u64,
    /// Number of the staging that the version was made of.
    pub(crate) staging: u64,
    pub(crate) record: VariableRecord,
    /// One hash per zone of every frame; `None` where the owner announces its writes.
    pub(crate) zones: Option<Vec<u128>>,
    /// One per frame.
    pub(crate) hashes: Vec<PayloadHash>,
}

/// One variable of a version, decoded: what the next version may be coded against.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) version: u64,
    pub(crate) record: VariableRecord,
    pub(crate) values: PlacedValues,
    /// One per frame.
    pub(crate) hashes: Vec<PayloadHash>,
}

/// The frame that another was coded against, in a variable's values at their place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedParent<'a> {
    pub(crate) values: &'a PlacedValues,
    pub(crate) hash: PayloadHash,
}

impl<'a> PlacedParent<'a> {
    /// Returns the frame here, to an encoder or decoder that works here.
    ///
    /// # Errors
    /// [`PipelineError::Device`] when the place fails.
    pub(crate) fn host(
        self,
        record: &VariableRecord,
        run: usize,
        fetched: &'a mut FetchedFrame,
    ) -> Result<Parent<'a>, PipelineError> {
        Ok(Parent { values: self.values.frame(record, run, fetched)?, hash: self.hash })
    }

    /// Returns the frame where it is stored, to an encoder or decoder that works there.
    pub(crate) fn held(self) -> Option<DeviceParent<'a>> {
        Some(DeviceParent { values: self.values.held()?, hash: self.hash })
    }
}

/// A version the next one may be coded against.
#[derive(Debug, Default)]
pub(crate) struct Base {
    /// The version, and those that are decoded before it, one after the other: a key has itself
    /// alone. None where nothing may follow. The same on all ranks.
    pub(crate) chain: Vec<u64>,
    /// The part of this rank; none where nothing may follow.
    pub(crate) variables: Vec<Decoded>,
    /// The variables of this rank whose changes alone may follow.
    pub(crate) tracked: Vec<Tracked>,
}

/// The place of a variable's frames in a chain.
#[derive(Clone, Copy)]
pub(crate) enum ChainLink<'a> {
    /// No chain: coded alone, and no later frame is coded against them.
    Alone,
    /// First of a chain: coded alone, and later frames may be coded against them.
    Key,
    /// Coded against these where it pays.
    After(&'a Decoded),
}

impl<'a> ChainLink<'a> {
    /// Returns whether later frames may be coded against these.
    pub(crate) fn is_chained(self) -> bool {
        !matches!(self, Self::Alone)
    }

    /// Returns the version the frames may be coded against.
    pub(crate) fn version(self) -> Option<u64> {
        match self {
            Self::After(decoded) => Some(decoded.version),
            Self::Alone | Self::Key => None,
        }
    }

    /// Returns the frame that one frame may be coded against.
    pub(crate) fn parent(self, run: usize) -> Option<PlacedParent<'a>> {
        match self {
            Self::After(Decoded { values, hashes, .. }) => Some(PlacedParent { values, hash: hashes[run] }),
            Self::Alone | Self::Key => None,
        }
    }

    /// Returns the relation of one frame to the version before, its parent here.
    pub(crate) fn chain(self, parent: Option<Parent<'a>>) -> Chain<'a> {
        match parent {
            Some(parent) => Chain::Follow(parent),
            None if self.is_chained() => Chain::Start,
            None => Chain::Alone,
        }
    }
}

impl Decoded {
    /// Returns whether frames of `record` cover the same values.
    fn covers(&self, record: &VariableRecord) -> bool {
        covers(&self.record, record)
    }
}

/// Returns whether frames of two versions of a variable cover the same values.
fn covers(ours: &VariableRecord, record: &VariableRecord) -> bool {
    (&ours.name, ours.element, ours.len) == (&record.name, record.element, record.len)
        && ours.frame_dims == record.frame_dims
}

/// The chains of a run, as the one who writes them keeps them.
#[derive(Debug)]
pub(crate) struct Chains {
    /// Versions from one key to the next; with 1 every version stands alone.
    key_every: usize,
    published: Base,
    draft: Vec<Decoded>,
    draft_tracked: Vec<Tracked>,
    /// Memory to be used again.
    spare: Vec<PlacedValues>,
}

impl Chains {
    pub(crate) fn new(key_every: usize) -> Self {
        Self { key_every, published: Base::default(), draft: Vec::new(), draft_tracked: Vec::new(), spare: Vec::new() }
    }

    /// Returns whether any version is coded against another.
    pub(crate) fn has_links(&self) -> bool {
        self.key_every > 1
    }

    /// Returns whether versions may be coded against what this codec makes.
    pub(crate) fn keep(&self, codec: &dyn Codec) -> bool {
        self.key_every > 1 && codec.can_follow()
    }

    /// Brings what a variable may be coded against to the place where the variable is decoded. What
    /// cannot be brought is not coded against.
    pub(crate) fn bring_beside(&mut self, place: &PlacedValues, record: &VariableRecord) {
        self.published.variables.retain_mut(|decoded| {
            let brought = if decoded.covers(record) { decoded.values.bring_beside(place, record) } else { Ok(()) };
            brought.inspect_err(|error| tracing::debug!(variable = %record.name, %error, "coded alone")).is_ok()
        });
    }

    /// Returns the place of a variable of `version`, in a store that has to hold all it is coded
    /// against.
    pub(crate) fn link(
        &self,
        version: u64,
        record: &VariableRecord,
        codec: &dyn Codec,
        store: &dyn Store,
    ) -> ChainLink<'_> {
        if !self.keep(codec) {
            return ChainLink::Alone;
        }
        let can_follow = |d: &&Decoded| d.covers(record) && self.may_follow(version, d.version, store);
        self.published.variables.iter().find(can_follow).map_or(ChainLink::Key, ChainLink::After)
    }

    /// Returns the same variable of the published version, where its changes were tracked.
    pub(crate) fn tracked(&self, record: &VariableRecord) -> Option<&Tracked> {
        self.published.tracked.iter().find(|tracked| covers(&tracked.record, record))
    }

    /// Returns whether `version` may be coded against the published one, in a store that has to
    /// hold all it is coded against.
    pub(crate) fn may_follow(&self, version: u64, parent: u64, store: &dyn Store) -> bool {
        // Versions ascend along a chain, so no chain is endless; a run that counts from 0 again
        // begins a new one.
        let stays = || store.as_tiered().is_none_or(|tiered| tiered.can_follow(version, parent));
        self.is_open() && parent < version && stays()
    }

    /// Returns whether the next version may be coded against the published one; the same on all
    /// ranks.
    pub(crate) fn is_open(&self) -> bool {
        (1..self.key_every).contains(&self.published.chain.len())
    }

    /// Returns a version that the next one would need, and that is not in the store any more.
    pub(crate) fn lost(&self, store: &dyn Store) -> Option<u64> {
        self.published.chain.iter().copied().find(|&version| !store.holds(version).unwrap_or(false))
    }

    /// Takes a variable of the version under way whose changes are tracked.
    pub(crate) fn track(&mut self, tracked: Tracked) {
        self.draft_tracked.push(tracked);
    }

    /// Takes a variable of the version under way that was encoded; `decoded` is left with a buffer
    /// to be used again.
    pub(crate) fn drafted(
        &mut self,
        version: u64,
        record: &VariableRecord,
        decoded: &mut PlacedValues,
        hashes: Vec<PayloadHash>,
    ) {
        let spare = self.spare.pop().unwrap_or_else(|| PlacedValues::none(record.element));
        let values = std::mem::replace(decoded, spare);
        self.draft.push(Decoded { version, record: record.clone(), values, hashes });
    }

    /// Makes the version under way the one the next may be coded against, now that it counts.
    /// `follows` says whether any frame of any rank was coded against the version before.
    pub(crate) fn publish(&mut self, version: u64, follows: bool) {
        let mut chain = std::mem::take(&mut self.published.chain);
        if !follows {
            chain.clear();
        }
        chain.push(version);
        let variables = std::mem::take(&mut self.draft);
        let tracked = std::mem::take(&mut self.draft_tracked);
        self.replace(Base { chain, variables, tracked });
    }

    /// Makes the next version a key, so that those before it may be removed.
    pub(crate) fn end(&mut self) {
        self.published.chain.clear();
    }

    /// Drops the version under way: it does not count.
    pub(crate) fn discard(&mut self) {
        self.draft_tracked.clear();
        let draft = std::mem::take(&mut self.draft);
        self.recycle(draft);
    }

    /// Continues from a restored version, or from none.
    pub(crate) fn restart(&mut self, restored: Base) {
        self.replace(if self.key_every > 1 { restored } else { Base::default() });
    }

    fn replace(&mut self, base: Base) {
        let before = std::mem::replace(&mut self.published, base);
        self.recycle(before.variables);
    }

    fn recycle(&mut self, old: Vec<Decoded>) {
        self.spare.extend(old.into_iter().map(|decoded| decoded.values));
        self.spare.truncate(self.published.variables.len().max(1));
    }
}
