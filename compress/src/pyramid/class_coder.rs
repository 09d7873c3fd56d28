//! A parity class as cells of codes, both ways.

use recoup_core::CodecResult;

use super::cell_predictor::{CellPredictor, PREDICTORS};
use super::cell_values::{CellInputs, ClassValues};
use super::cells::{CELL, CellRuns, Cells, NO_VALUES, RunValues};
use super::choice::PredictorChoice;
use super::damage::damaged;
use super::parity::ParityClasses;
use super::predictor::Neighbours;
use super::simd::{self, LANES, LaneKernel, NumberLanes};
use super::stream::{StreamReader, StreamWriter, TakenCell};
use crate::qb::SimdLevel;

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
    simd::run(level, EncodeClass { classes, class, step: i32::from(step), level, writer });
}

/// Decodes a class.
pub(super) fn decode(
    classes: &mut ParityClasses,
    class: usize,
    step: u16,
    level: SimdLevel,
    reader: &mut StreamReader<'_>,
) -> CodecResult<()> {
    simd::run(level, DecodeClass { classes, class, step: i32::from(step), level, reader })
}

struct EncodeClass<'a> {
    classes: &'a mut ParityClasses,
    class: usize,
    step: i32,
    level: SimdLevel,
    writer: &'a mut StreamWriter,
}

impl LaneKernel for EncodeClass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: NumberLanes>(self) {
        let Self { classes, class, step, level, writer } = self;
        let extents = classes.shape.class_extents(class);
        let mut own = std::mem::take(&mut classes.values[class]);
        let neighbours = Neighbours::of(classes, class, level);
        let mut coder = CellCoder::new(step);
        for cell in Cells::of(extents) {
            let before = coder.predictor;
            cell.list(&mut coder.runs);
            let own_values = ClassValues { values: own.with_room(), extents };
            let predictor = coder.code::<V>(&CellInputs { cell, neighbours: &neighbours, own: own_values });
            for (run, decoded) in coder.runs.iter().zip(&coder.decoded) {
                store(V::load(decoded), &mut own[run.point.place(extents)..][..run.len]);
            }
            let symbol = if before == Some(predictor) { SAME } else { predictor.number() as u8 + 1 };
            writer.push(symbol, &coder.codes[..cell.len()]);
        }
        classes.values[class] = own;
    }
}

struct DecodeClass<'a, 's> {
    classes: &'a mut ParityClasses,
    class: usize,
    step: i32,
    level: SimdLevel,
    reader: &'a mut StreamReader<'s>,
}

impl LaneKernel for DecodeClass<'_, '_> {
    type Output = CodecResult<()>;

    #[inline(always)]
    fn run<V: NumberLanes>(self) -> CodecResult<()> {
        let Self { classes, class, step, level, reader } = self;
        let extents = classes.shape.class_extents(class);
        let mut own = std::mem::take(&mut classes.values[class]);
        let neighbours = Neighbours::of(classes, class, level);
        let mut before = None;
        let mut codes = [0; CELL + LANES];
        let mut predicted = NO_VALUES;
        let mut runs = CellRuns::none();
        for cell in Cells::of(extents) {
            let TakenCell { predictor: symbol, is_silent } = reader.take(&mut codes[..cell.len()])?;
            let number = usize::from(symbol.wrapping_sub(1));
            let named = if number < PREDICTORS { CellPredictor::of(number, class) } else { None };
            let predictor = if symbol == SAME { before } else { named };
            let predictor = predictor.filter(|predictor| predictor.fits(&cell));
            let predictor = predictor.ok_or_else(|| damaged("no predictor of this cell"))?;
            cell.list(&mut runs);
            let own_values = ClassValues { values: own.with_room(), extents };
            let inputs = CellInputs { cell, neighbours: &neighbours, own: own_values };
            inputs.predict(predictor, &runs, &mut predicted);
            let mut done = 0;
            for (run, predicted) in runs.iter().zip(&predicted) {
                let predicted = V::load(predicted);
                let decoded =
                    if is_silent { predicted } else { predicted.plus(codes_at::<V>(&codes, done).times(step)) };
                store(decoded, &mut own[run.point.place(extents)..][..run.len]);
                done += run.len;
            }
            before = Some(predictor);
        }
        classes.values[class] = own;
        Ok(())
    }
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
    fn new(step: i32) -> Self {
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
    #[inline(always)]
    fn code<V: NumberLanes>(&mut self, inputs: &CellInputs<'_, '_>) -> CellPredictor {
        let before = self.predictor.filter(|before| before.fits(&inputs.cell));
        let mut tried = before;
        // A loop, so that the code of a cell, which is inlined, stands here once.
        loop {
            if let Some(predictor) = tried {
                let is_silent = self.code_by::<V>(predictor, inputs);
                if is_silent || tried != before {
                    return predictor;
                }
            }
            let chosen = self.choice.choose(inputs, &self.runs, before);
            self.predictor = Some(chosen);
            if before == Some(chosen) {
                return chosen;
            }
            tried = Some(chosen);
        }
    }

    /// Codes a cell by one predictor; whether all codes are 0.
    #[inline(always)]
    fn code_by<V: NumberLanes>(&mut self, predictor: CellPredictor, inputs: &CellInputs<'_, '_>) -> bool {
        let Self { step, codes, predicted, decoded, runs, .. } = self;
        inputs.predict(predictor, runs, predicted);
        let inverse = 1.0 / f64::from(*step);
        let mut all = V::all(0);
        let mut done = 0;
        for ((run, predicted), decoded) in runs.iter().zip(predicted).zip(decoded) {
            let predicted = V::load(predicted);
            let code = inputs.own.load::<V>(run).minus(predicted).codes(inverse);
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

/// The codes from a place on.
#[inline(always)]
fn codes_at<V: NumberLanes>(codes: &PaddedCodes, place: usize) -> V {
    match codes[place..].first_chunk() {
        Some(lanes) => V::load(lanes),
        None => V::all(0),
    }
}

/// Stores the first lanes.
#[inline(always)]
fn store<V: NumberLanes>(lanes: V, target: &mut [i32]) {
    if let Some(whole) = target.first_chunk_mut() {
        lanes.store(whole);
    } else {
        let mut all = [0; LANES];
        lanes.store(&mut all);
        target.copy_from_slice(&all[..target.len()]);
    }
}
