//! Figure 9: the error of the predicted cost of a commit, by cross-validation.

use recoup::memory::CommitCost;

use crate::Failed;
use crate::draw::{self, Axes, Group};
use crate::keeper::Storage;
use crate::lab::Lab;
use crate::programs::SEED;
use crate::published::MODEL_ERROR_SAVED;
use crate::samples::{CommitSample, Structure, samples};
use crate::settings::CLOCK;
use crate::sheet::{Sheet, percent};

/// Parts of the samples, each of which is predicted from all others.
const FOLDS: usize = 10;
const PLACES: [Storage; 2] = [Storage::VersionsMemory, Storage::VersionsDisk];

/// A way to predict the seconds of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Predictor {
    /// The regression of the library, which learns on from commit to commit.
    Regression,
    /// The regression after ten commits.
    FewCommits,
    /// Bytes of values by one bandwidth.
    Bandwidth,
}

impl Predictor {
    const ALL: [Self; 3] = [Self::Regression, Self::FewCommits, Self::Bandwidth];

    fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::FewCommits => "of 10 commits",
            Self::Bandwidth => "bytes by bandwidth",
        }
    }

    /// Learns commits, and returns the predictions of others.
    fn predictions(self, learned: &[CommitSample], asked: &[CommitSample]) -> Vec<f64> {
        if self == Self::Bandwidth {
            // The time of a byte that has the least sum of squared relative errors.
            let shares = learned.iter().map(|sample| sample.work.bytes as f64 / sample.seconds);
            let [sum, squares] = shares.fold([0.0, 0.0], |sums, share| [sums[0] + share, sums[1] + share * share]);
            return asked.iter().map(|sample| sample.work.bytes as f64 * sum / squares).collect();
        }
        let n_learned = if self == Self::FewCommits { 10.min(learned.len()) } else { learned.len() };
        let mut cost = CommitCost::new();
        learned[..n_learned].iter().for_each(|sample| cost.learn(&sample.work, sample.seconds));
        asked.iter().map(|sample| cost.seconds(&sample.work)).collect()
    }

    /// Relative absolute error: the sum of all errors over that of the mean as a prediction.
    fn error(self, samples: &[CommitSample]) -> f64 {
        let mean = samples.iter().map(|sample| sample.seconds).sum::<f64>() / samples.len() as f64;
        let mut errors = [0.0, 0.0];
        for fold in 0..FOLDS {
            let part = |is_asked: bool| {
                let chosen = samples.iter().enumerate().filter(|(index, _)| (index % FOLDS == fold) == is_asked);
                chosen.map(|(_, sample)| *sample).collect::<Vec<_>>()
            };
            let asked = part(true);
            for (sample, prediction) in asked.iter().zip(self.predictions(&part(false), &asked)) {
                errors[0] += (prediction - sample.seconds).abs();
                errors[1] += (mean - sample.seconds).abs();
            }
        }
        errors[0] / errors[1]
    }
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 9: relative absolute error of the predicted cost of a commit";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    let mut n_samples = 0;
    for storage in PLACES {
        for structure in Structure::ALL {
            let samples = samples(structure, storage, &lab.settings)?;
            n_samples = samples.len();
            let errors = Predictor::ALL.map(|predictor| predictor.error(&samples));
            let place = if storage == Storage::VersionsDisk { "disk" } else { "memory" };
            let name = format!("{}, {place}", structure.name());
            rows.push(std::iter::once(name.clone()).chain(errors.map(percent)).collect());
            groups.push(Group { label: name, bars: errors.map(|error| (100.0 * error, 0.0)).to_vec() });
        }
    }
    let mut head = vec!["commits of an"];
    head.extend(Predictor::ALL.map(Predictor::name));
    sheet.table(&head, &rows);
    sheet.say(format!(
        "Published is how three models compare: M5P has {} less error than the two others. No error is",
        percent(MODEL_ERROR_SAVED)
    ));
    sheet.say(
        "stated. It was trained on 60,000 commits for each program, ours on nine tenths of those below, or on ten of",
    );
    sheet.say("them. \"cargo test -p recoup-model --test commit_cost -- --nocapture\" has a model tree next to ours.");
    sheet.parameters.push(format!(
        "{n_samples} commits of each structure, of 0.1 to 100 % of it in 1 to 32 runs, seed {SEED}; each made {} times, of \
         which the fastest counts; {FOLDS}-fold cross-validation",
        lab.settings.runs
    ));
    sheet.parameters.push(CLOCK.to_owned());
    sheet.limits.push("M5P, random forests and REPTree of Weka, which the publication compares.");
    let axes = Axes { title, y: "%", ..Axes::default() };
    let names = Predictor::ALL.map(Predictor::name);
    sheet.figures.push(("fig9".to_owned(), draw::bars(axes, &names, groups)));
    Ok(sheet)
}
