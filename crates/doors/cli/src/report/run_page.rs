//! The page of one run: how it went, its plots, and the tables of their numbers.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use super::course::RunCourse;
use super::page::{DECISIONS_MAX, escape, facts, foot, head, plain_table, render_figure};
use super::plot::run_figures;
use super::{Fact, MomentKind, make_folder, page, write_figure, write_file};
use crate::output::{bytes, percent, seconds};
use crate::report::decisions;

/// Rows of a table of events or versions, the newest ones.
const ROWS_MAX: usize = 25;

/// The page of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunPage {
    /// Method and problem.
    pub(crate) title: String,
    /// A sentence or two on how it went.
    pub(crate) verdict: String,
    pub(crate) facts: Vec<Fact>,
    pub(crate) course: RunCourse,
    /// The command that makes this page.
    pub(crate) command: String,
}

/// Writes the page and its plots into `folder`.
pub(crate) fn write(run: &RunPage, folder: &Path) -> Result<()> {
    make_folder(folder)?;
    let figures = run_figures(&run.course, &run.title)?;
    figures.iter().try_for_each(|figure| write_figure(figure, folder))?;
    let mut html = head(&run.title);
    let _ = write!(html, "<header>\n<p>recoup</p>\n<h1>{}</h1>\n", escape(&run.title));
    let _ = writeln!(html, "<p class=\"verdict\">{}</p>\n</header>\n<main>", escape(&run.verdict));
    html.push_str("<div class=\"figures\">\n");
    html.extend(figures.iter().map(render_figure));
    html.push_str("</div>\n<h2>The run</h2>\n");
    html.push_str(&facts(&run.facts));
    html.push_str(&phases(&run.course));
    html.push_str(&events(&run.course));
    html.push_str(&decided(&run.course));
    html.push_str(&versions(&run.course));
    html.push_str(&foot(&run.command));
    write_file(&page(folder), html.as_bytes())
}

fn phases(course: &RunCourse) -> String {
    let total = course.phases().iter().map(|(_, seconds)| seconds).sum::<f64>();
    let share = |seconds: f64| if total > 0.0 { percent(seconds / total) } else { "-".to_owned() };
    let row = |(name, of): (&str, f64)| vec![name.to_owned(), seconds(of), share(of)];
    let rows: Vec<Vec<String>> = course.phases().into_iter().map(row).collect();
    format!("<h2>Where the time went</h2>\n{}", plain_table(&["phase", "time", "share"], &rows))
}

/// Failures and recoveries, the newest ones.
fn events(course: &RunCourse) -> String {
    let listed = |kind| match kind {
        MomentKind::Checkpoint => None,
        MomentKind::Failure => Some("failure"),
        MomentKind::Recovery => Some("recovery"),
    };
    let rows = course.curve.events.iter().filter_map(|event| {
        let residual = format!("{:.2e}", event.at.relative_residual);
        Some(vec![seconds(event.at.seconds), listed(event.kind)?.to_owned(), event.at.executed.to_string(), residual])
    });
    let columns = ["at", "event", "iterations executed", "relative residual"];
    section("Failures and recoveries", "", &columns, rows.collect(), ROWS_MAX)
}

fn decided(course: &RunCourse) -> String {
    let columns: Vec<&str> = std::iter::once("at").chain(decisions::COLUMNS).collect();
    section("What was decided", decisions::MEANING, &columns, decisions::timed_rows(&course.decisions), DECISIONS_MAX)
}

fn versions(course: &RunCourse) -> String {
    let rows = course.versions.iter().map(|(at, saved)| {
        let ratio = saved.raw_bytes as f64 / saved.stored_bytes.max(1) as f64;
        let [raw, stored] = [saved.raw_bytes, saved.stored_bytes].map(|of| bytes(of as f64));
        vec![saved.version.to_string(), seconds(*at), raw, stored, format!("{ratio:.2}")]
    });
    let columns = ["version", "at", "in memory", "stored", "ratio"];
    section("Versions", "", &columns, rows.collect(), ROWS_MAX)
}

/// A table of the newest rows under a heading; nothing without rows.
fn section(title: &str, meaning: &str, columns: &[&str], mut rows: Vec<Vec<String>>, rows_max: usize) -> String {
    let left_out = rows.len().saturating_sub(rows_max);
    let rows = rows.split_off(left_out);
    if rows.is_empty() {
        return String::new();
    }
    let before = if left_out > 0 { format!("{left_out} earlier rows are left out. ") } else { String::new() };
    let words = format!("{before}{meaning}");
    let words = if words.is_empty() { words } else { format!("<p>{}</p>\n", escape(&words)) };
    format!("<h2>{title}</h2>\n{words}{}", plain_table(columns, &rows))
}
