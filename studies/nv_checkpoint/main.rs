//! The published evaluation of NV-Checkpoint (Coy et al., ICS 2020, doi 10.1145/3392717.3392755),
//! reproduced with versioned memory: four programs, plain and with versions, and the places where
//! their state may be kept.
//!
//! `cargo run --release -p recoup-studies --example nv_checkpoint -- all`
//!
//! All runs are real, of one process. The parallel file system is a file on the disk whose bytes
//! pass at a given rate. Numbers for many processes are computed from these runs, and are said to
//! be.
#![expect(clippy::duplicate_mod, reason = "each program brings the command line that all of them share")]

use std::path::PathBuf;

#[path = "../../examples/versions/changes.rs"]
mod changes;
#[cfg(test)]
mod checks;
mod copies;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/crack.rs"]
mod crack;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/crack_plain.rs"]
mod crack_plain;
#[path = "../paper/draw.rs"]
mod draw;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/droplet.rs"]
mod droplet;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/droplet_plain.rs"]
mod droplet_plain;
mod experiment;
mod fig10;
mod fig11;
mod fig12;
mod fig7;
mod fig8;
mod fig9;
mod keeper;
mod lab;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/lu.rs"]
mod lu;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/lu_plain.rs"]
mod lu_plain;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/pagerank.rs"]
mod pagerank;
#[expect(dead_code, reason = "its command line, and what it says at the end")]
#[path = "../../examples/versions/pagerank_plain.rs"]
mod pagerank_plain;
mod programs;
mod published;
mod samples;
mod settings;
mod shared;
#[path = "../paper/sheet.rs"]
mod sheet;
mod table2;
mod table3;
mod unloaded;

use lab::Lab;
use programs::Sizes;
use settings::Settings;
use sheet::Sheet;

/// An error of any thread.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The text printed without arguments.
const HELP: &str = "\
The published evaluation of NV-Checkpoint (doi 10.1145/3392717.3392755), reproduced.

Usage: nv_checkpoint WHAT... [--out DIR] [--runs N] [--rate MB/s] [--size full|small] [--memory DIR] [--disk DIR]

WHAT  table2  the programs and their sizes
      fig7    time of a run, by how its state is kept; computed for many processes
      fig8    time of a run by the size of the problem
      fig9    error of the predicted cost of a commit
      fig10   time of a run with a version at each step, and with a policy
      fig11   time of a restart
      fig12   versions next to bare copies of their bytes
      table3  lines that versions change
      all     all of them, in minutes

--out     where SVG and PNG files and the text go [default: nv-checkpoint-report]
--runs    runs of each program, of which the fastest counts [default: 5]
--rate    megabytes per second of the parallel file system [default: 50]
--size    size of the problems; small ones show the form alone [default: full]
--memory  folder of a file system in memory [default: /dev/shm]
--disk    folder on a disk [default: that of temporary files]";

/// The command that runs this program.
const COMMAND: &str = "cargo run --release -p recoup-studies --example nv_checkpoint --";

/// One figure or table.
type Make = fn(&Lab) -> Result<Sheet, Failed>;

/// Every figure by its name, in the order of the publication.
const SHEETS: [(&str, Make); 8] = [
    ("table2", table2::make),
    ("fig7", fig7::make),
    ("fig8", fig8::make),
    ("fig9", fig9::make),
    ("fig10", fig10::make),
    ("fig11", fig11::make),
    ("fig12", fig12::make),
    ("table3", table3::make),
];

/// The arguments.
struct Asked {
    names: Vec<String>,
    out: PathBuf,
    settings: Settings,
}

fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() || args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{HELP}");
        return Ok(());
    }
    let asked = parse(&args)?;
    report(&asked)?;
    println!("text and figures are in {}", asked.out.display());
    Ok(())
}

/// Prints the figures that were asked for, and writes them to their folder. Returns the text.
fn report(asked: &Asked) -> Result<String, Failed> {
    std::fs::create_dir_all(&asked.out).map_err(|error| format!("{}: {error}", asked.out.display()))?;
    let lab = Lab::new(asked.settings.clone());
    let is_asked = |name: &str| asked.names.iter().any(|asked| asked == name || asked == "all");
    let mut text = String::new();
    for (name, make) in SHEETS.iter().filter(|(name, _)| is_asked(name)) {
        let mut sheet = make(&lab)?;
        sheet.command = format!("{COMMAND} {name}{}", lab.options());
        let printed = sheet.text();
        println!("{printed}");
        text += &printed;
        text.push('\n');
        sheet.write_figures(&asked.out)?;
    }
    let text = format!("{}\n", text.trim_end());
    std::fs::write(asked.out.join(format!("{}.txt", asked.names.join("-"))), &text)?;
    Ok(text)
}

fn parse(args: &[String]) -> Result<Asked, Failed> {
    let mut asked = Asked { names: Vec::new(), out: "nv-checkpoint-report".into(), settings: Settings::default() };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{arg}: expected a value"));
        let settings = &mut asked.settings;
        match arg.as_str() {
            "--out" => asked.out = value()?.into(),
            "--runs" => settings.runs = value()?.parse::<u32>().map_err(|error| format!("--runs: {error}"))?.max(1),
            "--rate" => settings.rate = rate(value()?)?,
            "--size" => settings.sizes = Sizes::named(value()?).ok_or("--size: expected full or small")?,
            "--memory" => settings.memory = value()?.into(),
            "--disk" => settings.disk = value()?.into(),
            name if name == "all" || SHEETS.iter().any(|(known, _)| *known == name) => {
                asked.names.push(name.to_owned());
            }
            other => return Err(format!("{other}: expected one of the names below\n\n{HELP}").into()),
        }
    }
    Ok(asked)
}

/// Megabytes per second, as bytes.
fn rate(text: &str) -> Result<f64, Failed> {
    let megabytes: f64 = text.parse().map_err(|error| format!("--rate: {error}"))?;
    let is_rate = megabytes.is_finite() && megabytes > 0.0;
    Some(megabytes * 1e6).filter(|_| is_rate).ok_or_else(|| "--rate: expected a number above 0".into())
}
