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
mod fitted;
mod frame;
mod group;
mod int;
mod kernels;
mod lattice;
mod run;
mod shape;
mod signs;
mod simd;
mod team;
mod tile;

use recoup_core::{
    Bound, Codec, CodecError, CodecId, Context, ElementType, Encoded, Filter, Parent, Values, ValuesMut,
};

pub use self::choice::Way;
use self::choice::{Plan, Problem};
use self::coder::Coder;
use self::frame::{DTYPE, Header, Mode, damaged, preface};
use self::lattice::{Absolute, Exact, Lattice, Relative, Scalar};
pub use self::simd::Level;
use self::team::Team;
use crate::{bytes, effective_bound};

/// Number of QB among HDF5 filters, from the range left to private use.
pub const FILTER: u32 = 53_570;

/// QB, on as many threads as the context says; the bytes are the same for any number.
#[derive(Clone, Debug)]
pub struct Qb {
    level: Level,
    way: Option<Way>,
}

/// What a frame holds, by its own header.
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
    pub fn of(frame: &[u8]) -> Result<Self, CodecError> {
        let of =
            |header: Header, element| Self { element, len: header.shape.values(), follows: header.parent.is_some() };
        if frame.get(DTYPE) == Some(&f32::DTYPE) {
            return Header::parse::<f32>(frame).map(|(header, _)| of(header, ElementType::F32));
        }
        Header::parse::<f64>(frame).map(|(header, _)| of(header, ElementType::F64))
    }
}

impl Default for Qb {
    fn default() -> Self {
        Self { level: Level::best(), way: None }
    }
}

impl Qb {
    /// The same at another level of vector instructions; the bytes are the same at all.
    #[must_use]
    pub fn at_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The same, coding in one way wherever that is possible, instead of choosing: for measuring
    /// and for frozen files.
    #[must_use]
    pub fn by(self, way: Way) -> Self {
        Self { way: Some(way), ..self }
    }

    fn encode_floats<T: Scalar>(&self, problem: &Problem<'_, T>, target: &mut Vec<u8>) -> Encoded
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let plan = problem.choose(self.way, self.level);
        let error = self.encode_planned(problem, &plan, target);
        Self::encoded(problem, &plan, error, target)
    }

    /// What to say of the frame in `target`, or of the raw values put in its place where it is
    /// larger.
    fn encoded<T: Scalar>(problem: &Problem<'_, T>, plan: &Plan, error: f64, target: &mut Vec<u8>) -> Encoded {
        let follows = plan.follows;
        let filters = vec![Filter { id: FILTER, values: vec![1] }];
        if target.len() <= size_of_val(problem.values) {
            let bound = if plan.mode(problem) == Mode::Lossless { Bound::Lossless } else { problem.bound };
            return Encoded { achieved_error: error, filters, follows, ..Encoded::under(bound) };
        }
        target.clear();
        target.extend(problem.values.iter().flat_map(|x| x.bits().to_le_bytes().into_iter().take(T::BYTES)));
        Encoded { stored_raw: true, filters, ..Encoded::under(Bound::Lossless) }
    }

    /// Fills `target` with a frame; the largest error.
    fn encode_planned<T: Scalar>(&self, problem: &Problem<'_, T>, plan: &Plan, target: &mut Vec<u8>) -> f64
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let parent = problem.parent.filter(|_| plan.follows);
        let mode = plan.mode(problem);
        let preface = preface(plan.shape);
        let source = (problem.values, parent.map(|(values, _)| values));
        let (level, team, dead_band) = (self.level, problem.team.as_deref(), plan.dead_band(problem));
        let (table, error) = match mode {
            Mode::Lossless => {
                run::encode(&Coder { level, lattice: Exact, dead_band }, plan.shape, source, team, (preface, target))
            }
            Mode::Absolute(lattice) => {
                run::encode(&Coder { level, lattice, dead_band }, plan.shape, source, team, (preface, target))
            }
            Mode::Relative(lattice) => {
                run::encode(&Coder { level, lattice, dead_band }, plan.shape, source, team, (preface, target))
            }
        };
        let (bound, parent) = (problem.bound.value(), parent.map(|(_, hash)| hash));
        let header = Header { mode, shape: plan.shape, bound, is_halved: plan.is_halved, parent };
        header.write::<T>(&table, target);
        error
    }

    fn decode_floats<T: Scalar>(
        &self,
        (source, threads): (&[u8], usize),
        parent: Option<(&[T], [u8; 16])>,
        target: &mut [T],
    ) -> Result<(), CodecError>
    where
        Absolute: Lattice<T>,
        Relative: Lattice<T>,
        Exact: Lattice<T>,
    {
        let (header, table) = Header::parse::<T>(source)?;
        if header.shape.values() != target.len() {
            return Err(damaged("another number of values"));
        }
        let parent = match (header.parent, parent) {
            (None, _) => None,
            (Some(hash), Some((values, found))) if hash == found && values.len() == target.len() => Some(values),
            (Some(_), _) => return Err(CodecError::Parent { codec: CodecId::Qb }),
        };
        let blocks = (&table[..], &source[preface(header.shape)..]);
        let team = Team::of(threads);
        let (level, team, dead_band, io) = (self.level, team.as_deref(), None, (target, parent));
        let damaged = match header.mode {
            Mode::Lossless => run::decode(&Coder { level, lattice: Exact, dead_band }, header.shape, blocks, io, team),
            Mode::Absolute(lattice) => {
                run::decode(&Coder { level, lattice, dead_band }, header.shape, blocks, io, team)
            }
            Mode::Relative(lattice) => {
                run::decode(&Coder { level, lattice, dead_band }, header.shape, blocks, io, team)
            }
        };
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

    fn is_lossy(&self) -> bool {
        true
    }

    fn can_follow(&self) -> bool {
        true
    }

    fn encode(
        &self,
        source: Values<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Result<Encoded, CodecError> {
        let bound = effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        let parent = context.chain.parent();
        match source {
            Values::F64(values) => {
                let parent = parent.and_then(doubles);
                Ok(self.encode_floats(&Problem::new(values, bound, context, parent), target))
            }
            Values::F32(values) => {
                let parent = parent.and_then(singles);
                Ok(self.encode_floats(&Problem::new(values, bound, context, parent), target))
            }
            Values::I64(_) | Values::Bytes(_) => {
                target.clear();
                bytes::extend(source, target);
                Ok(Encoded { stored_raw: true, ..Encoded::under(Bound::Lossless) })
            }
        }
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> Result<(), CodecError> {
        bytes::check_shape(context, target.as_values().len())?;
        let (parent, source) = (context.chain.parent(), (source, context.threads));
        match target {
            ValuesMut::F64(target) => self.decode_floats(source, parent.and_then(doubles), target),
            ValuesMut::F32(target) => self.decode_floats(source, parent.and_then(singles), target),
            ValuesMut::I64(_) => Err(CodecError::Element { codec: CodecId::Qb, element: ElementType::I64 }),
            ValuesMut::Bytes(_) => Err(CodecError::Element { codec: CodecId::Qb, element: ElementType::Bytes }),
        }
    }
}

fn doubles(parent: Parent<'_>) -> Option<(&[f64], [u8; 16])> {
    let Values::F64(values) = parent.values else { return None };
    Some((values, parent.hash))
}

fn singles(parent: Parent<'_>) -> Option<(&[f32], [u8; 16])> {
    let Values::F32(values) = parent.values else { return None };
    Some((values, parent.hash))
}
