//! The cost of commits, learned from commits that were measured: `tests/data/commits.csv`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod model_tree;

use model_tree::ModelTree;
use recoup_model::Rng;
use recoup_model::commit_cost::{CommitCost, CommitWork};

/// A measured commit.
#[derive(Clone, Copy)]
struct Sample {
    work: CommitWork,
    seconds: f64,
}

/// Commits of one memory, which has blocks of one size, in their order.
type Program = Vec<Sample>;

/// Samples of each memory of a medium.
const PROGRAM_SAMPLES: usize = 72;

/// Returns the programs of a medium.
fn programs(medium: &str) -> Vec<Program> {
    let rows = include_str!("../../../tests/data/commits.csv").lines().skip(1);
    let sample = |row: &str| {
        let fields: Vec<&str> = row.split(',').collect();
        let count = |index: usize| fields[index].parse::<u64>().unwrap();
        let work = CommitWork {
            bytes: count(1),
            runs: count(2),
            blocks: count(3),
            table_bytes: count(4),
            compared_bytes: count(5),
        };
        Sample { work, seconds: fields[6].parse().unwrap() }
    };
    let samples: Vec<Sample> = rows.filter(|row| row.starts_with(medium)).map(sample).collect();
    let found: Vec<Program> = samples.chunks(PROGRAM_SAMPLES).map(<[Sample]>::to_vec).collect();
    assert!(found.len() == 4 && found.iter().all(|program| program.len() == PROGRAM_SAMPLES));
    found
}

/// A predictor of the seconds of a commit.
type Predictor = Box<dyn Fn(&CommitWork) -> f64>;

fn regression(samples: &[Sample]) -> Predictor {
    let mut cost = CommitCost::new();
    samples.iter().for_each(|sample| cost.learn(&sample.work, sample.seconds));
    Box::new(move |work| cost.seconds(work))
}

/// The bandwidth that makes the squares of the relative errors least.
fn bandwidth(samples: &[Sample]) -> Predictor {
    let shares = samples.iter().map(|sample| sample.work.bytes as f64 / sample.seconds);
    let squares: f64 = shares.clone().map(|share| share * share).sum();
    let seconds_per_byte = shares.sum::<f64>() / squares;
    Box::new(move |work| work.bytes as f64 * seconds_per_byte)
}

fn model_tree(samples: &[Sample]) -> Predictor {
    let rows: Vec<(CommitWork, f64)> = samples.iter().map(|sample| (sample.work, sample.seconds)).collect();
    let tree = ModelTree::grow(&rows);
    Box::new(move |work| tree.seconds(work))
}

/// Predicted and measured seconds.
type Predicted = Vec<(f64, f64)>;

/// Relative absolute error: that of the predictions over that of the mean (Coy et al., ICS 2020,
/// section 6.4).
fn relative_absolute_error(predicted: &Predicted) -> f64 {
    let mean = predicted.iter().map(|(_, seconds)| seconds).sum::<f64>() / predicted.len() as f64;
    let errors: f64 = predicted.iter().map(|(found, seconds)| (found - seconds).abs()).sum();
    errors / predicted.iter().map(|(_, seconds)| (mean - seconds).abs()).sum::<f64>()
}

fn median_error(predicted: &Predicted) -> f64 {
    let mut errors: Vec<f64> = predicted.iter().map(|(found, seconds)| (found / seconds - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

fn shuffled(mut samples: Vec<Sample>, seed: u64) -> Vec<Sample> {
    let mut rng = Rng::new(seed);
    for index in (1..samples.len()).rev() {
        samples.swap(index, rng.next_u64() as usize % (index + 1));
    }
    samples
}

/// Predictions of each tenth of the samples by a predictor that has learned the others.
fn cross_validated(samples: &[Sample], learn: fn(&[Sample]) -> Predictor) -> Predicted {
    let mut predicted = Vec::with_capacity(samples.len());
    for fold in 0..10 {
        let is_left_out = |index: usize| index % 10 == fold;
        let (test, train): (Vec<_>, Vec<_>) = samples.iter().enumerate().partition(|(index, _)| is_left_out(*index));
        let predictor = learn(&train.into_iter().map(|(_, sample)| *sample).collect::<Vec<_>>());
        predicted.extend(test.into_iter().map(|(_, sample)| (predictor(&sample.work), sample.seconds)));
    }
    predicted
}

/// Predictions of all samples by one that has learned the first ten of another order, for twenty
/// orders.
fn after_ten(samples: &[Sample]) -> Vec<Predicted> {
    let one = |seed: u64| {
        let samples = shuffled(samples.to_vec(), seed);
        let predictor = regression(&samples[..10]);
        samples[10..].iter().map(|sample| (predictor(&sample.work), sample.seconds)).collect()
    };
    (1..=20).map(one).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints and returns an error; `cargo test -p recoup-model --test commit_cost -- --nocapture`
/// shows all of them.
fn row(name: &str, predicted: &Predicted) -> f64 {
    let error = relative_absolute_error(predicted);
    println!("  {name:<34} RAE {:5.1} %, median error {:5.1} %", 100.0 * error, 100.0 * median_error(predicted));
    error
}

/// Errors of the predictors on all samples of a medium.
struct Errors {
    after_ten: f64,
    regression: f64,
    bandwidth: f64,
    tree: f64,
}

fn errors(medium: &str) -> Errors {
    let programs = programs(medium);
    println!("{medium}, seeds 1 to 20");
    for (index, program) in programs.iter().enumerate() {
        let errors: Vec<f64> = after_ten(program).iter().map(relative_absolute_error).collect();
        println!("  memory {index}, after ten commits: RAE {:5.1} %, median of 20 orders", 100.0 * median(errors));
    }
    let samples = shuffled(programs.concat(), 1);
    let after_ten = median(after_ten(&samples).iter().map(relative_absolute_error).collect());
    println!("  all memories, after ten commits:    RAE {:5.1} %, median of 20 orders", 100.0 * after_ten);
    Errors {
        after_ten,
        regression: row("regression, cross-validated", &cross_validated(&samples, regression)),
        bandwidth: row("bandwidth, cross-validated", &cross_validated(&samples, bandwidth)),
        tree: row("model tree, cross-validated", &cross_validated(&samples, model_tree)),
    }
}

#[test]
fn commits_in_memory_are_predicted_after_ten_and_within_a_fifth_of_a_model_tree() {
    check(&errors("tmpfs"));
}

#[test]
fn commits_on_a_disk_are_predicted_after_ten_and_within_a_fifth_of_a_model_tree() {
    check(&errors("disk"));
}

/// Compares the errors with each other: what no predictor knows, other work of the machine above
/// all, is in all of them alike.
fn check(errors: &Errors) {
    // The squares of errors grow by 1 + factors / commits: 1.6 for six factors that ten commits
    // were fitted to, and the errors by its root, 1.26.
    assert!(errors.after_ten <= 1.26 * errors.regression, "after ten {}: {}", errors.after_ten, errors.regression);
    // A bandwidth alone knows nothing of runs, blocks, tables and comparisons.
    assert!(2.0 * errors.regression <= errors.bandwidth, "{} and {}", errors.regression, errors.bandwidth);
    // The tree can follow bends that the regression cannot: at most a fifth of its own error.
    assert!(errors.regression <= 1.2 * errors.tree, "{} and {}", errors.regression, errors.tree);
}
