//! The page over many comparisons: one picture, one table, a link to each.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::page::{escape, foot, head, render_figure};
use super::{make_folder, write_figure, write_file};
use crate::output::{percent, seconds};
use crate::report::plot::{Dots, overview};
use crate::report::spread::Spread;

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
    /// The schemes from the cheapest to the dearest.
    pub(crate) schemes: Vec<IndexedScheme>,
}

/// The cost of a scheme in a comparison.
#[derive(Clone, Debug)]
pub(crate) struct IndexedScheme {
    pub(crate) name: String,
    /// Overhead as a fraction.
    pub(crate) overhead: Option<Spread>,
    /// Median time of a run.
    pub(crate) seconds: Option<f64>,
}

impl IndexedScheme {
    /// The median overhead; infinite where none is known.
    pub(crate) fn cost(&self) -> f64 {
        self.overhead.map_or(f64::INFINITY, |overhead| overhead.median)
    }
}

impl IndexEntry {
    /// The scheme that cost least.
    pub(crate) fn cheapest(&self) -> Option<(&IndexedScheme, Spread)> {
        let cheapest = self.schemes.first()?;
        Some((cheapest, cheapest.overhead?))
    }

    /// The scheme of this name.
    pub(crate) fn scheme(&self, name: &str) -> Option<&IndexedScheme> {
        self.schemes.iter().find(|scheme| scheme.name == name)
    }

    /// The median time without versions, and what the cheapest scheme saves of it.
    pub(crate) fn seconds_saved(&self) -> Option<(f64, f64)> {
        let none = self.scheme("none")?.seconds?;
        Some((none, none - self.cheapest()?.0.seconds?))
    }
}

/// Writes `index.html` and its plot into `folder` and returns the page's path.
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
    if let Some(figure) = overview(&rows(entries))? {
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
/// best and the time that the best ones save.
pub(crate) fn overall(entries: &[IndexEntry]) -> String {
    let mut wins: Vec<(&str, usize)> = Vec::new();
    for (cheapest, _) in entries.iter().filter_map(IndexEntry::cheapest) {
        match wins.iter_mut().find(|(known, _)| *known == cheapest.name) {
            Some((_, count)) => *count += 1,
            None => wins.push((&cheapest.name, 1)),
        }
    }
    wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if wins.is_empty() {
        return String::new();
    }
    let listed: Vec<String> = wins.iter().map(|(name, count)| format!("{name} on {count}")).collect();
    let behind = entries.iter().filter_map(|of| {
        let auto = of.scheme("auto")?.overhead?;
        Some(100.0 * (auto.median - of.cheapest()?.1.median))
    });
    let auto = behind.reduce(f64::max).filter(|most| *most >= 0.05).map_or_else(String::new, |most| {
        format!(" auto, which has to find out, is at most {most:.1} points above the cheapest.")
    });
    let saved = entries.iter().filter_map(IndexEntry::seconds_saved);
    let saved = saved.reduce(|(none, saved), (more, further)| (none + more, saved + further));
    let saved = saved.map_or_else(String::new, |(none, saved)| {
        format!(
            " The cheapest schemes save {} of the {} that solves without versions take.",
            seconds(saved),
            seconds(none)
        )
    });
    let problems = if entries.len() == 1 { "problem" } else { "problems" };
    format!("Of {} {problems}, least median overhead: {}.{auto}{saved}", entries.len(), listed.join(", "))
}

/// The rows of the picture: a problem, then its schemes.
fn rows(entries: &[IndexEntry]) -> Vec<Dots> {
    let row = |name: &str, overhead: Option<Spread>| Dots {
        name: name.to_owned(),
        measured: overhead.map(|of| of.times(100.0)),
        expected: None,
    };
    let of_entry = |entry: &IndexEntry| {
        let schemes = entry.schemes.iter().map(|scheme| row(&scheme.name, scheme.overhead));
        std::iter::once(row(&format!("{}:", entry.folder), None)).chain(schemes).collect::<Vec<_>>()
    };
    entries.iter().flat_map(of_entry).collect()
}

/// A row for each comparison, a column for each scheme.
fn table(entries: &[IndexEntry]) -> String {
    let mut schemes: Vec<&str> = Vec::new();
    for scheme in entries.iter().flat_map(|entry| &entry.schemes) {
        if !schemes.contains(&scheme.name.as_str()) {
            schemes.push(&scheme.name);
        }
    }
    let header: String = schemes.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
    let rows: String = entries.iter().map(|entry| row(entry, &schemes)).collect();
    format!(
        "<h2>Overheads</h2>\n<p>Medians of the trials; below each, the least and the most.</p>\n\
         <table>\n<thead><tr><th scope=\"col\">problem</th>{header}<th scope=\"col\">trials</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n"
    )
}

fn row(entry: &IndexEntry, schemes: &[&str]) -> String {
    let cells = schemes.iter().map(|scheme| {
        let overhead = entry.scheme(scheme).and_then(|scheme| scheme.overhead);
        let value = overhead.map_or_else(|| "-".to_owned(), |of| percent(of.median));
        let ends = overhead.filter(|of| of.least < of.most);
        let width =
            ends.map_or_else(String::new, |of| format!("<small>{} to {}</small>", percent(of.least), percent(of.most)));
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
        let entry = |costs: &[(&str, f64)]| IndexEntry {
            folder: "cg".to_owned(),
            title: String::new(),
            verdict: String::new(),
            trials: 2,
            schemes: costs
                .iter()
                .map(|&(name, cost)| IndexedScheme {
                    name: name.to_owned(),
                    overhead: Spread::of(&[cost]),
                    seconds: Some(3600.0 * (1.0 + cost)),
                })
                .collect(),
        };
        let said = overall(&[
            entry(&[("lossy", 0.2), ("auto", 0.25), ("none", 1.0)]),
            entry(&[("auto", 0.1), ("lossy", 0.3)]),
            entry(&[("lossy", 0.3), ("auto", 0.325), ("none", 0.9)]),
        ]);
        assert!(said.starts_with("Of 3 problems, least median overhead: lossy on 2, auto on 1."), "{said}");
        assert!(said.contains("at most 5.0 points above the cheapest."), "{said}");
        assert!(said.ends_with("save 1 h 24 min of the 3 h 54 min that solves without versions take."), "{said}");
        assert_eq!(overall(&[]), "");
    }
}
