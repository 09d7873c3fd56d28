//! The report: a page with the table, and pictures of model, image and differences.

use std::fmt::Write as _;
use std::path::Path;

use crate::Failed;
use crate::experiment::Experiment;
use crate::measure::WayFigures;
use crate::output;
use crate::picture::{self, Shading};

/// Times that differences are drawn stronger than images.
const MAGNIFIED: f64 = 1000.0;

/// Writes `report.md` and its pictures.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn write(
    folder: &Path,
    experiment: &Experiment,
    facts: &[String],
    figures: &[WayFigures],
) -> Result<(), Failed> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut page = String::from("# Image and gradient of seismic shots\n\n");
    page += &facts.join("\n");
    page += "\n\n";
    page += &markdown(&output::rows(figures));
    page += &format!("\n{}\n\n## Model\n\n", output::NOTES);
    let nx = experiment.grid.extents[0];
    let section = |field: &[f64]| picture::section(&experiment.grid, field);
    let mut draw = |name: &str, title: &str, values: &[f64], shading: Shading| -> Result<(), Failed> {
        picture::write(&folder.join(name), values, nx, shading)?;
        Ok(write!(page, "{title}\n\n![{title}]({name})\n\n")?)
    };
    let velocity = |model: &[f64]| section(&model.iter().map(|slowness2| slowness2.powf(-0.5)).collect::<Vec<_>>());
    draw("model.png", "Velocity that made the data", &velocity(&experiment.layered), Shading::Range)?;
    draw("smooth.png", "Velocity that imaging starts from", &velocity(&experiment.smooth), Shading::Range)?;
    let exact = &figures[0].stack;
    let image = section(&exact.image);
    let shading = Shading::Signed { greatest: picture::greatest_shown(&image) };
    draw("image.png", "Image, all states in memory", &image, shading)?;
    let gradient = section(&exact.gradient);
    let greatest = picture::greatest_shown(&gradient);
    draw("gradient.png", "Gradient, all states in memory", &gradient, Shading::Signed { greatest })?;
    for of_way in figures.iter().filter(|of_way| !of_way.way.is_exact()) {
        let name = of_way.way.name();
        let file = format!("{}.png", name.replace(", ", "-").replace(' ', "-"));
        draw(&file, &format!("Image, {name}"), &section(&of_way.stack.image), shading)?;
        let apart: Vec<f64> =
            of_way.stack.image.iter().zip(&exact.image).map(|pair| MAGNIFIED * (pair.0 - pair.1)).collect();
        draw(
            &format!("difference-{file}"),
            &format!("Difference of it, {MAGNIFIED} times"),
            &section(&apart),
            shading,
        )?;
    }
    let path = folder.join("report.md");
    std::fs::write(&path, page.trim_end().to_owned() + "\n")
        .map_err(|error| format!("{}: {error}", path.display()).into())
}

fn markdown(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(rows[0].len()));
    let body: String = rows[1..].iter().map(line).collect();
    line(&rows[0]) + &rule + &body
}
