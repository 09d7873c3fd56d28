//! Staging: the copy that blocks the solver, into buffers that are used again.

use recoup_core::{ElementType, Resume, Values, ValuesMut, Variable, VariableRecord};

/// Raw bytes a frame aims at: large enough to encode well, small enough to decode alone.
const FRAME_BYTES_TARGET: usize = 8 << 20;

/// An owned copy of values. Those of a variable on its way to a store are padded to whole frames with the last value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Buffer {
    /// IEEE doubles.
    F64(Vec<f64>),
    /// IEEE singles.
    F32(Vec<f32>),
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Plain bytes.
    Bytes(Vec<u8>),
}

impl Buffer {
    pub(crate) fn new(element: ElementType) -> Self {
        match element {
            ElementType::F32 => Self::F32(Vec::new()),
            ElementType::I64 => Self::I64(Vec::new()),
            ElementType::Bytes => Self::Bytes(Vec::new()),
            _ => Self::F64(Vec::new()),
        }
    }

    /// Becomes one for values of this type; what it holds and has room for is kept where it is one already.
    pub(crate) fn retype(&mut self, element: ElementType) {
        let other = Self::new(element);
        if std::mem::discriminant(self) != std::mem::discriminant(&other) {
            *self = other;
        }
    }

    /// Zeros of the padded length: room for a decoder.
    pub(crate) fn resize(&mut self, padded_len: usize) {
        match self {
            Self::F64(v) => v.resize(padded_len, 0.0),
            Self::F32(v) => v.resize(padded_len, 0.0),
            Self::I64(v) => v.resize(padded_len, 0),
            Self::Bytes(v) => v.resize(padded_len, 0),
        }
    }

    /// The values from `start`, `len` of them.
    pub(crate) fn slice(&self, start: usize, len: usize) -> Values<'_> {
        self.all().slice(start, len)
    }

    /// All values.
    #[must_use]
    pub fn all(&self) -> Values<'_> {
        match self {
            Self::F64(v) => Values::F64(v),
            Self::F32(v) => Values::F32(v),
            Self::I64(v) => Values::I64(v),
            Self::Bytes(v) => Values::Bytes(v),
        }
    }

    /// The values from `start`, `len` of them, to be overwritten.
    pub(crate) fn slice_mut(&mut self, start: usize, len: usize) -> ValuesMut<'_> {
        match self {
            Self::F64(v) => ValuesMut::F64(&mut v[start..start + len]),
            Self::F32(v) => ValuesMut::F32(&mut v[start..start + len]),
            Self::I64(v) => ValuesMut::I64(&mut v[start..start + len]),
            Self::Bytes(v) => ValuesMut::Bytes(&mut v[start..start + len]),
        }
    }

    /// Copies `values` in and pads to `padded_len`.
    fn fill(&mut self, values: Values<'_>, padded_len: usize) {
        match (self, values) {
            (Self::F64(v), Values::F64(s)) => copy_padded(v, s, padded_len),
            (Self::F32(v), Values::F32(s)) => copy_padded(v, s, padded_len),
            (Self::I64(v), Values::I64(s)) => copy_padded(v, s, padded_len),
            (Self::Bytes(v), Values::Bytes(s)) => copy_padded(v, s, padded_len),
            (this, values) => {
                *this = Self::new(values.element());
                this.fill(values, padded_len);
            }
        }
    }

    /// Adds the first `len` values of `other`, which are of the same type.
    pub(crate) fn append(&mut self, other: Self, len: usize) {
        match (self, other) {
            (Self::F64(v), Self::F64(o)) => join(v, o, len),
            (Self::F32(v), Self::F32(o)) => join(v, o, len),
            (Self::I64(v), Self::I64(o)) => join(v, o, len),
            (Self::Bytes(v), Self::Bytes(o)) => join(v, o, len),
            _ => unreachable!("parts of one variable are of one type"),
        }
    }

    /// Copies values from `start` on out into `target`; lengths and types were compared before.
    pub(crate) fn copy_to(&self, start: usize, target: ValuesMut<'_>) {
        let len = target.as_values().len();
        match (self.slice(start, len), target) {
            (Values::F64(v), ValuesMut::F64(t)) => t.copy_from_slice(v),
            (Values::F32(v), ValuesMut::F32(t)) => t.copy_from_slice(v),
            (Values::I64(v), ValuesMut::I64(t)) => t.copy_from_slice(v),
            (Values::Bytes(v), ValuesMut::Bytes(t)) => t.copy_from_slice(v),
            _ => unreachable!("element types are compared before values are copied"),
        }
    }
}

/// The first part is moved, not copied.
fn join<T>(target: &mut Vec<T>, mut source: Vec<T>, len: usize) {
    source.truncate(len);
    if target.is_empty() {
        *target = source;
    } else {
        target.append(&mut source);
    }
}

fn copy_padded<T: Copy>(target: &mut Vec<T>, source: &[T], padded_len: usize) {
    target.clear();
    target.extend_from_slice(source);
    if let Some(&last) = source.last() {
        target.resize(padded_len, last);
    }
}

/// One staged variable.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    pub(crate) record: VariableRecord,
    pub(crate) values: Buffer,
}

impl Staged {
    /// Values in one frame.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(&self.record)
    }

    /// Number of frames.
    pub(crate) fn frames(&self) -> usize {
        frames(&self.record)
    }
}

/// Values in one frame of a variable.
pub(crate) fn frame_len(record: &VariableRecord) -> usize {
    record.frame_dims.iter().product()
}

/// Number of frames of a variable.
pub(crate) fn frames(record: &VariableRecord) -> usize {
    (record.len as usize).div_ceil(frame_len(record).max(1))
}

/// The staged variables of one version. Its buffers are used again by later versions.
#[derive(Debug, Default)]
pub(crate) struct StagingSet {
    pub(crate) staged: Vec<Staged>,
}

impl StagingSet {
    /// Copies the variables a version for `resume` holds.
    pub(crate) fn stage(&mut self, variables: &[Variable<'_>], resume: Resume, rank: usize) {
        let saved = variables.iter().filter(|v| v.role.is_saved_for(resume));
        let mut count = 0;
        for (index, variable) in saved.enumerate() {
            let record = record(variable, rank);
            if index == self.staged.len() {
                self.staged.push(Staged { values: Buffer::new(record.element), record: record.clone() });
            }
            let staged = &mut self.staged[index];
            staged.record = record;
            staged.values.fill(variable.values, staged.frames() * staged.frame_len());
            count = index + 1;
        }
        self.staged.truncate(count);
    }

    pub(crate) fn raw_bytes(&self) -> u64 {
        self.staged.iter().map(|s| s.record.len * s.record.element.size() as u64).sum()
    }
}

/// What the manifest will say of a variable, frame extents included.
pub(crate) fn record(variable: &Variable<'_>, rank: usize) -> VariableRecord {
    VariableRecord {
        name: variable.name.to_owned(),
        rank,
        role: variable.role,
        element: variable.values.element(),
        len: variable.values.len() as u64,
        dims: variable.dims,
        stride: variable.stride,
        frame_dims: frame_dims(variable.dims, variable.values.element().size()),
        distribution: variable.distribution,
    }
}

/// Cuts the slowest extent into equal pieces of about [`FRAME_BYTES_TARGET`]; pieces differ from
/// an even split by less than one element each, so padding is small.
fn frame_dims(dims: [usize; 3], element_bytes: usize) -> [usize; 3] {
    let slowest = dims.iter().rposition(|&extent| extent > 1).unwrap_or(0);
    let slice_bytes = dims[..slowest].iter().product::<usize>() * element_bytes;
    let total_bytes = slice_bytes * dims[slowest];
    let n_frames = total_bytes.div_ceil(FRAME_BYTES_TARGET).clamp(1, dims[slowest].max(1));
    let mut frame = dims;
    frame[slowest] = dims[slowest].div_ceil(n_frames).max(1);
    frame
}

#[cfg(test)]
mod tests {
    use recoup_core::Role;

    use super::*;

    #[test]
    fn frames_cover_every_value_with_little_padding() {
        for dims in [[1, 1, 1], [1000, 1, 1], [1 << 21, 1, 1], [3_000_001, 1, 1], [128, 128, 128], [100, 100, 301]] {
            let frame = frame_dims(dims, 8);
            let len: usize = dims.iter().product();
            let frame_len: usize = frame.iter().product();
            let n_frames = len.div_ceil(frame_len);
            assert!(n_frames * frame_len >= len);
            assert!(frame_len * 8 <= FRAME_BYTES_TARGET.max(dims[0] * dims[1] * 8), "{dims:?}");
            let slice = if dims[2] > 1 { dims[0] * dims[1] } else { 1 };
            assert!(n_frames * frame_len - len < n_frames * slice, "{dims:?}: {frame:?}");
        }
    }

    #[test]
    fn staging_reuses_its_buffers() {
        let x = vec![1.0; 5000];
        let variable = Variable::new("x", Role::Iterate, Values::F64(&x), recoup_core::Distribution::RankLocal);
        let mut set = StagingSet::default();
        set.stage(std::slice::from_ref(&variable), Resume::Restarted, 0);
        let first = address(&set);
        set.stage(&[variable], Resume::Restarted, 0);
        assert_eq!(address(&set), first);
        assert_eq!(set.staged[0].values, Buffer::F64(x.clone()));
    }

    fn address(set: &StagingSet) -> *const f64 {
        match &set.staged[0].values {
            Buffer::F64(values) => values.as_ptr(),
            other => panic!("doubles expected, {other:?} found"),
        }
    }
}
