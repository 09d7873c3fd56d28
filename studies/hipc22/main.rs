//! The published evaluation of the incremental cache (Maurya et al., HiPC 2022, hal-03799226) in
//! virtual time: Figures 3 to 6 beside the published numbers.
//!
//! `cargo run --release -p recoup-studies --example hipc22 -- DIR`

#[expect(dead_code, reason = "bars, which other publications have")]
#[path = "../paper/draw.rs"]
mod draw;
mod figures;
/// The publication, which each figure ends with.
mod published {
    pub(crate) const DOI: &str = "hal-03799226";
}
#[expect(dead_code, reason = "arguments, of which there are none here")]
#[path = "../paper/sheet.rs"]
mod sheet;

use recoup::tape::simulated::NodeRates;
use sheet::Asked;

/// An error of any thread.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The text printed without arguments.
const HELP: &str = "\
Figures 3 to 6 of Maurya et al. (HiPC 2022, hal-03799226) in virtual time.

Usage: hipc22 DIR

DIR  where the text and the drawings (SVG and PNG) go; made if missing";

fn main() -> Result<(), Failed> {
    let Some(folder) = std::env::args().nth(1).filter(|arg| !arg.starts_with('-')) else {
        println!("{HELP}");
        return Ok(());
    };
    let asked = Asked { names: vec!["all".to_owned()], out: folder.into() };
    let command = |_: &str| "cargo run --release -p recoup-studies --example hipc22 -- DIR".to_owned();
    sheet::report(&asked, &figures::SHEETS, &NodeRates::a100(), command)?;
    Ok(())
}
