//! The published evaluation of lossy checkpointing, reproduced: figures and tables of doi
//! 10.1145/3208040.3208050 with our numbers beside the published ones.
//!
//! `cargo run --release -p recoup-studies --example paper -- all`
//!
//! The solves and their extra iterations are real, at sizes two cores hold; time is virtual, with
//! the published rates.

use std::error::Error;
use std::path::PathBuf;

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
use sheet::Sheet;

/// An error of any thread.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

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

/// One figure or table.
type Make = fn(&Lab) -> Result<Sheet, Failed>;

/// Every figure by its name, in the paper's order, and what it has not last.
const SHEETS: [(&str, Make); 8] = [
    ("fig1", fig1::make),
    ("fig2", fig2::make),
    ("table3", table3::make),
    ("fig7", fig7::make),
    ("fig8", fig8::make),
    ("fig9", fig9::make),
    ("fig10", fig10::make),
    ("codecs", codecs::make),
];

/// The arguments.
struct Asked {
    names: Vec<String>,
    out: PathBuf,
    trials: u64,
    seed: u64,
    grid: Option<usize>,
}

fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() || args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return Ok(());
    }
    let asked = parse(&args)?;
    std::fs::create_dir_all(&asked.out)?;
    let lab = Lab::new(asked.trials, asked.seed, asked.grid);
    let mut text = String::new();
    for (name, make) in
        SHEETS.iter().filter(|(name, _)| asked.names.iter().any(|asked| asked == name || asked == "all"))
    {
        let mut sheet = make(&lab)?;
        let grid = asked.grid.map_or_else(String::new, |grid| format!(" --grid {grid}"));
        sheet.command = format!("{COMMAND} {name} --trials {} --seed {}{grid}", asked.trials, asked.seed);
        let printed = sheet.text();
        println!("{printed}");
        text += &printed;
        text.push('\n');
        sheet.write_figures(&asked.out)?;
    }
    let file = asked.out.join(format!("{}.txt", asked.names.join("-")));
    std::fs::write(&file, text)?;
    println!("text and figures are in {}", asked.out.display());
    Ok(())
}

fn parse(args: &[String]) -> Result<Asked, Failed> {
    let mut asked = Asked { names: Vec::new(), out: "paper-report".into(), trials: 100, seed: 1, grid: None };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg}: expected a value"));
        match arg.as_str() {
            "--out" => asked.out = value()?.into(),
            "--trials" => asked.trials = value()?.parse::<u64>().map_err(|error| format!("--trials: {error}"))?.max(2),
            "--seed" => asked.seed = value()?.parse().map_err(|error| format!("--seed: {error}"))?,
            "--grid" => asked.grid = Some(grid_points(value()?)?),
            name if name == "all" || SHEETS.iter().any(|(known, _)| *known == name) => {
                asked.names.push(name.to_owned())
            }
            other => return Err(format!("{other}: expected one of the names below\n\n{HELP}").into()),
        }
    }
    Ok(asked)
}

/// Returns the points of a grid that is fine enough for fields to be smooth on, and coarse enough
/// for its solves to end.
fn grid_points(text: &str) -> Result<usize, Failed> {
    match text.parse() {
        Ok(points @ 8..=256) => Ok(points),
        _ => Err(format!("--grid: expected 8 to 256 points, found {text}").into()),
    }
}
