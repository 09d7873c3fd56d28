//! Places of variable size in a range of bytes, given out one after the other and around again.
//!
//! Promises: places never overlap. Must not know what is stored in them: it is told the score of
//! each. Source of the sliding window: Maurya, Rafique, Tonellot, Al-Salem, Cappello, Nicolae, HPDC
//! 2023 (hal-04119928).

use std::collections::BTreeMap;

use crate::work::{Extent, StateId};

/// The places of a level.
#[derive(Clone, Debug, Default)]
pub struct PlaceRing {
    /// Each place by its first byte.
    places: BTreeMap<u64, Occupied>,
    /// End of the place that was given out last.
    cursor: u64,
}

/// A place that is in use.
#[derive(Clone, Copy, Debug)]
struct Occupied {
    bytes: u64,
    id: StateId,
}

impl PlaceRing {
    /// Returns a free extent below `limit`: the first one after the place that was given out last,
    /// or else the first one.
    #[must_use]
    pub fn fit(&self, bytes: u64, limit: u64) -> Option<Extent> {
        let fits = |gap: &Extent| gap.bytes >= bytes;
        let cut = |gap: Extent| {
            let start = gap.start.max(self.cursor).min(gap.end());
            Extent { start, bytes: gap.end() - start }
        };
        let after = self.gaps(limit).map(cut).find(fits);
        let found = after.or_else(|| self.gaps(limit).find(fits))?;
        Some(Extent { start: found.start, bytes })
    }

    /// Free extents below `limit`, in their order.
    fn gaps(&self, limit: u64) -> impl Iterator<Item = Extent> {
        let ends = self.places.iter().map(|(start, place)| start + place.bytes);
        let starts = self.places.keys().copied().chain(std::iter::once(limit));
        let gap = move |(start, end): (u64, u64)| Extent { start, bytes: end.min(limit).saturating_sub(start) };
        std::iter::once(0).chain(ends).zip(starts).map(gap)
    }

    /// Gives a free extent to a state.
    ///
    /// # Panics
    /// If a byte of it is in use.
    pub fn take(&mut self, id: StateId, extent: Extent) {
        let before = self.places.range(..extent.end()).next_back();
        assert!(before.is_none_or(|(start, place)| start + place.bytes <= extent.start), "{extent:?} is in use");
        self.places.insert(extent.start, Occupied { bytes: extent.bytes, id });
        self.cursor = extent.end();
    }

    /// Takes back what a place does not need: it keeps its first `bytes` bytes, and the next one
    /// may follow them.
    ///
    /// # Panics
    /// If no place begins there, or it is smaller.
    pub fn shrink(&mut self, extent: Extent, bytes: u64) -> Extent {
        let place = self.places.get_mut(&extent.start).filter(|place| place.bytes == extent.bytes);
        let place = place.unwrap_or_else(|| panic!("{extent:?} is no place"));
        assert!(bytes <= place.bytes, "{bytes} bytes of {extent:?}");
        place.bytes = bytes;
        let kept = Extent { bytes, ..extent };
        if self.cursor == extent.end() {
            self.cursor = kept.end();
        }
        kept
    }

    /// Takes a place back.
    ///
    /// # Panics
    /// If no place begins there.
    pub fn free(&mut self, extent: Extent) {
        let place = self.places.remove(&extent.start);
        assert!(place.is_some_and(|place| place.bytes == extent.bytes), "{extent:?} is no place");
    }

    /// Returns the neighbouring states whose places, with the gaps between them, make room for
    /// `bytes` below `limit` at the least cost: the largest score among them. States without a
    /// score stay. `None` if too many stay.
    pub fn window(&self, bytes: u64, limit: u64, score: impl Fn(StateId) -> Option<f64>) -> Option<Vec<StateId>> {
        let places: Vec<(Extent, StateId, Option<f64>)> = self
            .places
            .iter()
            .map(|(&start, place)| (Extent { start, bytes: place.bytes }, place.id, score(place.id)))
            .collect();
        let begin_of = |index: usize| if index == 0 { 0 } else { places[index - 1].0.end() };
        let mut best: Option<(f64, std::ops::RangeInclusive<usize>)> = None;
        for first in 0..places.len() {
            let mut cost = f64::NEG_INFINITY;
            for (last, (_, _, score)) in places.iter().enumerate().skip(first) {
                let Some(score) = score else { break };
                cost = cost.max(*score);
                let end = places.get(last + 1).map_or(limit, |next| next.0.start).min(limit);
                if end.saturating_sub(begin_of(first)) >= bytes {
                    if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, first..=last));
                    }
                    break;
                }
            }
        }
        best.map(|(_, window)| places[window].iter().map(|(_, id, _)| *id).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(sizes: &[u64], limit: u64) -> PlaceRing {
        let mut ring = PlaceRing::default();
        for (number, &bytes) in sizes.iter().enumerate() {
            let extent = ring.fit(bytes, limit).expect("room");
            ring.take(StateId(number as u64), extent);
        }
        ring
    }

    #[test]
    fn places_follow_each_other_and_go_around() {
        let mut ring = filled(&[30, 30, 30], 100);
        assert_eq!(ring.fit(20, 100), None);
        ring.free(Extent { start: 0, bytes: 30 });
        assert_eq!(ring.fit(10, 100), Some(Extent { start: 90, bytes: 10 }), "after the last one first");
        assert_eq!(ring.fit(20, 100), Some(Extent { start: 0, bytes: 20 }));
    }

    #[test]
    fn bytes_that_a_place_gives_back_are_the_next_ones_given_out() {
        let mut ring = filled(&[30, 60], 100);
        let kept = ring.shrink(Extent { start: 30, bytes: 60 }, 20);
        assert_eq!(kept, Extent { start: 30, bytes: 20 });
        assert_eq!(ring.fit(50, 100), Some(Extent { start: 50, bytes: 50 }));
        ring.free(kept);
        assert_eq!(ring.fit(70, 100), Some(Extent { start: 30, bytes: 70 }));
        let first = ring.shrink(Extent { start: 0, bytes: 30 }, 30);
        assert_eq!(first.bytes, 30, "a place may need all it has");
    }

    #[test]
    fn no_place_lies_above_the_limit() {
        let ring = filled(&[30], 64);
        assert_eq!(ring.fit(40, 64), None);
        assert_eq!(ring.fit(34, 64), Some(Extent { start: 30, bytes: 34 }));
    }

    #[test]
    fn window_takes_the_fewest_costs_and_counts_gaps() {
        let mut ring = filled(&[20, 20, 20, 20], 90);
        ring.free(Extent { start: 40, bytes: 20 });
        let oldest = |id: StateId| Some(id.0 as f64);
        assert_eq!(ring.window(40, 90, oldest), Some(vec![StateId(0), StateId(1)]));
        assert_eq!(ring.window(40, 90, |id| (id.0 != 0).then_some(id.0 as f64)), Some(vec![StateId(1)]));
        assert_eq!(ring.window(40, 90, |id| (id.0 > 1).then_some(0.0)), Some(vec![StateId(3)]));
        assert_eq!(ring.window(91, 90, oldest), None);
    }
}
