//! A frame as bytes: header, top of each field, stream, exceptions. FORMAT.md states every byte.

use recoup_core::CodecResult;

use super::damage::damaged;
use super::lattice::FineLattice;
use super::levels::{LONGEST_DELAY, LevelRule};
use super::rans::STATE_BYTES;
use super::reflection::Reflection;
use super::stream::StreamLengths;
use crate::scalar::Scalar;

pub(super) const HEADER: usize = 96;
const MAGIC: [u8; 4] = *b"RCPY";
/// The version that is written.
const VERSION: u16 = 3;
/// The first version: levels halve all axes, every second point is odd, and no half is left out.
const VERSION_2: u16 = 2;
/// Place of the type of the values.
pub(super) const DTYPE: usize = 6;
const CHECKSUM: usize = 12;
/// The most unknowns that are coded as fields of their own.
pub(super) const FIELDS: usize = 255;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PyramidHeader {
    /// Interleaved unknowns of a point.
    pub(super) fields: u8,
    /// Extents of each field.
    pub(super) grid: [usize; 3],
    pub(super) reflection: Reflection,
    pub(super) rule: LevelRule,
    pub(super) lattice: FineLattice,
    pub(super) stream: StreamLengths,
    pub(super) exceptions: u64,
}

/// The parts of a frame behind its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameParts<'a> {
    pub(super) tops: &'a [u8],
    pub(super) stream: &'a [u8],
    pub(super) exceptions: &'a [u8],
}

impl PyramidHeader {
    /// Writes the header over the first bytes of `frame`, which is complete but for it.
    pub(super) fn write<T: Scalar>(&self, frame: &mut [u8]) {
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend([T::DTYPE, self.fields, self.reflection.axes(), 0, 0, 0]);
        header.extend([0; 4]);
        self.grid.iter().for_each(|extent| header.extend((*extent as u32).to_le_bytes()));
        self.lattice.steps.iter().for_each(|step| header.extend(step.to_le_bytes()));
        header.extend(self.rule.delays);
        header.push(0);
        header.extend(self.lattice.unit.to_le_bytes());
        header.extend(self.lattice.base.to_le_bytes());
        let StreamLengths { tables, words, low_bits, escapes, .. } = self.stream;
        [tables, words, low_bits, escapes, self.exceptions].iter().for_each(|n| header.extend(n.to_le_bytes()));
        frame[..HEADER].copy_from_slice(&header);
        let checksum = checksum(frame);
        frame[CHECKSUM..CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the header of a whole frame of values of type `T`, and finds its parts.
    pub(super) fn parse<T: Scalar>(frame: &[u8]) -> CodecResult<(Self, FrameParts<'_>)> {
        let (header, rest) = frame.split_first_chunk::<HEADER>().ok_or_else(|| damaged("shorter than its header"))?;
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        if header[..4] != MAGIC {
            return Err(damaged("no frame of a pyramid"));
        }
        let is_first = u16_at(4) == VERSION_2;
        if !is_first && u16_at(4) != VERSION {
            return Err(damaged("a version this build does not know"));
        }
        if checksum(frame) != u32_at(CHECKSUM) {
            return Err(damaged("checksum"));
        }
        let [x, y, z, padding] = [36, 37, 38, 39].map(|at| header[at]);
        let rule = LevelRule { keeps_last: !is_first, delays: [x, y, z] };
        let is_of_version = if is_first { rule == LevelRule::VERSION_2 && header[8] == 0 } else { true };
        let are_zeros = header[9..12] == [0; 3] && padding == 0;
        let reflection = Reflection::of_header(header[8]).filter(|_| is_of_version && are_zeros);
        let reflection = reflection.filter(|_| rule.delays.iter().all(|delay| *delay <= LONGEST_DELAY));
        let reflection = reflection.filter(|_| header[DTYPE] == T::DTYPE && header[7] != 0);
        let reflection = reflection.ok_or_else(|| damaged("header does not fit"))?;
        let grid = [16, 20, 24].map(|at| u32_at(at) as usize);
        let steps = [28, 30, 32, 34].map(u16_at);
        let lattice = FineLattice::of_header(f64::from_bits(u64_at(40)), f64::from_bits(u64_at(48)), steps)
            .ok_or_else(|| damaged("no lattice of a pyramid"))?;
        let [tables, words, low_bits, escapes, exceptions] = [56, 64, 72, 80, 88].map(u64_at);
        let stream = StreamLengths { is_version_2: is_first, tables, words, low_bits, escapes };
        let header = Self { fields: header[7], grid, reflection, rule, lattice, stream, exceptions };
        let parts = header.parts(rest, T::BYTES).ok_or_else(|| damaged("parts do not add up"))?;
        Ok((header, parts))
    }

    fn parts<'a>(&self, rest: &'a [u8], value_bytes: usize) -> Option<FrameParts<'a>> {
        let (tops, rest) = rest.split_at_checked(4 * usize::from(self.fields))?;
        let StreamLengths { tables, words, low_bits, escapes, .. } = self.stream;
        let lengths = [tables, words, low_bits, escapes, STATE_BYTES as u64];
        let bytes = lengths.iter().try_fold(0u64, |sum, bytes| sum.checked_add(*bytes))?;
        let (stream, exceptions) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
        let bytes = usize::try_from(self.exceptions).ok()?.checked_mul(4 + value_bytes)?;
        (exceptions.len() == bytes).then_some(FrameParts { tops, stream, exceptions })
    }
}

/// CRC-32C of a frame, the field of the checksum being zero.
fn checksum(frame: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&frame[..CHECKSUM]);
    let sum = crc32c::crc32c_append(sum, &[0; 4]);
    crc32c::crc32c_append(sum, &frame[CHECKSUM + 4..])
}
