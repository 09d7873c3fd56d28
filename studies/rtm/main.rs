//! Reverse time migration and full-waveform gradients: an adjoint program that keeps the states of
//! its forward pass in memory, on a [`recoup::tape::Tape`], or by Revolve, all compared in one run.
//!
//! `cargo run --release -p recoup-studies --example rtm -- --help`
//!
//! The acoustic wave equation, second order in time and eighth in space, in an absorbing layer;
//! `passes` states the equations, docs/rtm.md what comes out.

use std::error::Error;
use std::io::Write as _;

mod experiment;
mod grid;
mod measure;
mod medium;
mod model;
mod options;
mod output;
mod passes;
mod picture;
mod real;
mod report;
mod reverse;
mod states;
mod stencil;
mod survey;
mod usage;
mod wavefield;
mod ways;

use experiment::Experiment;
use options::{HELP, Options};

/// An error of any thread.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = Options::parse(&args)? else {
        println!("{HELP}");
        return Ok(());
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build()?;
    pool.install(|| run(&options))
}

fn run(options: &Options) -> Result<(), Failed> {
    let experiment = Experiment::new(options);
    let figures = measure::measure(&experiment, options)?;
    let facts = output::facts(&experiment, options);
    let mut text = if options.is_json {
        format!("{:#}\n", output::json(&experiment, options, &figures))
    } else {
        format!("{}\n\n{}\n\n{}\n", facts.join("\n"), output::table(&output::rows(&figures)), output::NOTES)
    };
    if let Some(folder) = &options.report {
        report::write(folder, &experiment, &facts, &figures)?;
        if !options.is_json {
            text += &format!("\nReport: {}\n", folder.join("report.md").display());
        }
    }
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
