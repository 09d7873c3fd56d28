//! The published evaluation of GPU Snapshot (Lee et al., ICS 2019, doi 10.1145/3330345.3330361),
//! reproduced: its system model by the model of `recoup model system`, and its single device by a
//! simulated monitor over the writes of real programs.
//!
//! `cargo run --release -p recoup-studies --example gpu_snapshot -- all`

use std::path::PathBuf;

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
use sheet::Sheet;

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

/// One figure or table.
type Make = fn(&Lab) -> Result<Sheet, Failed>;

/// Every figure by its name, in the order of the publication, and what it does not have.
const SHEETS: [(&str, Make); 9] = [
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

/// The arguments.
struct Asked {
    names: Vec<String>,
    out: PathBuf,
    trials: u32,
    seed: u64,
}

fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() || args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return Ok(());
    }
    let asked = parse(&args)?;
    std::fs::create_dir_all(&asked.out).map_err(|error| format!("{}: {error}", asked.out.display()))?;
    let lab = Lab::new(asked.trials, asked.seed);
    let is_asked = |name: &str| asked.names.iter().any(|asked| asked == name || asked == "all");
    let mut text = String::new();
    for (name, make) in SHEETS.iter().filter(|(name, _)| is_asked(name)) {
        let mut sheet = make(&lab)?;
        sheet.command = format!("{COMMAND} {name}");
        let printed = sheet.text();
        println!("{printed}");
        text += &printed;
        text.push('\n');
        sheet.write_figures(&asked.out)?;
    }
    let file = asked.out.join(format!("{}.txt", asked.names.join("-")));
    std::fs::write(&file, format!("{}\n", text.trim_end()))?;
    println!("text and figures are in {}", asked.out.display());
    Ok(())
}

fn parse(args: &[String]) -> Result<Asked, Failed> {
    let mut asked = Asked { names: Vec::new(), out: "gpu-snapshot-report".into(), trials: 8, seed: 1 };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg}: expected a value"));
        match arg.as_str() {
            "--out" => asked.out = value()?.into(),
            "--trials" => asked.trials = value()?.parse::<u32>().map_err(|error| format!("--trials: {error}"))?.max(2),
            "--seed" => asked.seed = value()?.parse().map_err(|error| format!("--seed: {error}"))?,
            name if name == "all" || SHEETS.iter().any(|(known, _)| *known == name) => {
                asked.names.push(name.to_owned())
            }
            other => return Err(format!("{other}: expected one of the names below\n\n{HELP}").into()),
        }
    }
    Ok(asked)
}
