//! One field as a pyramid, both ways.

use std::ops::Range;

use recoup_core::CodecResult;

use super::class_coder;
use super::lattice::{FineLattice, FiniteRange, RangeSearch, bridge};
use super::levels::{LevelShape, ORDER};
use super::line_vec::LineVec;
use super::parity::{AHEAD, PIECE, ParityClasses, RowPiece, RowPieces};
use super::stream::{StreamReader, StreamWriter};
use crate::qb::{LevelKernel, SimdLevel, fetch};
use crate::scalar::Scalar;

/// A field among interleaved ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: usize,
    pub(super) fields: usize,
    /// The levels of its pyramid, the finest first.
    pub(super) shapes: &'a [LevelShape],
    pub(super) lattice: &'a FineLattice,
    pub(super) level: SimdLevel,
}

/// The levels of the pyramid of a field, the finest first, whose memory lasts for the next one.
#[derive(Debug, Default)]
pub(super) struct FieldLevels {
    levels: Vec<ParityClasses>,
    /// Levels of the field at hand.
    count: usize,
}

impl FieldLevels {
    fn shape(&mut self, shapes: &[LevelShape]) {
        self.count = shapes.len();
        self.levels.resize_with(self.levels.len().max(self.count), ParityClasses::default);
        self.levels.iter_mut().zip(shapes).for_each(|(level, shape)| level.shape(*shape));
    }

    /// The level of a height, and the next coarser one if there is one.
    fn with_coarser(&mut self, height: usize) -> (&mut ParityClasses, Option<&mut ParityClasses>) {
        let (finer, coarser) = self.levels[..self.count].split_at_mut(height + 1);
        (&mut finer[height], coarser.first_mut())
    }

    /// The finest level; `None` of a single point.
    pub(super) fn finest(&self) -> Option<&ParityClasses> {
        self.levels[..self.count].first()
    }

    /// Bytes of memory that are held.
    pub(super) fn bytes(&self) -> usize {
        self.levels.iter().flat_map(|level| &level.values).map(LineVec::bytes).sum()
    }
}

impl Field<'_> {
    /// The finest level, which may be a single point.
    pub(super) fn finest(&self) -> LevelShape {
        self.shapes.first().copied().unwrap_or(LevelShape::POINT)
    }

    /// The places of a piece of a row among all values.
    #[inline(always)]
    fn places(&self, piece: &RowPiece) -> Range<usize> {
        piece.first * self.fields..(piece.first + piece.len) * self.fields
    }

    /// Fetches the values [`AHEAD`] points behind a piece.
    #[inline(always)]
    fn fetch_ahead<T>(&self, values: &[T], piece: &RowPiece) {
        let Range { start, end } = self.places(piece);
        let ahead = AHEAD * self.fields;
        fetch(values.get(start + ahead..end + ahead).unwrap_or_default());
    }

    /// The values of this field at a piece of a row, in `room` where they do not lie together.
    #[inline(always)]
    pub(super) fn piece<'v, T: Scalar>(&self, values: &'v [T], piece: &RowPiece, room: &'v mut [T; PIECE]) -> &'v [T] {
        self.fetch_ahead(values, piece);
        let own = &values[self.places(piece)];
        if self.fields == 1 {
            return own;
        }
        for (x, point) in room.iter_mut().zip(own.chunks_exact(self.fields)) {
            *x = point[self.number];
        }
        &room[..piece.len]
    }
}

/// Splits a field into the classes of its finest level, and finds the range of its values if all of
/// them are finite. `is_whole` says that all values have numbers.
pub(super) fn quantise_field<T: Scalar>(
    field: &Field<'_>,
    values: &[T],
    is_whole: bool,
    levels: &mut FieldLevels,
) -> Option<FiniteRange> {
    levels.shape(field.shapes);
    match levels.levels[..levels.count].first_mut() {
        Some(classes) => field.level.run(QuantiseSplit { field, values, is_whole, classes }),
        None => FiniteRange::of(&values[field.number..=field.number]).filter(|range| range.is_all_finite),
    }
}

/// Codes a field that was split, whose finest level then has what a decoder will have; its top.
pub(super) fn encode_field<T: Scalar>(
    field: &Field<'_>,
    values: &[T],
    is_whole: bool,
    levels: &mut FieldLevels,
    writer: &mut StreamWriter,
) -> i32 {
    if levels.count == 0 {
        return quantised_point(field, values, is_whole);
    }
    for height in 1..levels.count {
        let (finer, classes) = levels.with_coarser(height - 1);
        classes.into_iter().for_each(|classes| field.level.run(Split { numbers: &finer.values[0], classes }));
    }
    let top = levels.levels[levels.count - 1].values[0][0];
    for height in (0..levels.count).rev() {
        let (classes, coarser) = levels.with_coarser(height);
        if let Some(coarser) = coarser {
            field.level.run(Merge { classes: coarser, values: &mut classes.values[0] });
        }
        for class in ORDER {
            class_coder::encode(classes, class, field.lattice.step(height), field.level, writer);
        }
    }
    top
}

/// The number of a single point.
fn quantised_point<T: Scalar>(field: &Field<'_>, values: &[T], is_whole: bool) -> i32 {
    let own = &values[field.number..=field.number];
    let mut number = [0];
    field.lattice.quantise(own, &mut number);
    if !is_whole {
        bridge(own, &mut number, &mut 0);
    }
    number[0]
}

/// Decodes a field into its places among all values.
pub(super) fn decode_field<T: Scalar>(
    field: &Field<'_>,
    top: i32,
    levels: &mut FieldLevels,
    reader: &mut StreamReader<'_>,
    values: &mut [T],
) -> CodecResult<()> {
    levels.shape(field.shapes);
    if levels.count == 0 {
        values[field.number] = field.lattice.value(top);
        return Ok(());
    }
    levels.levels[levels.count - 1].values[0][0] = top;
    for height in (0..levels.count).rev() {
        let (classes, coarser) = levels.with_coarser(height);
        if let Some(coarser) = coarser {
            field.level.run(Merge { classes: coarser, values: &mut classes.values[0] });
        }
        for class in ORDER {
            class_coder::decode(classes, class, field.lattice.step(height), field.level, reader)?;
        }
    }
    field.level.run(Restore { field, classes: &levels.levels[0], values });
    Ok(())
}

/// Values become the numbers of the finest level, in one pass.
struct QuantiseSplit<'a, T> {
    field: &'a Field<'a>,
    values: &'a [T],
    is_whole: bool,
    classes: &'a mut ParityClasses,
}

impl<T: Scalar> LevelKernel for QuantiseSplit<'_, T> {
    type Output = Option<FiniteRange>;

    #[inline(always)]
    fn run(self) -> Option<FiniteRange> {
        let Self { field, values, is_whole, classes } = self;
        let mut room = [T::default(); PIECE];
        let mut numbers = [0; PIECE];
        let mut search = RangeSearch::NEW;
        let mut before = 0;
        for piece in RowPieces::of(field.finest()) {
            let own = field.piece(values, &piece, &mut room);
            let numbers = &mut numbers[..piece.len];
            search.take(own);
            field.lattice.quantise(own, numbers);
            if !is_whole {
                bridge(own, numbers, &mut before);
            }
            classes.put(&piece, numbers);
        }
        search.found()
    }
}

struct Split<'a> {
    numbers: &'a [i32],
    classes: &'a mut ParityClasses,
}

impl LevelKernel for Split<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.classes.split(self.numbers);
    }
}

struct Merge<'a> {
    classes: &'a ParityClasses,
    values: &'a mut [i32],
}

impl LevelKernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.classes.merge(self.values);
    }
}

/// The values of the finest level, row by row.
struct Restore<'a, T> {
    field: &'a Field<'a>,
    classes: &'a ParityClasses,
    values: &'a mut [T],
}

impl<T: Scalar> LevelKernel for Restore<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Field { number, fields, lattice, .. } = *self.field;
        for piece in RowPieces::of(self.field.finest()) {
            let [even, odd] = self.classes.points(&piece);
            self.field.fetch_ahead(self.values, &piece);
            let own = &mut self.values[self.field.places(&piece)];
            if fields == 1 {
                restore(lattice, even, odd, own);
            } else {
                let in_turn = even.iter().zip(odd).flat_map(|(even, odd)| [even, odd]);
                let numbers = in_turn.chain(&even[odd.len()..]);
                own[number..].iter_mut().step_by(fields).zip(numbers).for_each(|(x, r)| *x = lattice.value(*r));
            }
        }
    }
}

/// The values of numbers that take turns, and of the even ones behind them.
#[inline(always)]
fn restore<T: Scalar>(lattice: &FineLattice, even: &[i32], odd: &[i32], values: &mut [T]) {
    let (paired, alone) = values.split_at_mut(2 * odd.len());
    for ((pair, even), odd) in paired.as_chunks_mut::<2>().0.iter_mut().zip(even).zip(odd) {
        *pair = [lattice.value(*even), lattice.value(*odd)];
    }
    alone.iter_mut().zip(&even[odd.len()..]).for_each(|(x, even)| *x = lattice.value(*even));
}
