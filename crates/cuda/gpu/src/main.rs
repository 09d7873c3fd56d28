//! The figures of a machine with a CUDA device: constants of its memory and buses, kernels of the
//! codec, solvers, checkpoints.
//!
//! `cargo xtask gpu` builds and starts this program. It is no part of a release.
//!
//! Promises: figures are medians of repetitions in turns, the first one left out; bandwidths are
//! compared with a triad of the same turn; on the double of the driver everything runs, at the
//! smallest size, and no figure is printed.

mod checkpoint;
mod codec;
mod constants;
mod figure;
mod kernels;
mod measured;
mod options;
mod report;
mod solvers;
mod stopwatch;
mod triad;
mod waves;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use recoup::device::DeviceError;

use self::figure::TimedFigure;
use self::measured::MeasuredDevice;
use self::options::{GpuArguments, GpuTask};
use self::report::GpuReport;

/// The exit code of `recoup` for a part that is not available on this machine.
const NOT_AVAILABLE: u8 = 5;

fn main() -> ExitCode {
    let done = match GpuArguments::parse().task {
        GpuTask::Measure { out, device, quick } => measure(&out, device, quick),
        GpuTask::Kernels { out, architecture, sources } => kernels::compile_all(&out, &architecture, &sources),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("error: {error:#}");
    match error.downcast_ref() {
        Some(DeviceError::NotAvailable { .. }) => {
            eprintln!("The figures need an NVIDIA GPU, and its driver for CUDA 12.2 or newer.");
            ExitCode::from(NOT_AVAILABLE)
        }
        _ => ExitCode::FAILURE,
    }
}

/// The sections of the report, in its order.
const SECTIONS: [(&str, SectionTask); 4] = [
    ("constants", constants::figures),
    ("codec", codec::figures),
    ("solvers", solvers::figures),
    ("checkpoint", checkpoint::figures),
];

type SectionTask = fn(&mut MeasuredDevice) -> Result<Vec<TimedFigure>>;

/// Measures everything, and writes the report to the folder `out` after each section. A section
/// that fails does not keep the others from being measured.
fn measure(out: &Path, ordinal: usize, quick: bool) -> Result<()> {
    let mut measured = MeasuredDevice::open(ordinal, quick)?;
    let mut report = GpuReport::new(&measured)?;
    let mut failed = Vec::new();
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    for (name, figures) in SECTIONS {
        eprintln!("{name}");
        match figures(&mut measured) {
            Ok(figures) => report.add(name, figures),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
        for (file, text) in [("gpu.json", report.json()?), ("gpu.md", report.markdown())] {
            let path = out.join(file);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    print!("{}", report.markdown());
    ensure!(failed.is_empty(), "not measured: {}", failed.join("; "));
    Ok(())
}
