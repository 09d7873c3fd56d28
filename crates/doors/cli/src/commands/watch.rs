//! `recoup watch`: a run while it computes, look by look, until it ends.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use recoup::SystemClock;
use recoup::core::Clock;
use serde::Serialize;

use crate::commands::status::standing::{RunStanding, standing};
use crate::directory::PlaceArgs;
use crate::exit::Exit;
use crate::observe::history::{HistoryEntry, HistoryKind, RecordedHistory};
use crate::observe::progress::fallen;
use crate::options::duration;
use crate::output::Output;
use crate::printable::printable;

/// Text of the help after the options.
const EXAMPLES: &str = "Examples:
  recoup watch /tmp/versions
  recoup watch /tmp/versions --every 10s >> progress.txt
  recoup watch /tmp/versions && \\
      recoup export /tmp/versions --solution --to x.npy

On a terminal one line is drawn over and over; elsewhere each look is a line.
`next` is when the next version is due, `left` the time until the tolerance, if
the residual falls on as it did lately; both are estimates, and - where nothing
is known yet. The command only reads and takes no lock.

It ends when the run does: with 0 if it converged, 3 if not, 75 if it was
stopped, 1 if it failed or its process is gone.";

/// A process may be gone for so long before another one takes its place.
const GRACE: Duration = Duration::from_secs(5);
/// The longest time between two looks, in seconds: a day.
const EVERY_MAX: f64 = 86_400.0;
/// Steps of the bar.
const STEPS: f64 = 1000.0;
/// The columns of a line, and their widths, which sum to less than that of a screen.
const COLUMNS: [(&str, usize); 8] = [
    ("state", 14),
    ("iteration", 10),
    ("residual", 10),
    ("per second", 12),
    ("version", 9),
    ("age", 8),
    ("next", 8),
    ("left", 8),
];

/// Options of `recoup watch`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    place: PlaceArgs,

    /// Time between two looks, a day at most.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    every: f64,
}

/// A look at a run; the last one is printed with --json.
#[derive(Serialize)]
struct WatchReport {
    #[serde(flatten)]
    standing: RunStanding,
    /// Iterations per second of late.
    iterations_per_second: Option<f64>,
    /// Seconds until the next version is due.
    next_version_seconds: Option<f64>,
    /// Seconds until the tolerance, if the residual falls on as it did.
    seconds_left: Option<f64>,
}

/// Looks until the run has ended, and reports.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let name = args.place.one_name()?;
    let clock = SystemClock::new();
    let mut screen = Screen::new(output.is_json());
    let mut gone_since = None;
    loop {
        let look = look(&args.place, &name)?;
        let now = clock.now();
        let exit = match look.standing.state.as_str() {
            "running" => None,
            "converged" => Some(Exit::Done),
            "not-converged" => Some(Exit::NotConverged),
            "stopped" => Some(Exit::Stopped),
            // Another process may take the place of this one.
            "dead" if now.saturating_sub(*gone_since.get_or_insert(now)) < GRACE => None,
            _ => Some(Exit::Failed),
        };
        if look.standing.state == "running" {
            gone_since = None;
        }
        let Some(exit) = exit else {
            screen.show(&look)?;
            clock.sleep_until(now + Duration::from_secs_f64(args.every.min(EVERY_MAX)));
            continue;
        };
        screen.clear();
        output.emit(&look, |look| screen.last(look))?;
        return Ok(exit);
    }
}

fn look(place: &PlaceArgs, name: &str) -> Result<WatchReport> {
    let mut standing = standing(place, name.to_owned())?;
    let Some(reported) = &mut standing.reported else {
        let text = format!(
            "run {name} of {shown} has no status to watch, which only the program `recoup run` writes: \
             `recoup status {shown}` shows its newest version and the age of it, `recoup inspect {shown}` all versions",
            shown = place.shown()
        );
        return Err(Exit::Failed.because(text));
    };
    let entries = RecordedHistory::read(&place.folder(name)).unwrap_or_default().entries;
    let pace = Pace::of(&entries);
    // The history is written more often than the status, but not after every iteration.
    if let Some(HistoryEntry { at, .. }) = entries.last().filter(|_| standing.state == "running") {
        reported.iteration = reported.iteration.max(at.iteration);
        reported.relative_residual = at.relative_residual.or(reported.relative_residual);
    }
    let decided = entries.iter().rev().find_map(|entry| match &entry.kind {
        HistoryKind::Decision { decision } => Some(decision.interval_seconds),
        _ => None,
    });
    let interval = decided.unwrap_or(reported.interval_seconds);
    let left = |pace: &Pace| {
        let ratio = reported.relative_residual? / reported.rtol;
        Some((ratio.ln() / pace.falls_per_second).max(0.0)).filter(|left| left.is_finite())
    };
    let next = interval.zip(standing.version_age_seconds).map(|(interval, age)| interval - age);
    let is_running = standing.state == "running";
    Ok(WatchReport {
        iterations_per_second: pace.as_ref().map(|pace| pace.iterations_per_second),
        next_version_seconds: next.filter(|_| is_running).map(|next| next.max(0.0)),
        seconds_left: pace.as_ref().filter(|_| is_running).and_then(left),
        standing,
    })
}

/// The speed of a run of late.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pace {
    iterations_per_second: f64,
    /// Fall of the residual's natural logarithm.
    falls_per_second: f64,
}

impl Pace {
    /// Reads it from a history, since the last failure or resume; `None` before two iterations.
    fn of(entries: &[HistoryEntry]) -> Option<Self> {
        let is_step = |kind: &HistoryKind| matches!(kind, HistoryKind::Step);
        let breaks =
            |kind: &HistoryKind| matches!(kind, HistoryKind::Begin(_) | HistoryKind::Failure | HistoryKind::Resume);
        let since = entries.iter().rposition(|entry| breaks(&entry.kind)).map_or(0, |position| position + 1);
        let steps = entries[since..].iter().filter(|entry| is_step(&entry.kind)).map(|entry| entry.at);
        let steps: Vec<(f64, u64, f64)> =
            steps.filter_map(|at| Some((at.seconds, at.executed, at.relative_residual?.ln()))).collect();
        Self::of_steps(&steps)
    }

    /// Fits the later half of steps: (seconds, iterations executed, logarithm of the residual).
    fn of_steps(steps: &[(f64, u64, f64)]) -> Option<Self> {
        let half = 0.5 * (steps.first()?.0 + steps.last()?.0);
        let late = &steps[steps.partition_point(|step| step.0 < half).min(steps.len().saturating_sub(2))..];
        let begin = late.first()?;
        let end = late.last()?;
        let took = end.0 - begin.0;
        let n = late.len() as f64;
        let mean_seconds = late.iter().map(|step| step.0).sum::<f64>() / n;
        let mean = late.iter().map(|step| step.2).sum::<f64>() / n;
        let covariance: f64 = late.iter().map(|step| (step.0 - mean_seconds) * (step.2 - mean)).sum();
        let variance: f64 = late.iter().map(|step| (step.0 - mean_seconds).powi(2)).sum();
        (took > 0.0).then(|| Self {
            iterations_per_second: (end.1 - begin.1) as f64 / took,
            // A residual that does not fall never gets there.
            falls_per_second: (-covariance / variance).max(0.0),
        })
    }
}

/// The place of looks: over each other on a terminal, a line each elsewhere, nowhere with --json.
struct Screen {
    is_json: bool,
    has_header: bool,
    bar: Option<ProgressBar>,
    first_residual: Option<f64>,
}

impl Screen {
    fn new(is_json: bool) -> Self {
        let is_drawn = !is_json && io::stdout().is_terminal();
        let bar = is_drawn.then(|| {
            let bar = ProgressBar::with_draw_target(Some(STEPS as u64), ProgressDrawTarget::stdout());
            let style = ProgressStyle::with_template("{msg}\n[{bar:60}] {percent} % of the way");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { is_json, has_header: false, bar, first_residual: None }
    }

    fn show(&mut self, look: &WatchReport) -> io::Result<()> {
        let line = printable(&cells(look));
        let residual = look.standing.reported.as_ref().and_then(|of| Some((of.relative_residual?, of.rtol)));
        match &self.bar {
            Some(bar) => {
                if let Some((residual, rtol)) = residual {
                    let first = *self.first_residual.get_or_insert(residual.max(1.0));
                    bar.set_position((STEPS * fallen(first, residual, rtol)) as u64);
                }
                bar.set_message(format!("{}\n{line}", header()));
                bar.tick();
            }
            None if !self.is_json => {
                let header =
                    if std::mem::replace(&mut self.has_header, true) { String::new() } else { header() + "\n" };
                let mut stdout = io::stdout().lock();
                writeln!(stdout, "{header}{line}")?;
                stdout.flush()?;
            }
            None => {}
        }
        Ok(())
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Returns the last look, under the header if there was none.
    fn last(&self, look: &WatchReport) -> String {
        let header = if self.has_header { String::new() } else { header() + "\n" };
        format!("{header}{}\n", cells(look))
    }
}

fn header() -> String {
    aligned(COLUMNS.map(|(name, _)| name.to_owned()))
}

fn cells(look: &WatchReport) -> String {
    let standing = &look.standing;
    let dash = || "-".to_owned();
    let reported = standing.reported.as_ref();
    aligned([
        standing.state.clone(),
        reported.map_or_else(dash, |of| of.iteration.to_string()),
        reported.and_then(|of| of.relative_residual).map_or_else(dash, |residual| format!("{residual:.2e}")),
        look.iterations_per_second.map_or_else(dash, |rate| format!("{rate:.3}")),
        standing.newest_version.map_or_else(dash, |version| version.to_string()),
        standing.version_age_seconds.map_or_else(dash, short),
        look.next_version_seconds.map_or_else(dash, short),
        look.seconds_left.map_or_else(dash, short),
    ])
}

/// Returns a time without digits that change at every look.
fn short(time: f64) -> String {
    match time {
        ..120.0 => format!("{time:.1} s"),
        ..7200.0 => format!("{:.0} min", time / 60.0),
        ..172_800.0 => format!("{:.0} h", time / 3600.0),
        _ => format!("{:.0} d", time / 86_400.0),
    }
}

/// Text in the columns: the first to the left, all others to the right.
fn aligned(cells: [String; 8]) -> String {
    let line = cells.iter().zip(COLUMNS).enumerate().map(|(index, (cell, (_, width)))| match index {
        0 => format!("{cell:<width$}"),
        _ => format!("{cell:>width$}"),
    });
    line.collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_later_half() {
        // Ten slow steps at which nothing falls, then ten steps of a second, each a digit.
        let slow = (0..10).map(|step| (0.5 * step as f64, step, 0.0));
        let quick = (0..10).map(|step| (10.0 + step as f64, 10 + 2 * step, -std::f64::consts::LN_10 * step as f64));
        let pace = Pace::of_steps(&slow.chain(quick).collect::<Vec<_>>()).unwrap();
        assert!((pace.iterations_per_second - 2.0).abs() <= 4.0 * f64::EPSILON, "{pace:?}");
        assert!((pace.falls_per_second - std::f64::consts::LN_10).abs() <= 1e-12, "{pace:?}");
        assert_eq!(Pace::of_steps(&[(1.0, 1, 0.0)]), None);
    }
}
