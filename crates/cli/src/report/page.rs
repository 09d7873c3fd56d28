//! The page: plots, the table of their numbers, and what was run.

use std::fmt::Write;

use super::{Comparison, EventKind, RunSummary};
use crate::output::{bytes, percent, seconds};
use crate::plot::{Figure, variables};

/// The whole page.
pub(super) fn render(comparison: &Comparison, figures: &[Figure]) -> String {
    let title = escape(&comparison.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>recoup: {title}</title>\n\
         <style>{}{}</style>\n</head>\n<body>\n<header>\n<p>recoup</p>\n<h1>{title}</h1>\n",
        variables(":root"),
        include_str!("page.css"),
    );
    if let Some(text) = verdict(&comparison.runs) {
        let _ = writeln!(html, "<p class=\"verdict\">{}</p>", escape(&text));
    }
    html.push_str("</header>\n<main>\n");
    html.push_str(&facts(&comparison.facts));
    html.push_str(&table(&comparison.runs));
    for figure in figures {
        html.push_str(&render_figure(figure));
    }
    let _ = write!(
        html,
        "</main>\n<footer>\n<p>Made by</p>\n<pre><code>{}</code></pre>\n</footer>\n</body>\n</html>\n",
        escape(&comparison.command)
    );
    html
}

/// The cheapest scheme, in one sentence.
fn verdict(runs: &[RunSummary]) -> Option<String> {
    let costs = runs.iter().filter_map(|run| Some((run, run.measured?.total())));
    let (best, least) = costs.clone().filter(|(run, _)| run.converged).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = costs.filter(|(run, _)| run.name != best.name);
    let others: Vec<String> = others.map(|(run, cost)| format!("{} {}", run.name, percent(cost))).collect();
    Some(format!("{} cost least: {} of the productive time ({}).", best.name, percent(least), others.join(", ")))
}

fn facts(facts: &[(String, String)]) -> String {
    let items =
        facts.iter().map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value)));
    format!("<dl>\n{}</dl>\n", items.collect::<String>())
}

fn table(runs: &[RunSummary]) -> String {
    const HEADER: [&str; 11] = [
        "scheme",
        "overhead (expected)",
        "iterations",
        "executed",
        "failures",
        "recoveries",
        "checkpoints",
        "extra per recovery",
        "stored per version",
        "ratio",
        "time",
    ];
    let header: String = HEADER.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    let rows: String = runs.iter().map(row).collect();
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"Numbers of all runs\" tabindex=\"0\">\n<table>\n\
         <thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}

fn row(run: &RunSummary) -> String {
    let dash = || "-".to_owned();
    let expected = run.expected.map_or_else(dash, |parts| percent(parts.total()));
    let iterations =
        if run.converged { run.iterations.to_string() } else { format!("{} (not converged)", run.iterations) };
    let cells = [
        run.measured.map_or_else(dash, |parts| format!("{} ({expected})", percent(parts.total()))),
        iterations,
        run.iterations_executed.to_string(),
        run.count(EventKind::Failure).to_string(),
        run.count(EventKind::Recovery).to_string(),
        run.count(EventKind::Checkpoint).to_string(),
        run.extra_iterations_mean.map_or_else(dash, |extra| format!("{extra:.1}")),
        if run.encoded_bytes > 0.0 { bytes(run.encoded_bytes) } else { dash() },
        run.ratio().map_or_else(dash, |ratio| format!("{ratio:.2}")),
        seconds(run.seconds_total),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&run.name))
}

fn render_figure(figure: &Figure) -> String {
    let label = format!("<svg role=\"img\" aria-label=\"{}\"", escape(&figure.description));
    format!(
        "<figure id=\"{name}\">\n<figcaption>{caption} <a href=\"{name}.svg\">SVG</a> \
         <a href=\"{name}.png\">PNG</a></figcaption>\n{svg}\n</figure>\n",
        name = figure.name,
        caption = escape(figure.caption),
        svg = figure.svg.replacen("<svg", &label, 1),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot;
    use crate::report;

    #[test]
    fn page_escapes_what_it_is_given_and_names_the_cheapest_scheme() {
        let comparison = report::sample();
        let page = render(&comparison, &plot::figures(&comparison).unwrap());
        assert!(page.contains("CG, 3D Poisson &lt;64^3&gt;") && !page.contains("<64^3>"));
        assert!(page.contains("lossy cost least: 15.00 %"), "{:?}", verdict(&comparison.runs));
    }

    #[test]
    fn every_run_has_its_row_and_every_figure_a_description() {
        let comparison = report::sample();
        let page = render(&comparison, &plot::figures(&comparison).unwrap());
        assert_eq!(page.matches("<th scope=\"row\">").count(), comparison.runs.len());
        assert_eq!(page.matches("role=\"img\" aria-label=").count(), 3);
    }

    #[test]
    fn run_that_did_not_converge_says_so_and_wins_nothing() {
        let mut comparison = report::sample();
        comparison.runs[3].converged = false;
        assert!(row(&comparison.runs[3]).contains("not converged"));
        assert!(verdict(&comparison.runs).is_some_and(|text| text.starts_with("lossless cost least")));
    }
}
