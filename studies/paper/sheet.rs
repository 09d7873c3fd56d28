//! The printed form of a figure: a title, tables, remarks, and drawings with the same facts below
//! them.

use std::path::Path;

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
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(String::len);
            cells.chain(head.get(column).map(|cell| cell.len())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let line = |cells: &[String]| {
            let cell = |(column, cell): (usize, &String)| match column {
                0 => format!("{cell:<width$}", width = widths[0]),
                _ => format!("{cell:>width$}", width = widths[column]),
            };
            format!("  {}", cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")).trim_end().to_owned()
        };
        self.lines.push(line(&head.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>()));
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

/// A fraction as a percentage; a word where it has no bound.
pub(crate) fn percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{:.1} %", 100.0 * fraction) } else { "no end".to_owned() }
}
