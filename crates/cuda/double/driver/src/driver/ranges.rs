//! Bytes that an operation touches.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page of [`Bitmap`].
const PAGE: u64 = 1 << 16;
const WORDS: usize = (PAGE / 64) as usize;

/// Bytes, as ranges in rising order that neither meet nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// The bytes of `ranges`, in any order.
    pub(crate) fn of(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut sorted: Vec<Range<u64>> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Self(merged)
    }

    /// Returns the first bytes in both.
    pub(crate) fn overlap(&self, other: &Self) -> Option<Range<u64>> {
        let mut mine = self.0.iter().peekable();
        let mut theirs = other.0.iter().peekable();
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            let common = a.start.max(b.start)..a.end.min(b.end);
            if !common.is_empty() {
                return Some(common);
            }
            if a.end <= b.end {
                mine.next()
            } else {
                theirs.next()
            };
        }
        None
    }
}

/// Bytes that are added one access at a time, a bit for each.
#[derive(Debug, Default)]
pub(crate) struct Bitmap {
    pages: BTreeMap<u64, Box<[u64; WORDS]>>,
    /// The page used last, taken out of `pages`.
    current: Option<(u64, Box<[u64; WORDS]>)>,
}

impl Bitmap {
    /// Adds `len` bytes from `start` on.
    pub(crate) fn add(&mut self, start: u64, len: u64) {
        let mut first = start;
        while first < start + len {
            let end = (start + len).min((first / 64 + 1) * 64);
            let n_bits = end - first;
            let ones = if n_bits == 64 { u64::MAX } else { (1 << n_bits) - 1 };
            self.page(first / PAGE)[(first % PAGE / 64) as usize] |= ones << (first % 64);
            first = end;
        }
    }

    fn page(&mut self, number: u64) -> &mut [u64; WORDS] {
        if self.current.as_ref().is_none_or(|(current, _)| *current != number) {
            self.put_back();
            let page = self.pages.remove(&number).unwrap_or_else(|| Box::new([0; WORDS]));
            self.current = Some((number, page));
        }
        match &mut self.current {
            Some((_, page)) => page,
            None => unreachable!("a page was just made current"),
        }
    }

    fn put_back(&mut self) {
        if let Some((number, page)) = self.current.take() {
            self.pages.insert(number, page);
        }
    }

    /// The bytes as ranges.
    pub(crate) fn into_ranges(mut self) -> Ranges {
        self.put_back();
        let mut found = Vec::new();
        for (number, page) in &self.pages {
            for (index, word) in page.iter().enumerate() {
                let base = number * PAGE + index as u64 * 64;
                push_runs(*word, base, &mut found);
            }
        }
        Ranges::of(found)
    }
}

/// Adds the runs of ones in `word`, whose lowest bit is byte `base`.
fn push_runs(mut word: u64, base: u64, found: &mut Vec<Range<u64>>) {
    let mut shift = 0;
    while word != 0 {
        let zeros = word.trailing_zeros();
        word >>= zeros;
        let ones = word.trailing_ones();
        let start = base + u64::from(shift + zeros);
        let end = start + u64::from(ones);
        match found.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => found.push(start..end),
        }
        shift += zeros + ones;
        word = if ones == 64 { 0 } else { word >> ones };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_find_the_first_common_bytes() {
        let a = Ranges::of([8..16, 0..4, 4..6, 20..20]);
        assert_eq!(a, Ranges(vec![0..6, 8..16]));
        assert_eq!(a.overlap(&Ranges::of([6..8, 15..40])), Some(15..16));
        assert_eq!(a.overlap(&Ranges::of([6..8, 16..40])), None);
        assert_eq!(a.overlap(&Ranges::default()), None);
    }

    #[test]
    fn a_bitmap_holds_every_byte_that_was_added_and_no_other() {
        let added = [(0, 1), (63, 2), (128, 64), (PAGE - 3, 6), (3 * PAGE, 200), (1, 7)];
        let mut bitmap = Bitmap::default();
        for (start, len) in added {
            bitmap.add(start, len);
        }
        assert_eq!(bitmap.into_ranges(), Ranges::of(added.map(|(start, len)| start..start + len)));
    }
}
