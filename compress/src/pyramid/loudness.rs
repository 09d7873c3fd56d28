//! The size of the codes of a cell, which decides by which table they are coded.

use super::cells::CELL;

/// The loudness of a cell: 0 where all codes are 0, else one more than twice the binary logarithm
/// of the sum of their sizes, scaled to a whole cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loudness(u8);

/// Tables of codes.
pub(super) const CODE_TABLES: usize = 20;
/// Number of contexts in which a loudness is coded.
pub(super) const CONTEXTS: usize = 6;
/// From this logarithm on, low bits are stored as they are.
const LOUD: u8 = 18;

impl Loudness {
    pub(super) const SILENT: Self = Self(0);
    const LARGEST: u8 = 63;

    #[inline(always)]
    pub(super) fn of(codes: &[i32]) -> Self {
        let sum: u64 = codes.iter().map(|code| u64::from(code.unsigned_abs())).sum();
        let scaled = sum * CELL as u64 / codes.len().max(1) as u64;
        let Some(log) = scaled.checked_ilog2() else { return Self::SILENT };
        // 362 / 256 is a little less than the root of 2.
        let is_upper_half = scaled << 8 >= 362 << log;
        Self((2 * log as u8 + u8::from(is_upper_half) + 1).min(Self::LARGEST))
    }

    pub(super) fn symbol(self) -> u8 {
        self.0
    }

    pub(super) fn of_symbol(symbol: u8) -> Self {
        Self(symbol)
    }

    /// The number of the table; loud cells share two.
    pub(super) fn table(self) -> usize {
        let log = self.0.saturating_sub(1);
        usize::from(if log < LOUD { log } else { LOUD + log % 2 })
    }

    /// Low bits of a code that are not coded by the table.
    pub(super) fn low_bits(self) -> u32 {
        let log = self.0.saturating_sub(1);
        if log < LOUD { 0 } else { u32::from((log - LOUD) / 2 + 1) }
    }

    /// The context of the loudness of the next cell.
    pub(super) fn context(self) -> usize {
        usize::from(self.0).div_ceil(5).min(CONTEXTS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_a_loudness_fit_its_table() {
        for size in (0..22).map(|bits| 1 << bits) {
            let loudness = Loudness::of(&[size; CELL]);
            // The mean is `size`, and an alphabet of 63 reaches several times as far.
            assert!((2 * size as u64) >> loudness.low_bits() < 16, "{size}: {loudness:?}");
            assert!(loudness.table() < CODE_TABLES && loudness.context() < CONTEXTS);
        }
        assert_eq!(Loudness::of(&[0; 40]), Loudness::SILENT);
        assert_ne!(Loudness::of(&[0, 0, 1]), Loudness::SILENT);
        assert!(Loudness::of(&[i32::MIN; CELL]).low_bits() <= 23);
    }
}
