//! Runs seeds: see the library.

use std::process::ExitCode;

use clap::Parser;

#[derive(Debug, Parser)]
#[command(name = "recoup-seed", about = "Runs of the library under a seed")]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value = "0")]
    from: u64,
    /// The number of seeds.
    #[arg(long, default_value = "1")]
    count: u64,
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut crashes = 0;
    for seed in arguments.from..arguments.from + arguments.count {
        let report = recoup_seed::run_seed(seed)?;
        crashes += report.crashes;
        if let Some((place, finding)) = report.finding {
            println!("seed {seed}: {}: {}\n    {place}", finding.invariant, finding.words);
        } else {
            println!("seed {seed}: {} lines, {} crashes, journals {:016x}", report.lines, report.crashes, report.digest);
        }
    }
    println!("{crashes} crashes");
    Ok(ExitCode::SUCCESS)
}
