//! A parity class as cells of codes, both ways.

use recoup_core::CodecError;

use super::cells::{CELL, Cell, PointRun, cells};
use super::choice::{ClassValues, choose, load, place};
use super::damage::damaged;
use super::interpolation::{LANES, zip};
use super::lattice::code;
use super::parity::{ParityClasses, class_extents};
use super::predictor::{CellPredictor, Neighbours, PREDICTORS};
use super::stream::{StreamReader, StreamWriter};
use crate::qb::{LevelKernel, SimdLevel};

/// The symbol of a cell with the predictor of the cell before; other symbols are one more than the
/// predictor's number.
const SAME: u8 = 0;

/// Codes a class, whose values become those a decoder will have.
pub(super) fn encode(
    classes: &mut ParityClasses,
    class: usize,
    step: u16,
    level: SimdLevel,
    writer: &mut StreamWriter,
) {
    let extents = class_extents(classes.grid, class);
    let mut own = std::mem::take(&mut classes.values[class]);
    let neighbours = Neighbours::of(&classes.values, classes.grid, class);
    let mut before = None;
    let step = i32::from(step);
    for cell in cells(extents) {
        let kernel = EncodeCell { cell, neighbours: &neighbours, values: &mut own, extents, step, before, writer };
        before = Some(level.run(kernel));
    }
    classes.values[class] = own;
}

/// Decodes a class.
pub(super) fn decode(
    classes: &mut ParityClasses,
    class: usize,
    step: u16,
    level: SimdLevel,
    reader: &mut StreamReader<'_>,
) -> Result<(), CodecError> {
    let extents = class_extents(classes.grid, class);
    let mut own = std::mem::take(&mut classes.values[class]);
    let neighbours = Neighbours::of(&classes.values, classes.grid, class);
    let mut before = None;
    let step = i32::from(step);
    for cell in cells(extents) {
        let kernel = DecodeCell { cell, neighbours: &neighbours, values: &mut own, extents, step, before, reader };
        before = Some(level.run(kernel)?);
    }
    classes.values[class] = own;
    Ok(())
}

struct EncodeCell<'a, 'n> {
    cell: Cell,
    neighbours: &'a Neighbours<'n>,
    values: &'a mut [i32],
    extents: [usize; 3],
    step: i32,
    before: Option<CellPredictor>,
    writer: &'a mut StreamWriter,
}

impl LevelKernel for EncodeCell<'_, '_> {
    type Output = CellPredictor;

    #[inline(always)]
    fn run(self) -> CellPredictor {
        let Self { cell, neighbours, values, extents, step, before, writer } = self;
        let predictor = choose(cell, neighbours, ClassValues { values, extents }, before);
        let mut codes = [0; CELL];
        let mut done = 0;
        let inverse = 1.0 / f64::from(step);
        for PointRun { point, len } in cell.runs() {
            let predicted = neighbours.predict(predictor, point, len);
            let at = place(extents, point);
            let own = load(values, at, len);
            let coded = zip(own, predicted, |x, p| code(x.wrapping_sub(p), inverse));
            let decoded = zip(predicted, coded, |p, k| p.wrapping_add(k.wrapping_mul(step)));
            store(&coded, &mut codes[done..done + len]);
            store(&decoded, &mut values[at..at + len]);
            done += len;
        }
        let symbol = if before == Some(predictor) { SAME } else { predictor.number() as u8 + 1 };
        writer.push(symbol, &codes[..done]);
        predictor
    }
}

struct DecodeCell<'a, 'n, 's> {
    cell: Cell,
    neighbours: &'a Neighbours<'n>,
    values: &'a mut [i32],
    extents: [usize; 3],
    step: i32,
    before: Option<CellPredictor>,
    reader: &'a mut StreamReader<'s>,
}

impl LevelKernel for DecodeCell<'_, '_, '_> {
    type Output = Result<CellPredictor, CodecError>;

    #[inline(always)]
    fn run(self) -> Result<CellPredictor, CodecError> {
        let Self { cell, neighbours, values, extents, step, before, reader } = self;
        let mut codes = [0; CELL];
        let symbol = reader.take(&mut codes[..cell.len()])?;
        let number = usize::from(symbol.wrapping_sub(1));
        let named = if number < PREDICTORS { CellPredictor::of(number, neighbours.class()) } else { None };
        let predictor = if symbol == SAME { before } else { named };
        let predictor = predictor.ok_or_else(|| damaged("no predictor of this class"))?;
        let mut done = 0;
        for PointRun { point, len } in cell.runs() {
            let predicted = neighbours.predict(predictor, point, len);
            let coded = load(&codes, done, len);
            let decoded = zip(predicted, coded, |p, k| p.wrapping_add(k.wrapping_mul(step)));
            store(&decoded, &mut values[place(extents, point)..][..len]);
            done += len;
        }
        Ok(predictor)
    }
}

/// Stores the first lanes.
#[inline(always)]
fn store(lanes: &[i32; LANES], target: &mut [i32]) {
    if let Some(whole) = target.first_chunk_mut() {
        *whole = *lanes;
    } else {
        target.copy_from_slice(&lanes[..target.len()]);
    }
}
