//! The result of a run for people: eight lines, or with `--details` every figure and decision.

use recoup::pipeline::Ended;

use crate::account::{FlipsJson, RunJson, ended_name};
use crate::output::{TextTable, WIDTH, bytes, dropped, percent, seconds, wrapped};
use crate::report::decisions;

/// Columns before the text of a line.
const NAMES: usize = 10;
/// Notes shown below the eight lines. There are none unless something went wrong, a life was killed
/// or memory tiers gave a version back.
const NOTES_MAX: usize = 4;

/// Returns the text to print.
pub(super) fn result(report: &RunJson, has_details: bool) -> String {
    if has_details { format!("{}{}", details(report), decided(report)) } else { summary(report) }
}

/// Eight lines, and what went wrong below them.
fn summary(report: &RunJson) -> String {
    let account = &report.account;
    let solve = &report.solve;
    let ranks = if solve.ranks > 1 { format!(", {} ranks", solve.ranks) } else { String::new() };
    let again = if account.lost > 0 { format!(", {} done again", account.lost) } else { String::new() };
    let extra = report.extra_iterations_mean.map(|extra| format!(", {extra:.1} extra a recovery")).unwrap_or_default();
    let time = format!("{} for {} iterations{again}{extra}", seconds(account.seconds_total), account.executed);
    let facts = [
        ("solve", format!("{} with preconditioner {}, {} unknowns{ranks}", solve.method, solve.pc, solve.n)),
        ("ended", ended(report)),
        ("time", time),
        ("overhead", overhead(report)),
        ("failures", failures(report)),
        ("versions", versions(report)),
        ("scheme", scheme(report)),
        ("more", "--details prints all figures and decisions, --json those for programs".to_owned()),
    ];
    let line = |(name, text): (&str, String)| format!("{name:<NAMES$}{}\n", indented(&text));
    let notes: Vec<&String> = account.notes.iter().filter(|note| report.noise.as_ref() != Some(note)).collect();
    let shown = notes.iter().take(NOTES_MAX).map(|note| line(("note", (*note).clone())));
    let hidden = notes.len().saturating_sub(NOTES_MAX);
    let rest = (hidden > 0).then(|| line(("note", format!("{hidden} more, which --details prints"))));
    facts.into_iter().map(line).chain(shown).chain(rest).collect()
}

/// Breaks a text into lines that begin under its first one.
fn indented(text: &str) -> String {
    wrapped(text, WIDTH - NAMES).join(&format!("\n{:NAMES$}", ""))
}

fn ended(report: &RunJson) -> String {
    let solve = &report.solve;
    let iteration = solve.iterations;
    let how = match &solve.reason {
        None => format!("converged in {iteration} iterations"),
        Some(_) if report.ended == ended_name(Ended::Stopped) => format!("stopped at iteration {iteration}"),
        Some(reason) => format!("{reason}, iteration {iteration}"),
    };
    let sign = if solve.relative_residual <= solve.rtol { "<=" } else { ">" };
    format!("{how}: residual {:.2e} {sign} {:e}", solve.relative_residual, solve.rtol)
}

pub(super) fn overhead(report: &RunJson) -> String {
    let Some(overhead) = report.overhead_fraction else {
        let why = match (report.solve.converged, report.account.resumed_from) {
            (false, _) => "the solve has not converged",
            (true, Some(_)) => "it was resumed, and counts a part of the solve",
            (true, None) => "there is no undisturbed solve to compare with",
        };
        return format!("not known: {why}");
    };
    let expected = report.expected_overhead_fraction.map(|of| format!(", {} expected", percent(of)));
    let undisturbed = seconds(report.baseline_seconds.unwrap_or(0.0));
    match report.noise {
        Some(_) => format!("not known: {undisturbed} undisturbed is too short to time"),
        None => format!("{} of {undisturbed} undisturbed{}", percent(overhead), expected.unwrap_or_default()),
    }
}

fn failures(report: &RunJson) -> String {
    let account = &report.account;
    let flips = match account.flips.injected {
        0 => String::new(),
        bits => format!("; bits flipped: {bits}, rolled back: {}", account.flips.caught + account.flips.rolled_back),
    };
    let restored = match account.recoveries {
        0 => String::new(),
        recoveries => format!("; recoveries: {recoveries} in {}", seconds(account.seconds_recovery)),
    };
    let breakdowns = match account.breakdown_rollbacks {
        0 => String::new(),
        breakdowns => format!("; rolled back after a breakdown: {breakdowns}"),
    };
    format!("{}{restored}{flips}{breakdowns}", account.failures)
}

fn versions(report: &RunJson) -> String {
    let account = &report.account;
    let failed = match account.failed_checkpoints {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let ratio = report.ratio_mean.map(|ratio| format!("; {} at ratio {ratio:.2}", bytes(account.payload_bytes as f64)));
    format!("{} saved{failed}{}", account.checkpoints, ratio.unwrap_or_default())
}

fn scheme(report: &RunJson) -> String {
    let interval = report.account.interval_seconds.map(|interval| format!(", every {}", seconds(interval)));
    let blocked = match report.account.checkpoints {
        0 => String::new(),
        _ => format!(", blocking the solver for {}", seconds(report.account.seconds_blocking)),
    };
    format!("{}{}{blocked}", report.scheme, interval.unwrap_or_default())
}

fn flip_rows(flips: &FlipsJson, table: &mut TextTable) {
    let counts = [
        ("bits flipped", flips.injected),
        ("  caught at a save", flips.caught),
        ("  rolled back", flips.rolled_back),
        ("  healed by a restart", flips.healed),
        ("  absorbed", flips.absorbed),
        ("  iterations done again", flips.iterations_lost),
    ];
    for (name, count) in counts {
        table.row([name.to_owned(), count.to_string()]);
    }
}

/// The decisions: a row for each choice, and the reasons of all.
fn decided(report: &RunJson) -> TextTable {
    let decisions = &report.account.decisions;
    let mut table = TextTable::new(if decisions.is_empty() { &[] } else { &decisions::COLUMNS });
    for row in decisions::rows(decisions) {
        table.row(row);
    }
    for decision in decisions {
        table.note(decision.to_string());
    }
    table
}

/// All figures.
fn details(report: &RunJson) -> TextTable {
    let account = &report.account;
    let mut table = TextTable::pairs();
    report.solve.rows(&mut table);
    let optional = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
    table.row(["scheme".to_owned(), report.scheme.clone()]);
    table.row(["iterations executed".to_owned(), account.executed.to_string()]);
    table.row(["  of them done again".to_owned(), account.lost.to_string()]);
    table.row(["failures".to_owned(), account.failures.to_string()]);
    if account.flips != FlipsJson::default() {
        flip_rows(&account.flips, &mut table);
    }
    if account.breakdown_rollbacks > 0 {
        table.row(["went back after a breakdown".to_owned(), account.breakdown_rollbacks.to_string()]);
    }
    table.row(["recoveries".to_owned(), account.recoveries.to_string()]);
    table.row(["extra iterations each".to_owned(), optional(report.extra_iterations_mean, |v| format!("{v:.1}"))]);
    table.row(["checkpoints".to_owned(), account.checkpoints.to_string()]);
    if account.failed_checkpoints > 0 {
        table.row(["failed checkpoints".to_owned(), account.failed_checkpoints.to_string()]);
    }
    table.row(["interval".to_owned(), optional(account.interval_seconds, seconds)]);
    table.row(["ratio".to_owned(), optional(report.ratio_mean, |v| format!("{v:.2}"))]);
    table.row(["written".to_owned(), bytes(account.payload_bytes as f64)]);
    if account.frozen_bytes > 0 {
        table.row(["frozen without a copy".to_owned(), bytes(account.frozen_bytes as f64)]);
    }
    if report.solve.device.is_some() {
        table.row(["frames encoded on the device".to_owned(), account.device_frames.to_string()]);
        table.row(["fetched raw from the device".to_owned(), bytes(account.device_bytes as f64)]);
    }
    table.row(["checkpoints blocked".to_owned(), seconds(account.seconds_blocking)]);
    table.row(["verification".to_owned(), seconds(account.seconds_verify)]);
    table.row(["recovery".to_owned(), seconds(account.seconds_recovery)]);
    table.row(["lost work".to_owned(), seconds(account.seconds_lost_work)]);
    table.row(["total".to_owned(), seconds(account.seconds_total)]);
    table.row(["undisturbed".to_owned(), optional(report.baseline_seconds, seconds)]);
    table.row(["overhead".to_owned(), optional(report.overhead_fraction, percent)]);
    let other = report.overhead_parts.map(|parts| parts.other);
    table.row(["  not explained".to_owned(), optional(other, percent)]);
    table.row(["overhead expected".to_owned(), optional(report.expected_overhead_fraction, percent)]);
    if let Some(rates) = &report.machine {
        table.note(rates.to_string());
    }
    if !account.versions_dropped.is_empty() {
        table.note(dropped(&account.versions_dropped));
    }
    for note in &account.notes {
        table.note(note.as_str());
    }
    table
}
