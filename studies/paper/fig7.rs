//! Figure 7: expected overhead (Eq. 7) from 256 to 2,048 ranks at two failure rates, and the same
//! rates up to 100,000.

use recoup::model::overhead::CheckpointTiming;
use recoup::model::simulate::Simulation;

use crate::draw::{Axes, Series, lines};
use crate::lab::{Lab, SIDES, Study};
use crate::measure::{Choice, Profile, Protection};
use crate::problem::Kind;
use crate::sheet::{Sheet, percent};
use crate::{Failed, published};

/// Ranks of the table at an MTTI of an hour.
const RANKS: [f64; 4] = [256.0, 768.0, 1536.0, 2048.0];
/// Ranks beyond the published ones.
const MORE_RANKS: [f64; 7] = [2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 100_000.0];
/// Share of all time that is not productive, above which a machine is taken for useless.
const SHARE_MAX: f64 = 0.97;
/// Percents above which a line is not drawn.
const PERCENTS_MAX: f64 = 1000.0;
/// Simulated runs behind each cell.
const TRIALS: u32 = 200;

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 7: expected overhead (Eq. 7) by ranks; from 2,048 on to 100,000".to_owned();
    let mut sheet = Sheet { title, ..Sheet::default() };
    for (side, (name, _)) in SIDES.iter().enumerate() {
        let studies = lab.studies(side)?;
        expected(&mut sheet, name, studies);
        let cg = studies.last().ok_or("no CG")?;
        crossings(&mut sheet, name, cg);
        for study in studies {
            defaults(&mut sheet, name, study)?;
        }
        sheet.say(
            "Settings were compared at instants of failure that the table was not measured at. MTTI 1 h, 2,048 ranks.",
        );
        sheet.say("");
        sheet.parameters.extend(studies.iter().map(|study| format!("{}, {name}", study.problem)));
    }
    published_rates(&mut sheet);
    let studies = lab.studies(0)?;
    sheet.figures.extend(studies.iter().map(drawing));
    for machine in [Machine::SharedStore, Machine::Grown] {
        scaling(&mut sheet, studies, machine, lab.seed);
        sheet.figures.push(scaling_drawing(studies, machine));
    }
    Ok(sheet)
}

fn expected(sheet: &mut Sheet, side: &str, studies: &[Study]) {
    let mut head = vec![format!("{side}, Eq. 7"), "N'".to_owned()];
    head.extend(RANKS.iter().map(|ranks| format!("{ranks:.0}, 1 h")));
    head.push("2048, 3 h".to_owned());
    let row = |study: &Study, choice: Choice| {
        let mut row = vec![format!("{} {choice}", study.problem.kind)];
        row.push(format!("{:.1}", study.profile(choice).extra_iterations));
        row.extend(RANKS.iter().map(|&ranks| percent(overhead(study, choice, ranks, published::MTTI_SECONDS))));
        row.push(percent(overhead(study, choice, published::RANKS, published::MTTI_LONG_SECONDS)));
        row
    };
    let rows: Vec<_> = studies.iter().flat_map(|study| Choice::ALL.map(|choice| row(study, choice))).collect();
    sheet.table(&head, &rows);
}

fn overhead(study: &Study, choice: Choice, ranks: f64, mtti_seconds: f64) -> f64 {
    study.profile(choice).costs(&study.problem, mtti_seconds, ranks / published::RANKS).overhead_fraction()
}

/// Ranks from which on lossy CG costs less than traditional CG.
fn crossing(lossy: impl Fn(f64) -> f64, traditional: impl Fn(f64) -> f64) -> String {
    let found = (1..=published::RANKS as u32).map(f64::from).find(|&ranks| lossy(ranks) < traditional(ranks));
    found.map_or("never".to_owned(), |ranks| format!("{ranks:.0}"))
}

fn crossings(sheet: &mut Sheet, side: &str, cg: &Study) {
    let overhead = |choice, mtti| {
        crossing(|ranks| overhead(cg, choice, ranks, mtti), |ranks| overhead(cg, Choice::Traditional, ranks, mtti))
    };
    let hour = published::MTTI_SECONDS;
    let long = published::MTTI_LONG_SECONDS;
    sheet.say(format!(
        "CG, {side}: cheaper than traditional from this many ranks on, MTTI 1 h and 3 h: paper's lossy {} and {}, ours {} and {}.",
        overhead(Choice::Paper, hour), overhead(Choice::Paper, long), overhead(Choice::Ours, hour), overhead(Choice::Ours, long)
    ));
}

/// Ours was tuned for the problem and this storage: how, and what it is worth untuned.
fn defaults(sheet: &mut Sheet, side: &str, study: &Study) -> Result<(), Failed> {
    let Protection { theta, delta, codec, key_every, .. } = study.profile(Choice::Ours).protection;
    let codec = codec.map_or("the session's choice of codec".to_owned(), |codec| codec.to_string());
    let kind = study.problem.kind;
    let delta = if kind == Kind::Cg { format!(", delta {delta}") } else { String::new() };
    let plain = Profile::of(&study.problem, Choice::Ours.of(kind))?;
    let expected = percent(plain.costs(&study.problem, published::MTTI_SECONDS, 1.0).overhead_fraction());
    sheet.say(format!(
        "{kind}, {side}: ours is tuned by Eq. 7 to theta {theta}{delta}, {codec}, a key in {key_every}; with the library's defaults it costs {expected}."
    ));
    Ok(())
}

/// Adds the results of Eq. 7 with the times and extra iterations of the text.
fn published_rates(sheet: &mut Sheet) {
    let times =
        published::INTERVALS_MINUTES.map(|minutes: f64| (60.0 * minutes).powi(2) / (2.0 * published::MTTI_SECONDS));
    sheet.say(format!(
        "Published intervals of 16, 12 and 7 min are checkpoints of {:.0}, {:.0} and {:.0} s (Eq. 1).",
        times[0], times[1], times[2]
    ));
    let published_overhead = |kind: Kind, mtti_seconds: f64, ranks: f64, lossy: bool| {
        let solve = kind.published();
        let seconds = if lossy { published::GMRES_LOSSY_SECONDS } else { solve.vectors * published::VECTOR_SECONDS };
        let seconds = seconds * ranks / published::RANKS;
        let extra = if lossy { solve.extra_iterations * solve.productive_seconds / solve.iterations } else { 0.0 };
        let blocking_seconds = seconds;
        let recovery_seconds = seconds;
        CheckpointTiming {
            mtti_seconds,
            blocking_seconds,
            drain_seconds: 0.0,
            recovery_seconds,
            extra_seconds: extra,
            safe_point_seconds: 0.0,
        }
        .overhead_fraction()
    };
    for kind in Kind::ALL {
        let at = |lossy| percent(published_overhead(kind, published::MTTI_SECONDS, published::RANKS, lossy));
        sheet.say(format!(
            "{kind} with the text's rates (N' {:.0}, lossy 25 s): traditional {}, lossy {}.",
            kind.published().extra_iterations,
            at(false),
            at(true)
        ));
    }
    let cross = |mtti| {
        crossing(
            |ranks| published_overhead(Kind::Cg, mtti, ranks, true),
            |ranks| published_overhead(Kind::Cg, mtti, ranks, false),
        )
    };
    let (hour, long) = published::FIG7_CROSSINGS;
    sheet.say(format!(
        "With these rates lossy CG pays from {} ranks (MTTI 1 h) and {} (3 h) on; published: {hour:.0} and {long:.0}.",
        cross(published::MTTI_SECONDS),
        cross(published::MTTI_LONG_SECONDS)
    ));
    sheet.say("");
    sheet
        .limits
        .push("the published crossings: they need checkpoint times of CG at each scale, which the text does not give.");
}

fn drawing(study: &Study) -> (String, kuva::render::render::Scene) {
    let mut series = Vec::new();
    for (mtti, name) in [(published::MTTI_SECONDS, "1 h"), (published::MTTI_LONG_SECONDS, "3 h")] {
        series.extend(Choice::ALL.map(|choice| Series {
            name: format!("{choice}, {name}"),
            points: published::RANK_STEPS.iter().map(|&n| (n, 100.0 * overhead(study, choice, n, mtti))).collect(),
            colour: choice as usize,
            dashed: mtti > published::MTTI_SECONDS,
        }));
    }
    let title = format!("Expected overhead of {} by MTTI (Eq. 7)", study.problem.kind);
    let axes = Axes { title: &title, x: "ranks", y: "% of the productive time", ..Axes::default() };
    (format!("fig7-{}", study.problem.kind).to_lowercase(), lines(axes, series))
}

/// The growth of a machine beyond 2,048 ranks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Machine {
    /// The store stays as it is, failures too: the assumptions behind the published curves.
    SharedStore,
    /// The store grows with the ranks, and so do failures.
    Grown,
}

impl Machine {
    fn costs(self, study: &Study, choice: Choice, ranks: f64) -> CheckpointTiming {
        let scale = ranks / published::RANKS;
        match self {
            Self::SharedStore => study.profile(choice).costs(&study.problem, published::MTTI_SECONDS, scale),
            Self::Grown => study.profile(choice).costs(&study.problem, published::MTTI_SECONDS / scale, 1.0),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::SharedStore => "same store and MTTI",
            Self::Grown => "store and failures grow",
        }
    }
}

/// Ranks from 2,048 to 100,000, evenly on a logarithmic axis.
fn drawn_ranks() -> impl Iterator<Item = f64> {
    let first = published::RANKS;
    let last = MORE_RANKS[MORE_RANKS.len() - 1];
    (0..=80).map(move |step| first * (last / first).powf(f64::from(step) / 80.0))
}

/// Eq. 7, and what simulated runs of the same costs need.
fn scaling(sheet: &mut Sheet, studies: &[Study], machine: Machine, seed: u64) {
    let mut head = vec![format!("{} (Eq. 7 / simulated)", machine.name())];
    head.extend(MORE_RANKS.iter().map(|ranks| format!("{ranks:.0}")));
    let cell = |study: &Study, choice: Choice, ranks: f64| {
        let costs = machine.costs(study, choice, ranks);
        let simulated = if costs.share() < SHARE_MAX { whole(simulated(&costs, seed)) } else { "-".to_owned() };
        format!("{} / {simulated}", whole(costs.overhead_fraction()))
    };
    let row = |study: &Study, choice: Choice| {
        let cells = MORE_RANKS.iter().map(|&ranks| cell(study, choice, ranks));
        std::iter::once(format!("{} {choice}", study.problem.kind)).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> =
        studies.iter().flat_map(|study| Choice::ALL.map(|choice| row(study, choice))).collect();
    sheet.table(&head, &rows);
}

/// A long run, so that its ends do not matter.
fn simulated(costs: &CheckpointTiming, seed: u64) -> f64 {
    let interval_seconds = costs.interval_seconds();
    let work_seconds = 50.0 * costs.mtti_seconds;
    let outcome = Simulation { timing: *costs, interval_seconds, work_seconds, trials: TRIALS, seed }.run();
    outcome.overhead_fraction.mean
}

/// Whole percents; a word where next to nothing productive remains.
fn whole(fraction: f64) -> String {
    if fraction < 1.0 / (1.0 - SHARE_MAX) { format!("{:.0} %", 100.0 * fraction) } else { "no end".to_owned() }
}

fn scaling_drawing(studies: &[Study], machine: Machine) -> (String, kuva::render::render::Scene) {
    // GMRES lies between the two.
    let drawn = studies.iter().filter(|study| study.problem.kind != Kind::Gmres);
    let series = drawn.flat_map(|study| {
        Choice::ALL.map(|choice| Series {
            name: format!("{} {choice}", study.problem.kind),
            points: drawn_ranks()
                .map(|n| (n, 100.0 * machine.costs(study, choice, n).overhead_fraction()))
                .filter(|(_, percents)| *percents < PERCENTS_MAX)
                .collect(),
            colour: choice as usize,
            dashed: study.problem.kind == Kind::Jacobi,
        })
    });
    let title = format!("Expected overhead to 100,000 ranks: {}", machine.name());
    let axes = Axes { title: &title, x: "ranks", y: "% of the productive time", log_x: true, log_y: true };
    let file = if machine == Machine::SharedStore { "fig7-shared-store" } else { "fig7-grown" };
    (file.to_owned(), lines(axes, series.collect()))
}
