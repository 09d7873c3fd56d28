//! Cells as bytes, both ways: heads and codes in one entropy-coded stream, and next to it what
//! entropy coding would not make smaller.
//!
//! | part | content |
//! |---|---|
//! | tables | u32 mask of the tables that follow, and each of them |
//! | states | 16 of codes, one of heads: u32 each |
//! | words | u16 each: those of codes, then those of heads, the first one last |
//! | low bits | of loud cells: each cell's begin on a byte |
//! | escapes | 1 to 5 bytes each: codes beyond their table |

use recoup_core::CodecResult;

use super::cells::CELL;
use super::damage::damaged;
use super::loudness::{CODE_TABLES, CONTEXTS, Loudness};
use super::rans::{RansDecoder, RansEncoder, STATE_BYTES};
use super::shares::{DecodeEntry, DecodeTable, EncodeTable, SYMBOLS, SymbolShares, TOTAL};
use super::table_code::{self, BitReader, BitWriter};
use crate::qb::SimdLevel;

/// Number of the table of predictors; those of loudness and of codes follow.
const PREDICTOR: usize = 0;
const LOUDNESS: usize = 1;
const CODES: usize = LOUDNESS + CONTEXTS;
const TABLES: usize = CODES + CODE_TABLES;
/// The symbol of a code that its table does not reach.
const ESCAPE: u8 = SYMBOLS as u8 - 1;

/// Bytes of the parts of a stream, other than the states, and how its tables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamLengths {
    pub(super) is_version_2: bool,
    pub(super) tables: u64,
    pub(super) words: u64,
    pub(super) low_bits: u64,
    pub(super) escapes: u64,
}

/// A cell that was coded, but for its codes.
#[derive(Clone, Copy, Debug)]
struct CellHead {
    predictor: u8,
    loudness: Loudness,
    len: u16,
}

/// Collects cells.
#[derive(Debug, Default)]
pub(super) struct StreamWriter {
    heads: Vec<CellHead>,
    /// Symbols of all cells that are not silent.
    symbols: Vec<u8>,
    low_bits: Vec<u8>,
    escapes: Vec<u8>,
    encoder: RansEncoder,
}

impl StreamWriter {
    /// Forgets all cells, and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.symbols.clear();
        self.low_bits.clear();
        self.escapes.clear();
    }

    /// Bytes of memory that are held.
    pub(super) fn bytes(&self) -> usize {
        self.heads.capacity() * size_of::<CellHead>()
            + self.symbols.capacity()
            + self.low_bits.capacity()
            + self.escapes.capacity()
            + self.encoder.bytes()
    }

    /// Adds a cell with the symbol of its predictor.
    #[inline(always)]
    pub(super) fn push(&mut self, predictor: u8, codes: &[i32]) {
        let loudness = Loudness::of(codes);
        self.heads.push(CellHead { predictor, loudness, len: codes.len() as u16 });
        if loudness == Loudness::SILENT {
            return;
        }
        let low = loudness.low_bits();
        let start = self.symbols.len();
        self.symbols.resize(start + codes.len(), 0);
        let mut is_any_escape = false;
        for (symbol, code) in self.symbols[start..].iter_mut().zip(codes) {
            let high = folded(*code) >> low;
            is_any_escape |= high >= u32::from(ESCAPE);
            *symbol = high.min(u32::from(ESCAPE)) as u8;
        }
        if low > 0 {
            self.push_low_bits(codes, low);
        }
        if is_any_escape {
            let beyond = codes.iter().filter(|code| folded(**code) >> low >= u32::from(ESCAPE));
            beyond.for_each(|code| push_escape(folded(*code), &mut self.escapes));
        }
    }

    #[inline(always)]
    fn push_low_bits(&mut self, codes: &[i32], low: u32) {
        let mut bits = 0u64;
        let mut n_bits = 0;
        for code in codes {
            bits |= u64::from(folded(*code) & ((1 << low) - 1)) << n_bits;
            n_bits += low;
            if n_bits >= 32 {
                self.low_bits.extend((bits as u32).to_le_bytes());
                bits >>= 32;
                n_bits -= 32;
            }
        }
        self.low_bits.extend(bits.to_le_bytes().iter().take(n_bits.div_ceil(8) as usize));
    }

    /// Appends the stream to `target`.
    pub(super) fn finish(&mut self, level: SimdLevel, target: &mut Vec<u8>) -> StreamLengths {
        let start = target.len();
        let counts = self.counts();
        let mut bits = BitWriter::default();
        let tables: Vec<Option<SymbolShares>> =
            counts.iter().map(|counts| table_code::write(counts, &mut bits)).collect();
        let mask = (0..TABLES).filter(|table| tables[*table].is_some()).fold(0u32, |mask, table| mask | 1 << table);
        target.extend(mask.to_le_bytes());
        target.extend(bits.bytes());
        let table_bytes = (target.len() - start) as u64;
        let mut encoder = std::mem::take(&mut self.encoder);
        encoder.begin(level, self.symbols.len());
        self.encode(&tables, &mut encoder);
        let words = encoder.write(target);
        self.encoder = encoder;
        target.extend(&self.low_bits);
        target.extend(&self.escapes);
        StreamLengths {
            is_version_2: false,
            tables: table_bytes,
            words,
            low_bits: self.low_bits.len() as u64,
            escapes: self.escapes.len() as u64,
        }
    }

    /// The loudness of the cell before each.
    fn before(&self) -> impl DoubleEndedIterator<Item = Loudness> + ExactSizeIterator {
        let heads = &self.heads;
        (0..heads.len()).map(move |cell| if cell == 0 { Loudness::SILENT } else { heads[cell - 1].loudness })
    }

    /// The number of times that each symbol of each table occurs.
    fn counts(&self) -> Vec<[u32; SYMBOLS]> {
        let mut counts = vec![[0u32; SYMBOLS]; TABLES];
        let mut symbols = &self.symbols[..];
        for (head, before) in self.heads.iter().zip(self.before()) {
            counts[PREDICTOR][usize::from(head.predictor)] += 1;
            counts[LOUDNESS + before.context()][usize::from(head.loudness.symbol())] += 1;
            if head.loudness != Loudness::SILENT {
                let (own, others) = symbols.split_at(usize::from(head.len));
                count(own, &mut counts[CODES + head.loudness.table()]);
                symbols = others;
            }
        }
        counts
    }

    fn encode(&self, tables: &[Option<SymbolShares>], encoder: &mut RansEncoder) {
        let entries = |table: &Option<SymbolShares>| table.as_ref().map(SymbolShares::to_encode_table);
        let tables: Vec<EncodeTable> = tables.iter().map(|table| entries(table).unwrap_or_default()).collect();
        let mut symbols = &self.symbols[..];
        for (head, before) in self.heads.iter().zip(self.before()).rev() {
            if head.loudness != Loudness::SILENT {
                let (others, own) = symbols.split_at(symbols.len() - usize::from(head.len));
                encoder.put(&tables[CODES + head.loudness.table()], own);
                symbols = others;
            }
            encoder.put_head(&tables[LOUDNESS + before.context()], head.loudness.symbol());
            encoder.put_head(&tables[PREDICTOR], head.predictor);
        }
    }
}

/// A cell that was taken, but for its codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TakenCell {
    /// The symbol of its predictor.
    pub(super) predictor: u8,
    /// All its codes are 0.
    pub(super) is_silent: bool,
}

/// The tables of a stream, whose memory lasts for the next one.
#[derive(Debug, Default)]
pub(super) struct DecodeTables {
    /// Tables by number. The ones that the stream does not have mean nothing.
    tables: Vec<DecodeTable>,
    /// Bit t stands for table t.
    mask: u32,
}

impl DecodeTables {
    /// Reads the tables of a stream; `None` for what no encoder writes.
    fn read(&mut self, source: &[u8], is_version_2: bool) -> Option<()> {
        let (mask, mut rest) = source.split_first_chunk::<4>()?;
        self.mask = u32::from_le_bytes(*mask);
        self.tables.resize(TABLES, [DecodeEntry::default(); TOTAL as usize]);
        let mut bits = BitReader::new(rest);
        for (number, table) in self.tables.iter_mut().enumerate() {
            if self.mask >> number & 1 != 0 {
                let shares = if is_version_2 { SymbolShares::read(&mut rest)? } else { table_code::read(&mut bits)? };
                shares.fill(table);
            }
        }
        let is_read = if is_version_2 { rest.is_empty() } else { bits.is_done() };
        (is_read && self.mask >> TABLES == 0).then_some(())
    }

    #[inline(always)]
    fn of(&self, number: usize) -> CodecResult<&DecodeTable> {
        let table = self.tables.get(number).filter(|_| self.mask >> number & 1 != 0);
        table.ok_or_else(|| damaged("a table is missing"))
    }

    /// Bytes of memory that are held.
    pub(super) fn bytes(&self) -> usize {
        self.tables.capacity() * size_of::<DecodeTable>()
    }
}

/// Gives cells back, in order.
#[derive(Debug)]
pub(super) struct StreamReader<'a> {
    tables: &'a DecodeTables,
    decoder: RansDecoder<'a>,
    low_bits: &'a [u8],
    escapes: &'a [u8],
    loudness: Loudness,
}

impl<'a> StreamReader<'a> {
    /// Reads the tables of a stream, which is as long as its parts.
    pub(super) fn new(
        level: SimdLevel,
        source: &'a [u8],
        lengths: StreamLengths,
        tables: &'a mut DecodeTables,
    ) -> CodecResult<Self> {
        let mut rest = source;
        let mut part = |bytes: u64| {
            let bytes = usize::try_from(bytes).ok();
            let (part, others) =
                bytes.and_then(|bytes| rest.split_at_checked(bytes)).ok_or_else(|| damaged("parts"))?;
            rest = others;
            Ok(part)
        };
        let written_tables = part(lengths.tables)?;
        let states = part(STATE_BYTES as u64)?.first_chunk().ok_or_else(|| damaged("parts"))?;
        let words = part(lengths.words)?;
        let low_bits = part(lengths.low_bits)?;
        let escapes = part(lengths.escapes)?;
        if words.len() % 2 != 0 || !rest.is_empty() {
            return Err(damaged("parts"));
        }
        tables.read(written_tables, lengths.is_version_2).ok_or_else(|| damaged("tables"))?;
        let decoder = RansDecoder::new(level, states, words);
        Ok(Self { tables, decoder, low_bits, escapes, loudness: Loudness::SILENT })
    }

    /// Fills `codes` with those of the next cell, unless it is silent.
    #[inline(always)]
    pub(super) fn take(&mut self, codes: &mut [i32]) -> CodecResult<TakenCell> {
        let predictor = self.symbol(PREDICTOR)?;
        self.loudness = Loudness::of_symbol(self.symbol(LOUDNESS + self.loudness.context())?);
        let is_silent = self.loudness == Loudness::SILENT;
        if is_silent {
            return Ok(TakenCell { predictor, is_silent });
        }
        let low = self.loudness.low_bits();
        let mut symbols = [0; CELL];
        let symbols = &mut symbols[..codes.len()];
        let table = self.tables.of(CODES + self.loudness.table())?;
        self.decoder.take(table, symbols);
        if !self.decoder.is_sound() {
            return Err(damaged("words end early"));
        }
        if low == 0 {
            codes.iter_mut().zip(&*symbols).for_each(|(code, symbol)| *code = unfolded(u32::from(*symbol)));
        } else {
            self.add_low_bits(symbols, low, codes)?;
        }
        if symbols.contains(&ESCAPE) {
            for (code, symbol) in codes.iter_mut().zip(&*symbols) {
                if *symbol == ESCAPE {
                    *code = unfolded(take_escape(&mut self.escapes).ok_or_else(|| damaged("escapes end early"))?);
                }
            }
        }
        Ok(TakenCell { predictor, is_silent })
    }

    #[inline(always)]
    fn symbol(&mut self, table: usize) -> CodecResult<u8> {
        let table = self.tables.of(table)?;
        let symbol = self.decoder.take_head(table);
        if self.decoder.is_sound() { Ok(symbol) } else { Err(damaged("words end early")) }
    }

    #[inline(always)]
    fn add_low_bits(&mut self, symbols: &[u8], low: u32, codes: &mut [i32]) -> CodecResult<()> {
        let bytes = (codes.len() * low as usize).div_ceil(8);
        let (own, others) = self.low_bits.split_at_checked(bytes).ok_or_else(|| damaged("low bits end early"))?;
        let mut padded = [0; CELL * 4 + 8];
        padded[..bytes].copy_from_slice(own);
        for (i, (code, symbol)) in codes.iter_mut().zip(symbols).enumerate() {
            let bit = i * low as usize;
            let word = padded[bit / 8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let low_bits = (word >> (bit % 8)) as u32 & ((1 << low) - 1);
            *code = unfolded(u32::from(*symbol) << low | low_bits);
        }
        self.low_bits = others;
        Ok(())
    }

    /// Checks that nothing is left.
    pub(super) fn finish(self) -> CodecResult<()> {
        let is_done = self.decoder.is_done() && self.low_bits.is_empty() && self.escapes.is_empty();
        if is_done { Ok(()) } else { Err(damaged("codes continue")) }
    }
}

/// Adds the number of times that each symbol occurs. Turns keep additions to one count apart.
fn count(symbols: &[u8], counts: &mut [u32; SYMBOLS]) {
    let mut turns = [[0u8; SYMBOLS]; 4];
    let (rounds, rest) = symbols.as_chunks::<4>();
    for round in rounds {
        (0..4).for_each(|turn| turns[turn][usize::from(round[turn]) % SYMBOLS] += 1);
    }
    rest.iter().for_each(|symbol| turns[0][usize::from(*symbol) % SYMBOLS] += 1);
    for (symbol, count) in counts.iter_mut().enumerate() {
        *count += turns.iter().map(|turn| u32::from(turn[symbol])).sum::<u32>();
    }
}

/// Appends seven bits a byte, the lowest first; all bytes but the last one have bit 7 set.
fn push_escape(mut folded: u32, target: &mut Vec<u8>) {
    while folded >= 0x80 {
        target.push(folded as u8 | 0x80);
        folded >>= 7;
    }
    target.push(folded as u8);
}

/// Reads an escape from the front of `source`; `None` where it ends early or does not fit.
fn take_escape(source: &mut &[u8]) -> Option<u32> {
    let mut folded = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = source.split_first()?;
        *source = rest;
        folded |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(folded).ok();
        }
    }
    None
}

/// A code without a sign: 0, -1, 1, -2, .. become 0, 1, 2, 3.
#[inline(always)]
fn folded(code: i32) -> u32 {
    (code << 1 ^ code >> 31) as u32
}

#[inline(always)]
fn unfolded(folded: u32) -> i32 {
    (folded >> 1) as i32 ^ -((folded & 1) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_loudness_come_back() {
        let code = |i: usize, size: i64| (((i as i64 * 7919) % 17 - 8) * size / 4) as i32;
        let cells: Vec<Vec<i32>> = (0..30)
            .map(|bits| (0..[CELL, 1, 100][bits % 3]).map(|i| code(i, 1 << bits)).collect())
            .chain([vec![0; CELL], vec![i32::MIN, i32::MAX, 0, 1, -1]])
            .collect();
        let mut writer = StreamWriter::default();
        cells.iter().enumerate().for_each(|(cell, codes)| writer.push(cell as u8, codes));
        let mut tables = DecodeTables::default();
        for level in SimdLevel::available() {
            let mut bytes = Vec::new();
            let lengths = writer.finish(level, &mut bytes);
            let mut reader = StreamReader::new(level, &bytes, lengths, &mut tables).unwrap();
            for (cell, codes) in cells.iter().enumerate() {
                let is_silent = codes.iter().all(|code| *code == 0);
                let mut found = vec![if is_silent { 0 } else { 9 }; codes.len()];
                assert_eq!(reader.take(&mut found), Ok(TakenCell { predictor: cell as u8, is_silent }));
                assert_eq!(&found, codes, "{cell}");
            }
            assert_eq!(reader.finish(), Ok(()));
        }
    }
}
