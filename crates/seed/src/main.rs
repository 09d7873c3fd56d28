//! Runs seeds: see the library.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use clap::Parser;
use recoup::SystemClock;
use recoup::core::Clock as _;
use recoup_seed::{CRASHES, LossKind, Mistake, SeedReport, run_seed};

/// Seeds between two notes of a tally, at most.
const STRETCH: u64 = 5_000;

#[derive(Clone, Debug, Parser)]
#[command(name = "recoup-seed", about = "Runs of the library under a seed")]
struct SeedArguments {
    /// The first seed.
    #[arg(long, default_value = "0")]
    from: u64,
    /// The number of seeds.
    #[arg(long, default_value = "1")]
    count: u64,
    /// Processes that share the seeds.
    #[arg(long, default_value = "1")]
    jobs: u64,
    /// Print each seed, with a digest of its journals.
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
    /// Let the world make a mistake that must be found.
    #[arg(long, value_enum)]
    mistake: Option<Mistake>,
    /// In place of a count: run until all calls with this tally have seen this number of crashes.
    #[arg(long, requires = "tally")]
    crashes: Option<u64>,
    /// The file with the next seed and the sums so far, which begins at the first seed.
    #[arg(long)]
    tally: Option<PathBuf>,
}

/// Sums over the seeds of a process.
#[derive(Default)]
struct Totals {
    crashes: u64,
    images: u64,
    findings: u64,
    places: BTreeMap<(LossKind, String), u64>,
}

impl Totals {
    fn add(&mut self, report: SeedReport) {
        self.crashes += report.crashes;
        self.images += report.images;
        self.findings += u64::from(report.finding.is_some());
        for (place, count) in report.places {
            *self.places.entry(place).or_default() += count;
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = SeedArguments::parse();
    let clock = SystemClock::new();
    let totals = match (&arguments.tally, arguments.crashes) {
        (Some(path), Some(crashes)) => continue_tally(&arguments, path, crashes)?,
        _ if arguments.jobs > 1 => share(&arguments)?,
        _ => run(&arguments)?,
    };
    let hours = clock.now().as_secs_f64() / 3600.0;
    tell(&format!("{} crashes, {} findings, {} images", totals.crashes, totals.findings, totals.images));
    if arguments.jobs > 1 && arguments.tally.is_none() {
        tell(&format!("{:.0} crashes an hour", totals.crashes as f64 / hours));
    }
    Ok(if totals.findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn tell(line: &str) {
    println!("{line}");
}

fn run(arguments: &SeedArguments) -> anyhow::Result<Totals> {
    let mut totals = Totals::default();
    for seed in arguments.from..arguments.from + arguments.count {
        let report = run_seed(seed, arguments.mistake, arguments.story)?;
        if let Some(finding) = &report.finding {
            tell(&format!("seed {seed}: {}: {}\n{}", finding.invariant, finding.words, report.story));
        } else if arguments.each {
            tell(&format!("seed {seed}: {} crashes, journals {:016x}", report.crashes, report.digest));
        }
        totals.add(report);
        if arguments.first && totals.findings > 0 {
            break;
        }
    }
    if arguments.places {
        totals.places.iter().for_each(|((loss, place), count)| tell(&format!("{count:6} {loss}, after: {place}")));
    }
    Ok(totals)
}

/// Runs seeds from where a tally ends until it has this many crashes. A stretch with a finding is
/// not added, so that the next call runs it again.
fn continue_tally(arguments: &SeedArguments, path: &Path, crashes: u64) -> anyhow::Result<Totals> {
    let text = fs::read_to_string(path).unwrap_or_else(|_| format!("seed {}: 0 crashes, 0 images", arguments.from));
    let mut numbers = text.split([' ', ':']).filter_map(|word| word.parse::<u64>().ok());
    let mut number = || numbers.next().with_context(|| format!("{}: expected a tally, found {text:?}", path.display()));
    let mut from = number()?;
    let mut totals = Totals { crashes: number()?, images: number()?, ..Totals::default() };
    while totals.crashes < crashes {
        let count = (crashes - totals.crashes).div_ceil(CRASHES).min(STRETCH);
        let stretch = share(&SeedArguments { from, count, places: false, ..arguments.clone() })?;
        if stretch.findings > 0 {
            return Ok(stretch);
        }
        from += count;
        totals.crashes += stretch.crashes;
        totals.images += stretch.images;
        let line = format!("seed {from}: {} crashes, {} images", totals.crashes, totals.images);
        fs::write(path, &line)?;
        tell(&line);
    }
    Ok(totals)
}

/// Shares the seeds among processes: statics of the library are one world's at a time.
fn share(arguments: &SeedArguments) -> anyhow::Result<Totals> {
    let each = arguments.count.div_ceil(arguments.jobs);
    let mut children = Vec::new();
    for job in 0..arguments.jobs {
        let count = each.min(arguments.count.saturating_sub(job * each));
        let mut child = Command::new(std::env::current_exe()?);
        child.arg(format!("--from={}", arguments.from + job * each)).arg(format!("--count={count}"));
        let flags = [(arguments.story, "--story"), (arguments.first, "--first"), (arguments.places, "--places")];
        child.args(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
        children.push(child.stdout(Stdio::piped()).spawn()?);
    }
    let mut totals = Totals::default();
    for child in children {
        let output = child.wait_with_output()?;
        let text = String::from_utf8(output.stdout)?;
        let (lines, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
        if !lines.is_empty() {
            tell(lines);
        }
        let mut numbers = last.split(' ').filter_map(|word| word.parse::<u64>().ok());
        for total in [&mut totals.crashes, &mut totals.findings, &mut totals.images] {
            *total += numbers.next().context("a process came to no end")?;
        }
    }
    Ok(totals)
}
