//! The printed form of a figure: a title, tables, remarks, and drawings with the same facts below
//! them. Also what programs of figures have in common: arguments, and a report.

use std::path::{Path, PathBuf};

use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::render::Scene;

use crate::Failed;
use crate::{draw, published};

/// One figure or table of the paper.
#[derive(Default)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// Tables and remarks, line by line.
    pub(crate) lines: Vec<String>,
    /// The parameters, printed and drawn below.
    pub(crate) parameters: Vec<String>,
    /// The parts that cannot be reproduced, with the reason.
    pub(crate) limits: Vec<&'static str>,
    /// Drawings, by file name without ending.
    pub(crate) figures: Vec<(String, Scene)>,
    /// The command that makes it again.
    pub(crate) command: String,
}

impl Sheet {
    /// Adds a table: a head and rows, columns aligned to the right, the first to the left.
    pub(crate) fn table<C: AsRef<str>>(&mut self, head: &[C], rows: &[Vec<String>]) {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(String::len);
            cells.chain(head.get(column).map(|cell| cell.as_ref().len())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let line = |cells: &[String]| {
            let cell = |(column, cell): (usize, &String)| match column {
                0 => format!("{cell:<width$}", width = widths[0]),
                _ => format!("{cell:>width$}", width = widths[column]),
            };
            format!("  {}", cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")).trim_end().to_owned()
        };
        self.lines.push(line(&head.iter().map(|cell| cell.as_ref().to_owned()).collect::<Vec<_>>()));
        self.lines.extend(rows.iter().map(|row| line(row)));
        self.lines.push(String::new());
    }

    /// Adds a sentence.
    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> String {
        let mut all = vec![format!("== {}", self.title), String::new()];
        all.extend(self.lines.iter().cloned());
        all.extend(self.limits.iter().map(|limit| format!("Not reproduced: {limit}")));
        all.extend(self.footer());
        all.join("\n") + "\n"
    }

    /// Writes each drawing as SVG and PNG.
    ///
    /// # Errors
    /// When a file cannot be written, or a drawing cannot be turned into PNG.
    pub(crate) fn write_figures(&mut self, folder: &Path) -> Result<(), Failed> {
        let footer = self.footer();
        for (name, scene) in std::mem::take(&mut self.figures) {
            let scene = draw::with_footer(scene, &footer);
            let png = RasterBackend::new().with_scale(1.5).render_scene(&scene);
            std::fs::write(folder.join(format!("{name}.svg")), SvgBackend::new().render_scene(&scene))?;
            std::fs::write(
                folder.join(format!("{name}.png")),
                png.map_err(|message| format!("{name}.png: {message}"))?,
            )?;
        }
        Ok(())
    }

    fn footer(&self) -> Vec<String> {
        let mut footer = vec![format!("{}; published: {}", self.command, published::DOI)];
        footer.extend(self.parameters.iter().cloned());
        footer
    }
}

/// A figure or table by its name.
pub(crate) type NamedSheet<Lab> = (&'static str, fn(&Lab) -> Result<Sheet, Failed>);

/// The figures that were asked for, and where they go.
pub(crate) struct Asked {
    pub(crate) names: Vec<String>,
    pub(crate) out: PathBuf,
}

/// Reads the arguments of a program. `set` takes an option of its own and the value, and returns
/// whether there is one of that name. Prints `help` and returns `None` without arguments.
///
/// # Errors
/// When an argument or a value is not understood.
pub(crate) fn parse<Lab>(
    sheets: &[NamedSheet<Lab>],
    help: &str,
    out: &str,
    mut set: impl FnMut(&str, &str) -> Result<bool, Failed>,
) -> Result<Option<Asked>, Failed> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() || args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{help}");
        return Ok(None);
    }
    let mut asked = Asked { names: Vec::new(), out: out.into() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "all" || sheets.iter().any(|(known, _)| known == arg) {
            asked.names.push(arg.clone());
            continue;
        }
        let value = if arg.starts_with("--") { rest.next().ok_or(format!("{arg}: expected a value"))? } else { "" };
        if arg == "--out" {
            asked.out = value.into();
        } else if !set(arg, value)? {
            return Err(format!("{arg}: expected one of the names below\n\n{help}").into());
        }
    }
    Ok(Some(asked))
}

/// Parses the value of an option.
///
/// # Errors
/// When it is of another form, with the name of the option.
pub(crate) fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, Failed>
where
    T::Err: std::fmt::Display,
{
    value.parse().map_err(|error| format!("{option}: {error}").into())
}

/// Prints the figures that were asked for, and writes them to their folder. `command` makes one of
/// them again. Returns the text.
///
/// # Errors
/// When a figure cannot be made or written.
pub(crate) fn report<Lab>(
    asked: &Asked,
    sheets: &[NamedSheet<Lab>],
    lab: &Lab,
    command: impl Fn(&str) -> String,
) -> Result<String, Failed> {
    std::fs::create_dir_all(&asked.out).map_err(|error| format!("{}: {error}", asked.out.display()))?;
    let is_asked = |name: &str| asked.names.iter().any(|asked| asked == name || asked == "all");
    let mut text = String::new();
    for (name, make) in sheets.iter().filter(|(name, _)| is_asked(name)) {
        let mut sheet = make(lab)?;
        sheet.command = command(name);
        let printed = sheet.text();
        println!("{printed}");
        text += &printed;
        text.push('\n');
        sheet.write_figures(&asked.out)?;
    }
    let text = format!("{}\n", text.trim_end());
    std::fs::write(asked.out.join(format!("{}.txt", asked.names.join("-"))), &text)?;
    println!("text and figures are in {}", asked.out.display());
    Ok(text)
}

/// A fraction as a percentage; a word where it has no bound.
pub(crate) fn percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{:.1} %", 100.0 * fraction) } else { "no end".to_owned() }
}
