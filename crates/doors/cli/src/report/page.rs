//! The page of one comparison: verdict, plots, the table of their numbers, decisions, terms, and
//! what was run.

use std::fmt::Write;

use super::{Comparison, Fact};
use crate::output::seconds;
use crate::report::decisions;
use crate::report::figures::{COLUMNS, Column, SchemeFigures, by_cost};
use crate::report::plot::{Figure, variables};

/// Rows of decisions shown; a long run repeats itself.
pub(super) const DECISIONS_MAX: usize = 25;

/// The whole page.
pub(super) fn render(comparison: &Comparison, figures: &[Figure]) -> String {
    let mut html = head(&comparison.title);
    let _ = write!(html, "<header>\n<p>recoup</p>\n<h1>{}</h1>\n", escape(&comparison.title));
    let _ = writeln!(html, "<p class=\"verdict\">{}</p>", escape(&comparison.verdict.join(" ")));
    html.push_str("</header>\n<main>\n<div class=\"figures\">\n");
    html.extend(figures.iter().map(render_figure));
    html.push_str("</div>\n<h2>Numbers</h2>\n");
    html.push_str(&table(comparison));
    html.push_str(&meanings());
    html.push_str(&decisions(comparison));
    html.push_str("<h2>What was run</h2>\n");
    html.push_str(&facts(&comparison.facts));
    html.push_str(&foot(&comparison.command));
    html
}

/// Everything up to the body of a page.
pub(super) fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>recoup: {}</title>\n\
         <style>{}{}</style>\n</head>\n<body>\n",
        escape(title),
        variables(":root"),
        include_str!("page.css"),
    )
}

/// Everything after the body's content.
pub(super) fn foot(command: &str) -> String {
    let command = escape(command);
    format!("</main>\n<footer>\n<p>Made by</p>\n<pre><code>{command}</code></pre>\n</footer>\n</body>\n</html>\n")
}

/// A drawing with its words, for wide and for narrow screens.
pub(super) fn render_figure(figure: &Figure) -> String {
    let labelled = |svg: &str| {
        let label = format!("<svg role=\"img\" aria-label=\"{}\"", escape(&figure.description));
        svg.replacen("<svg", &label, 1)
    };
    format!(
        "<figure id=\"{name}\">\n<figcaption>{caption} <a href=\"{name}.svg\">SVG</a> <a href=\"{name}.png\">PNG</a>\
         </figcaption>\n<div class=\"wide\">{wide}</div>\n<div class=\"narrow\">{narrow}</div>\n<p>{reading}</p>\n\
         </figure>\n",
        name = figure.name,
        caption = escape(figure.caption),
        wide = labelled(&figure.svg),
        narrow = labelled(&figure.narrow_svg),
        reading = escape(figure.reading),
    )
}

fn table(comparison: &Comparison) -> String {
    let names = std::iter::once("scheme").chain(COLUMNS.iter().map(|column| column.name));
    let header: String = names.map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    let rows: String = by_cost(&comparison.schemes).iter().map(row).collect();
    format!(
        "<p>{}</p>\n<table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{}{rows}</tbody>\n</table>\n",
        escape(&trials(&comparison.schemes, comparison.first_seed)),
        undisturbed(comparison),
    )
}

/// Describes the trials that the numbers are means of.
fn trials(schemes: &[SchemeFigures], first_seed: u64) -> String {
    let most = schemes.iter().map(|scheme| scheme.trials).max().unwrap_or(0);
    if most < 2 {
        return format!("Numbers of one trial, seed {first_seed}.");
    }
    let last = first_seed + most as u64 - 1;
    format!(
        "The cheapest first. Overhead and time are medians of {most} trials, seeds {first_seed} to {last}; below them, the \
         least and the most. The others are means; below them, half the width of the 95 % confidence interval. Overheads \
         are of the trials that converged."
    )
}

fn undisturbed(comparison: &Comparison) -> String {
    let cells = COLUMNS.iter().map(|column| match column.name {
        "time" => cell(column, &seconds(comparison.baseline_seconds), None),
        "executed" => cell(column, &comparison.baseline_iterations.to_string(), None),
        _ => cell(column, "", None),
    });
    format!("<tr><th scope=\"row\">undisturbed</th>{}</tr>\n", cells.collect::<String>())
}

fn row(scheme: &SchemeFigures) -> String {
    let cells = COLUMNS.iter().map(|column| cell(column, &column.cell(scheme), column.certainty(scheme)));
    format!("<tr><th scope=\"row\">{}</th>{}</tr>\n", escape(&scheme.name()), cells.collect::<String>())
}

fn cell(column: &Column, value: &str, certainty: Option<String>) -> String {
    let width = certainty.map_or_else(String::new, |width| format!("<small>{}</small>", escape(&width)));
    let empty = if value.is_empty() { " class=\"empty\"" } else { "" };
    format!("<td data-name=\"{}\"{empty}>{}{width}</td>", column.name, escape(value))
}

/// The columns, explained under their table.
fn meanings() -> String {
    let terms =
        COLUMNS.iter().map(|column| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", column.name, column.meaning));
    let words = "<p>More words, such as MTTI, theta, key and chain, are in docs/glossary.md.</p>";
    format!("<dl class=\"terms\">\n{}</dl>\n{words}\n", terms.collect::<String>())
}

fn decisions(comparison: &Comparison) -> String {
    let rows = decisions::rows(&comparison.decisions);
    if rows.is_empty() {
        return String::new();
    }
    let shown: Vec<Vec<String>> = rows.into_iter().take(DECISIONS_MAX).map(Vec::from).collect();
    format!(
        "<h2>What auto decided</h2>\n<p>Under seed {}, from the costs measured so far; {}. The reasons, with the overhead \
         expected of every choice, are in figures.json.</p>\n{}",
        comparison.first_seed,
        decisions::MEANING,
        plain_table(&decisions::COLUMNS, &shown)
    )
}

/// A table of texts, each row with a cell for each column.
pub(super) fn plain_table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let header: String = columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(columns).enumerate().map(|(index, (cell, name))| match index {
            0 => format!("<th scope=\"row\">{}</th>", escape(cell)),
            _ => format!("<td data-name=\"{name}\">{}</td>", escape(cell)),
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let rows: String = rows.iter().map(line).collect();
    format!("<table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

pub(super) fn facts(facts: &[Fact]) -> String {
    let items = facts.iter().map(|fact| {
        let meaning = fact.meaning.as_ref();
        let meaning = meaning.map_or_else(String::new, |meaning| format!("<small>{}</small>", escape(meaning)));
        format!("<div><dt>{}</dt><dd>{}{meaning}</dd></div>\n", fact.name, escape(&fact.value))
    });
    format!("<dl>\n{}</dl>\n", items.collect::<String>())
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace("+-", "&plusmn;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::protection::SchemeChoice;
    use crate::report;
    use crate::report::figures::SchemeFigures;
    use crate::report::plot;

    fn rendered(comparison: &Comparison) -> String {
        render(comparison, &plot::figures(comparison).unwrap())
    }

    #[test]
    fn page_escapes_what_it_is_given_and_names_the_cheapest_scheme() {
        let page = rendered(&report::sample());
        assert!(page.contains("CG, 3D Poisson &lt;64^3&gt;") && !page.contains("<64^3>"));
        assert!(page.contains("lossy cost least: 20.75 % of "), "{:?}", report::sample().verdict);
    }

    #[test]
    fn every_scheme_has_its_row_every_column_its_meaning_and_every_figure_a_description() {
        let comparison = report::sample();
        let page = rendered(&comparison);
        // One for the undisturbed solve, one for the decision.
        assert_eq!(page.matches("<th scope=\"row\">").count(), comparison.schemes.len() + 2);
        assert_eq!(page.matches("role=\"img\" aria-label=").count(), 2 * 5);
        assert!(COLUMNS.iter().all(|column| page.contains(&format!("<dt>{}</dt>", column.name))));
        assert!(page.contains("seeds 1 to 2"));
    }

    #[test]
    fn run_that_did_not_converge_says_so_and_wins_nothing() {
        let mut comparison = report::sample();
        let mut runs = [1, 2].map(|seed| report::sample_run(SchemeChoice::Lossy, 101.0, seed));
        runs[1].solve.converged = false;
        comparison.schemes[2] = SchemeFigures::of(runs.to_vec()).unwrap();
        assert!(row(&comparison.schemes[2]).contains("lossy (1 of 2 converged)"));
        let verdict = crate::report::figures::verdict(&comparison.schemes).join(" ");
        assert!(verdict.starts_with("traditional cost least"), "{verdict}");
    }
}
