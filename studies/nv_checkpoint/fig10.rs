//! Figure 10: the time of a run with a version at each step, and with a policy that weighs what one
//! costs.

use std::sync::Arc;

use recoup::core::{Clock as _, mix};
use recoup::memory::{SavePolicy, Saver};

use crate::Failed;
use crate::draw::{self, Axes, Group};
use crate::experiment::Experiment;
use crate::keeper::{Keeper, Storage};
use crate::lab::{Lab, duration};
use crate::programs::{Kind, SEED};
use crate::published::POLICY_SAVED;
use crate::settings::{CLOCK, Settings};
use crate::sheet::{Sheet, percent};
use crate::unloaded::UnloadedClock;

/// Size of the problems, of those that a program has.
const MIDDLE: usize = 1;
/// Most computing that is added to a step, in times of a step (Section 6.4).
const ADDED_MOST: f64 = 5.0;
/// Mean time to interrupt of our policy.
const MTTI_SECONDS: f64 = 3600.0;
/// Rules for versions; `None` makes one at each step.
const RULES: [(&str, Option<SavePolicy>); 3] = [
    ("each step", None),
    ("greedy", Some(SavePolicy::Greedy)),
    ("auto, 1 h", Some(SavePolicy::Auto { mtti_seconds: MTTI_SECONDS })),
];
const PLACES: [Storage; 2] = [Storage::VersionsMemory, Storage::VersionsDisk];

/// A run under a rule.
#[derive(Clone, Copy, Debug)]
struct RuledRun {
    seconds: f64,
    saving_seconds: f64,
    n_versions: u64,
}

/// Runs a program whose steps take up to six times as long as they do, as the publication has it.
fn run(
    experiment: &Experiment,
    storage: Storage,
    rule: Option<SavePolicy>,
    settings: &Settings,
) -> Result<RuledRun, Failed> {
    let problem = experiment.problem;
    let step_seconds = experiment.plain_seconds / problem.steps as f64;
    let mut keeper = Keeper::new(storage, settings)?;
    let mut state = problem.versioned();
    let mut run = RuledRun { seconds: 0.0, saving_seconds: 0.0, n_versions: 0 };
    let clock = Arc::new(UnloadedClock::new());
    let begun = clock.now();
    let mut saver = Saver::with_clock(rule.unwrap_or(SavePolicy::Greedy), clock.clone());
    for step in 1..=problem.steps {
        state.advance();
        let computed = clock.now();
        let share = mix(SEED ^ step << 32) as f64 / u64::MAX as f64;
        // The program computes for this long; the processor is busy.
        while clock.seconds_since(computed) < ADDED_MOST * share * step_seconds {}
        let memory = keeper.memory().ok_or("no file of versions")?;
        let save_begun = clock.now();
        let state: &mut dyn recoup::memory::Versioned = &mut *state;
        let number = match rule {
            Some(_) => saver.commit_if_due(memory, step, &mut [state])?,
            None => Some(saver.commit(memory, step, &mut [state])?),
        };
        run.n_versions += u64::from(number.is_some());
        run.saving_seconds += clock.seconds_since(save_begun);
    }
    run.seconds = clock.seconds_since(begun);
    Ok(run)
}

/// The fastest runs under all rules, taken in turns.
fn runs(experiment: &Experiment, storage: Storage, settings: &Settings) -> Result<[RuledRun; RULES.len()], Failed> {
    let mut fastest = [RuledRun { seconds: f64::INFINITY, saving_seconds: 0.0, n_versions: 0 }; RULES.len()];
    for _ in 0..settings.runs {
        for ((_, rule), fastest) in RULES.into_iter().zip(&mut fastest) {
            let next = run(experiment, storage, rule, settings)?;
            if next.seconds < fastest.seconds {
                *fastest = next;
            }
        }
    }
    Ok(fastest)
}

pub(crate) fn make(lab: &Lab) -> Result<Sheet, Failed> {
    let title = "Figure 10: time of a run with versions at each step, and by a policy";
    let mut sheet = Sheet { title: title.to_owned(), ..Sheet::default() };
    for storage in PLACES {
        let mut rows = Vec::new();
        let mut groups = Vec::new();
        let mut saved = [0.0; 2];
        for kind in Kind::ALL {
            let runs = runs(lab.experiment(kind, MIDDLE)?, storage, &lab.settings)?;
            let parts = [1, 2].map(|rule| 1.0 - runs[rule].seconds / runs[0].seconds);
            saved.iter_mut().zip(parts).for_each(|(saved, part)| *saved += part / Kind::ALL.len() as f64);
            let mut row = vec![format!("{}, {}", kind.name(), storage.name())];
            for run in runs {
                row.push(duration(run.seconds));
                row.push(run.n_versions.to_string());
                row.push(percent(run.saving_seconds / run.seconds));
            }
            row.extend(parts.map(percent));
            rows.push(row);
            groups.push(Group { label: kind.name().to_owned(), bars: runs.map(|run| (run.seconds, 0.0)).to_vec() });
        }
        let mut head = vec!["program"];
        for (name, _) in RULES {
            head.extend([name, "versions", "saving"]);
        }
        head.extend(["greedy saves", "auto saves"]);
        sheet.table(&head, &rows);
        sheet.say(format!(
            "On average, greedy saves {} and auto {}. Published is {} for greedy.",
            percent(saved[0]),
            percent(saved[1]),
            percent(POLICY_SAVED)
        ));
        sheet.say("");
        let place = if storage == Storage::VersionsDisk { "disk" } else { "memory" };
        let title = format!("Time of a run by the rule for versions, {place}");
        let axes = Axes { title: &title, y: "seconds", ..Axes::default() };
        let names = RULES.map(|(name, _)| name);
        sheet.figures.push((format!("fig10-{place}"), draw::bars(axes, &names, groups)));
    }
    remarks(&mut sheet, lab);
    Ok(sheet)
}

fn remarks(sheet: &mut Sheet, lab: &Lab) {
    sheet.say(
        "Greedy makes a version when the time since the last one exceeds its cost. Where a step takes longer than a",
    );
    sheet.say(
        "version, that is each step, and greedy saves nothing. Where it takes less, greedy spends half of the time",
    );
    sheet.say("on versions, however rare failures are. The other rule asks for the failure rate: one failure an hour.");
    sheet.say("A run of seconds then needs a version seldom or never.");
    sheet.parameters.push(format!(
        "One process; each step is followed by 0 to {ADDED_MOST} times as much computing, drawn from seed {SEED}; fastest \
         of {} runs in turns.",
        lab.settings.runs
    ));
    sheet.parameters.push(CLOCK.to_owned());
}
