//! Runs seeds: see the library.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Parser;
use recoup::SystemClock;
use recoup::core::Clock as _;

#[derive(Debug, Parser)]
#[command(name = "recoup-seed", about = "Runs of the library under a seed")]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value = "0")]
    from: u64,
    /// The number of seeds.
    #[arg(long, default_value = "1")]
    count: u64,
    /// Print each seed.
    #[arg(long)]
    each: bool,
    /// Shorten what is found, and tell it.
    #[arg(long)]
    story: bool,
    /// End with the first finding.
    #[arg(long)]
    first: bool,
    /// Print how often each loss met each place.
    #[arg(long)]
    places: bool,
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let clock = SystemClock::new();
    let mut places = BTreeMap::<_, u64>::new();
    let (mut crashes, mut findings) = (0, 0_u64);
    for seed in arguments.from..arguments.from + arguments.count {
        let report = recoup_seed::run_seed(seed, arguments.story)?;
        crashes += report.crashes;
        for (place, count) in report.places {
            *places.entry(place).or_default() += count;
        }
        if let Some(finding) = report.finding {
            findings += 1;
            println!("seed {seed}: {}: {}\n{}", finding.invariant, finding.words, report.story);
            if arguments.first {
                break;
            }
        } else if arguments.each {
            println!(
                "seed {seed}: {} lines, {} crashes, journals {:016x}",
                report.lines, report.crashes, report.digest
            );
        }
    }
    if arguments.places {
        places.iter().for_each(|((loss, place), count)| println!("{count:6} {loss}, after: {place}"));
    }
    let hours = clock.now().as_secs_f64() / 3600.0;
    println!("{crashes} crashes, {findings} findings, {:.0} crashes an hour", crashes as f64 / hours);
    Ok(if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
