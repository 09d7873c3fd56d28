//! The published evaluation of GPU Snapshot (Lee et al., ICS 2019, doi 10.1145/3330345.3330361),
//! reproduced: its system by the model of `recoup model system`. Its single device is not.
//!
//! `cargo run --release -p recoup-studies --example gpu_snapshot -- all`

#[cfg(test)]
mod checks;
#[path = "../paper/draw.rs"]
mod draw;
mod fig13;
mod fig14;
mod fig2;
mod fig3;
mod lab;
mod machine;
mod published;
#[path = "../paper/sheet.rs"]
mod sheet;
mod tables;

use lab::Lab;
use sheet::{NamedSheet, number};

/// An error of any thread.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The text printed without arguments.
const HELP: &str = "\
The published evaluation of GPU Snapshot (doi 10.1145/3330345.3330361), reproduced.

Usage: gpu_snapshot WHAT... [--out DIR] [--trials N] [--seed S]

WHAT  tables  the systems and their failures (Tables 1 and 2)
      fig2    efficiency by scale and by GPUs for each CPU
      fig3    efficiency if parts of the system took no time
      fig13   efficiency by GPUs for each CPU
      fig14   efficiency by the failure rate of GPUs
      all     all of them

--out     where SVG and PNG files and the text go [default: gpu-snapshot-report]
--trials  simulated runs of each system [default: 8]
--seed    seed of their failures [default: 1]";

/// The command that runs this program.
const COMMAND: &str = "cargo run --release -p recoup-studies --example gpu_snapshot --";

/// Every figure by its name, in the order of the publication.
const SHEETS: [NamedSheet<Lab>; 5] = [
    ("tables", tables::make),
    ("fig2", fig2::make),
    ("fig3", fig3::make),
    ("fig13", fig13::make),
    ("fig14", fig14::make),
];

fn main() -> Result<(), Failed> {
    let mut trials = 8_u32;
    let mut seed = 1;
    let asked = sheet::parse(&SHEETS, HELP, "gpu-snapshot-report", |option, value| {
        match option {
            "--trials" => trials = number::<u32>(option, value)?.max(2),
            "--seed" => seed = number(option, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(asked) = asked else { return Ok(()) };
    sheet::report(&asked, &SHEETS, &Lab { trials, seed }, |name| format!("{COMMAND} {name}"))?;
    Ok(())
}
