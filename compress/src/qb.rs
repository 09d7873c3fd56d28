//! QB, recoup's own codec: values as numbers of a lattice, predicted, in fields of equal width.
//!
//! The bound holds for every value by construction, so that nothing needs to be decoded to be sure
//! of it; the bytes are the same for every number of threads and every processor; any block of 4096
//! values can be decoded alone, and damage is named by block. FORMAT.md states the bytes and proves
//! the bounds.

mod block;
mod choice;
mod coder;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod decoder;
mod fitted;
mod frame;
mod group;
mod int;
mod kernels;
mod mode;
mod run;
mod shape;
mod signs;
mod simd;
mod source;
mod team;
mod tile;

use recoup_core::{
    Bound, Codec, CodecError, CodecId, CodecResult, Context, ElementType, Encoded, Filter, Values, ValuesMut,
};

pub use self::choice::Arrangement;
use self::choice::{CodingPlan, FrameInput};
use self::coder::Coder;
pub(crate) use self::frame::MAGIC;
use self::frame::{DTYPE, FrameHeader, damaged, preface};
use self::mode::{FrameMode, with_lattice};
use self::run::StoredBlocks;
pub use self::simd::SimdLevel;
pub(crate) use self::simd::{LevelKernel, fetch};
use self::team::CodecTeam;
use crate::parent::TypedParent;
use crate::scalar::Scalar;
use crate::{bytes, effective_bound};

/// Number of QB among HDF5 filters, from the range left to private use.
pub const FILTER: u32 = 53_570;

/// QB, on as many threads as the context says; the bytes are the same for any number.
#[derive(Clone, Debug)]
pub struct Qb {
    level: SimdLevel,
    arrangement: Option<Arrangement>,
}

/// The contents of a frame, by its own header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Type of the values.
    pub element: ElementType,
    /// Number of values, which the frame has a table for.
    pub len: usize,
    /// The frame was coded against a parent.
    pub follows: bool,
}

impl Contents {
    /// Reads header and table of a frame.
    ///
    /// # Errors
    /// [`CodecError::Damaged`] when they are not what the encoder writes.
    pub fn of(frame: &[u8]) -> CodecResult<Self> {
        if frame.get(DTYPE) == Some(&f32::DTYPE) { Self::of_type::<f32>(frame) } else { Self::of_type::<f64>(frame) }
    }

    fn of_type<T: Scalar>(frame: &[u8]) -> CodecResult<Self> {
        let (header, _) = FrameHeader::parse::<T>(frame)?;
        Ok(Self { element: T::ELEMENT, len: header.shape.values(), follows: header.parent.is_some() })
    }
}

impl Default for Qb {
    fn default() -> Self {
        Self { level: SimdLevel::best(), arrangement: None }
    }
}

impl Qb {
    /// Sets the level of vector instructions; the bytes are the same at all levels.
    #[must_use]
    pub fn at_level(self, level: SimdLevel) -> Self {
        Self { level, ..self }
    }

    /// Sets the arrangement to code in wherever that is possible, instead of choosing one: for
    /// measuring and for frozen files.
    #[must_use]
    pub fn with_arrangement(self, arrangement: Arrangement) -> Self {
        Self { arrangement: Some(arrangement), ..self }
    }

    fn encode_floats<T: Scalar>(&self, input: &FrameInput<'_, T>, target: &mut Vec<u8>) -> CodecResult {
        let plan = input.choose(self.arrangement, self.level, &mut input.sampled())?;
        let error = self.encode_planned(input, &plan, target);
        Ok(Self::encoded(input, &plan, error, target))
    }

    /// The account of the frame in `target`, or of the raw values put in its place where it is
    /// larger.
    fn encoded<T: Scalar>(input: &FrameInput<'_, T>, plan: &CodingPlan, error: f64, target: &mut Vec<u8>) -> Encoded {
        let coded = Self::coded(input, plan, error);
        if target.len() <= size_of_val(input.values) {
            return coded;
        }
        target.clear();
        target.extend(input.values.iter().flat_map(|x| x.bits().to_le_bytes().into_iter().take(T::BYTES)));
        Encoded { stored_raw: true, filters: coded.filters, ..Encoded::under(Bound::Lossless) }
    }

    /// The account of a frame that is no larger than the raw values.
    fn coded<T: Scalar>(input: &FrameInput<'_, T>, plan: &CodingPlan, error: f64) -> Encoded {
        let filters = vec![Filter { id: FILTER, values: vec![1] }];
        let bound = if plan.mode(input) == FrameMode::Lossless { Bound::Lossless } else { input.bound };
        Encoded { achieved_error: error, filters, follows: plan.follows, ..Encoded::under(bound) }
    }

    /// Fills `target` with a frame; the largest error.
    fn encode_planned<T: Scalar>(&self, input: &FrameInput<'_, T>, plan: &CodingPlan, target: &mut Vec<u8>) -> f64 {
        let mode = plan.mode(input);
        let source = input.source(plan);
        let team = input.team.as_deref();
        let blocks = with_lattice!(mode, lattice => {
            run::encode(&plan.coder(input, self.level, lattice), plan.shape, source, team, target)
        });
        let header = FrameHeader {
            mode,
            shape: plan.shape,
            bound: input.bound.value(),
            is_halved: plan.is_halved,
            parent: input.parent_of(plan).map(|parent| parent.hash),
        };
        header.write::<T>(&blocks.table, target);
        blocks.error
    }

    /// Returns whether a frame of `len` values was coded against the parent of this hash; `false`
    /// where it stands alone.
    fn follows(header: &FrameHeader, parent: Option<[u8; 16]>, len: usize) -> CodecResult<bool> {
        if header.shape.values() != len {
            return Err(damaged("another number of values"));
        }
        if header.parent.is_some() && header.parent != parent {
            return Err(CodecError::Parent { codec: CodecId::Qb });
        }
        Ok(header.parent.is_some())
    }

    /// The parent that a frame of `len` values was coded against, `None` where it stands alone.
    fn parent_values<'a, T: Scalar>(
        header: &FrameHeader,
        context: &Context<'a>,
        len: usize,
    ) -> CodecResult<Option<&'a [T]>> {
        let parent = TypedParent::<T>::of(context.chain.parent()).filter(|parent| parent.values.len() == len);
        let follows = Self::follows(header, parent.map(|parent| parent.hash), len)?;
        Ok(parent.filter(|_| follows).map(|parent| parent.values))
    }

    fn decode_floats<T: Scalar>(&self, source: &[u8], context: &Context, target: &mut [T]) -> CodecResult<()> {
        let (header, table) = FrameHeader::parse::<T>(source)?;
        let parent = Self::parent_values(&header, context, target.len())?;
        let stored = StoredBlocks { table: &table, bytes: &source[preface(header.shape)..] };
        let team = CodecTeam::of(context.threads);
        let damaged = with_lattice!(header.mode, lattice => {
            let coder = Coder { level: self.level, lattice, dead_band: None };
            run::decode(&coder, header.shape, stored, parent, target, team.as_deref())
        });
        if damaged.is_empty() {
            return Ok(());
        }
        Err(CodecError::Blocks { codec: CodecId::Qb, blocks: damaged, total: table.len() })
    }
}

impl Codec for Qb {
    fn id(&self) -> CodecId {
        CodecId::Qb
    }

    fn can_follow(&self) -> bool {
        true
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let bound = effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        match source {
            Values::F64(values) => self.encode_floats(&FrameInput::new(values, bound, context), target),
            Values::F32(values) => self.encode_floats(&FrameInput::new(values, bound, context), target),
            Values::I64(_) | Values::Bytes(_) => {
                target.clear();
                bytes::extend(source, target);
                Ok(Encoded { stored_raw: true, ..Encoded::under(Bound::Lossless) })
            }
        }
    }

    #[cfg(feature = "cuda")]
    fn reaches(&self, values: &dyn recoup_core::DeviceSnapshot) -> bool {
        cuda::QbCuda::beside(values).is_some()
    }

    /// Encodes values on the device where they are stored.
    #[cfg(feature = "cuda")]
    fn encode_on_device(
        &self,
        source: &recoup_core::DeviceFrame<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Option<CodecResult> {
        cuda::QbCuda::beside(source.values)?.encode_on_device_now(self, source, bound, context, target).transpose()
    }

    /// Decodes to the device where values are stored.
    #[cfg(feature = "cuda")]
    fn decode_on_device(
        &self,
        source: &[u8],
        _: Bound,
        context: &Context,
        parent: Option<recoup_core::DeviceParent<'_>>,
        target: &mut dyn recoup_core::DeviceSnapshot,
        start: usize,
    ) -> Option<CodecResult<()>> {
        cuda::QbCuda::beside(target)?.decode_on_device_now(source, context, parent, target, start).transpose()
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        bytes::check_shape(context, target.as_values().len())?;
        match target {
            ValuesMut::F64(target) => self.decode_floats(source, context, target),
            ValuesMut::F32(target) => self.decode_floats(source, context, target),
            ValuesMut::I64(_) => Err(CodecError::Element { codec: CodecId::Qb, element: ElementType::I64 }),
            ValuesMut::Bytes(_) => Err(CodecError::Element { codec: CodecId::Qb, element: ElementType::Bytes }),
        }
    }
}
