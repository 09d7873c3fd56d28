//! The middle of several trials, and their ends.

use serde::Serialize;

/// The median of values, and their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// The spread of these values; `None` of no value.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let [least, most] = [*sorted.first()?, *sorted.last()?];
        let middle = |position: usize| sorted[position.min(sorted.len() - 1)];
        let upper = middle(sorted.len() / 2);
        let lower = middle((sorted.len() - 1) / 2);
        Some(Self { least, median: 0.5 * (lower + upper), most })
    }

    /// The spread of the values times a number above 0.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { least: factor * self.least, median: factor * self.median, most: factor * self.most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_lies_between_the_two_in_the_middle() {
        let spread = |least, median, most| Some(Spread { least, median, most });
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[3.0]), spread(3.0, 3.0, 3.0));
        assert_eq!(Spread::of(&[9.0, 1.0, 2.0]), spread(1.0, 2.0, 9.0));
        assert_eq!(Spread::of(&[9.0, 1.0, 2.0, 4.0]), spread(1.0, 3.0, 9.0));
    }
}
