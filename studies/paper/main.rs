//! The published evaluation of lossy checkpointing, reproduced: figures and tables of doi
//! 10.1145/3208040.3208050 with our numbers beside the published ones.
//!
//! `cargo run --release -p recoup-studies --example paper -- all`
//!
//! The solves and their extra iterations are real, at sizes two cores hold; time is virtual, with
//! the published rates.

mod codecs;
mod draw;
mod fig1;
mod fig10;
mod fig2;
mod fig7;
mod fig8;
mod fig9;
mod lab;
mod measure;
mod problem;
mod published;
mod sheet;
mod table3;
mod tune;

use lab::Lab;
use sheet::{NamedSheet, number};

/// An error of any thread.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The text printed without arguments.
const HELP: &str = "\
The published evaluation of lossy checkpointing (doi 10.1145/3208040.3208050), reproduced.

Usage: paper WHAT... [--out DIR] [--trials N] [--seed S] [--grid N]

WHAT  fig1    expected overhead by failure rate and checkpoint time
      fig2    extra iterations after a lossy restart; Theorems 1 and 2
      table3  sizes and times of checkpoints (Figures 4 to 6 too)
      fig7    expected overhead from 256 to 2,048 ranks, and on to 100,000
      fig8    iterations to convergence under failures
      fig9    two runs of Jacobi with failures
      fig10   overhead measured beside expected
      codecs  ours by codec, on smooth right-hand sides (not in the paper)
      all     all of them, in minutes

--out     where SVG and PNG files and the text go [default: paper-report]
--trials  runs under random failures for each bar of Figures 8 and 10 [default: 100]
--seed    seed of the first of them [default: 1]
--grid    grid points in each direction of every problem [default: 24 for Jacobi, 32 for GMRES, 48 for CG];
          64 takes an hour and more";

/// The command that runs this program.
const COMMAND: &str = "cargo run --release -p recoup-studies --example paper --";

/// Every figure by its name, in the paper's order, and what it has not last.
const SHEETS: [NamedSheet<Lab>; 8] = [
    ("fig1", fig1::make),
    ("fig2", fig2::make),
    ("table3", table3::make),
    ("fig7", fig7::make),
    ("fig8", fig8::make),
    ("fig9", fig9::make),
    ("fig10", fig10::make),
    ("codecs", codecs::make),
];

fn main() -> Result<(), Failed> {
    let mut trials = 100_u64;
    let mut seed = 1;
    let mut grid = None;
    let asked = sheet::parse(&SHEETS, HELP, "paper-report", |option, value| {
        match option {
            "--trials" => trials = number::<u64>(option, value)?.max(2),
            "--seed" => seed = number(option, value)?,
            "--grid" => grid = Some(grid_points(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(asked) = asked else { return Ok(()) };
    let grid_option = grid.map_or_else(String::new, |grid| format!(" --grid {grid}"));
    let command = |name: &str| format!("{COMMAND} {name} --trials {trials} --seed {seed}{grid_option}");
    sheet::report(&asked, &SHEETS, &Lab::new(trials, seed, grid), command)?;
    Ok(())
}

/// Returns the points of a grid that is fine enough for fields to be smooth on, and coarse enough
/// for its solves to end.
fn grid_points(text: &str) -> Result<usize, Failed> {
    match text.parse() {
        Ok(points @ 8..=256) => Ok(points),
        _ => Err(format!("--grid: expected 8 to 256 points, found {text}").into()),
    }
}
