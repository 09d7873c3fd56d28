//! The bytes of roots, lists of versions and block tables.
//!
//! Promises: [`FORMAT.md`](../FORMAT.md) states the layout. Decoding takes no more memory than the
//! bytes it is given have earned, and never panics.

use crate::element::ElementKind;

/// The first bytes of a root. The last of them is the version of the format.
pub(crate) const MAGIC: [u8; 8] = *b"RCMEMRY\x01";
/// Bytes of a root.
pub(crate) const ROOT_BYTES: usize = 64;
/// Roots begin at its multiples.
pub(crate) const SLOT_STRIDE: u64 = 4096;
/// Number of roots.
pub(crate) const SLOTS: u64 = 2;
/// Blocks begin here.
pub(crate) const HEAD_BYTES: u64 = SLOTS * SLOT_STRIDE;
/// Bytes of an entry of a block table.
pub(crate) const ENTRY_BYTES: usize = 16;
/// Fewest bytes of a block in a file.
pub(crate) const BLOCK_BYTES_LEAST: usize = 512;
/// Most bytes of a block.
pub(crate) const BLOCK_BYTES_MOST: usize = 16 << 20;
/// Most bytes of a name.
pub(crate) const NAME_BYTES_MOST: usize = 255;

/// Fewest bytes of a version and of a structure in the list.
const VERSION_BYTES: usize = 24;
const STRUCTURE_BYTES: usize = 24;

/// A root: what makes a version count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RootLine {
    /// The newest version, from 1; 0 in a file without versions.
    pub(crate) number: u64,
    pub(crate) block_bytes: u32,
    pub(crate) catalogue_crc: u32,
    /// First block of the list of versions.
    pub(crate) catalogue_place: u64,
    pub(crate) catalogue_bytes: u64,
}

/// The reason why bytes are no root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootRefusal {
    /// All bytes are zeros.
    Empty,
    /// The magic is another one.
    Foreign,
    /// The format is another one.
    Format(u8),
    /// The checksum does not hold, or a number cannot be.
    Damaged,
}

impl RootLine {
    /// Place of the root of a version.
    pub(crate) fn slot(number: u64) -> u64 {
        number % SLOTS * SLOT_STRIDE
    }

    pub(crate) fn encode(&self) -> [u8; ROOT_BYTES] {
        let mut bytes = [0; ROOT_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.block_bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.catalogue_crc.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.catalogue_place.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.catalogue_bytes.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; ROOT_BYTES]) -> Result<Self, RootRefusal> {
        if bytes == &[0; ROOT_BYTES] {
            return Err(RootRefusal::Empty);
        }
        let mut fields = Fields(bytes);
        let magic = fields.bytes(8).ok_or(RootRefusal::Damaged)?;
        let is_sound = crc32c::crc32c(&bytes[..60]).to_le_bytes() == bytes[60..];
        if magic[..7] != MAGIC[..7] {
            return Err(if is_sound { RootRefusal::Damaged } else { RootRefusal::Foreign });
        }
        if !is_sound {
            return Err(RootRefusal::Damaged);
        }
        if magic[7] != MAGIC[7] {
            return Err(RootRefusal::Format(magic[7]));
        }
        let root = (|| {
            Some(Self {
                number: fields.u64()?,
                block_bytes: fields.u32()?,
                catalogue_crc: fields.u32()?,
                catalogue_place: fields.u64()?,
                catalogue_bytes: fields.u64()?,
            })
        })();
        // A version follows every root.
        let is_sound = |root: &Self| root.number < u64::MAX && is_block_size(root.block_bytes as usize);
        root.filter(is_sound).ok_or(RootRefusal::Damaged)
    }
}

/// Returns whether blocks of a file may have this size.
pub(crate) fn is_block_size(bytes: usize) -> bool {
    bytes.is_power_of_two() && (BLOCK_BYTES_LEAST..=BLOCK_BYTES_MOST).contains(&bytes)
}

/// First byte of a place.
pub(crate) fn place_of(place: u32, block_bytes: usize) -> u64 {
    HEAD_BYTES + u64::from(place) * block_bytes as u64
}

/// A version in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionRecord<'a> {
    pub(crate) number: u64,
    pub(crate) step: u64,
    /// All bytes of the record.
    pub(crate) bytes: &'a [u8],
}

impl<'a> VersionRecord<'a> {
    /// Decodes its structures, one after the other.
    pub(crate) fn structures(self) -> impl Iterator<Item = StructureRecord<'a>> {
        let mut fields = Fields(&self.bytes[VERSION_BYTES..]);
        std::iter::from_fn(move || decode_structure(&mut fields))
    }
}

/// A structure of a version in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StructureRecord<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: ElementKind,
    /// Number of values.
    pub(crate) len: u64,
    pub(crate) table_crc: u32,
    /// First block of the table.
    pub(crate) table_place: u64,
}

/// Encodes the record of a version.
pub(crate) fn encode_version(number: u64, step: u64, structures: &[StructureRecord<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(number.to_le_bytes());
    bytes.extend(step.to_le_bytes());
    bytes.extend((structures.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    for structure in structures {
        bytes.extend((structure.name.len() as u16).to_le_bytes());
        bytes.extend([structure.kind as u8, 0]);
        bytes.extend(structure.table_crc.to_le_bytes());
        bytes.extend(structure.len.to_le_bytes());
        bytes.extend(structure.table_place.to_le_bytes());
        bytes.extend(structure.name.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes
}

/// Encodes the list of versions from their records, the oldest first.
pub(crate) fn encode_catalogue(records: &[&[u8]]) -> Vec<u8> {
    let head = [(records.len() as u32).to_le_bytes(), [0; 4]].concat();
    [&head[..], &records.concat()].concat()
}

/// Finds the records in a list of versions; `None` for a list that was never written. Returns the
/// first byte of each.
pub(crate) fn decode_catalogue(bytes: &[u8]) -> Option<Vec<usize>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let mut fields = Fields(bytes);
    let n_versions = fields.count(VERSION_BYTES)?;
    let mut starts = Vec::with_capacity(n_versions);
    let mut before = None;
    for _ in 0..n_versions {
        starts.push(bytes.len() - fields.0.len());
        let record = take_version(&mut fields)?;
        let rises = before.replace(record.number).is_none_or(|before| before < record.number);
        rises.then_some(())?;
    }
    fields.0.is_empty().then_some(starts)
}

/// Decodes the first record in the bytes.
pub(crate) fn decode_version(bytes: &[u8]) -> Option<VersionRecord<'_>> {
    take_version(&mut Fields(bytes))
}

fn take_version<'a>(fields: &mut Fields<'a>) -> Option<VersionRecord<'a>> {
    let all = fields.0;
    let number = fields.u64()?;
    let step = fields.u64()?;
    for _ in 0..fields.count(STRUCTURE_BYTES)? {
        decode_structure(fields)?;
    }
    Some(VersionRecord { number, step, bytes: &all[..all.len() - fields.0.len()] })
}

fn decode_structure<'a>(fields: &mut Fields<'a>) -> Option<StructureRecord<'a>> {
    let name_bytes = usize::from(fields.u16()?);
    let kind = ElementKind::decode(fields.bytes(2)?[0])?;
    let table_crc = fields.u32()?;
    let len = fields.u64()?;
    let table_place = fields.u64()?;
    let name = fields.bytes(name_bytes.next_multiple_of(8))?.get(..name_bytes)?;
    let name = std::str::from_utf8(name).ok()?;
    (1..=NAME_BYTES_MOST).contains(&name_bytes).then_some(StructureRecord { name, kind, len, table_crc, table_place })
}

/// The place of a block of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedBlock {
    /// Number of the block in the file.
    pub(crate) place: u32,
    /// CRC-32C of the bytes of the structure in it.
    pub(crate) crc: u32,
    /// The version that wrote it.
    pub(crate) birth: u64,
}

/// Encodes a block table.
pub(crate) fn encode_table(blocks: &[PlacedBlock]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blocks.len() * ENTRY_BYTES);
    for block in blocks {
        bytes.extend(block.place.to_le_bytes());
        bytes.extend(block.crc.to_le_bytes());
        bytes.extend(block.birth.to_le_bytes());
    }
    bytes
}

/// Decodes a block table, or some of its entries.
pub(crate) fn decode_table(bytes: &[u8]) -> impl Iterator<Item = PlacedBlock> {
    let entry = |bytes: &[u8]| {
        let half = |start: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[start + i]));
        PlacedBlock { place: half(0), crc: half(4), birth: u64::from(half(8)) | u64::from(half(12)) << 32 }
    };
    bytes.chunks_exact(ENTRY_BYTES).map(entry)
}

/// Bytes that are taken from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Takes a count and the zeros behind it; no more things are counted than there are bytes for.
    fn count(&mut self, bytes_each: usize) -> Option<usize> {
        let count = self.u32()? as usize;
        self.bytes(4)?;
        (count <= self.0.len() / bytes_each).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: StructureRecord<'_> =
        StructureRecord { name: "web.offsets", kind: ElementKind::U64, len: 0, table_crc: 77, table_place: 1 << 33 };
    const STRUCTURES: [StructureRecord<'_>; 2] =
        [WEB, StructureRecord { name: "y", kind: ElementKind::U8, len: 1, ..WEB }];

    /// A list of versions 3 and 4.
    fn list() -> Vec<u8> {
        encode_catalogue(&[&encode_version(3, 40, &STRUCTURES[1..]), &encode_version(4, 41, &STRUCTURES)])
    }

    #[test]
    fn roots_lists_and_tables_come_back() {
        let root = RootLine { number: 9, block_bytes: 4096, catalogue_crc: 5, catalogue_place: 7, catalogue_bytes: 80 };
        assert_eq!(RootLine::decode(&root.encode()), Ok(root));
        let list = list();
        let starts = decode_catalogue(&list).unwrap();
        let records: Vec<_> = starts.iter().map(|start| decode_version(&list[*start..]).unwrap()).collect();
        assert_eq!(records.iter().map(|record| (record.number, record.step)).collect::<Vec<_>>(), [(3, 40), (4, 41)]);
        assert_eq!(records[0].structures().collect::<Vec<_>>(), STRUCTURES[1..]);
        assert_eq!(records[1].structures().collect::<Vec<_>>(), STRUCTURES);
        assert_eq!(decode_catalogue(&[]), Some(Vec::new()));
        let blocks = [
            PlacedBlock { place: u32::MAX, crc: 1, birth: u64::MAX - 1 },
            PlacedBlock { place: 0, crc: u32::MAX, birth: 1 << 32 },
        ];
        assert_eq!(decode_table(&encode_table(&blocks)).collect::<Vec<_>>(), blocks);
    }

    #[test]
    fn each_flipped_bit_of_a_root_is_found() {
        let root = RootLine { number: 9, block_bytes: 4096, catalogue_crc: 5, catalogue_place: 7, catalogue_bytes: 80 };
        for bit in 0..8 * ROOT_BYTES {
            let mut bytes = root.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(RootLine::decode(&bytes).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn lists_that_are_cut_off_or_count_too_much_are_refused() {
        let bytes = list();
        for end in 1..bytes.len() {
            assert_eq!(decode_catalogue(&bytes[..end]), None, "{end} bytes");
        }
        for at in [0, 24] {
            let mut many = bytes.clone();
            many[at..at + 4].fill(0xff);
            assert_eq!(decode_catalogue(&many), None);
        }
    }

    #[test]
    fn a_root_of_another_format_is_named() {
        let root = RootLine { number: 9, block_bytes: 4096, catalogue_crc: 5, catalogue_place: 7, catalogue_bytes: 80 };
        let mut bytes = root.encode();
        bytes[7] = 9;
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(RootLine::decode(&bytes), Err(RootRefusal::Format(9)));
        assert_eq!(RootLine::decode(&[3; ROOT_BYTES]), Err(RootRefusal::Foreign));
        assert_eq!(RootLine::decode(&[0; ROOT_BYTES]), Err(RootRefusal::Empty));
    }
}
