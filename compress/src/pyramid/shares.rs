//! SymbolShares of symbols: how a table lies in a frame, and its forms for both directions.

/// Symbols of an alphabet.
pub(super) const SYMBOLS: usize = 64;
/// Shares are parts of `2^PRECISION`.
pub(super) const PRECISION: u32 = 12;
pub(super) const TOTAL: u32 = 1 << PRECISION;

/// SymbolShares of all symbols, which sum to [`TOTAL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SymbolShares([u16; SYMBOLS]);

impl SymbolShares {
    /// SymbolShares in proportion to counts, at least 1 for what occurs; `None` where nothing does.
    pub(super) fn of(counts: &[u32; SYMBOLS]) -> Option<Self> {
        let n: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        if n == 0 {
            return None;
        }
        let part = |count: &u32| (u64::from(*count) * u64::from(TOTAL) + n / 2) / n;
        let mut parts = counts.each_ref().map(|count| if *count == 0 { 0 } else { part(count).max(1) as u16 });
        loop {
            let sum: u32 = parts.iter().map(|part| u32::from(*part)).sum();
            let largest = parts.iter_mut().max_by_key(|part| **part)?;
            if sum <= TOTAL {
                *largest += (TOTAL - sum) as u16;
                return Some(Self(parts));
            }
            *largest -= (sum - TOTAL).min(u32::from(*largest) / 2) as u16;
        }
    }

    /// Reads a table of version 2 from the front of `source`: which symbols occur u64, and the
    /// shares of all of them but the last, less one, in 12 bits each. `None` for what no encoder
    /// wrote.
    pub(super) fn read(source: &mut &[u8]) -> Option<Self> {
        let (mask, rest) = source.split_first_chunk::<8>()?;
        let mask = u64::from_le_bytes(*mask);
        let others = mask.count_ones().checked_sub(1)? as usize;
        let packed = rest.get(..(others * 3).div_ceil(2))?;
        *source = &rest[packed.len()..];
        let byte = |at: usize| packed.get(at).copied().map_or(0, u16::from);
        let part = |number: usize| {
            let at = number / 2 * 3;
            if number.is_multiple_of(2) {
                byte(at) | (byte(at + 1) & 15) << 8
            } else {
                byte(at + 1) >> 4 | byte(at + 2) << 4
            }
        };
        let padding_is_zero = others.is_multiple_of(2) || packed.last().is_none_or(|last| last >> 4 == 0);
        let mut parts = [0; SYMBOLS];
        let mut left = TOTAL as u16;
        for (number, symbol) in (0..SYMBOLS).filter(|symbol| mask >> symbol & 1 != 0).enumerate() {
            parts[symbol] = if number < others { part(number) + 1 } else { left };
            left = left.checked_sub(parts[symbol])?;
            if number < others && left == 0 {
                return None;
            }
        }
        padding_is_zero.then_some(Self(parts))
    }

    /// The share of a symbol.
    #[cfg(test)]
    pub(super) fn of_symbol(&self, symbol: usize) -> u32 {
        u32::from(self.0[symbol])
    }

    /// The table of an encoder.
    pub(super) fn to_encode_table(&self) -> EncodeTable {
        let mut start = 0;
        let mut table = EncodeTable::default();
        for (symbol, share) in self.0.iter().map(|share| u32::from(*share)).enumerate() {
            table.entries[symbol] = EncodeEntry::new(start, share);
            table.packed.0[symbol] = share << 16 | start;
            start += share;
        }
        table
    }

    /// Fills in the table of a decoder.
    pub(super) fn fill(&self, table: &mut DecodeTable) {
        let mut rest = &mut table[..];
        for (symbol, share) in self.0.iter().enumerate() {
            let (own, others) = rest.split_at_mut(usize::from(*share));
            own.iter_mut().zip(0..*share).for_each(|(entry, place)| *entry = DecodeEntry::new(symbol, *share, place));
            rest = others;
        }
    }
}

/// The table of a decoder, by the lowest bits of its state.
pub(super) type DecodeTable = [DecodeEntry; TOTAL as usize];

/// The symbols, to be encoded one by one or many at a time.
#[derive(Clone, Debug)]
pub(super) struct EncodeTable {
    pub(super) entries: [EncodeEntry; SYMBOLS],
    pub(super) packed: PackedShares,
}

impl Default for EncodeTable {
    fn default() -> Self {
        Self { entries: [EncodeEntry::default(); SYMBOLS], packed: PackedShares([0; SYMBOLS]) }
    }
}

/// The share of each symbol in the upper half of a number, and the sum of shares before it in the
/// lower.
#[derive(Clone, Debug)]
pub(super) struct PackedShares(pub(super) [u32; SYMBOLS]);

/// A symbol, to be encoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EncodeEntry {
    /// `2^64 / share`, rounded up.
    reciprocal: u64,
    share: u32,
    /// Added to every state.
    bias: u32,
}

impl EncodeEntry {
    fn new(start: u32, share: u32) -> Self {
        match share {
            0 => Self::default(),
            // 2^64 does not fit: the quotient is one too small, and the bias makes up for it.
            1 => Self { reciprocal: u64::MAX, share, bias: start + TOTAL - 1 },
            _ => Self { reciprocal: u64::MAX / u64::from(share) + 1, share, bias: start },
        }
    }

    /// Returns whether a state gives a word before the symbol.
    #[inline(always)]
    pub(super) fn is_full(self, state: u32) -> bool {
        state >> (32 - PRECISION) >= self.share
    }

    /// The state behind the symbol: `TOTAL (x / f) + x mod f + start`.
    #[inline(always)]
    pub(super) fn advance(self, state: u32) -> u32 {
        let quotient = ((u128::from(state) * u128::from(self.reciprocal)) >> 64) as u32;
        state.wrapping_add(self.bias).wrapping_add(quotient.wrapping_mul(TOTAL - self.share))
    }
}

/// One of the [`TOTAL`] parts of a table, to be decoded: share less one in bits 0 to 11, symbol in
/// bits 12 to 17, and its place within the symbol in bits 18 to 29.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct DecodeEntry(u32);

impl DecodeEntry {
    fn new(symbol: usize, share: u16, place: u16) -> Self {
        Self(u32::from(share - 1) | (symbol as u32) << 12 | u32::from(place) << 18)
    }

    #[inline(always)]
    pub(super) fn symbol(self) -> u8 {
        (self.0 >> 12 & 63) as u8
    }

    /// The state before the symbol.
    #[inline(always)]
    pub(super) fn retreat(self, state: u32) -> u32 {
        ((self.0 & 0xfff) + 1).wrapping_mul(state >> PRECISION).wrapping_add(self.0 >> 18)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<[u32; SYMBOLS]> {
        let only = |symbol: usize| std::array::from_fn(|s| u32::from(s == symbol) * 7);
        let falling = std::array::from_fn(|s| 1_000_000 >> (s / 2));
        let flat = [3; SYMBOLS];
        let rare = std::array::from_fn(|s| if s == 5 { u32::MAX } else { u32::from(s % 2 == 0) });
        vec![only(0), only(63), falling, flat, rare]
    }

    #[test]
    fn shares_sum_to_the_whole_and_leave_nothing_out() {
        for counts in samples() {
            let table = SymbolShares::of(&counts).unwrap();
            assert_eq!(table.0.iter().map(|part| u32::from(*part)).sum::<u32>(), TOTAL);
            assert!(counts.iter().zip(table.0).all(|(count, part)| (*count > 0) == (part > 0)));
        }
        assert_eq!(SymbolShares::of(&[0; SYMBOLS]), None);
    }

    /// Symbols 0, 3 and 4 with the shares 1, 4000 and what is left.
    #[test]
    fn tables_of_version_2_are_read_as_they_were_written() {
        let bytes = [0b11001, 0, 0, 0, 0, 0, 0, 0, 0x00, 0xf0, 0xf9, 9];
        let mut rest = &bytes[..];
        let table = SymbolShares::read(&mut rest).unwrap();
        assert_eq!([0, 3, 4].map(|symbol| table.of_symbol(symbol)), [1, 4000, 95]);
        assert_eq!(rest, [9]);
        assert!((0..11).all(|length| SymbolShares::read(&mut &bytes[..length]).is_none()));
    }

    #[test]
    fn each_direction_undoes_the_other() {
        for counts in samples() {
            let table = SymbolShares::of(&counts).unwrap();
            let encode = table.to_encode_table();
            let mut decode = [DecodeEntry::default(); TOTAL as usize];
            table.fill(&mut decode);
            for symbol in (0..SYMBOLS).filter(|symbol| table.0[*symbol] > 0) {
                // What an encoder advances from is below share 2^20.
                let limit = u64::from(table.0[symbol]) << 20;
                let states = [1 << 16, (1 << 16) + 12_345, limit / 2 + 1, limit - 1];
                for state in states.into_iter().filter(|state| *state < limit).map(|state| state as u32) {
                    let advanced = encode.entries[symbol].advance(state);
                    let entry = decode[(advanced % TOTAL) as usize];
                    assert_eq!((usize::from(entry.symbol()), entry.retreat(advanced)), (symbol, state));
                }
            }
        }
    }
}
