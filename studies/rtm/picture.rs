//! Vertical sections as PNG pictures.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::Failed;
use crate::grid::Grid;

/// Least width of a picture, in pixels.
const WIDTH_MIN: usize = 480;
/// Share of the values that are not cut at the ends of the colours.
const SHOWN_SHARE: f64 = 0.99;

/// Colours of a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shading {
    /// From the least value, dark, to the greatest, bright.
    Range,
    /// From blue at `-greatest` over white to red at `greatest`.
    Signed { greatest: f64 },
}

/// The section of a field through the middle of y.
pub(crate) fn section(grid: &Grid, field: &[f64]) -> Vec<f64> {
    let [nx, ny, nz] = grid.extents;
    (0..nz).flat_map(|z| (0..nx).map(move |x| [x, ny / 2, z])).map(|cell| field[grid.index(cell)]).collect()
}

/// Magnitude below which most values of the lower half of a section are.
pub(crate) fn greatest_shown(section: &[f64]) -> f64 {
    let mut magnitudes: Vec<f64> = section[section.len() / 2..].iter().map(|value| value.abs()).collect();
    magnitudes.sort_by(f64::total_cmp);
    let index = (magnitudes.len() as f64 * SHOWN_SHARE) as usize;
    magnitudes.get(index.min(magnitudes.len() - 1)).copied().filter(|&value| value > 0.0).unwrap_or(1.0)
}

/// Writes a section of `nx` values per row.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write(path: &Path, section: &[f64], nx: usize, shading: Shading) -> Result<(), Failed> {
    let scale = WIDTH_MIN.div_ceil(nx);
    let colours: Vec<[u8; 3]> = section.iter().map(coloured(section, shading)).collect();
    let wide = |row: &[[u8; 3]]| row.iter().flat_map(|&pixel| [pixel].repeat(scale).concat()).collect::<Vec<u8>>();
    let pixels: Vec<u8> = colours.chunks(nx).flat_map(|row| wide(row).repeat(scale)).collect();
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let height = section.len() / nx * scale;
    let mut encoder = png::Encoder::new(BufWriter::new(file), (nx * scale) as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    Ok(encoder.write_header()?.write_image_data(&pixels)?)
}

fn coloured(section: &[f64], shading: Shading) -> impl Fn(&f64) -> [u8; 3] {
    let least = section.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = section.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let byte = |share: f64| (share.clamp(0.0, 1.0) * 255.0).round() as u8;
    move |&value| match shading {
        Shading::Range => {
            let share = (value - least) / (greatest - least).max(f64::MIN_POSITIVE);
            [byte(share), byte(0.15 + 0.75 * share), byte(0.45 + 0.3 * share)]
        }
        Shading::Signed { greatest } => {
            let share = (value / greatest).clamp(-1.0, 1.0);
            [byte(1.0 + share), byte(1.0 - share.abs()), byte(1.0 - share)]
        }
    }
}
