//! A model tree in the manner of M5P: splits that reduce the deviation most, and a linear model in
//! each leaf. For the comparison only.
//!
//! Sources: Quinlan, "Learning with continuous classes", AI 1992; Wang and Witten, ECML 1997.
//! Models are fitted by relative least squares, as ours is, and are not smoothed along the path.

use recoup_model::commit_cost::CommitWork;

const FEATURES: usize = 5;
/// Least samples of a leaf: four for each of its factors.
const LEAF_SAMPLES: usize = 4 * (FEATURES + 1);
const DEPTH_MOST: usize = 8;

type Row = ([f64; FEATURES], f64);

/// A node of the tree.
pub(crate) enum ModelTree {
    /// Samples up to the value go to the first.
    Split { feature: usize, value: f64, below: Box<ModelTree>, above: Box<ModelTree> },
    /// A constant, and a factor of each feature; predictions stay within what the leaf has seen.
    Leaf { factors: [f64; FEATURES + 1], least: f64, most: f64 },
}

fn features(work: &CommitWork) -> [f64; FEATURES] {
    [work.bytes, work.runs, work.blocks, work.table_bytes, work.compared_bytes].map(|count| count as f64)
}

impl ModelTree {
    /// Grows a tree on measured commits.
    pub(crate) fn grow(samples: &[(CommitWork, f64)]) -> Self {
        let mut rows: Vec<Row> = samples.iter().map(|(work, seconds)| (features(work), *seconds)).collect();
        Self::grow_node(&mut rows, DEPTH_MOST)
    }

    /// Predicts the seconds of a commit.
    pub(crate) fn seconds(&self, work: &CommitWork) -> f64 {
        let features = features(work);
        match self {
            Self::Split { feature, value, below, above } => {
                if features[*feature] <= *value {
                    below.seconds(work)
                } else {
                    above.seconds(work)
                }
            }
            Self::Leaf { factors, least, most } => evaluate(factors, &features).clamp(*least, *most),
        }
    }

    fn grow_node(rows: &mut [Row], depth: usize) -> Self {
        let split = if depth == 0 { None } else { best_split(rows) };
        let Some((feature, n_below)) = split else {
            let seconds = rows.iter().map(|(_, seconds)| *seconds);
            let least = seconds.clone().fold(f64::INFINITY, f64::min);
            let most = seconds.fold(0.0, f64::max);
            return Self::Leaf { factors: linear_model(rows), least, most };
        };
        rows.sort_by(|a, b| a.0[feature].total_cmp(&b.0[feature]));
        let value = rows[n_below - 1].0[feature];
        let (below, above) = rows.split_at_mut(n_below);
        let below = Box::new(Self::grow_node(below, depth - 1));
        Self::Split { feature, value, below, above: Box::new(Self::grow_node(above, depth - 1)) }
    }
}

/// The feature and the number of samples below that reduce the deviation of the logarithm most:
/// errors are relative, as in the models.
fn best_split(rows: &mut [Row]) -> Option<(usize, usize)> {
    let mut best = None;
    let mut least = deviation(rows) * 0.95;
    for feature in 0..FEATURES {
        rows.sort_by(|a, b| a.0[feature].total_cmp(&b.0[feature]));
        for n_below in LEAF_SAMPLES..=rows.len().saturating_sub(LEAF_SAMPLES) {
            if rows[n_below - 1].0[feature] < rows[n_below].0[feature] {
                let found = deviation(&rows[..n_below]) + deviation(&rows[n_below..]);
                if found < least {
                    least = found;
                    best = Some((feature, n_below));
                }
            }
        }
    }
    best
}

/// Number of samples times the standard deviation of the logarithm of their times.
fn deviation(rows: &[Row]) -> f64 {
    let n = rows.len() as f64;
    let mean = rows.iter().map(|(_, seconds)| seconds.ln()).sum::<f64>() / n;
    n * (rows.iter().map(|(_, seconds)| (seconds.ln() - mean).powi(2)).sum::<f64>() / n).sqrt()
}

fn evaluate(factors: &[f64; FEATURES + 1], features: &[f64; FEATURES]) -> f64 {
    factors[0] + factors[1..].iter().zip(features).map(|(factor, feature)| factor * feature).sum::<f64>()
}

/// Fits a linear model by relative least squares: the normal equations with a small ridge, solved
/// by elimination. Features are scaled by their largest values.
fn linear_model(rows: &[Row]) -> [f64; FEATURES + 1] {
    let scale: [f64; FEATURES] =
        std::array::from_fn(|index| rows.iter().map(|row| row.0[index]).fold(1e-300, f64::max));
    let mean = rows.iter().map(|(_, seconds)| seconds).sum::<f64>() / rows.len() as f64;
    let mut matrix = [[0.0; FEATURES + 2]; FEATURES + 1];
    for (features, seconds) in rows {
        let value = |index: usize| if index == 0 { 1.0 } else { features[index - 1] / scale[index - 1] };
        for (i, line) in matrix.iter_mut().enumerate() {
            let weight = value(i) * (mean / seconds).powi(2);
            for (j, entry) in line.iter_mut().enumerate() {
                *entry += weight * if j <= FEATURES { value(j) } else { seconds / mean };
            }
        }
    }
    for (i, line) in matrix.iter_mut().enumerate() {
        line[i] += 1e-6 * rows.len() as f64;
    }
    for pivot in 0..=FEATURES {
        let line = matrix[pivot].map(|entry| entry / matrix[pivot][pivot]);
        for (i, other) in matrix.iter_mut().enumerate() {
            let times = if i == pivot { 0.0 } else { other[pivot] };
            other.iter_mut().zip(&line).for_each(|(entry, by)| *entry -= times * by);
        }
        matrix[pivot] = line;
    }
    std::array::from_fn(|i| {
        let factor = mean * matrix[i][FEATURES + 1];
        if i == 0 { factor } else { factor / scale[i - 1] }
    })
}
