//! The record of a state, as it is stored in a level: a header, the payload, and zeros to the end
//! of its place; in a file, a trailer with a checksum follows.
//!
//! Promises: [`FORMAT.md`](../FORMAT.md) states the layout. No byte of a file is given out before
//! its checksum held.

use recoup_core::{Bound, CodecError, CodecId, ElementType};

/// The first bytes of a record. The last of them is the version of the format.
const MAGIC: [u8; 8] = *b"RCTAPE\0\x01";
/// The last bytes of a file.
const END: [u8; 4] = *b"TAPE";
/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 80;
/// Bytes of the trailer.
pub(crate) const TRAILER_BYTES: usize = 16;
/// Places begin at its multiples.
const PLACE_UNIT: usize = 64;

/// Relation of a coded state to the one that was pushed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateLink {
    /// Coded alone, and not followed.
    Alone,
    /// Coded alone; states may follow.
    Start,
    /// Coded against the state before; states may follow.
    Follows,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StateHeader {
    /// Number of pushes before, over all runs of the program.
    pub(crate) number: u64,
    /// Name that the program gave.
    pub(crate) step: u64,
    pub(crate) codec: CodecId,
    pub(crate) element: ElementType,
    /// Bound that the decoder is given.
    pub(crate) bound: Bound,
    pub(crate) link: StateLink,
    /// Extents of the grid, the fastest first; their product is the number of values.
    pub(crate) dims: [u64; 3],
    pub(crate) payload_bytes: u64,
}

impl StateHeader {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.dims.iter().product::<u64>() as usize
    }

    /// Returns the bytes of the place that the record takes.
    pub(crate) fn place_bytes(&self) -> usize {
        place_bytes(self.payload_bytes as usize)
    }

    /// Returns the header of the same state, not coded.
    pub(crate) fn as_raw(&self) -> Self {
        let payload_bytes = (self.len() * self.element.size()) as u64;
        Self { codec: CodecId::Raw, bound: Bound::Lossless, link: StateLink::Alone, payload_bytes, ..*self }
    }

    /// Writes a record to its place: header, payload, and zeros to its end. Returns its bytes,
    /// which may be fewer than the place has.
    pub(crate) fn write_record(
        &self,
        place: &mut [u8],
        fill: impl FnOnce(&mut [u8]) -> Result<(), String>,
    ) -> Result<usize, String> {
        let bytes = self.place_bytes();
        let found = place.len();
        let record = place.get_mut(..bytes).ok_or_else(|| format!("a place of {found} bytes for {bytes}"))?;
        let (header, rest) = record.split_at_mut(HEADER_BYTES);
        let (payload, end) = rest.split_at_mut(self.payload_bytes as usize);
        header.copy_from_slice(&self.encode());
        end.fill(0);
        fill(payload).map(|()| bytes)
    }

    /// Compares the bytes of a raw payload with those of its values.
    pub(crate) fn check_length(&self) -> Result<(), CodecError> {
        let what = "its length is not that of its values";
        let is_right = self.payload_bytes == self.as_raw().payload_bytes;
        if is_right { Ok(()) } else { Err(CodecError::Damaged { codec: CodecId::Raw, what }) }
    }

    /// Returns the payload of a record with this header.
    pub(crate) fn payload_of<'a>(&self, record: &'a [u8]) -> Result<&'a [u8], String> {
        let end = HEADER_BYTES + self.payload_bytes as usize;
        record.get(HEADER_BYTES..end).ok_or_else(|| format!("{} bytes, {end} expected", record.len()))
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.step.to_le_bytes());
        let name = self.codec.name().as_bytes();
        bytes[24..24 + name.len()].copy_from_slice(name);
        bytes[32] = element_code(self.element);
        bytes[33] = bound_code(self.bound);
        bytes[34] = self.link as u8;
        for (slot, extent) in bytes[40..64].chunks_exact_mut(8).zip(self.dims) {
            slot.copy_from_slice(&extent.to_le_bytes());
        }
        bytes[64..72].copy_from_slice(&self.bound.value().to_le_bytes());
        bytes[72..80].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes
    }

    /// Reads a header; `Err` says what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let bytes: &[u8; HEADER_BYTES] =
            bytes.first_chunk().ok_or_else(|| format!("{} bytes: a header has {HEADER_BYTES}", bytes.len()))?;
        if bytes[..7] != MAGIC[..7] {
            return Err("it is no state of a tape".to_owned());
        }
        if bytes[7] != MAGIC[7] {
            return Err(format!("format {} of tapes: this recoup reads {}", bytes[7], MAGIC[7]));
        }
        let word = |start: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[start + i]));
        let name = bytes[24..32].split(|byte| *byte == 0).next().unwrap_or_default();
        let codec = String::from_utf8_lossy(name).parse().map_err(|error| format!("{error}"))?;
        let element = decoded_element(bytes[32]).ok_or_else(|| format!("element type {}", bytes[32]))?;
        let bound = decoded_bound(bytes[33], f64::from_bits(word(64)))?;
        let dims = [word(40), word(48), word(56)];
        let values = dims.iter().try_fold(1_u64, |product, extent| product.checked_mul(*extent));
        values.filter(|values| *values < 1 << 60).ok_or_else(|| format!("extents {dims:?}"))?;
        let payload_bytes = word(72);
        if payload_bytes >= 1 << 60 {
            return Err(format!("payload of {payload_bytes} bytes"));
        }
        let links = [StateLink::Alone, StateLink::Start, StateLink::Follows];
        let link = *links.get(usize::from(bytes[34])).ok_or_else(|| format!("link {}", bytes[34]))?;
        Ok(Self { number: word(8), step: word(16), codec, element, bound, link, dims, payload_bytes })
    }
}

/// Returns the bytes of the place of a payload of this size.
pub(crate) fn place_bytes(payload_bytes: usize) -> usize {
    (HEADER_BYTES + payload_bytes).next_multiple_of(PLACE_UNIT)
}

/// Returns the end of a file with these bytes before it.
pub(crate) fn trailer(record: &[u8]) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..8].copy_from_slice(&(record.len() as u64).to_le_bytes());
    bytes[8..12].copy_from_slice(&crc32c::crc32c(record).to_le_bytes());
    bytes[12..].copy_from_slice(&END);
    bytes
}

/// Compares a record with the trailer of its file; `Err` says what is wrong.
pub(crate) fn check(record: &[u8], found: &[u8; TRAILER_BYTES]) -> Result<(), String> {
    let expected = trailer(record);
    if found == &expected {
        return Ok(());
    }
    if found[..8] != expected[..8] || found[12..] != expected[12..] {
        return Err("its end is not that of a state: cut off or overwritten".to_owned());
    }
    let crc = |bytes: &[u8]| u32::from_le_bytes(std::array::from_fn(|i| bytes[8 + i]));
    Err(format!("checksum {:08x} expected, {:08x} found", crc(found), crc(&expected)))
}

fn element_code(element: ElementType) -> u8 {
    match element {
        ElementType::F64 => 0,
        ElementType::F32 => 1,
        ElementType::I64 => 2,
        ElementType::Bytes => 3,
    }
}

fn decoded_element(code: u8) -> Option<ElementType> {
    [ElementType::F64, ElementType::F32, ElementType::I64, ElementType::Bytes].get(usize::from(code)).copied()
}

fn bound_code(bound: Bound) -> u8 {
    match bound {
        Bound::Lossless => 0,
        Bound::Absolute(_) => 1,
        Bound::Range(_) => 2,
        Bound::Pointwise(_) => 3,
    }
}

fn decoded_bound(code: u8, value: f64) -> Result<Bound, String> {
    let bound = match code {
        0 => Bound::Lossless,
        1 => Bound::Absolute(value),
        2 => Bound::Range(value),
        3 => Bound::Pointwise(value),
        _ => return Err(format!("kind of bound {code}")),
    };
    bound.validated().map_err(|error| error.to_string())
}

/// Bytes of a codec's name in a header.
const CODEC_BYTES: usize = 8;

/// Returns whether a header has room for the name of a codec.
pub(crate) fn has_word_for(codec: CodecId) -> bool {
    codec.name().len() <= CODEC_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> StateHeader {
        StateHeader {
            number: 7,
            step: 120,
            codec: CodecId::Qb,
            element: ElementType::F64,
            bound: Bound::Absolute(1e-4),
            link: StateLink::Follows,
            dims: [16, 9, 2],
            payload_bytes: 1234,
        }
    }

    #[test]
    fn headers_come_back() {
        for codec in CodecId::ALL.into_iter().filter(|codec| has_word_for(*codec)) {
            for bound in [Bound::Lossless, Bound::Range(0.5), Bound::Pointwise(1e-300)] {
                let header = StateHeader { codec, bound, ..header() };
                assert_eq!(StateHeader::decode(&header.encode()), Ok(header));
            }
        }
        assert_eq!((header().len(), header().place_bytes()), (288, 1344));
    }

    #[test]
    fn damaged_headers_are_errors_and_never_panics() {
        let bytes = header().encode();
        for end in 0..HEADER_BYTES {
            assert!(StateHeader::decode(&bytes[..end]).is_err());
        }
        for (at, value) in [(0, 1), (7, 9), (24, 0xff), (32, 9), (33, 9), (34, 3), (47, 0xff), (71, 0x7f)] {
            let mut damaged = bytes;
            damaged[at] = value;
            if at == 71 {
                damaged[70] = 0xf0;
            }
            assert!(StateHeader::decode(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn each_flipped_bit_of_a_file_is_found() {
        let record: Vec<u8> = (0..200).collect();
        let end = trailer(&record);
        assert_eq!(check(&record, &end), Ok(()));
        for bit in 0..8 * record.len() {
            let mut flipped = record.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&flipped, &end).is_err());
        }
        for bit in 0..8 * TRAILER_BYTES {
            let mut flipped = end;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&record, &flipped).is_err());
        }
    }
}
