//! The published evaluation of GPU Snapshot (Lee et al., ICS 2019, doi 10.1145/3330345.3330361),
//! reproduced: its system model by the model of `recoup model system`, and its single device by a
//! simulated monitor over the writes of real programs.
//!
//! `cargo run --release -p recoup-studies --example gpu_snapshot -- all`

mod buffer;
#[cfg(test)]
mod checks;
mod device;
#[path = "../paper/draw.rs"]
mod draw;
mod fig10;
mod fig11;
mod fig12;
mod fig13;
mod fig14;
mod fig2;
mod fig3;
mod front;
mod lab;
mod limits;
mod lu;
mod machine;
mod monitor;
mod offload;
mod organisations;
mod pagerank;
mod programs;
mod published;
#[path = "../paper/sheet.rs"]
mod sheet;
mod solvers;
mod tables;
mod trace;
mod traced_space;
mod zones;

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
      fig10   checkpoint time of one device, by the driver
      fig11   the same with a buffer on the device
      fig12   efficiency of the system with each of these
      fig13   efficiency by GPUs for each CPU
      fig14   efficiency by the failure rate of GPUs
      limits  checkpoint time by the size of the buffer and by the pace of the program
      all     all of them, in a minute

--out     where SVG and PNG files and the text go [default: gpu-snapshot-report]
--trials  simulated runs of each system [default: 8]
--seed    seed of their failures [default: 1]";

/// The command that runs this program.
const COMMAND: &str = "cargo run --release -p recoup-studies --example gpu_snapshot --";

/// Every figure by its name, in the order of the publication, and what it does not have.
const SHEETS: [NamedSheet<Lab>; 9] = [
    ("tables", tables::make),
    ("fig2", fig2::make),
    ("fig3", fig3::make),
    ("fig10", fig10::make),
    ("fig11", fig11::make),
    ("fig12", fig12::make),
    ("fig13", fig13::make),
    ("fig14", fig14::make),
    ("limits", limits::make),
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
    sheet::report(&asked, &SHEETS, &Lab::new(trials, seed), |name| format!("{COMMAND} {name}"))?;
    Ok(())
}
