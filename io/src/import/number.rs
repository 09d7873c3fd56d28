//! Numbers of other programs' files: floats and integers, of either order of bytes, as doubles.

use super::refusal::{ImportRefusal, refuse};

/// Kinds of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberKind {
    Float,
    Signed,
    Unsigned,
}

/// The form of the numbers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberForm {
    kind: NumberKind,
    /// Bytes of a number.
    pub(super) width: usize,
    is_big_endian: bool,
}

impl NumberForm {
    /// Returns the form, where doubles can hold such numbers.
    pub(super) fn new(kind: NumberKind, width: usize, is_big_endian: bool) -> Option<Self> {
        let is_known = match kind {
            NumberKind::Float => matches!(width, 4 | 8),
            NumberKind::Signed | NumberKind::Unsigned => matches!(width, 1 | 2 | 4 | 8),
        };
        is_known.then_some(Self { kind, width, is_big_endian })
    }

    /// Decodes the first `values` numbers of `data`. An integer that no double holds is refused.
    pub(super) fn decode(self, data: &[u8], values: usize) -> Result<Vec<f64>, ImportRefusal> {
        let Some(data) = values.checked_mul(self.width).and_then(|bytes| data.get(..bytes)) else {
            return refuse(format!("{values} values"), format!("room for {}", data.len() / self.width));
        };
        data.chunks_exact(self.width).enumerate().map(|(index, bytes)| self.value(index, bytes)).collect()
    }

    fn value(self, index: usize, bytes: &[u8]) -> Result<f64, ImportRefusal> {
        let fold = |word: u64, byte: &u8| (word << 8) | u64::from(*byte);
        let word = if self.is_big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) };
        let unused = 64 - 8 * self.width as u32;
        let integer = match (self.kind, self.width) {
            (NumberKind::Float, 8) => return Ok(f64::from_bits(word)),
            (NumberKind::Float, _) => return Ok(f64::from(f32::from_bits(word as u32))),
            (NumberKind::Signed, _) => i128::from(((word << unused) as i64) >> unused),
            (NumberKind::Unsigned, _) => i128::from(word),
        };
        let value = integer as f64;
        if value as i128 == integer {
            return Ok(value);
        }
        refuse("integers that doubles hold, as all up to 2^53", format!("value {} is {integer}, which", index + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_form_are_read_and_none_is_rounded() {
        let form = |kind, width, is_big_endian| NumberForm::new(kind, width, is_big_endian).unwrap();
        let read = |form: NumberForm, bytes: &[u8]| form.decode(bytes, bytes.len() / form.width).ok();
        assert_eq!(read(form(NumberKind::Float, 8, true), &(-1.5_f64).to_be_bytes()), Some(vec![-1.5]));
        assert_eq!(read(form(NumberKind::Float, 4, false), &2.5_f32.to_le_bytes()), Some(vec![2.5]));
        assert_eq!(read(form(NumberKind::Signed, 4, true), &(-7_i32).to_be_bytes()), Some(vec![-7.0]));
        assert_eq!(read(form(NumberKind::Signed, 1, false), &[0xff, 2]), Some(vec![-1.0, 2.0]));
        assert_eq!(read(form(NumberKind::Unsigned, 2, false), &[0xff, 0xff]), Some(vec![65_535.0]));
        let exact = 1_i64 << 53;
        assert_eq!(read(form(NumberKind::Signed, 8, false), &exact.to_le_bytes()), Some(vec![exact as f64]));
        assert_eq!(read(form(NumberKind::Signed, 8, false), &(exact + 1).to_le_bytes()), None);
        assert_eq!(NumberForm::new(NumberKind::Float, 2, false), None);
    }
}
