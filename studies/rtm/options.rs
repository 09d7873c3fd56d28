//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use crate::Failed;
use crate::grid::Grid;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Reverse time migration: image and gradient of seismic shots by an exact adjoint.
Every way to keep the states of the forward pass is measured beside the others.

Usage: rtm [OPTIONS]

--extents NX,NZ or NX,NY,NZ  cells of a section or a volume [default: 161,101]
--spacing METRES   edge of a cell [default: 10]
--shots N          shots along x [default: 2]
--steps N          time steps [default: to the bottom and back]
                   rounded up to samples, two or more
--stride N         time steps between sampled states [default: 4]
--bounds E[,E...]  bounds of the lossy tapes, relative to the range of the pass;
                   the middle one also relative to the range of each state
                   [default: 1e-4,2e-5,4e-6]
--key-every K      lossy tapes code every K-th state alone, the others against
                   the one before [default: 1]
--threads N        threads of the wave kernel [default: all]
--codec-threads N  threads of the codec [default: 1]
--rounds N         rounds; figures are their medians [default: 1]
--json             print JSON in place of the table
--report DIR       write report.md and its pictures to DIR

Example: rtm --extents 96,96,96 --shots 2 --rounds 5 --report rtm-report";

/// Largest extent and counts that make sense on one machine.
const LIMIT: usize = 1_000_000;

/// The options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) grid: Grid,
    pub(crate) n_shots: usize,
    pub(crate) n_steps: Option<usize>,
    pub(crate) stride: usize,
    pub(crate) bounds: Vec<f64>,
    pub(crate) key_every: usize,
    pub(crate) threads: usize,
    pub(crate) codec_threads: usize,
    pub(crate) rounds: usize,
    pub(crate) is_json: bool,
    pub(crate) report: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            grid: Grid { extents: [161, 1, 101], spacing: 10.0 },
            n_shots: 2,
            n_steps: None,
            stride: 4,
            bounds: vec![1e-4, 2e-5, 4e-6],
            key_every: 1,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            codec_threads: 1,
            rounds: 1,
            is_json: false,
            report: None,
        }
    }
}

impl Options {
    /// Reads the arguments; `None` if help is asked for.
    ///
    /// # Errors
    /// The argument that makes no sense.
    pub(crate) fn parse(args: &[String]) -> Result<Option<Self>, Failed> {
        let mut options = Self::default();
        let mut rest = args.iter();
        while let Some(name) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{name}: expected a value"));
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--extents" => options.grid.extents = extents(value()?)?,
                "--spacing" => options.grid.spacing = positive(name, value()?)?,
                "--shots" => options.n_shots = count(name, value()?)?,
                "--steps" => options.n_steps = Some(count(name, value()?)?),
                "--stride" => options.stride = count(name, value()?)?,
                "--bounds" => options.bounds = list(value()?, |part| positive(name, part))?,
                "--key-every" => options.key_every = count(name, value()?)?,
                "--threads" => options.threads = count(name, value()?)?,
                "--codec-threads" => options.codec_threads = count(name, value()?)?,
                "--rounds" => options.rounds = count(name, value()?)?,
                "--json" => options.is_json = true,
                "--report" => options.report = Some(value()?.into()),
                other => return Err(format!("{other}: expected one of the options below\n\n{HELP}").into()),
            }
        }
        Ok(Some(options))
    }
}

fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, Failed>) -> Result<Vec<T>, Failed> {
    text.split(',').map(parse).collect()
}

fn number<T: FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Result<T, Failed> {
    text.parse().map_err(|error| format!("{name}: {text}: {error}").into())
}

fn count(name: &str, text: &str) -> Result<usize, Failed> {
    match number(name, text)? {
        count @ 1..=LIMIT => Ok(count),
        other => Err(format!("{name}: {other}, expected 1 to {LIMIT}").into()),
    }
}

fn positive(name: &str, text: &str) -> Result<f64, Failed> {
    let value: f64 = number(name, text)?;
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(format!("{name}: {text}, expected above 0").into()) }
}

fn extents(text: &str) -> Result<[usize; 3], Failed> {
    let extents = match *list(text, |part| count("--extents", part))?.as_slice() {
        [x, z] => [x, 1, z],
        [x, y, z] => [x, y, z],
        _ => return Err(format!("--extents: {text}, expected 2 or 3 numbers").into()),
    };
    let least = 16;
    match extents.into_iter().find(|&extent| extent != 1 && extent < least) {
        Some(extent) => Err(format!("--extents: {extent}, expected {least} or more").into()),
        None if extents[0] == 1 || extents[2] == 1 => Err("--extents: expected more than 1 along x and z".into()),
        None => Ok(extents),
    }
}
