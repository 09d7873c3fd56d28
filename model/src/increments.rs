//! Increments: whether the versions of a variable hold only what changed since the version before.
//!
//! Per byte of the variable, with the dirty fraction d, h seconds to find what changed and s
//! seconds to encode and write, a whole version costs s and an increment h + d s. An increment
//! therefore pays while `d <= 1 - h / s`. An owner that announces its writes makes h zero; hashes
//! read all values. Solvers whose vectors change everywhere, as in CG, have d = 1: for them the
//! rule looks twice, then saves whole versions and looks again ever more rarely.
//!
//! Must not know how changes are found, or what a version holds.

use std::fmt;

/// Most that may have changed, whatever the rates are: what is left to save then is less than the
/// work of a restore, which reads one frame more.
pub const MOST_DIRTY: f64 = 0.8;
/// Versions whose dirty fractions count.
const WINDOW: usize = 3;
/// Whole versions before changes are looked at again: at first, and at most.
const PAUSE: [u32; 2] = [8, 64];

/// The way the changes of a variable are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeSource {
    /// Its owner announces what it writes.
    Owner,
    /// Hashes of its zones are compared.
    Hashes,
}

impl fmt::Display for ChangeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "its owner",
            Self::Hashes => "hashes",
        })
    }
}

/// Measured rates, in seconds per byte; `None` where nothing was measured yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IncrementRates {
    /// Hashing.
    pub hash_seconds_per_byte: Option<f64>,
    /// Encoding and writing whole versions.
    pub save_seconds_per_byte: Option<f64>,
}

impl IncrementRates {
    /// Returns the largest dirty fraction for which an increment pays.
    #[must_use]
    pub fn most_dirty(self, source: ChangeSource) -> f64 {
        let Self { hash_seconds_per_byte: hash, save_seconds_per_byte: save } = self;
        let hash = if source == ChangeSource::Owner { Some(0.0) } else { hash };
        match hash.zip(save) {
            Some((hash, save)) if save > 0.0 => (1.0 - hash / save).clamp(0.0, MOST_DIRTY),
            _ => MOST_DIRTY,
        }
    }
}

/// Changes of one variable, as far as they were looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeHistory {
    /// Dirty fractions of the last versions, the newest last.
    dirty: Vec<f64>,
    /// Versions to be saved whole before changes are looked at again.
    whole_left: u32,
    /// The pause that comes next.
    pause: u32,
}

impl Default for ChangeHistory {
    fn default() -> Self {
        Self { dirty: Vec::new(), whole_left: 0, pause: PAUSE[0] }
    }
}

impl ChangeHistory {
    /// Returns whether the changes of the next version are looked at. Each version asks once.
    pub fn looks(&mut self) -> bool {
        let looks = self.whole_left == 0;
        self.whole_left = self.whole_left.saturating_sub(1);
        looks
    }

    /// Takes the dirty fraction of a version that was looked at. Returns the reasons where
    /// increments end for now, or begin.
    pub fn saw(&mut self, dirty: f64, source: ChangeSource, rates: IncrementRates) -> Option<String> {
        let is_first = self.dirty.is_empty();
        if self.dirty.len() == WINDOW {
            self.dirty.remove(0);
        }
        self.dirty.push(dirty);
        let mean = self.dirty.iter().sum::<f64>() / self.dirty.len() as f64;
        let most = rates.most_dirty(source);
        if mean > most {
            let pause = self.pause;
            *self = Self { dirty: Vec::new(), whole_left: pause, pause: (2 * pause).min(PAUSE[1]) };
            let limit = pays_up_to(mean, most);
            return Some(format!("whole for {pause} versions: {limit}"));
        }
        self.pause = PAUSE[0];
        is_first.then(|| format!("increments by {source}: {}", pays_up_to(mean, most)))
    }
}

/// Returns how much changes, and how much may.
fn pays_up_to(mean: f64, most: f64) -> String {
    format!("{:.3} % change, increments pay up to {:.3} %", 100.0 * mean, 100.0 * most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: IncrementRates =
        IncrementRates { hash_seconds_per_byte: Some(0.12e-9), save_seconds_per_byte: Some(0.8e-9) };

    #[test]
    fn increments_pay_until_finding_and_saving_cost_a_whole_version() {
        assert_eq!(RATES.most_dirty(ChangeSource::Owner), MOST_DIRTY);
        assert_eq!(RATES.most_dirty(ChangeSource::Hashes), MOST_DIRTY);
        let slow_hash = IncrementRates { hash_seconds_per_byte: Some(0.6e-9), ..RATES };
        // 1 - 0.6 / 0.8, up to rounding.
        assert!((slow_hash.most_dirty(ChangeSource::Hashes) - 0.25).abs() <= 4.0 * f64::EPSILON);
        let slower_than_saving = IncrementRates { hash_seconds_per_byte: Some(1e-9), ..RATES };
        assert_eq!(slower_than_saving.most_dirty(ChangeSource::Hashes), 0.0);
        assert_eq!(IncrementRates::default().most_dirty(ChangeSource::Hashes), MOST_DIRTY);
    }

    /// Versions 1 to `n` of a variable; which of them were looked at.
    fn looked_at(n: u64, dirty: impl Fn(u64) -> f64) -> Vec<u64> {
        let mut history = ChangeHistory::default();
        let mut looked = Vec::new();
        let mut is_known = false;
        for version in 1..=n {
            let looks = history.looks();
            if looks {
                looked.push(version);
                if is_known {
                    history.saw(dirty(version), ChangeSource::Hashes, RATES);
                }
            }
            is_known = looks;
        }
        looked
    }

    #[test]
    fn a_vector_that_changes_everywhere_is_looked_at_ever_more_rarely() {
        let looked = looked_at(1000, |_| 1.0);
        assert_eq!(looked[..6], [1, 2, 11, 12, 29, 30]);
        // 8 + 16 + 32 whole versions, then 64 between any two looks.
        let expected = 2 * (3 + (1000 - 8 - 16 - 32 - 6) / 66);
        assert!(looked.len().abs_diff(expected) <= 2, "{} of 1000", looked.len());
    }

    #[test]
    fn one_version_that_changes_everywhere_ends_nothing() {
        let looked = looked_at(100, |version| if version % 10 == 0 { 1.0 } else { 0.01 });
        assert_eq!(looked.len(), 100);
    }

    #[test]
    fn beginning_and_end_of_increments_are_explained_in_numbers() {
        let mut history = ChangeHistory::default();
        let begun = history.saw(0.01, ChangeSource::Hashes, RATES);
        assert_eq!(begun.unwrap(), "increments by hashes: 1.000 % change, increments pay up to 80.000 %");
        assert_eq!(history.saw(0.02, ChangeSource::Hashes, RATES), None);
        let mut whole = None;
        for _ in 0..3 {
            whole = whole.or(history.saw(1.0, ChangeSource::Hashes, RATES));
        }
        assert_eq!(whole.unwrap(), "whole for 8 versions: 100.000 % change, increments pay up to 80.000 %");
    }
}
