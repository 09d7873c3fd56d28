//! The predictors a cell may have, and their numbers.
//!
//! Most cells are curves between points. Two kinds of fields are not. Where a field repeats itself
//! along an axis, as iterates do that have not reached the far end of a grid, the cell before
//! predicts better. Values in no order are best predicted by 0, because neighbours would only add
//! their noise.

use super::cells::Cell;
use super::interpolation::InterpolationOrder;
use super::levels::CLASSES;

/// Number of the predictors that interpolate.
const INTERPOLATIONS: usize = InterpolationOrder::ALL.len() * (CLASSES - 1);
/// The number of [`CellPredictor::Nothing`].
const NOTHING: usize = INTERPOLATIONS + 3;
/// Number of the predictors a cell may have.
pub(super) const PREDICTORS: usize = NOTHING + 1;

/// The predictor of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellPredictor {
    /// The mean of interpolations along some axes.
    Between(AxisMean),
    /// The cell before along an axis.
    Repeated {
        /// Below 3.
        axis: usize,
    },
    /// Zeros.
    Nothing,
}

/// Interpolations along some axes, of which the mean counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AxisMean {
    pub(super) order: InterpolationOrder,
    /// Bit a stands for axis a; at least one.
    pub(super) axes: usize,
}

impl CellPredictor {
    /// The number of the predictor, below [`PREDICTORS`].
    pub(super) fn number(self) -> usize {
        match self {
            Self::Between(AxisMean { order, axes }) => order as usize * (CLASSES - 1) + axes - 1,
            Self::Repeated { axis } => INTERPOLATIONS + axis,
            Self::Nothing => NOTHING,
        }
    }

    /// The predictor of a number, where it is one for this class.
    pub(super) fn of(number: usize, class: usize) -> Option<Self> {
        match number {
            NOTHING => return Some(Self::Nothing),
            INTERPOLATIONS..NOTHING => return Some(Self::Repeated { axis: number - INTERPOLATIONS }),
            _ => {}
        }
        let order = *InterpolationOrder::ALL.get(number / (CLASSES - 1))?;
        let axes = number % (CLASSES - 1) + 1;
        (axes & !class == 0).then_some(Self::Between(AxisMean { order, axes }))
    }

    /// Returns whether a cell has what this predicts by.
    #[inline(always)]
    pub(super) fn fits(self, cell: &Cell) -> bool {
        if let Self::Repeated { axis } = self { cell.has_before(axis) } else { true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_predictor_of_a_class_has_a_number_of_its_own() {
        for class in 1..CLASSES {
            let of_class = (0..PREDICTORS).filter_map(|number| Some((number, CellPredictor::of(number, class)?)));
            let found: Vec<usize> = of_class.map(|(number, predictor)| predictor.number() - number).collect();
            // 3 orders along any of the axes, 3 axes along which a cell is repeated, and nothing.
            let sets = (1 << class.count_ones()) - 1;
            assert_eq!(found, vec![0; 3 * sets + 4], "{class}");
            assert_eq!(CellPredictor::of(PREDICTORS, class), None);
        }
    }
}
