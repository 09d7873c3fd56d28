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
use sheet::{Asked, NamedSheet, number};

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

/// Every figure by its name, in the order of the publication.
const SHEETS: [NamedSheet<Lab>; 8] = [
    ("table2", table2::make),
    ("fig7", fig7::make),
    ("fig8", fig8::make),
    ("fig9", fig9::make),
    ("fig10", fig10::make),
    ("fig11", fig11::make),
    ("fig12", fig12::make),
    ("table3", table3::make),
];

fn main() -> Result<(), Failed> {
    let mut settings = Settings::default();
    let asked = sheet::parse(&SHEETS, HELP, "nv-checkpoint-report", |option, value| {
        match option {
            "--runs" => settings.runs = number::<u32>(option, value)?.max(1),
            "--rate" => settings.rate = rate(value)?,
            "--size" => settings.sizes = Sizes::named(value).ok_or("--size: expected full or small")?,
            "--memory" => settings.memory = value.into(),
            "--disk" => settings.disk = value.into(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(asked) = asked else { return Ok(()) };
    report(&asked, &settings)?;
    Ok(())
}

fn report(asked: &Asked, settings: &Settings) -> Result<String, Failed> {
    let lab = Lab::new(settings.clone());
    sheet::report(asked, &SHEETS, &lab, |name| format!("{COMMAND} {name}{}", lab.options()))
}

/// Megabytes per second, as bytes.
fn rate(text: &str) -> Result<f64, Failed> {
    let megabytes: f64 = number("--rate", text)?;
    let is_rate = megabytes.is_finite() && megabytes > 0.0;
    Some(megabytes * 1e6).filter(|_| is_rate).ok_or_else(|| "--rate: expected a number above 0".into())
}
