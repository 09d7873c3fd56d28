//! The printed form of a figure.

use kuva::render::render::Scene;

/// A figure: a title, a table, sentences, and drawings.
#[derive(Default)]
pub(crate) struct Sheet {
    pub(crate) title: &'static str,
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) remarks: Vec<String>,
    pub(crate) drawings: Vec<(&'static str, Scene)>,
}

impl Sheet {
    /// Returns all of it but the drawings.
    pub(crate) fn text(&self) -> String {
        let head: Vec<String> = self.head.iter().map(|&cell| cell.to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(&self.rows).collect();
        let width =
            |column: usize| lines.iter().filter_map(|line| line.get(column)).map(String::len).max().unwrap_or(0);
        let printed = lines.iter().map(|line| {
            let cells = line.iter().enumerate().map(|(column, cell)| format!("{cell:>width$}", width = width(column)));
            format!("  {}", cells.collect::<Vec<_>>().join("  "))
        });
        let mut all = vec![format!("== {}", self.title), String::new()];
        all.extend(printed);
        all.push(String::new());
        all.extend(self.remarks.iter().cloned());
        all.join("\n") + "\n"
    }
}

/// A ratio.
pub(crate) fn times(ratio: f64) -> String {
    format!("{ratio:.1}x")
}

/// Seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

/// A share, in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
