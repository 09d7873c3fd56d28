//! Ours by codec: what smaller versions are worth at the published rates, on smooth right-hand
//! sides. Not in the paper.

use recoup::core::CodecId;
use recoup::model::simulate::Estimate;

use crate::Failed;
use crate::draw::{Axes, Group, bars};
use crate::fig10::estimate;
use crate::lab::{Lab, SIDES};
use crate::measure::{Profile, Trial, trials};
use crate::problem::{Kind, Problem};
use crate::published;
use crate::sheet::{Sheet, percent};
use crate::tune::{tuned, with_codec};

/// Codecs by their names; the session chooses where there is none. Differences are to the first.
const CODECS: [(&str, Option<CodecId>); 4] =
    [("pco", Some(CodecId::Pco)), ("qb", Some(CodecId::Qb)), ("pyramid", Some(CodecId::Pyramid)), ("chosen", None)];

/// One method, and each of [`CODECS`] on it.
struct Compared {
    problem: Problem,
    bars: Vec<Bar>,
}

/// One codec: what its checkpoints cost, and runs under failures.
struct Bar {
    profile: Profile,
    trials: Vec<Trial>,
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let (side, rhs) = SIDES[1];
    let mut compared = Vec::new();
    for kind in Kind::ALL {
        let problem = Problem::new(kind, rhs, lab.grid)?;
        let settings = tuned(&problem)?;
        let bar = |(_, codec)| -> Result<Bar, Failed> {
            let profile = Profile::of(&problem, with_codec(&problem, settings, codec)?)?;
            Ok(Bar { trials: trials(&problem, &profile.protection, &lab.seeds())?, profile })
        };
        let bars = CODECS.map(bar).into_iter().collect::<Result<_, _>>()?;
        compared.push(Compared { problem, bars });
    }
    Ok(sheet(lab, side, &compared))
}

fn sheet(lab: &Lab, side: &str, compared: &[Compared]) -> Sheet {
    let title = format!("Ours by codec, {side}: smaller versions at the published rates");
    let mut sheet = Sheet { title, ..Sheet::default() };
    let head = [side, "ratio", "T_ckp", "T_rc", "N'", "Eq. 7", "measured", "+-", "less than pco, points", "+-"];
    let rows = compared.iter().flat_map(|one| CODECS.iter().zip(&one.bars).map(|((name, _), bar)| row(one, name, bar)));
    sheet.table(&head, &rows.collect::<Vec<_>>());
    sheet.say("Settings are tuned by Eq. 7 as for ours in Figure 10, and CG's theta and delta by codec. Differences are paired, as there.");
    sheet.figures.push(("codecs-smooth".to_owned(), drawing(compared)));
    sheet.parameters.extend(compared.iter().map(|one| format!("{}, {side}", one.problem)));
    let last = lab.seed + lab.trials - 1;
    sheet.parameters.push(format!(
        "virtual time: one raw vector 120 s, MTTI 1 h, productive 50, 120, 35 min; seeds {} to {last}; 95 % intervals",
        lab.seed
    ));
    sheet
}

fn row(compared: &Compared, name: &str, bar: &Bar) -> Vec<String> {
    let problem = &compared.problem;
    let first = &compared.bars[0].trials;
    let saved: Vec<f64> =
        first.iter().zip(&bar.trials).map(|(first, own)| 100.0 * (first.overhead - own.overhead)).collect();
    let saved = estimate(problem, &bar.trials, &saved);
    let measured = measured(problem, bar);
    vec![
        format!("{} {name}", problem.kind),
        format!("{:.1}", bar.profile.ratio),
        format!("{:.1} s", bar.profile.checkpoint_seconds),
        format!("{:.1} s", bar.profile.recovery_seconds),
        format!("{:.1}", bar.profile.extra_iterations),
        percent(expected(problem, bar)),
        percent(measured.mean),
        percent(measured.half_width),
        format!("{:.2}", saved.mean),
        format!("{:.2}", saved.half_width),
    ]
}

fn measured(problem: &Problem, bar: &Bar) -> Estimate {
    estimate(problem, &bar.trials, &bar.trials.iter().map(|trial| trial.overhead).collect::<Vec<_>>())
}

/// By Eq. 7.
fn expected(problem: &Problem, bar: &Bar) -> f64 {
    bar.profile.costs(problem, published::MTTI_SECONDS, 1.0).overhead_fraction()
}

fn drawing(compared: &[Compared]) -> kuva::render::render::Scene {
    let group = |one: &Compared, name: &str, bar: &Bar| {
        let measured = measured(&one.problem, bar);
        Group {
            label: format!("{} {name}", one.problem.kind),
            bars: vec![
                (100.0 * measured.mean, 100.0 * measured.half_width),
                (100.0 * expected(&one.problem, bar), 0.0),
            ],
        }
    };
    let groups =
        compared.iter().flat_map(|one| CODECS.iter().zip(&one.bars).map(move |((name, _), bar)| group(one, name, bar)));
    let title = "Overhead of ours by codec, smooth b";
    let axes = Axes { title, y: "% of the productive time", ..Axes::default() };
    bars(axes, &["measured", "expected (Eq. 7)"], groups.collect())
}
