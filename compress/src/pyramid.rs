//! Pyramid: values of a smooth grid, predicted between those of a coarser grid, level by level.
//!
//! A frame is one hierarchy. The coarsest point is stored; every finer level is interpolated from
//! what a decoder already has, and only what is left is coded, in an entropy coder. Local choices
//! of the interpolation follow the field. Every value is checked with the decoder's own expression
//! before a frame is handed out; a value that does not hold its bound is stored exactly. The bytes
//! are the same on every machine: a decoder computes with integers that wrap, and ends each value
//! with one product and one sum. FORMAT.md states the bytes.
//!
//! Axes along which a field is rough join at coarser levels. Of a grid that equals its reflection,
//! one half is coded.
//!
//! Numbers of the lattice have 32 bits. Where a bound is too tight for them, the frame is one of
//! QB.
//!
//! Source of the idea: Zhao et al. 2021, "Optimizing error-bounded lossy compression for scientific
//! data by dynamic spline interpolation", doi:10.1109/ICDE51399.2021.00145. The levels here are
//! split by parity, the predictor is chosen cell by cell, and codes count steps of a finer lattice.

mod cell_predictor;
mod cell_values;
mod cells;
mod choice;
mod class_coder;
mod damage;
mod exceptions;
mod field;
mod frame;
mod interpolation;
mod lattice;
mod levels;
mod line_vec;
mod loudness;
mod parity;
mod predictor;
mod rans;
mod reflection;
mod roughness;
mod shares;
mod simd;
mod stream;
mod table_code;

use std::cell::Cell;

use recoup_core::{
    Bound, Chain, Codec, CodecError, CodecId, CodecResult, Context, ElementType, Encoded, Filter, Values, ValuesMut,
};

use self::damage::damaged;
use self::exceptions::PyramidExceptions;
use self::field::{Field, FieldLevels, decode_field, encode_field, quantise_field};
use self::frame::{FIELDS, FrameParts, HEADER, PyramidHeader};
use self::lattice::{FineLattice, FiniteRange, StepShrinking};
use self::reflection::Reflection;
use self::roughness::GridSample;
use self::stream::{DecodeTables, StreamReader, StreamWriter};
use crate::effective::absolute_only;
use crate::qb::{self, Qb, SimdLevel};
use crate::scalar::Scalar;
use crate::{bytes, effective_bound};

/// The contents of a frame, by its own header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PyramidContents {
    /// Type of the values.
    pub element: ElementType,
    /// Extents of the values, fastest first.
    pub dims: [usize; 3],
    /// Interleaved unknowns of a point.
    pub stride: usize,
}

impl PyramidContents {
    /// Reads the header of a frame; `None` for one of QB.
    ///
    /// # Errors
    /// [`CodecError::Damaged`] when it is not what the encoder writes.
    pub fn of(frame: &[u8]) -> CodecResult<Option<Self>> {
        if frame.starts_with(&qb::MAGIC) {
            return Ok(None);
        }
        let is_single = frame.get(frame::DTYPE) == Some(&f32::DTYPE);
        let header =
            if is_single { PyramidHeader::parse::<f32>(frame)?.0 } else { PyramidHeader::parse::<f64>(frame)?.0 };
        let stride = usize::from(header.fields);
        let [x, y, z] = header.grid;
        let element = if is_single { f32::ELEMENT } else { f64::ELEMENT };
        Ok(Some(Self { element, dims: [x * stride, y, z], stride }))
    }
}

/// The codec of smooth grids.
#[derive(Clone, Copy, Debug)]
pub struct Pyramid {
    level: SimdLevel,
}

impl Default for Pyramid {
    fn default() -> Self {
        Self { level: SimdLevel::best() }
    }
}

impl Pyramid {
    /// Sets the level of vector instructions; the bytes are the same at all levels.
    #[must_use]
    pub fn at_level(self, level: SimdLevel) -> Self {
        Self { level }
    }

    /// Fills `target` with a frame; the largest error. `None` where raw values are no longer, or
    /// no lattice holds the bound.
    fn encode_floats<T: Scalar>(
        &self,
        values: &[T],
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Option<f64> {
        let Bound::Absolute(bound) = bound else { return None };
        let shape = FieldShape::of(context)?;
        let reflection =
            if shape.fields == 1 { Reflection::of(values, shape.grid, bound) } else { Reflection::default() };
        let half = reflection.is_any().then(|| reflection.folded(values, shape.grid));
        let coded = CodedValues { values: half.as_deref().unwrap_or(values), shape, reflection };
        let error = self.encode_half(&coded, reflection.bound_of_half(bound), target)?;
        (target.len() <= size_of_val(values)).then_some(reflection.error_of_both(error, bound))
    }

    /// Fills `target` with a frame of what a reflection leaves; its largest error.
    fn encode_half<T: Scalar>(&self, coded: &CodedValues<'_, T>, bound: f64, target: &mut Vec<u8>) -> Option<f64> {
        let CodedValues { values, shape: FieldShape { fields, grid: whole }, reflection } = *coded;
        let grid = reflection.half(whole);
        let rule = GridSample { values, fields, grid, bound }.rule();
        let shapes = &rule.levels(grid)[..];
        let shrinking = StepShrinking::of(grid, rule);
        let mut scratch = PyramidScratch::taken();
        let PyramidScratch { levels, writer, .. } = &mut scratch;
        // A field alone is split by the lattice that it most likely gets, and again if it gets
        // another one.
        let guess = FineLattice::first(bound, shrinking).filter(|_| fields == 1);
        let guessed = guess.as_ref().and_then(|lattice| {
            let field = Field { number: 0, fields: 1, shapes, lattice, level: self.level };
            quantise_field(&field, values, true, levels)
        });
        let range = guessed.or_else(|| self.level.run(RangeOf(values)))?;
        let lattice = FineLattice::new(bound, range, shrinking)?;
        let is_whole = range.is_all_finite && lattice.reaches(range);
        let is_split = is_whole && guessed.is_some() && guess == Some(lattice);
        writer.clear();
        let mut exceptions = PyramidExceptions::default();
        target.clear();
        target.resize(HEADER, 0);
        for number in 0..fields {
            let field = Field { number, fields, shapes, lattice: &lattice, level: self.level };
            if !is_split {
                quantise_field(&field, values, is_whole, levels);
            }
            let top = encode_field(&field, values, is_whole, levels, writer);
            target.extend(top.to_le_bytes());
            exceptions.find(&field, values, bound, top, levels.finest());
            if exceptions.bytes::<T>() > size_of_val(values) {
                return None;
            }
        }
        let stream = writer.finish(self.level, target);
        scratch.keep();
        exceptions.write::<T>(target);
        let exception_count = exceptions.len();
        let header = PyramidHeader {
            fields: fields as u8,
            grid: whole,
            reflection,
            rule,
            lattice,
            stream,
            exceptions: exception_count,
        };
        header.write::<T>(target);
        Some(exceptions.largest_error())
    }

    fn decode_floats<T: Scalar>(&self, source: &[u8], context: &Context, target: &mut [T]) -> CodecResult<()> {
        let (header, parts) = PyramidHeader::parse::<T>(source)?;
        let shape = FieldShape::of(context).filter(|shape| shape.grid == header.grid);
        let shape =
            shape.filter(|shape| shape.fields == usize::from(header.fields)).ok_or_else(|| damaged("extents"))?;
        if !header.reflection.is_any() {
            return self.decode_half(&header, parts, target);
        }
        if shape.fields != 1 {
            return Err(damaged("a reflection of interleaved unknowns"));
        }
        let mut half = vec![T::default(); header.reflection.half(shape.grid).iter().product()];
        self.decode_half(&header, parts, &mut half)?;
        header.reflection.unfold(&half, shape.grid, target);
        Ok(())
    }

    /// Decodes what a reflection leaves.
    fn decode_half<T: Scalar>(
        &self,
        header: &PyramidHeader,
        parts: FrameParts<'_>,
        target: &mut [T],
    ) -> CodecResult<()> {
        let shapes = &header.rule.levels(header.reflection.half(header.grid))[..];
        let mut scratch = PyramidScratch::taken();
        let PyramidScratch { levels, tables, .. } = &mut scratch;
        let mut reader = StreamReader::new(self.level, parts.stream, header.stream, tables)?;
        for (number, top) in parts.tops.as_chunks().0.iter().enumerate() {
            let lattice = &header.lattice;
            let field = Field { number, fields: usize::from(header.fields), shapes, lattice, level: self.level };
            decode_field(&field, i32::from_le_bytes(*top), levels, &mut reader, target)?;
        }
        reader.finish()?;
        scratch.keep();
        exceptions::restore(parts.exceptions, target)
    }
}

/// Values to be coded: those of the half where there is a reflection.
#[derive(Clone, Copy, Debug)]
struct CodedValues<'a, T> {
    values: &'a [T],
    /// The shape of both halves.
    shape: FieldShape,
    reflection: Reflection,
}

/// Memory that a thread keeps from one frame to the next: touching new memory takes as long as
/// coding.
#[derive(Debug, Default)]
struct PyramidScratch {
    levels: FieldLevels,
    writer: StreamWriter,
    tables: DecodeTables,
}

/// Most bytes that a thread keeps: enough for a frame of 64 MiB.
const KEPT_BYTES: usize = 48 << 20;

thread_local! {
    static SCRATCH: Cell<Option<PyramidScratch>> = const { Cell::new(None) };
}

impl PyramidScratch {
    /// The memory that the thread kept.
    fn taken() -> Self {
        SCRATCH.take().unwrap_or_default()
    }

    /// Keeps this for the next frame of the thread.
    fn keep(self) {
        if self.levels.bytes() + self.writer.bytes() + self.tables.bytes() <= KEPT_BYTES {
            SCRATCH.set(Some(self));
        }
    }
}

/// The finite range of values, at a level of vector instructions.
struct RangeOf<'a, T>(&'a [T]);

impl<T: Scalar> crate::qb::LevelKernel for RangeOf<'_, T> {
    type Output = Option<FiniteRange>;

    #[inline(always)]
    fn run(self) -> Option<FiniteRange> {
        FiniteRange::of(self.0)
    }
}

/// Values as fields, one for each unknown of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldShape {
    fields: usize,
    grid: [usize; 3],
}

impl FieldShape {
    /// The shape of values; `None` where there are none, or more than places have bits.
    fn of(context: &Context) -> Option<Self> {
        let [x, y, z] = context.dims;
        let n = x * y * z;
        let is_interleaved = (2..=FIELDS).contains(&context.stride) && x % context.stride == 0;
        let fields = if is_interleaved { context.stride } else { 1 };
        (n > 0 && u32::try_from(n).is_ok()).then_some(Self { fields, grid: [x / fields, y, z] })
    }
}

impl Codec for Pyramid {
    fn id(&self) -> CodecId {
        CodecId::Pyramid
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let bound = match effective_bound(source, bound)? {
            pointwise @ Bound::Pointwise(_) => absolute_only(source, pointwise)?,
            other => other,
        };
        bytes::check_shape(context, source.len())?;
        let error = match source {
            Values::F64(values) => self.encode_floats(values, bound, context, target),
            Values::F32(values) => self.encode_floats(values, bound, context, target),
            Values::I64(_) | Values::Bytes(_) => None,
        };
        if let Some(achieved_error) = error {
            let filters = vec![Filter { id: qb::FILTER, values: vec![1] }];
            return Ok(Encoded { achieved_error, filters, ..Encoded::under(bound) });
        }
        if let (Bound::Absolute(_), Values::F64(_) | Values::F32(_)) = (bound, source) {
            let codec = Qb::default().at_level(self.level);
            return codec.encode(source, bound, &context.chained(Chain::Alone), target);
        }
        target.clear();
        bytes::extend(source, target);
        Ok(Encoded { stored_raw: true, ..Encoded::under(Bound::Lossless) })
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        bytes::check_shape(context, target.as_values().len())?;
        if source.starts_with(&qb::MAGIC) {
            let codec = Qb::default().at_level(self.level);
            return codec.decode(source, bound, &context.chained(Chain::Alone), target);
        }
        match target {
            ValuesMut::F64(target) => self.decode_floats(source, context, target),
            ValuesMut::F32(target) => self.decode_floats(source, context, target),
            ValuesMut::I64(_) => Err(CodecError::Element { codec: CodecId::Pyramid, element: ElementType::I64 }),
            ValuesMut::Bytes(_) => Err(CodecError::Element { codec: CodecId::Pyramid, element: ElementType::Bytes }),
        }
    }
}
