//! A parity class as cells of codes, both ways.

use recoup_core::CodecError;

use super::cell_predictor::{CellPredictor, PREDICTORS};
use super::cell_values::{CellInputs, ClassValues, load};
use super::cells::{CELL, Cell, PointRun, cells};
use super::choice::choose;
use super::damage::damaged;
use super::interpolation::{LANES, zip};
use super::lattice::code;
use super::parity::{ParityClasses, class_extents};
use super::predictor::Neighbours;
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
    let step = i32::from(step);
    let mut coder = CellCoder::default();
    for cell in cells(extents) {
        let coder = &mut coder;
        level.run(EncodeCell { cell, neighbours: &neighbours, values: &mut own, extents, step, coder, writer });
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

/// The cell that was coded last.
struct CellCoder {
    codes: [i32; CELL],
    /// The numbers that a decoder will have.
    decoded: [i32; CELL],
    predictor: Option<CellPredictor>,
}

impl Default for CellCoder {
    fn default() -> Self {
        Self { codes: [0; CELL], decoded: [0; CELL], predictor: None }
    }
}

impl CellCoder {
    /// Finds the predictor of a cell and codes it. Where that of the cell before leaves nothing to
    /// be coded, no other is looked for.
    #[inline(always)]
    fn code(&mut self, inputs: &CellInputs<'_, '_>, step: i32) -> CellPredictor {
        let before = self.predictor.filter(|before| before.fits(&inputs.cell));
        let mut next = before;
        loop {
            if let Some(predictor) = next {
                let is_silent = self.code_by(predictor, inputs, step);
                if is_silent || next != before {
                    return predictor;
                }
            }
            let chosen = choose(inputs, before);
            self.predictor = Some(chosen);
            if next == self.predictor {
                return chosen;
            }
            next = self.predictor;
        }
    }

    /// Codes a cell by one predictor; whether all codes are 0.
    #[inline(always)]
    fn code_by(&mut self, predictor: CellPredictor, inputs: &CellInputs<'_, '_>, step: i32) -> bool {
        let inverse = 1.0 / f64::from(step);
        let mut done = 0;
        for run in inputs.cell.runs() {
            let predicted = inputs.predict(predictor, run);
            let codes = zip(inputs.own.load(run), predicted, |x, p| code(x.wrapping_sub(p), inverse));
            let decoded = zip(predicted, codes, |p, k| p.wrapping_add(k.wrapping_mul(step)));
            store(&codes, &mut self.codes[done..done + run.len]);
            store(&decoded, &mut self.decoded[done..done + run.len]);
            done += run.len;
        }
        self.codes[..done].iter().fold(0, |all, code| all | code) == 0
    }
}

struct EncodeCell<'a, 'n> {
    cell: Cell,
    neighbours: &'a Neighbours<'n>,
    values: &'a mut [i32],
    extents: [usize; 3],
    step: i32,
    coder: &'a mut CellCoder,
    writer: &'a mut StreamWriter,
}

impl LevelKernel for EncodeCell<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { cell, neighbours, values, extents, step, coder, writer } = self;
        let before = coder.predictor;
        let inputs = CellInputs { cell, neighbours, own: ClassValues { values, extents } };
        let predictor = coder.code(&inputs, step);
        let mut done = 0;
        for PointRun { point, len } in cell.runs() {
            store(&load(&coder.decoded, done, len), &mut values[point.place(extents)..][..len]);
            done += len;
        }
        let symbol = if before == Some(predictor) { SAME } else { predictor.number() as u8 + 1 };
        writer.push(symbol, &coder.codes[..done]);
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
        let predictor = predictor.filter(|predictor| predictor.fits(&cell));
        let predictor = predictor.ok_or_else(|| damaged("no predictor of this cell"))?;
        let mut done = 0;
        for run in cell.runs() {
            let inputs = CellInputs { cell, neighbours, own: ClassValues { values, extents } };
            let predicted = inputs.predict(predictor, run);
            let coded = load(&codes, done, run.len);
            let decoded = zip(predicted, coded, |p, k| p.wrapping_add(k.wrapping_mul(step)));
            store(&decoded, &mut values[run.point.place(extents)..][..run.len]);
            done += run.len;
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
