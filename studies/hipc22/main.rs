//! The published evaluation of the incremental cache (Maurya et al., HiPC 2022, hal-03799226) in
//! virtual time: Figures 3 to 6 beside the published numbers.
//!
//! `cargo run --release -p recoup-studies --example hipc22 -- DIR`

use std::error::Error;
use std::path::{Path, PathBuf};

mod draw;
mod figures;
mod table;

use recoup::tape::simulated::NodeRates;

/// The text printed without arguments.
const HELP: &str = "\
Figures 3 to 6 of Maurya et al. (HiPC 2022, hal-03799226) in virtual time.

Usage: hipc22 DIR

DIR  where the text and the drawings (SVG) go; made if missing";

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = std::env::args().nth(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from) else {
        println!("{HELP}");
        return Ok(());
    };
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let rates = NodeRates::a100();
    let mut text = String::new();
    for make in figures::ALL {
        let sheet = make(&rates)?;
        let printed = sheet.text();
        println!("{printed}");
        text += &printed;
        text.push('\n');
        for (name, scene) in sheet.drawings {
            write(&folder.join(format!("{name}.svg")), &draw::svg(&scene))?;
        }
    }
    write(&folder.join("all.txt"), text.trim_end())?;
    println!("text and drawings are in {}", folder.display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, format!("{text}\n")).map_err(|error| format!("{}: {error}", path.display()))
}
