//! Facts of a comparison for the head of its report: title, problem, machine, command line.

use crate::inject::virtual_time::MachineRates;
use crate::options::ProblemArgs;
use crate::options::protection::ProtectionArgs;
use crate::output::{bytes, seconds};
use crate::printable::shell_word;
use crate::report::Fact;
use crate::solved::SolveReport;

/// Returns the headline.
pub(crate) fn problem_title(problem: &ProblemArgs, method: &str) -> String {
    let what = match (&problem.poisson3d, &problem.matrix) {
        (Some(n), _) => format!("3D Poisson {n}^3"),
        (None, Some(path)) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.trim_end_matches(".gz").trim_end_matches(".mtx").to_owned()
        }
        (None, None) => String::new(),
    };
    format!("{method}, {what}")
}

/// Lists the facts of the solve as it was measured, and as it takes on the runs' machine.
pub(crate) fn of(
    protection: &ProtectionArgs,
    measured: &SolveReport,
    baseline: &SolveReport,
    rates: Option<MachineRates>,
) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("unknowns", measured.n.to_string()),
        Fact::new("nonzeros", measured.nnz.to_string()),
        Fact::new("preconditioner", measured.pc.clone()),
        Fact::new("tolerance", format!("{:e}", measured.rtol))
            .meaning("on the true relative residual ||b - A x|| / ||b||"),
        Fact::new(
            "undisturbed solve",
            format!("{} iterations, {}", baseline.iterations, seconds(baseline.seconds_solve)),
        )
        .meaning("what every overhead is measured against"),
        Fact::new("error bound of lossy versions", protection.bound.to_string()),
        Fact::new("checkpoint interval", protection.interval.to_string())
            .meaning("auto: the one the model finds best for the costs measured so far"),
    ];
    if let Some(mtti) = protection.mtti_seconds() {
        facts.push(
            Fact::new("mean time to interrupt", seconds(mtti))
                .meaning("failures come at random, one per MTTI on average"),
        );
    }
    match rates {
        Some(rates) => facts.extend(virtual_facts(&rates, measured)),
        None => facts.push(Fact::new("time", "real").meaning("measured on this machine, noise included")),
    }
    facts
}

/// Explains virtual time and the source of its rates.
fn virtual_facts(rates: &MachineRates, measured: &SolveReport) -> [Fact; 3] {
    let vector_bytes = 8.0 * measured.n as f64;
    let write = seconds(vector_bytes / rates.store_bytes_per_second);
    [
        Fact::new("time", "virtual").meaning(
            "the iterations are computed, but the clock is charged declared rates, so that a small problem shows what a \
             large one costs; with --t-iter and --codec-rate a seed repeats exactly",
        ),
        Fact::new("an iteration takes", seconds(rates.iteration_seconds))
            .meaning(format!("measured here: {}", seconds(measured.seconds_per_iteration))),
        Fact::new("storage bandwidth", format!("{}/s", bytes(rates.store_bytes_per_second)))
            .meaning(format!("slow for a small problem: its vector of {} takes {write} to write", bytes(vector_bytes))),
    ]
}

/// The command line, as it was given.
pub(crate) fn command_line() -> String {
    let arguments = std::env::args().skip(1).map(|argument| shell_word(&argument));
    std::iter::once("recoup".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}
