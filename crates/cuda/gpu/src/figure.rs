//! Figures: medians of samples that were taken in turns.

use anyhow::{Result, ensure};
use serde::Serialize;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum FigureUnit {
    /// 10^9 bytes a second.
    #[serde(rename = "GB/s")]
    Rate,
    /// Microseconds.
    #[serde(rename = "us")]
    Time,
    /// A ratio.
    #[serde(rename = "ratio")]
    Ratio,
}

impl FigureUnit {
    /// Returns a value with its unit.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{value:.1} GB/s"),
            Self::Time => format!("{value:.1} us"),
            Self::Ratio => format!("{value:.2}"),
        }
    }
}

/// One measurement of a turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnSample {
    name: String,
    unit: FigureUnit,
    bytes: usize,
    value: f64,
}

impl TurnSample {
    /// The rate at which `bytes` bytes were moved in `seconds`.
    pub(crate) fn rate(name: impl Into<String>, bytes: usize, seconds: f64) -> Self {
        Self { name: name.into(), unit: FigureUnit::Rate, bytes, value: bytes as f64 / seconds * 1e-9 }
    }

    /// The time that work on `bytes` bytes took.
    pub(crate) fn time(name: impl Into<String>, bytes: usize, seconds: f64) -> Self {
        Self { name: name.into(), unit: FigureUnit::Time, bytes, value: seconds * 1e6 }
    }

    /// A ratio that concerns `bytes` bytes.
    pub(crate) fn ratio(name: impl Into<String>, bytes: usize, value: f64) -> Self {
        Self { name: name.into(), unit: FigureUnit::Ratio, bytes, value }
    }
}

/// A figure, and the spread of its samples.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TimedFigure {
    /// The words that name it.
    pub(crate) name: String,
    /// The unit of median, least and greatest.
    pub(crate) unit: FigureUnit,
    /// Bytes of the values it was measured on.
    pub(crate) bytes: usize,
    /// Number of samples.
    pub(crate) repetitions: usize,
    /// The median; `None` if time means nothing where it was taken.
    pub(crate) median: Option<f64>,
    /// The least sample.
    pub(crate) least: Option<f64>,
    /// The greatest sample.
    pub(crate) greatest: Option<f64>,
}

impl TimedFigure {
    /// The figure of samples of one name, at least one.
    fn of(samples: &[&TurnSample]) -> Self {
        let mut values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        values.sort_by(f64::total_cmp);
        let first = samples[0];
        Self {
            name: first.name.clone(),
            unit: first.unit,
            bytes: first.bytes,
            repetitions: values.len(),
            median: values.get(values.len() / 2).copied(),
            least: values.first().copied(),
            greatest: values.last().copied(),
        }
    }

    /// Returns the figure without its values.
    pub(crate) fn without_values(self) -> Self {
        Self { median: None, least: None, greatest: None, ..self }
    }
}

/// Takes `turns` turns after one that is not counted. Each turn gives one sample of every figure,
/// so that a slow moment of the machine meets all of them.
///
/// # Errors
/// That of a turn.
pub(crate) fn in_turns(turns: usize, mut turn: impl FnMut() -> Result<Vec<TurnSample>>) -> Result<Vec<TimedFigure>> {
    turn()?;
    let taken = (0..turns.max(1)).map(|_| turn()).collect::<Result<Vec<_>>>()?;
    let count = taken[0].len();
    ensure!(taken.iter().all(|samples| samples.len() == count), "each turn measures the same");
    let of = |index: usize| taken.iter().map(|samples| &samples[index]).collect::<Vec<_>>();
    Ok((0..count).map(|index| TimedFigure::of(&of(index))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_turn_is_left_out_and_the_median_counts() {
        let mut seconds = [100.0, 1.0, 4.0, 2.0].into_iter();
        let turn = || {
            let seconds = seconds.next().unwrap();
            Ok(vec![TurnSample::rate("copy", 8_000_000_000, seconds), TurnSample::time("wait", 8, seconds)])
        };
        let found = in_turns(3, turn).unwrap();
        let values = |figure: &TimedFigure| [figure.least, figure.median, figure.greatest].map(Option::unwrap);
        assert_eq!(values(&found[0]), [2.0, 4.0, 8.0]);
        assert_eq!(values(&found[1]), [1e6, 2e6, 4e6]);
        assert_eq!((found[0].name.as_str(), found[0].repetitions), ("copy", 3));
        assert_eq!(found[1].unit.text(12.34), "12.3 us");
        assert_eq!(found[0].clone().without_values().median, None);
    }

    #[test]
    fn an_error_of_a_turn_ends_the_series() {
        assert!(in_turns(3, || anyhow::bail!("lost")).is_err());
    }
}
