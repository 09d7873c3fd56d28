//! The page of `recoup run --report`: the run as it just ended, with all processes that took part.

use std::path::Path;

use anyhow::Result;
use recoup::pipeline::RunReport;

use super::last::RunDocument;
use super::printed::overhead;
use crate::commands::compare::facts::{command_line, problem_title};
use crate::commands::report::of_run::{course_facts, directory_fact, verdict};
use crate::directory::used_bytes;
use crate::exit;
use crate::observe::history::RecordedHistory;
use crate::options::run::RunArgs as Args;
use crate::output::document;
use crate::report::course::RunCourse;
use crate::report::run_page::{self, RunPage};
use crate::report::{self, Fact};

/// The figures of a run next to its page.
const FIGURES: &str = "run.json";

/// Writes the page, where it is asked for. What cannot be written is told in the results, which it
/// must not cost. `own` is the report of the process, if the run was one.
pub(super) fn write(args: &Args, document: &mut RunDocument, own: Option<&RunReport>) {
    let Some(folder) = &args.report else { return };
    document.report = Some(report::page(folder).display().to_string());
    if let Err(error) = write_to(args, document, own, folder) {
        document.report = None;
        document.results.unwritten.push(format!("--report: {}", exit::message(&error)));
    }
}

fn write_to(args: &Args, run: &RunDocument, own: Option<&RunReport>, folder: &Path) -> Result<()> {
    let kept = args.dir.as_ref().filter(|_| args.keeps_history()).map(|dir| dir.join(&args.name));
    let mut course = match &kept {
        Some(kept) => RunCourse::of(&RecordedHistory::read(kept)?),
        None => RunCourse::default(),
    };
    // A history that could not be written, as on a full disk, has no process.
    if let Some(own) = own.filter(|_| course.processes == 0) {
        course = RunCourse::of_report(&run.run.scheme, own, args.protection.is_virtual(), run.run.ended);
    }
    let mut facts = course_facts(&course);
    facts.push(Fact::new("overhead", overhead(&run.run)).meaning("against the undisturbed solve"));
    facts.extend(kept.map(|kept| directory_fact(used_bytes(&kept))));
    let title = problem_title(&args.problem, &run.run.solve.method);
    let verdict = verdict(&course);
    // The figures first: what they hold is lost where there is no room for the page, too.
    report::make_folder(folder)?;
    report::write_file(&folder.join(FIGURES), &document(run)?)?;
    run_page::write(&RunPage { title, verdict, facts, course, command: command_line() }, folder)
}
