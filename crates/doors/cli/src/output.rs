//! Output on stdout: one JSON object, or a table.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use recoup::io::put_result;
pub(crate) use recoup::model::units::shown_seconds as seconds;
use rustix::fs::{Access, access};
use serde::Serialize;

use crate::exit::Exit;
use crate::printable::Printable;
use crate::target::require_writable;
use crate::{ranks, version};

/// The number of the schema that docs/json.md states: one more whenever a key goes or changes its
/// meaning.
const SCHEMA: u32 = 1;

/// Columns of a terminal, and the most that tables and texts take.
pub(crate) const WIDTH: usize = 80;

/// Destination and form of results.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    json: bool,
    file: Option<PathBuf>,
}

/// The keys that every JSON object begins with.
#[derive(Serialize)]
struct Document<'a, T> {
    /// The version of the program.
    recoup: &'static str,
    schema: u32,
    /// The command line, word by word.
    command: Vec<String>,
    #[serde(flatten)]
    report: &'a T,
}

impl<'a, T: Serialize> Document<'a, T> {
    fn of(report: &'a T) -> Self {
        let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        Self { recoup: version::NUMBER, schema: SCHEMA, command, report }
    }
}

/// Returns the JSON object of a report, indented for people.
pub(crate) fn document(report: &impl Serialize) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(&Document::of(report))?)
}

impl Output {
    /// Chooses JSON or tables for people; the JSON also goes to `file`.
    ///
    /// # Errors
    /// Exit 2 for a file that could not be written once there is something to write.
    pub(crate) fn new(json: bool, file: Option<PathBuf>) -> Result<Self> {
        if let Some(file) = &file {
            require_writable(file, "--json-file")?;
        }
        Ok(Self { json, file })
    }

    /// Returns whether stdout is for one JSON object.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints `value` as one JSON object, or as the table that `table` makes of it. Of several
    /// ranks the first prints. The file is written afterwards, so a failure there costs nothing
    /// that can be printed.
    pub(crate) fn emit<'a, T: Serialize, D: fmt::Display>(
        &self,
        value: &'a T,
        table: impl FnOnce(&'a T) -> D,
    ) -> Result<()> {
        if !ranks::is_first() {
            return Ok(());
        }
        let document = Document::of(value);
        let printed = self.print(&document, table);
        if let Some(path) = &self.file {
            put_result(path, |out| Ok(serde_json::to_writer(out, &document)?)).context("--json-file")?;
        }
        printed
    }

    fn print<'a, T: Serialize, D: fmt::Display>(
        &self,
        document: &Document<'a, T>,
        table: impl FnOnce(&'a T) -> D,
    ) -> Result<()> {
        // Neither form is whole in memory: a report may have a line for each name of a file.
        let mut stdout = BufWriter::new(io::stdout().lock());
        if self.json {
            serde_json::to_writer(&mut stdout, document)?;
            writeln!(stdout)?;
        } else {
            write!(stdout, "{}", Printable(table(document.report)))?;
        }
        Ok(stdout.flush()?)
    }
}

/// Refuses a folder of reports that cannot be made or written, before anything long is done.
///
/// # Errors
/// Exit 2.
pub(crate) fn check_folder(option: &str, folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    let whole = std::path::absolute(folder).with_context(|| format!("{option} {}", folder.display()))?;
    let refused = |what: String| Err(Exit::Usage.because(format!("{option} {}: {what}", folder.display())));
    match whole.ancestors().find(|above| above.exists()) {
        Some(above) if !above.is_dir() => refused(format!("{} is no directory", above.display())),
        Some(above) if access(above, Access::WRITE_OK).is_err() => {
            refused(format!("not allowed to write to {}", above.display()))
        }
        _ => Ok(()),
    }
}

/// Text in columns: the first to the left, all others to the right.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextTable {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl TextTable {
    /// Makes a table of these columns.
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(|&h| h.to_owned()).collect(), ..Self::default() }
    }

    /// Makes a list of names and values, without a header.
    pub(crate) fn pairs() -> Self {
        Self::default()
    }

    /// Adds a row.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a line of text below the table.
    pub(crate) fn note(&mut self, text: impl Into<String>) -> &mut Self {
        self.notes.push(text.into());
        self
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_rows(f, &self.header, |write| self.rows.iter().try_for_each(|row| write(row)))?;
        self.notes.iter().flat_map(|note| wrapped(note, WIDTH)).try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Returns the columns that a table may take: [`WIDTH`], or as many as a terminal has.
fn columns() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout());
    terminal.map_or(WIDTH, |(columns, _)| usize::from(columns.0).max(WIDTH))
}

/// Writes text in columns like a [`TextTable`]. A table that is too wide for the screen becomes
/// several, each with the first column. `rows` gives each row to a function; it is called once for
/// the widths and once for each of these tables, and no row is kept.
pub(crate) fn write_rows(
    f: &mut fmt::Formatter<'_>,
    header: &[String],
    rows: impl Fn(&mut dyn FnMut(&[String]) -> fmt::Result) -> fmt::Result,
) -> fmt::Result {
    let mut widths = Vec::new();
    let mut widen = |line: &[String]| {
        widths.resize(widths.len().max(line.len()), 0);
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
        Ok(())
    };
    widen(header)?;
    rows(&mut widen)?;
    for (index, shown) in screens(&widths, columns()).into_iter().enumerate() {
        let in_front = widths.first().copied().unwrap_or(0);
        let write_line = |f: &mut fmt::Formatter<'_>, line: &[String]| {
            let cells = shown.clone().filter_map(|column| Some(format!("  {:>1$}", line.get(column)?, widths[column])));
            let first = line.first().map_or("", String::as_str);
            writeln!(f, "{}", format!("{first:<in_front$}{}", cells.collect::<String>()).trim_end())
        };
        if index > 0 {
            writeln!(f)?;
        }
        if !header.is_empty() {
            write_line(f, header)?;
            writeln!(f, "{}", "-".repeat(in_front + shown.clone().map(|column| 2 + widths[column]).sum::<usize>()))?;
        }
        rows(&mut |row| write_line(f, row))?;
    }
    Ok(())
}

/// Returns the columns after the first one in groups that fit a screen next to the first one; a
/// column that fits none has its own.
fn screens(widths: &[usize], screen: usize) -> Vec<Range<usize>> {
    let in_front = widths.first().copied().unwrap_or(0);
    let mut groups = Vec::new();
    let mut group = 1..1;
    let mut taken = in_front;
    for (column, width) in widths.iter().enumerate().skip(1) {
        if taken + 2 + width > screen && column > group.start {
            groups.push(group);
            group = column..column;
            taken = in_front;
        }
        group.end = column + 1;
        taken += 2 + width;
    }
    groups.push(group);
    groups
}

/// Breaks a text into lines of at most `width` characters, if its words allow it.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.split(' ').fold(Vec::new(), |mut lines: Vec<String>, word| {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
        lines
    })
}

/// Writes a name, and next to it texts that are wrapped to the screen, one below the other.
pub(crate) fn write_entry(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    indent: usize,
    texts: impl IntoIterator<Item = String>,
) -> fmt::Result {
    let mut start = format!("{name:<indent$}");
    for line in texts.into_iter().flat_map(|text| wrapped(&text, WIDTH - indent)) {
        writeln!(f, "{start}{line}")?;
        start = " ".repeat(indent);
    }
    Ok(())
}

/// Returns bytes with a binary unit: `640 B`, `1.50 MiB`.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{scaled:.0} B") } else { format!("{scaled:.2} {}", UNITS[unit]) }
}

/// Lists versions that a limit on bytes did not allow.
pub(crate) fn dropped(versions: &[u64]) -> String {
    let numbers: Vec<String> = versions.iter().map(u64::to_string).collect();
    format!("dropped to stay within --max-bytes: {}", numbers.join(", "))
}

/// Returns a fraction as percent; `unbounded` when the run would never end.
pub(crate) fn percent(fraction: f64) -> String {
    match fraction {
        f if f.is_nan() => "-".to_owned(),
        f if f.is_infinite() => "unbounded".to_owned(),
        f if f >= 1e4 => "over 1e6 %".to_owned(),
        f => format!("{:.2} %", 100.0 * f),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_line_up() {
        let mut table = TextTable::new(&["scheme", "overhead"]);
        table.row(["none", "3.00 %"]).row(["traditional", "41.15 %"]).note("done");
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "scheme       overhead",
                "---------------------",
                "none           3.00 %",
                "traditional   41.15 %",
                "done"
            ]
        );
    }

    #[test]
    fn table_wider_than_the_screen_becomes_several_with_the_first_column() {
        let mut table = TextTable::new(&["run", "a", "b", "c"]);
        let [a, b, c] = ["a", "b", "c"].map(|letter| letter.repeat(36));
        table.row(["one", &a, &b, &c]).row(["two", "1", "2"]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        let starts = lines.iter().map(|line| line.split(' ').next().unwrap().trim_matches('-'));
        assert_eq!(starts.collect::<Vec<_>>(), ["run", "", "one", "two", "", "run", "", "one", "two"], "{text}");
        assert_eq!(lines[2], format!("one  {a}  {b}"));
        assert_eq!(lines[7], format!("one  {c}"));
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(screens(&[3, 36, 36, 36], 200).len(), 1);
        assert_eq!(screens(&[3, 99, 4], 80), [1..2, 2..3]);
    }

    #[test]
    fn text_is_wrapped_at_words_and_loses_none() {
        let text = "word ".repeat(50).trim_end().to_owned() + &"x".repeat(150);
        let lines = wrapped(&text, WIDTH);
        assert_eq!(lines.join(" "), text);
        assert!(lines[..lines.len() - 1].iter().all(|line| line.len() <= WIDTH), "{lines:?}");
    }

    #[test]
    fn units_are_chosen_by_magnitude() {
        assert_eq!(seconds(3.4e-4), "340.000 us");
        assert_eq!(seconds(119.99), "119.99 s");
        assert_eq!(seconds(2578.87), "42 min 59 s");
        assert_eq!(seconds(-720.0), "-12 min 00 s");
        assert_eq!(seconds(3599.7), "1 h 00 min");
        assert_eq!(seconds(3900.0), "1 h 05 min");
        assert_eq!(seconds(7199.9), "2 h 00 min");
        assert_eq!(seconds(f64::INFINITY), "never");
        assert_eq!(bytes(640.0), "640 B");
        assert_eq!(bytes(1.5 * 1024.0 * 1024.0), "1.50 MiB");
        assert_eq!(percent(0.4115), "41.15 %");
        assert_eq!([percent(f64::INFINITY), percent(1.234e146)], ["unbounded", "over 1e6 %"]);
    }
}
