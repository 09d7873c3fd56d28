//! A level while it grows: watermarks of what is mapped, touched and registered, and the next work
//! that moves them.

use crate::ring::PlaceRing;
use crate::settings::{Growth, LevelSettings, Registration, Touching};
use crate::touching::{TouchMode, TouchModel};
use crate::work::{Extent, StateBytes, StateId};

/// Bytes that are touched at a time. A copy that comes waits for no more.
const TOUCH_BYTES: u64 = 16 << 20;

/// The work with which a level grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowthStep {
    Extend(u64),
    Touch(u64),
    Pin(u64),
}

/// Facts on which the next step depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrowthMoment {
    /// A copy between this level and another is under way.
    pub(crate) is_copying: bool,
    /// The program waits in a call.
    pub(crate) is_called: bool,
}

/// A level: its places, and how much of it may be used in which way.
#[derive(Clone, Debug)]
pub(crate) struct CacheLevel {
    pub(crate) ring: PlaceRing,
    bytes: u64,
    /// Bytes that may be used.
    usable: u64,
    touched: u64,
    pinned: u64,
    /// End of the last place so far.
    used: u64,
    growth: Growth,
    is_coded: bool,
    mode: TouchMode,
    is_extending: bool,
    is_touching: bool,
    is_pinning: bool,
}

impl CacheLevel {
    pub(crate) fn new(settings: LevelSettings) -> Self {
        let bytes = settings.bytes;
        let usable = if matches!(settings.growth, Growth::Mapped { .. }) { 0 } else { bytes };
        let exists = if matches!(settings.growth, Growth::Paged { .. }) { 0 } else { bytes };
        let mode = match &settings.growth {
            Growth::Paged { touching: Touching::Fixed(mode), .. } => *mode,
            _ => TouchMode::Sequential,
        };
        Self {
            ring: PlaceRing::default(),
            bytes,
            usable,
            touched: exists,
            pinned: exists,
            used: 0,
            growth: settings.growth,
            is_coded: settings.is_coded,
            mode,
            is_extending: false,
            is_touching: false,
            is_pinning: false,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn usable(&self) -> u64 {
        self.usable
    }

    /// Returns whether it holds states as a codec has left them.
    pub(crate) fn is_coded(&self) -> bool {
        self.is_coded
    }

    /// Returns the bytes that a state needs here: at most, until it was coded.
    pub(crate) fn needed(&self, bytes: StateBytes) -> u64 {
        bytes.reserved(self.is_coded)
    }

    /// Returns whether a state is not larger than all of it.
    pub(crate) fn fits(&self, bytes: StateBytes) -> bool {
        self.needed(bytes) <= self.bytes
    }

    /// Returns whether all of it may be used; before, no state leaves it.
    pub(crate) fn is_complete(&self) -> bool {
        self.usable == self.bytes
    }

    pub(crate) fn mode(&self) -> TouchMode {
        self.mode
    }

    pub(crate) fn is_touching(&self) -> bool {
        self.is_touching
    }

    pub(crate) fn is_touched(&self, extent: Extent) -> bool {
        extent.end() <= self.touched
    }

    pub(crate) fn is_pinned(&self, extent: Extent) -> bool {
        extent.end() <= self.pinned
    }

    pub(crate) fn touched(&self) -> u64 {
        self.touched
    }

    /// Returns whether a copy to this extent must wait for its pages. A copy beyond those that are
    /// touched ahead touches its own.
    pub(crate) fn waits_for_pages(&self, extent: Extent) -> bool {
        self.mode == TouchMode::Concurrent && !self.is_touched(extent) && extent.end() <= self.touch_limit()
    }

    /// Bytes, from the first, that are touched for the places so far.
    fn touch_limit(&self) -> u64 {
        match self.growth {
            Growth::Paged { ahead_bytes, .. } => self.bytes.min(self.used.saturating_add(ahead_bytes)),
            Growth::Ready | Growth::Mapped { .. } => 0,
        }
    }

    /// The model of its rates, if one chooses.
    pub(crate) fn model(&mut self) -> Option<&mut TouchModel> {
        match &mut self.growth {
            Growth::Paged { touching: Touching::Modelled(model), .. } => Some(model),
            _ => None,
        }
    }

    /// Chooses the mode for states of `bytes` that come every `interval_seconds`.
    pub(crate) fn choose_mode(&mut self, bytes: u64, interval_seconds: f64) {
        if let Some(model) = self.model() {
            self.mode = model.choose(bytes as f64, interval_seconds);
        }
    }

    /// Takes up the next work, if there is any now.
    pub(crate) fn next_step(&mut self, moment: GrowthMoment) -> Option<GrowthStep> {
        let step = self.extend_step().or_else(|| self.touch_step(moment)).or_else(|| self.pin_step(moment))?;
        match step {
            GrowthStep::Extend(_) => self.is_extending = true,
            GrowthStep::Touch(_) => self.is_touching = true,
            GrowthStep::Pin(_) => self.is_pinning = true,
        }
        Some(step)
    }

    fn extend_step(&self) -> Option<GrowthStep> {
        let Growth::Mapped { chunk_bytes } = self.growth else { return None };
        let grows = !self.is_extending && self.usable < self.bytes;
        grows.then(|| GrowthStep::Extend(self.bytes.min(self.usable + chunk_bytes.max(1))))
    }

    fn touch_step(&self, moment: GrowthMoment) -> Option<GrowthStep> {
        let is_allowed = match self.mode {
            TouchMode::Concurrent => true,
            TouchMode::Sequential => !moment.is_copying,
            TouchMode::Never => false,
        };
        let to = self.touch_limit().min(self.touched + TOUCH_BYTES);
        let touches = is_allowed && !self.is_touching && self.touched < to;
        touches.then_some(GrowthStep::Touch(to))
    }

    fn pin_step(&self, moment: GrowthMoment) -> Option<GrowthStep> {
        let Growth::Paged { registration, .. } = self.growth else { return None };
        let to = match registration {
            Registration::Never => return None,
            Registration::Whole => self.bytes,
            Registration::Chunks { bytes } => self.bytes.min(self.pinned + bytes.max(1)),
        };
        let is_time = registration == Registration::Whole || !moment.is_called;
        let pins = is_time && !self.is_pinning && self.pinned < self.bytes && self.touched >= to;
        pins.then_some(GrowthStep::Pin(to))
    }

    /// Ends a step. A step that failed is not tried again: the level stays as it is.
    pub(crate) fn end_step(&mut self, step: GrowthStep, is_done: bool) {
        match step {
            GrowthStep::Extend(to) => {
                self.is_extending = false;
                if is_done {
                    self.usable = self.usable.max(to);
                } else {
                    self.bytes = self.usable;
                }
            }
            GrowthStep::Touch(to) => {
                self.is_touching = false;
                if is_done {
                    self.touched = self.touched.max(to);
                } else {
                    self.stop_touching();
                }
            }
            GrowthStep::Pin(to) => {
                self.is_pinning = false;
                if is_done {
                    self.pinned = self.pinned.max(to);
                } else if let Growth::Paged { registration, .. } = &mut self.growth {
                    *registration = Registration::Never;
                }
            }
        }
    }

    /// Leaves touching to the copies.
    fn stop_touching(&mut self) {
        self.mode = TouchMode::Never;
        if let Growth::Paged { touching, .. } = &mut self.growth {
            *touching = Touching::Fixed(TouchMode::Never);
        }
    }

    /// Gives an extent to a state.
    pub(crate) fn take(&mut self, id: StateId, extent: Extent) {
        self.ring.take(id, extent);
        self.used = self.used.max(extent.end());
    }

    /// Counts the pages that a copy has written as touched.
    pub(crate) fn note_written(&mut self, extent: Extent) {
        // Pages below a place that is used for the first time were written before.
        self.touched = self.touched.max(extent.end());
    }
}
