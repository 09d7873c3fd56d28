//! What the figures share: the settings, and the runs of each program, taken once.

use std::cell::OnceCell;

use crate::Failed;
use crate::experiment::{Experiment, SAVES};
use crate::programs::{Kind, N_SIZES, Problem, SEED};
use crate::settings::{CLOCK, Settings};
use crate::sheet::Sheet;

/// Settings and runs.
pub(crate) struct Lab {
    pub(crate) settings: Settings,
    experiments: [[OnceCell<Experiment>; N_SIZES]; Kind::ALL.len()],
}

impl Lab {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, experiments: Default::default() }
    }

    /// A program at one of its sizes.
    pub(crate) fn problem(&self, kind: Kind, index: usize) -> Problem {
        self.settings.sizes.problem(kind, index)
    }

    /// The runs of a program at one of its sizes.
    pub(crate) fn experiment(&self, kind: Kind, index: usize) -> Result<&Experiment, Failed> {
        let cell = &self.experiments[kind as usize][index];
        if let Some(experiment) = cell.get() {
            return Ok(experiment);
        }
        let experiment = Experiment::run(self.problem(kind, index), &self.settings)?;
        Ok(cell.get_or_init(|| experiment))
    }

    /// The runs of all programs at their largest sizes.
    pub(crate) fn largest(&self) -> Result<[&Experiment; Kind::ALL.len()], Failed> {
        let [lu, droplet, pagerank, crack] = Kind::ALL.map(|kind| self.experiment(kind, N_SIZES - 1));
        Ok([lu?, droplet?, pagerank?, crack?])
    }

    /// The options of the command that are not the usual ones.
    pub(crate) fn options(&self) -> String {
        let usual = Settings::default();
        let Settings { runs, rate, sizes, .. } = self.settings;
        let mut options = String::new();
        if runs != usual.runs {
            options += &format!(" --runs {runs}");
        }
        if rate.total_cmp(&usual.rate).is_ne() {
            options += &format!(" --rate {}", rate / 1e6);
        }
        if sizes != usual.sizes {
            options += &format!(" --size {}", sizes.name());
        }
        options
    }

    /// Notes how the runs of programs were taken.
    pub(crate) fn note_runs(&self, sheet: &mut Sheet) {
        let Settings { runs, rate, .. } = self.settings;
        sheet.parameters.push(format!(
            "One process; {SAVES} versions or checkpoints in a run; fastest of {runs} runs in turns; seed {SEED}. Shared: \
             a file on the disk whose bytes pass at {} MB/s at most, one run.",
            rate / 1e6
        ));
        sheet.parameters.push(CLOCK.to_owned());
    }
}

/// Seconds with three digits, in a unit that suits them.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// Bytes as megabytes.
pub(crate) fn megabytes(bytes: f64) -> String {
    format!("{:.2} MB", bytes / 1e6)
}

/// A quotient of two times.
pub(crate) fn times(quotient: f64) -> String {
    format!("{quotient:.2}x")
}
