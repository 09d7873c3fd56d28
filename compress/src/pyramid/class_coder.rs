//! A parity class as cells of codes, both ways.

use recoup_core::CodecError;

use super::cell_predictor::{CellPredictor, PREDICTORS};
use super::cell_values::{CellInputs, ClassValues};
use super::cells::{CELL, CellRuns, NO_VALUES, RunValues, cells};
use super::choice::PredictorChoice;
use super::damage::damaged;
use super::interpolation::load;
use super::parity::{ParityClasses, class_extents};
use super::predictor::Neighbours;
use super::simd::{self, LANES, LaneKernel, NumberLanes};
use super::stream::{StreamReader, StreamWriter};
use crate::qb::{LevelKernel, SimdLevel};

/// The symbol of a cell with the predictor of the cell before; other symbols are one more than the
/// predictor's number.
const SAME: u8 = 0;
/// Codes of a cell, and room for a whole run from every place of them.
type PaddedCodes = [i32; CELL + LANES];

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
    let mut coder = CellCoder::new(step);
    for cell in cells(extents) {
        let before = coder.predictor;
        cell.list(&mut coder.runs);
        let own_values = ClassValues { values: &own, extents };
        let inputs = CellInputs { cell, neighbours: &neighbours, own: own_values, level };
        let predictor = coder.code(&inputs);
        for (run, decoded) in coder.runs.iter().zip(&coder.decoded) {
            store(decoded, &mut own[run.point.place(extents)..][..run.len]);
        }
        let symbol = if before == Some(predictor) { SAME } else { predictor.number() as u8 + 1 };
        let codes = &coder.codes[..cell.len()];
        level.run(Push { writer, symbol, codes });
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
    let mut codes = [0; CELL + LANES];
    let mut predicted = NO_VALUES;
    let mut runs = CellRuns::none();
    for cell in cells(extents) {
        let symbol = level.run(Take { reader, codes: &mut codes[..cell.len()] })?;
        let number = usize::from(symbol.wrapping_sub(1));
        let named = if number < PREDICTORS { CellPredictor::of(number, class) } else { None };
        let predictor = if symbol == SAME { before } else { named };
        let predictor = predictor.filter(|predictor| predictor.fits(&cell));
        let predictor = predictor.ok_or_else(|| damaged("no predictor of this cell"))?;
        cell.list(&mut runs);
        let own_values = ClassValues { values: &own, extents };
        let inputs = CellInputs { cell, neighbours: &neighbours, own: own_values, level };
        inputs.predict(predictor, &runs, &mut predicted);
        let step = i32::from(step);
        simd::run(
            level,
            AddCodes { runs: &runs, predicted: &predicted, codes: &codes, step, extents, values: &mut own },
        );
        before = Some(predictor);
    }
    classes.values[class] = own;
    Ok(())
}

/// The cell that was coded last.
struct CellCoder {
    step: i32,
    codes: PaddedCodes,
    predicted: RunValues,
    /// The numbers that a decoder will have.
    decoded: RunValues,
    predictor: Option<CellPredictor>,
    runs: CellRuns,
    choice: PredictorChoice,
}

impl CellCoder {
    fn new(step: u16) -> Self {
        let step = i32::from(step);
        Self {
            step,
            codes: [0; CELL + LANES],
            predicted: NO_VALUES,
            decoded: NO_VALUES,
            predictor: None,
            runs: CellRuns::none(),
            choice: PredictorChoice::new(),
        }
    }

    /// Finds the predictor of a cell and codes it. Where that of the cell before leaves nothing to
    /// be coded, no other is looked for.
    fn code(&mut self, inputs: &CellInputs<'_, '_>) -> CellPredictor {
        let before = self.predictor.filter(|before| before.fits(&inputs.cell));
        if let Some(before) = before
            && self.code_by(before, inputs)
        {
            return before;
        }
        let chosen = self.choice.choose(inputs, &self.runs, before);
        self.predictor = Some(chosen);
        if before != Some(chosen) {
            self.code_by(chosen, inputs);
        }
        chosen
    }

    /// Codes a cell by one predictor; whether all codes are 0.
    fn code_by(&mut self, predictor: CellPredictor, inputs: &CellInputs<'_, '_>) -> bool {
        inputs.predict(predictor, &self.runs, &mut self.predicted);
        simd::run(inputs.level, Quantise { own: inputs.own, coder: self })
    }
}

/// Distances from predictions become codes; whether all of them are 0.
struct Quantise<'a, 'v> {
    own: ClassValues<'v>,
    coder: &'a mut CellCoder,
}

impl LaneKernel for Quantise<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<V: NumberLanes>(self) -> bool {
        let CellCoder { step, codes, predicted, decoded, runs, .. } = self.coder;
        let inverse = 1.0 / f64::from(*step);
        let mut all = V::all(0);
        let mut done = 0;
        for ((run, predicted), decoded) in runs.iter().zip(predicted).zip(decoded) {
            let predicted = V::load(predicted);
            let code = self.own.load::<V>(run).minus(predicted).codes(inverse);
            predicted.plus(code.times(*step)).store(decoded);
            if let Some(target) = codes[done..].first_chunk_mut() {
                code.store(target);
            }
            all = all.or(V::all(0).replaced(simd::first_bits(run.len), code));
            done += run.len;
        }
        let mut any = [0; LANES];
        all.store(&mut any);
        any == [0; LANES]
    }
}

/// Predictions and codes become values.
struct AddCodes<'a> {
    runs: &'a CellRuns,
    predicted: &'a RunValues,
    codes: &'a PaddedCodes,
    step: i32,
    extents: [usize; 3],
    values: &'a mut [i32],
}

impl LaneKernel for AddCodes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: NumberLanes>(self) {
        let mut done = 0;
        for (run, predicted) in self.runs.iter().zip(self.predicted) {
            let codes: V = load(self.codes, done);
            let decoded = V::load(predicted).plus(codes.times(self.step));
            let target = &mut self.values[run.point.place(self.extents)..][..run.len];
            if let Some(whole) = target.first_chunk_mut() {
                decoded.store(whole);
            } else {
                let mut lanes = [0; LANES];
                decoded.store(&mut lanes);
                target.copy_from_slice(&lanes[..target.len()]);
            }
            done += run.len;
        }
    }
}

/// Gives a coded cell to the stream.
struct Push<'a> {
    writer: &'a mut StreamWriter,
    symbol: u8,
    codes: &'a [i32],
}

impl LevelKernel for Push<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.writer.push(self.symbol, self.codes);
    }
}

/// Takes the codes of a cell from the stream; the symbol of its predictor.
struct Take<'a, 's> {
    reader: &'a mut StreamReader<'s>,
    codes: &'a mut [i32],
}

impl LevelKernel for Take<'_, '_> {
    type Output = Result<u8, CodecError>;

    #[inline(always)]
    fn run(self) -> Result<u8, CodecError> {
        self.reader.take(self.codes)
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
