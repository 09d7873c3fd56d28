//! Values of a state in memory of their own.

use recoup_core::{ElementType, Values, ValuesMut};

/// Values of any element type, aligned for all.
#[derive(Clone, Debug)]
pub(crate) struct StateValues {
    words: Vec<u64>,
    element: ElementType,
    len: usize,
}

impl StateValues {
    /// Makes room for values, without any.
    pub(crate) fn new() -> Self {
        Self { words: Vec::new(), element: ElementType::F64, len: 0 }
    }

    /// Becomes room for `len` values of this type, which hold anything.
    pub(crate) fn reshape(&mut self, element: ElementType, len: usize) {
        self.words.resize((element.size() * len).div_ceil(size_of::<u64>()), 0);
        self.element = element;
        self.len = len;
    }

    /// Becomes a copy of `source`.
    pub(crate) fn fill(&mut self, source: Values<'_>) {
        self.reshape(source.element(), source.len());
        copy(source, self.values_mut());
    }

    pub(crate) fn values(&self) -> Values<'_> {
        match self.element {
            ElementType::F64 => Values::F64(&bytemuck::cast_slice(&self.words)[..self.len]),
            ElementType::F32 => Values::F32(&bytemuck::cast_slice(&self.words)[..self.len]),
            ElementType::I64 => Values::I64(&bytemuck::cast_slice(&self.words)[..self.len]),
            ElementType::Bytes => Values::Bytes(&bytemuck::cast_slice(&self.words)[..self.len]),
        }
    }

    pub(crate) fn values_mut(&mut self) -> ValuesMut<'_> {
        match self.element {
            ElementType::F64 => ValuesMut::F64(&mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]),
            ElementType::F32 => ValuesMut::F32(&mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]),
            ElementType::I64 => ValuesMut::I64(&mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]),
            ElementType::Bytes => ValuesMut::Bytes(&mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]),
        }
    }
}

/// Copies values of the same type and number.
pub(crate) fn copy(source: Values<'_>, target: ValuesMut<'_>) {
    match (source, target) {
        (Values::F64(s), ValuesMut::F64(t)) => t.copy_from_slice(s),
        (Values::F32(s), ValuesMut::F32(t)) => t.copy_from_slice(s),
        (Values::I64(s), ValuesMut::I64(t)) => t.copy_from_slice(s),
        (Values::Bytes(s), ValuesMut::Bytes(t)) => t.copy_from_slice(s),
        _ => unreachable!("types are compared before values are copied"),
    }
}

/// Writes values as little-endian bytes.
pub(crate) fn write_bytes(source: Values<'_>, target: &mut [u8]) {
    if let Some(bytes) = source.as_raw() {
        return target.copy_from_slice(bytes);
    }
    match source {
        Values::F64(s) => target.chunks_exact_mut(8).zip(s).for_each(|(t, x)| t.copy_from_slice(&x.to_le_bytes())),
        Values::F32(s) => target.chunks_exact_mut(4).zip(s).for_each(|(t, x)| t.copy_from_slice(&x.to_le_bytes())),
        Values::I64(s) => target.chunks_exact_mut(8).zip(s).for_each(|(t, x)| t.copy_from_slice(&x.to_le_bytes())),
        Values::Bytes(s) => target.copy_from_slice(s),
    }
}

/// Returns the memory of values, where it holds little-endian bytes.
#[cfg(feature = "cuda")]
pub(crate) fn raw_mut(values: ValuesMut<'_>) -> Option<&mut [u8]> {
    match values {
        ValuesMut::Bytes(v) => Some(v),
        _ if cfg!(target_endian = "big") => None,
        ValuesMut::F64(v) => Some(bytemuck::cast_slice_mut(v)),
        ValuesMut::F32(v) => Some(bytemuck::cast_slice_mut(v)),
        ValuesMut::I64(v) => Some(bytemuck::cast_slice_mut(v)),
    }
}

/// Reads values from little-endian bytes, which are as many.
pub(crate) fn read_bytes(source: &[u8], target: ValuesMut<'_>) {
    match target {
        ValuesMut::F64(t) => read_words(source, t, f64::from_le_bytes),
        ValuesMut::F32(t) => read_words(source, t, f32::from_le_bytes),
        ValuesMut::I64(t) => read_words(source, t, i64::from_le_bytes),
        ValuesMut::Bytes(t) => t.copy_from_slice(source),
    }
}

fn read_words<T: bytemuck::Pod, const N: usize>(source: &[u8], target: &mut [T], read: fn([u8; N]) -> T) {
    if cfg!(target_endian = "little") {
        return bytemuck::cast_slice_mut(target).copy_from_slice(source);
    }
    let words = source.as_chunks::<N>().0;
    target.iter_mut().zip(words).for_each(|(t, word)| *t = read(*word));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_from_their_bytes_and_their_copies() {
        let doubles = [1.5, f64::NAN, -0.0];
        let singles = [2.5_f32, f32::INFINITY, 1e-40];
        let all =
            [Values::F64(&doubles), Values::F32(&singles), Values::I64(&[-3, 4]), Values::Bytes(&[1, 2, 3, 4, 5])];
        let mut owned = StateValues::new();
        for values in all {
            let mut bytes = vec![0; values.len() * values.element().size()];
            write_bytes(values, &mut bytes);
            assert_eq!(bytes, values.as_raw().unwrap());
            owned.fill(values);
            assert_eq!(owned.values().as_raw(), values.as_raw());
            let mut back = StateValues::new();
            back.reshape(values.element(), values.len());
            read_bytes(&bytes, back.values_mut());
            assert_eq!(back.values().as_raw(), values.as_raw());
        }
    }
}
