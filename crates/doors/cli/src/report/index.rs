//! The page over many comparisons: one picture, one table, a link to each.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use recoup::model::simulate::Estimate;

use super::page::{escape, foot, head, render_figure};
use super::{make_folder, write_figure, write_file};
use crate::output::percent;
use crate::report::plot::{Dots, overview};

/// A comparison in the index.
#[derive(Clone, Debug)]
pub(crate) struct IndexEntry {
    /// Folder beneath the index.
    pub(crate) folder: String,
    /// Method and problem.
    pub(crate) title: String,
    /// Sentence on the scheme that cost least, and those that do not differ from it.
    pub(crate) verdict: String,
    pub(crate) trials: u64,
    /// Overheads by scheme, as fractions.
    pub(crate) overheads: Vec<(String, Option<Estimate>)>,
}

/// Writes `index.html` and its plot into `folder` and returns the page's path.
///
/// # Errors
/// When the folder cannot be written to.
pub(crate) fn write(entries: &[IndexEntry], folder: &Path, command: &str) -> Result<PathBuf> {
    make_folder(folder)?;
    let title = "What each scheme costs";
    let mut html = head(title);
    let _ = write!(
        html,
        "<header>\n<p>recoup</p>\n<h1>{title}</h1>\n<p class=\"verdict\">Every problem is solved under every scheme with \
         the same failures, seed by seed. Overhead is the time of such a run over that of the undisturbed solve, less 1: \
         checkpoints, work done again, recoveries and extra iterations. {overall}</p>\n</header>\n<main>\n",
        overall = escape(&overall(entries)),
    );
    if let Some(figure) = overview(&columns(entries))? {
        write_figure(&figure, folder)?;
        html.push_str(&render_figure(&figure));
    }
    html.push_str(&table(entries));
    html.push_str(&foot(command));
    let path = folder.join("index.html");
    write_file(&path, html.as_bytes())?;
    Ok(path)
}

/// Counts the problems on which each scheme cost least, and gives the distance of `auto` to the
/// best.
fn overall(entries: &[IndexEntry]) -> String {
    let mean = |(name, of): &(String, Option<Estimate>)| of.map(|of| (name.clone(), of.mean));
    let all: Vec<Vec<(String, f64)>> =
        entries.iter().map(|entry| entry.overheads.iter().filter_map(mean).collect()).collect();
    let least = |of: &Vec<(String, f64)>| of.iter().min_by(|(_, a), (_, b)| a.total_cmp(b)).cloned();
    let mut wins: Vec<(String, usize)> = Vec::new();
    for (name, _) in all.iter().filter_map(least) {
        match wins.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => wins.push((name, 1)),
        }
    }
    wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if wins.is_empty() {
        return String::new();
    }
    let listed: Vec<String> = wins.iter().map(|(name, count)| format!("{name} on {count}")).collect();
    let behind = all.iter().filter_map(|of| {
        let auto = of.iter().find(|(name, _)| name == "auto")?.1;
        Some(100.0 * (auto - least(of)?.1))
    });
    let behind = behind.reduce(f64::max);
    let auto = behind.map_or_else(String::new, |most| {
        format!(" auto, which has to find out, is at most {most:.1} points above the cheapest.")
    });
    let problems = if entries.len() == 1 { "problem" } else { "problems" };
    format!("Of {} {problems}, least mean overhead: {}.{auto}", entries.len(), listed.join(", "))
}

fn columns(entries: &[IndexEntry]) -> Vec<(String, Vec<Dots>)> {
    let dots = |(name, overhead): &(String, Option<Estimate>)| Dots {
        name: name.clone(),
        measured: overhead.map(|of| Estimate { mean: 100.0 * of.mean, half_width: 100.0 * of.half_width }),
        expected: None,
    };
    entries.iter().map(|entry| (entry.folder.clone(), entry.overheads.iter().map(dots).collect())).collect()
}

/// A row for each comparison, a column for each scheme.
fn table(entries: &[IndexEntry]) -> String {
    let mut schemes: Vec<&str> = Vec::new();
    for (name, _) in entries.iter().flat_map(|entry| &entry.overheads) {
        if !schemes.contains(&name.as_str()) {
            schemes.push(name);
        }
    }
    let header: String = schemes.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
    let rows: String = entries.iter().map(|entry| row(entry, &schemes)).collect();
    format!(
        "<h2>Overheads</h2>\n<p>Means over the trials; below each, half the width of its 95 % confidence interval.</p>\n\
         <table>\n<thead><tr><th scope=\"col\">problem</th>{header}<th scope=\"col\">trials</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n"
    )
}

fn row(entry: &IndexEntry, schemes: &[&str]) -> String {
    let cells = schemes.iter().map(|scheme| {
        let overhead = entry.overheads.iter().find(|(name, _)| name == scheme).and_then(|(_, overhead)| *overhead);
        let value = overhead.map_or_else(|| "-".to_owned(), |of| percent(of.mean));
        let width = overhead.map(|of| of.half_width).filter(|width| width.is_finite());
        let width = width.map_or_else(String::new, |width| format!("<small>&plusmn; {}</small>", percent(width)));
        format!("<td data-name=\"{}\">{value}{width}</td>", escape(scheme))
    });
    format!(
        "<tr><th scope=\"row\"><a href=\"{folder}/index.html\">{title}</a> ({folder})<small>{verdict}</small></th>{cells}\
         <td data-name=\"trials\">{trials}</td></tr>\n",
        folder = escape(&entry.folder),
        title = escape(&entry.title),
        verdict = escape(&entry.verdict),
        cells = cells.collect::<String>(),
        trials = entry.trials,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_says_which_schemes_cost_least_and_how_far_auto_is() {
        let of = |mean: f64| Some(Estimate { mean, half_width: 0.01 });
        let entry = |overheads: [(&str, Option<Estimate>); 3]| IndexEntry {
            folder: "cg".to_owned(),
            title: String::new(),
            verdict: String::new(),
            trials: 2,
            overheads: overheads.map(|(name, of)| (name.to_owned(), of)).to_vec(),
        };
        let said = overall(&[
            entry([("none", of(1.0)), ("lossy", of(0.2)), ("auto", of(0.25))]),
            entry([("none", None), ("lossy", of(0.3)), ("auto", of(0.1))]),
            entry([("none", of(0.9)), ("lossy", of(0.3)), ("auto", of(0.325))]),
        ]);
        assert!(said.starts_with("Of 3 problems, least mean overhead: lossy on 2, auto on 1."), "{said}");
        assert!(said.ends_with("at most 5.0 points above the cheapest."), "{said}");
        assert_eq!(overall(&[]), "");
    }
}
