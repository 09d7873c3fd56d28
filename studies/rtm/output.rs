//! The figures as a table, and as JSON.

use serde_json::{Value, json};

use crate::experiment::Experiment;
use crate::measure::{Spread, WayFigures};
use crate::options::Options;
use crate::ways::Way;

const MEBIBYTE: f64 = 1048576.0;

/// Head of the table.
const HEAD: [&str; 10] =
    ["way", "states MiB", "factor", "seconds", "ratio", "CPU s", "forward steps", "image", "deep", "gradient"];

/// Sentences above the table.
pub(crate) fn facts(experiment: &Experiment, options: &Options) -> Vec<String> {
    let extents: Vec<String> =
        experiment.grid.extents.iter().filter(|&&extent| extent > 1).map(usize::to_string).collect();
    let n_states = experiment.n_states(options);
    vec![
        format!(
            "{} cells of {} m, shots: {}, {} steps of {:.3} ms, source {:.1} Hz, single precision.",
            extents.join(" x "),
            experiment.grid.spacing,
            experiment.shots.len(),
            experiment.n_steps,
            experiment.time_step * 1e3,
            experiment.peak_hertz,
        ),
        format!(
            "One state in {} is sampled: {n_states} states of {:.2} MiB for each shot.",
            options.stride,
            experiment.field_bytes() as f64 / MEBIBYTE
        ),
        format!(
            "Threads for waves: {}, for the codec: {}. Rounds, whose medians are given: {}.",
            options.threads, options.codec_threads, options.rounds
        ),
    ]
}

/// Head and rows of the table.
pub(crate) fn rows(figures: &[WayFigures]) -> Vec<Vec<String>> {
    let least_steps = figures[0].forward_steps;
    let raw_bytes = figures[0].state_bytes_max as f64;
    let row = |of_way: &WayFigures| {
        let error = |value: f64| if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}") };
        vec![
            of_way.way.name(),
            format!("{:.1}", of_way.state_bytes_max as f64 / MEBIBYTE),
            format!("{:.2}", raw_bytes / of_way.state_bytes_max as f64),
            format!("{:.2}", of_way.seconds.median),
            format!("{:.2}", of_way.time_ratio.median),
            format!("{:.2}", of_way.processor_seconds),
            format!("{:.2}", of_way.forward_steps as f64 / least_steps as f64),
            error(of_way.errors.image),
            error(of_way.errors.image_deep),
            error(of_way.errors.gradient),
        ]
    };
    std::iter::once(HEAD.map(str::to_owned).to_vec()).chain(figures.iter().map(row)).collect()
}

/// The table for a terminal.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let cell = |column: usize, text: &str| match column {
        0 => format!("{text:<width$}", width = widths[0]),
        _ => format!("{text:>width$}", width = widths[column]),
    };
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().enumerate().map(|pair| cell(pair.0, pair.1)).collect();
        cells.join("  ")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Notes below the table.
pub(crate) const NOTES: &str = "\
states: most bytes of forward states in memory at a time, with those on their way
to and from the tape. factor: all in memory over it. ratio: time over that of all
in memory in the same round. forward steps: those taken, over those of one pass.
image, gradient: relative 2-norm of the difference from all in memory; deep: the
image below half of the depth.";

/// The figures as JSON.
pub(crate) fn json(experiment: &Experiment, options: &Options, figures: &[WayFigures]) -> Value {
    let spread = |spread: Spread| json!({"median": spread.median, "least": spread.least, "greatest": spread.greatest});
    let of_way = |of_way: &WayFigures| {
        let tape = match of_way.way {
            Way::Tape { host_bytes, ratio, tape, .. } => json!({
                "host_bytes": host_bytes,
                "codec_ratio": ratio,
                "key_every": tape.key_every,
                "bound": tape.bound.map(|bound| bound.to_string()),
            }),
            Way::Memory | Way::Revolve { .. } => Value::Null,
        };
        json!({
            "way": of_way.way.name(),
            "tape": tape,
            "state_bytes_max": of_way.state_bytes_max,
            "factor": figures[0].state_bytes_max as f64 / of_way.state_bytes_max as f64,
            "resident_bytes": of_way.resident_bytes,
            "seconds": spread(of_way.seconds),
            "time_ratio": spread(of_way.time_ratio),
            "processor_seconds": of_way.processor_seconds,
            "forward_steps": of_way.forward_steps,
            "misfit": of_way.stack.misfit,
            "image_error": of_way.errors.image,
            "image_error_deep": of_way.errors.image_deep,
            "gradient_error": of_way.errors.gradient,
        })
    };
    json!({
        "extents": experiment.grid.extents,
        "spacing_m": experiment.grid.spacing,
        "shots": experiment.shots.len(),
        "steps": experiment.n_steps,
        "time_step_s": experiment.time_step,
        "source_hz": experiment.peak_hertz,
        "stride": options.stride,
        "states": experiment.n_states(options),
        "state_bytes": experiment.field_bytes(),
        "threads": options.threads,
        "codec_threads": options.codec_threads,
        "rounds": options.rounds,
        "ways": figures.iter().map(of_way).collect::<Vec<_>>(),
    })
}
