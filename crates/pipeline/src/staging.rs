//! Staging: the copy that blocks the solver, into buffers that are used again. Values that rest
//! elsewhere are frozen there.

use recoup_core::{
    Afar, AfarError, CodecId, ElementType, HeldValues, Lent, Plan, Registered, Scheme, Values, ValuesMut, Variable,
    VariableRecord,
};

use crate::placed::PlacedValues;
use crate::{PipelineError, registry, sys};

/// Raw bytes a frame aims at: large enough to encode well, small enough to decode alone.
const FRAME_BYTES_TARGET: usize = 8 << 20;
/// Bytes of a huge page where the processor has them.
const HUGE_PAGE: usize = 2 << 20;
/// Bytes that allocators keep in front of large memory.
const ALLOCATOR_BYTES: usize = 16;
/// Values copied at a time: what stays in the nearest cache until it is summed.
const PIECE_LEN: usize = 3 << 10;

/// An owned copy of values. Those of a variable on its way to a store are padded to whole frames
/// with the last value.
#[derive(Clone, Debug, PartialEq)]
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
            ElementType::F64 => Self::F64(Vec::new()),
            ElementType::F32 => Self::F32(Vec::new()),
            ElementType::I64 => Self::I64(Vec::new()),
            ElementType::Bytes => Self::Bytes(Vec::new()),
        }
    }

    /// Becomes a buffer for values of this type; one that is already keeps its values and memory.
    pub(crate) fn retype(&mut self, element: ElementType) {
        let other = Self::new(element);
        if std::mem::discriminant(self) != std::mem::discriminant(&other) {
            *self = other;
        }
    }

    /// Resizes to the padded length, with zeros, for a decoder.
    pub(crate) fn resize(&mut self, padded_len: usize) {
        match self {
            Self::F64(v) => v.resize(padded_len, 0.0),
            Self::F32(v) => v.resize(padded_len, 0.0),
            Self::I64(v) => v.resize(padded_len, 0),
            Self::Bytes(v) => v.resize(padded_len, 0),
        }
    }

    /// Overwrites all values with zeros.
    pub(crate) fn zero(&mut self) {
        match self {
            Self::F64(v) => v.fill(0.0),
            Self::F32(v) => v.fill(0.0),
            Self::I64(v) => v.fill(0),
            Self::Bytes(v) => v.fill(0),
        }
    }

    /// Returns the first `len` values; none when they are no doubles.
    pub(crate) fn doubles(&self, len: usize) -> &[f64] {
        match self {
            Self::F64(values) => &values[..len],
            _ => &[],
        }
    }

    /// Returns the values from `start`, `len` of them.
    pub(crate) fn slice(&self, start: usize, len: usize) -> Values<'_> {
        self.all().slice(start, len)
    }

    /// Returns all values.
    #[must_use]
    pub fn all(&self) -> Values<'_> {
        match self {
            Self::F64(v) => Values::F64(v),
            Self::F32(v) => Values::F32(v),
            Self::I64(v) => Values::I64(v),
            Self::Bytes(v) => Values::Bytes(v),
        }
    }

    /// Returns the values from `start`, `len` of them, to be overwritten.
    pub(crate) fn slice_mut(&mut self, start: usize, len: usize) -> ValuesMut<'_> {
        match self {
            Self::F64(v) => ValuesMut::F64(&mut v[start..start + len]),
            Self::F32(v) => ValuesMut::F32(&mut v[start..start + len]),
            Self::I64(v) => ValuesMut::I64(&mut v[start..start + len]),
            Self::Bytes(v) => ValuesMut::Bytes(&mut v[start..start + len]),
        }
    }

    /// Copies `values` in, pads to whole frames, and shows `seen` each piece while it is near.
    fn fill(&mut self, values: Values<'_>, frames: Frames, seen: &mut dyn FnMut(usize, Values<'_>)) {
        match (self, values) {
            (Self::F64(v), Values::F64(s)) => copy_padded(v, s, frames, |run, piece| seen(run, Values::F64(piece))),
            (Self::F32(v), Values::F32(s)) => copy_padded(v, s, frames, |run, piece| seen(run, Values::F32(piece))),
            (Self::I64(v), Values::I64(s)) => copy_padded(v, s, frames, |run, piece| seen(run, Values::I64(piece))),
            (Self::Bytes(v), Values::Bytes(s)) => {
                copy_padded(v, s, frames, |run, piece| seen(run, Values::Bytes(piece)));
            }
            (this, values) => {
                *this = Self::new(values.element());
                this.fill(values, frames, seen);
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

/// Joins two parts; the first is moved, not copied.
fn join<T>(target: &mut Vec<T>, mut source: Vec<T>, len: usize) {
    source.truncate(len);
    if target.is_empty() {
        *target = source;
    } else {
        target.append(&mut source);
    }
}

/// The division of a variable's values into frames.
#[derive(Clone, Copy)]
struct Frames {
    n_frames: usize,
    /// Values in one frame.
    len: usize,
}

/// Copies frame by frame and piece by piece; `seen` is shown each piece of each frame, padding
/// included.
fn copy_padded<T: Copy>(target: &mut Vec<T>, source: &[T], frames: Frames, mut seen: impl FnMut(usize, &[T])) {
    target.clear();
    let Some(&last) = source.last() else { return };
    reserve(target, frames.n_frames * frames.len);
    for run in 0..frames.n_frames {
        let start = run * frames.len;
        let end = (run + 1) * frames.len;
        for piece in source[start..end.min(source.len())].chunks(PIECE_LEN) {
            target.extend_from_slice(piece);
            seen(run, piece);
        }
        if end > source.len() {
            target.resize(end, last);
            seen(run, &target[source.len()..]);
        }
    }
}

/// Reserves memory for this many values in all, in huge pages where it pays: a copy then finds its
/// pages, and a device maps few.
fn reserve<T: Copy>(target: &mut Vec<T>, len: usize) {
    let bytes = len * size_of::<T>();
    if len <= target.capacity() {
        return;
    }
    if bytes < HUGE_PAGE {
        return target.reserve_exact(len);
    }
    // With what an allocator keeps in front it is whole huge pages, which the system then lays
    // where such pages begin.
    let room = (bytes + ALLOCATOR_BYTES).next_multiple_of(HUGE_PAGE) - ALLOCATOR_BYTES;
    target.reserve_exact(room / size_of::<T>());
    sys::advise_huge_pages(target.spare_capacity_mut());
}

/// One staged variable.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) record: VariableRecord,
    pub(crate) values: PlacedValues,
    /// CRC-32C of each frame's memory, where they were taken on the way: a later look would bring
    /// all values near once more.
    pub(crate) sums: Vec<u32>,
}

impl Staged {
    /// Returns the number of values in one frame.
    pub(crate) fn frame_len(&self) -> usize {
        frame_len(&self.record)
    }

    /// Returns the number of frames.
    pub(crate) fn frames(&self) -> usize {
        frames(&self.record)
    }

    /// Returns the padded values where they are in this process's memory.
    pub(crate) fn near(&self) -> Option<&Buffer> {
        self.values.near()
    }

    /// Returns the copy where the values rest, if they rest elsewhere.
    pub(crate) fn held(&self) -> Option<&dyn HeldValues> {
        self.values.held()
    }

    /// Freezes values where they rest. The copy of the version before is handed back.
    fn hold(&mut self, values: &dyn Afar) -> Result<(), AfarError> {
        self.sums.clear();
        let none = PlacedValues::none(values.element());
        let earlier = match std::mem::replace(&mut self.values, none) {
            PlacedValues::Held(earlier) => Some(earlier),
            PlacedValues::Near(_) => None,
        };
        self.values = PlacedValues::Held(values.hold(padded_len(&self.record), earlier)?);
        Ok(())
    }

    /// Copies `values` in; with sums where the frames' memory is what will be written.
    fn fill(&mut self, values: Values<'_>, is_summed: bool) {
        let frames = Frames { n_frames: self.frames(), len: self.frame_len() };
        self.sums.clear();
        self.sums.resize(if is_summed { frames.n_frames } else { 0 }, 0);
        let mut sums = std::mem::take(&mut self.sums);
        self.values.near_mut(self.record.element).fill(values, frames, &mut |run, piece| {
            if let (Some(sum), Some(bytes)) = (sums.get_mut(run), piece.as_raw()) {
                *sum = crc32c::crc32c_append(*sum, bytes);
            }
        });
        self.sums = sums;
    }
}

/// Names the variable whose place failed.
pub(crate) fn afar_error(record: &VariableRecord) -> impl Fn(AfarError) -> PipelineError + use<> {
    let variable = record.name.clone();
    let rank = record.rank;
    move |source| PipelineError::Afar { variable: variable.clone(), rank, source }
}

/// Returns the number of values in one frame of a variable.
pub(crate) fn frame_len(record: &VariableRecord) -> usize {
    record.frame_dims.iter().product()
}

/// Returns the number of frames of a variable.
pub(crate) fn frames(record: &VariableRecord) -> usize {
    (record.len as usize).div_ceil(frame_len(record).max(1))
}

/// Returns the number of values of a variable in whole frames.
pub(crate) fn padded_len(record: &VariableRecord) -> usize {
    frames(record) * frame_len(record)
}

/// The staged variables of one version. Its buffers are used again by later versions.
#[derive(Debug, Default)]
pub(crate) struct StagingSet {
    pub(crate) staged: Vec<Staged>,
}

impl StagingSet {
    /// Copies the variables that a version of this plan holds.
    ///
    /// # Errors
    /// [`PipelineError::Name`] or [`PipelineError::Shape`] of any variable, before any is copied;
    /// [`PipelineError::Afar`] where values cannot be frozen where they rest.
    pub(crate) fn stage(&mut self, owners: &[&dyn Registered], plan: &Plan, rank: usize) -> Result<(), PipelineError> {
        let mut variables = Vec::new();
        owners.iter().for_each(|owner| variables.extend(owner.variables()));
        registry::check(&variables)?;
        let saved = variables.iter().filter(|v| v.role.is_saved_for(plan.resume));
        let is_summed = plan.scheme != Scheme::Lossy && plan.codec == CodecId::Raw;
        let mut count = 0;
        for (index, variable) in saved.enumerate() {
            let record = record(variable, rank);
            if index == self.staged.len() {
                let values = PlacedValues::none(record.element);
                self.staged.push(Staged { values, record: record.clone(), sums: Vec::new() });
            }
            let staged = &mut self.staged[index];
            staged.record = record;
            match variable.values {
                Lent::Near(values) => staged.fill(values, is_summed),
                Lent::Afar(values) => staged.hold(values).map_err(afar_error(&staged.record))?,
            }
            count = index + 1;
        }
        self.staged.truncate(count);
        Ok(())
    }

    pub(crate) fn raw_bytes(&self) -> u64 {
        self.staged.iter().map(|s| s.record.len * s.record.element.size() as u64).sum()
    }
}

/// Makes the record of a variable in the manifest, frame extents included.
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
    use recoup_core::{BoundRule, Grain, Resume};

    use super::*;
    use crate::Variables;

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
        let mut x = vec![1.0; 5000];
        let expected = Buffer::F64(x.clone());
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        let plan = plan(CodecId::Zstd);
        set.stage(&[&owner], &plan, 0).unwrap();
        let first = address(&set);
        set.stage(&[&owner], &plan, 0).unwrap();
        assert_eq!(address(&set), first);
        assert_eq!(set.staged[0].near(), Some(&expected));
    }

    /// A variable of three frames, the last one padded, saved as it is.
    #[test]
    fn sums_taken_on_the_way_are_those_of_the_frames() {
        let mut x: Vec<f64> = (0..2_500_001).map(f64::from).collect();
        let n_values = x.len();
        let owner = Variables::new().iterate("x", &mut x);
        let mut set = StagingSet::default();
        set.stage(&[&owner], &plan(CodecId::Raw), 0).unwrap();
        let staged = &set.staged[0];
        let frame = |run| staged.near().unwrap().slice(run * staged.frame_len(), staged.frame_len());
        let sum = |run| crc32c::crc32c(frame(run).as_raw().unwrap());
        assert_eq!(staged.frames(), 3);
        assert!(staged.frames() * staged.frame_len() > n_values);
        assert_eq!(staged.sums, (0..3).map(sum).collect::<Vec<_>>());
        set.stage(&[&owner], &plan(CodecId::Zstd), 0).unwrap();
        assert!(set.staged[0].sums.is_empty());
    }

    fn plan(codec: CodecId) -> Plan {
        let scheme = Scheme::Lossless;
        let rule = BoundRule::Verified;
        let resume = Resume::Restarted;
        Plan { scheme, codec, rule, theta: 0.5, delta: 0.05, resume, grain: Grain::Usual }
    }

    fn address(set: &StagingSet) -> *const f64 {
        match set.staged[0].near() {
            Some(Buffer::F64(values)) => values.as_ptr(),
            other => panic!("doubles expected, {other:?} found"),
        }
    }
}
