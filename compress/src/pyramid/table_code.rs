//! Tables of symbols in few bits: the logarithm of each share, as a difference to the one before.
//!
//! A table that few symbols use may be coarse: what it costs them grows with their number, and with
//! the square of the distance of two shares. So logarithms are as fine as the number of symbols
//! asks for.

use super::shares::{SYMBOLS, SymbolShares};

/// Levels of a share to a doubling, by the number that stands in a table.
const FINENESSES: [u32; 4] = [2, 4, 8, 16];
/// Bits that say which of these a table has.
const FINENESS_BITS: u32 = 2;
/// Bits of the lowest bits of a difference that are stored as they are.
const REST_BITS: u32 = 3;
/// Bits of the last symbol, and of the level of the first one.
const LAST_BITS: u32 = 6;
const FIRST_BITS: u32 = 8;
/// Doublings from the least share to the whole.
const DOUBLINGS: u32 = 12;
/// `2^(i / 32)` in parts of 2^16, rounded down.
const ROOTS: [u32; 32] = [
    65536, 66971, 68437, 69936, 71467, 73032, 74631, 76265, 77935, 79642, 81386, 83168, 84989, 86850, 88752, 90695,
    92681, 94711, 96785, 98904, 101_070, 103_283, 105_545, 107_856, 110_217, 112_631, 115_097, 117_618, 120_193,
    122_825, 125_514, 128_263,
];

/// Levels of all symbols: 0 of what does not occur, else 1 and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TableLevels {
    fineness: u32,
    levels: [u8; SYMBOLS],
}

/// Writes the table of symbols from the number of times that each occurs. Returns the shares that a
/// reader will have; `None` where nothing occurs, and nothing is written.
pub(super) fn write(counts: &[u32; SYMBOLS], bits: &mut BitWriter) -> Option<SymbolShares> {
    let table = TableLevels::of(counts)?;
    let last = table.levels.iter().rposition(|level| *level > 0)?;
    let number = FINENESSES.iter().position(|fineness| *fineness == table.fineness)?;
    let differences: Vec<u32> = table.levels[..=last].windows(2).map(|pair| folded(pair[0], pair[1])).collect();
    let length = |rest: u32| differences.iter().map(|folded| (folded >> rest) + rest).sum::<u32>();
    let rest = (0..1 << REST_BITS).min_by_key(|rest| length(*rest))?;
    bits.put(number as u32, FINENESS_BITS);
    bits.put(rest, REST_BITS);
    bits.put(last as u32, LAST_BITS);
    bits.put(u32::from(table.levels[0]), FIRST_BITS);
    for folded in differences {
        (0..folded >> rest).for_each(|_| bits.put(1, 1));
        bits.put(0, 1);
        bits.put(folded & ((1 << rest) - 1), rest);
    }
    table.shares()
}

/// Reads a table; `None` for what no encoder writes.
pub(super) fn read(bits: &mut BitReader<'_>) -> Option<SymbolShares> {
    let fineness = FINENESSES[bits.take(FINENESS_BITS)? as usize];
    let rest = bits.take(REST_BITS)?;
    let last = bits.take(LAST_BITS)? as usize;
    let highest = DOUBLINGS * fineness + 1;
    let mut table = TableLevels { fineness, levels: [0; SYMBOLS] };
    table.levels[0] = bits.take(FIRST_BITS)? as u8;
    for symbol in 1..=last {
        let mut folded = 0;
        while bits.take(1)? == 1 {
            folded += 1 << rest;
            if folded > 2 * highest {
                return None;
            }
        }
        folded |= bits.take(rest)?;
        table.levels[symbol] = unfolded(table.levels[symbol - 1], folded)?;
    }
    let is_sound = table.levels[last] > 0 && table.levels.iter().all(|level| u32::from(*level) <= highest);
    if is_sound { table.shares() } else { None }
}

impl TableLevels {
    /// Levels for counts; `None` where all of them are 0.
    fn of(counts: &[u32; SYMBOLS]) -> Option<Self> {
        let n: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let occurring = counts.iter().filter(|count| **count > 0).count() as u64;
        // Levels twice as fine cost a bit for each symbol of the alphabet. They save n / 46 bits
        // over the square of the fineness: shares are off by up to half a level, evenly.
        let is_fine = |fineness: &&u32| n < 46 * occurring * u64::from(**fineness).pow(2);
        let fineness = *FINENESSES.iter().find(is_fine).unwrap_or(&FINENESSES[FINENESSES.len() - 1]);
        let level = |count: &u32| if *count == 0 { 0 } else { level_of(u64::from(*count), n, fineness) };
        (n > 0).then(|| Self { fineness, levels: counts.each_ref().map(level) })
    }

    /// The shares that levels stand for.
    fn shares(&self) -> Option<SymbolShares> {
        SymbolShares::of(&self.levels.map(|level| weight(level, self.fineness)))
    }
}

/// The level nearest to a count of `n`, by its logarithm.
fn level_of(count: u64, n: u64, fineness: u32) -> u8 {
    // The share in parts of 2^16, the least share being a whole.
    let share = ((count << (DOUBLINGS + 16)) / n).max(1 << 16);
    let doublings = share.ilog2() - 16;
    let part = (share >> doublings) as u32;
    let spacing = ROOTS.len() / fineness as usize;
    // Midways between levels stand between the roots that levels take.
    let above = ROOTS.iter().skip(spacing / 2).step_by(spacing).filter(|midway| part >= **midway).count();
    (doublings * fineness + above as u32 + 1) as u8
}

/// The weight of a level: 0 of what does not occur, else a share in parts of 2^12.
fn weight(level: u8, fineness: u32) -> u32 {
    let Some(above) = u32::from(level).checked_sub(1) else { return 0 };
    let root = ROOTS[(above % fineness) as usize * (ROOTS.len() / fineness as usize)];
    (root << (above / fineness)) >> 4
}

/// A difference without a sign: 0, -1, 1, -2, .. become 0, 1, 2, 3.
fn folded(before: u8, level: u8) -> u32 {
    let difference = i32::from(level) - i32::from(before);
    (difference << 1 ^ difference >> 31) as u32
}

/// The level at a difference; `None` if there is no such level.
fn unfolded(before: u8, folded: u32) -> Option<u8> {
    let difference = (folded >> 1) as i32 ^ -((folded & 1) as i32);
    u8::try_from(i32::from(before) + difference).ok()
}

/// Bits that become bytes, the lowest first.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of the last byte that are not used yet.
    free: u32,
}

impl BitWriter {
    fn put(&mut self, value: u32, count: u32) {
        for bit in 0..count {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            if let Some(byte) = self.bytes.last_mut() {
                *byte |= ((value >> bit & 1) as u8) << (8 - self.free);
            }
            self.free -= 1;
        }
    }

    /// The bytes; bits behind the last one are zeros.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The bits of bytes, the lowest first.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for bit in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value |= u32::from(byte >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        Some(value)
    }

    /// Returns whether nothing is left but zeros to a whole byte.
    pub(super) fn is_done(&self) -> bool {
        let rest = self.bytes.get(self.at / 8).map_or(0, |byte| byte >> (self.at % 8));
        rest == 0 && self.at.div_ceil(8) == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::shares::TOTAL;

    fn samples() -> Vec<[u32; SYMBOLS]> {
        let only = |symbol: usize| std::array::from_fn(|s| u32::from(s == symbol) * 7);
        let falling = |by: usize| std::array::from_fn(|s| 1_000_000 >> (s / by));
        let rare = std::array::from_fn(|s| if s == 5 { u32::MAX } else { u32::from(s % 2 == 0) });
        let sparse = std::array::from_fn(|s| if s % 17 == 3 { s as u32 } else { 0 });
        vec![only(0), only(63), falling(2), falling(5), [3; SYMBOLS], rare, sparse]
    }

    #[test]
    fn tables_come_back_from_their_bits() {
        let mut bits = BitWriter::default();
        let written: Vec<SymbolShares> = samples().iter().map(|counts| write(counts, &mut bits).unwrap()).collect();
        assert_eq!(write(&[0; SYMBOLS], &mut bits), None);
        let mut reader = BitReader::new(bits.bytes());
        for (counts, shares) in samples().iter().zip(written) {
            assert!(!reader.is_done());
            assert!((0..SYMBOLS).all(|symbol| (counts[symbol] > 0) == (shares.of_symbol(symbol) > 0)));
            assert_eq!((0..SYMBOLS).map(|symbol| shares.of_symbol(symbol)).sum::<u32>(), TOTAL);
            assert_eq!(read(&mut reader), Some(shares));
        }
        assert!(reader.is_done());
        let cut = &bits.bytes()[..bits.bytes().len() - 1];
        let mut reader = BitReader::new(cut);
        assert!((0..samples().len()).any(|_| read(&mut reader).is_none()));
    }

    /// A level is off by half of a level at most, so a share by `2^(1 / 2 fineness)`, and the sum
    /// of shares by as much.
    #[test]
    fn shares_are_as_near_as_their_fineness_says() {
        for (fineness, factor) in FINENESSES.map(|fineness| (fineness, 2f64.powf(1.0 / f64::from(fineness)))) {
            for share in (1..=u64::from(TOTAL)).step_by(7) {
                let found = f64::from(weight(level_of(share, u64::from(TOTAL), fineness), fineness)) / 4096.0;
                let over = found / share as f64;
                assert!(over < factor && over > 1.0 / factor, "{fineness}: {share} became {found}");
            }
        }
    }

    #[test]
    fn levels_beyond_the_whole_and_alphabets_without_an_end_are_refused() {
        let table = |first: u32, differences: &[u32]| {
            let mut bits = BitWriter::default();
            bits.put(0, FINENESS_BITS);
            bits.put(0, REST_BITS);
            bits.put(differences.len() as u32, LAST_BITS);
            bits.put(first, FIRST_BITS);
            for folded in differences {
                (0..*folded).for_each(|_| bits.put(1, 1));
                bits.put(0, 1);
            }
            read(&mut BitReader::new(bits.bytes()))
        };
        assert!(table(25, &[0]).is_some());
        assert!(table(26, &[1]).is_none() && table(25, &[2]).is_none());
        assert!(table(1, &[3]).is_none() && table(1, &[1]).is_none() && table(5, &[60]).is_none());
    }
}
