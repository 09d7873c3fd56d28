//! Options that several commands share: the problem, the method, and the notation of values on the
//! command line.

pub(crate) mod help;
pub(crate) mod idle;
pub(crate) mod protection;
pub(crate) mod row_grid;
pub(crate) mod run;
pub(crate) mod tiers;

use std::ops::Deref;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{ArgGroup, Args, ValueEnum};
pub(crate) use recoup::model::units::{bytes, bytes_per_second, duration, duration_or_zero};
use recoup::solvers::{
    BasisStorage, HARVEST_MAX, METHODS, NamedMethod, Need, PointBlockJacobi, RightHandSide, Setting,
};

use self::row_grid::RowGrid;

/// Directions gmres-dr carries over by default.
const DEFAULT_HARVEST: usize = 8;

/// `A x = b`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("problem").args(["poisson3d", "matrix"]).required(true))]
pub(crate) struct ProblemArgs {
    /// 3D Poisson equation on N x N x N points.
    ///
    /// Interior points, 7-point stencil, Dirichlet boundary conditions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1625))]
    pub(crate) poisson3d: Option<u32>,

    /// Matrix Market file, plain or packed.
    ///
    /// Packed by gzip or zstd, or the archive (.tar.gz) that SuiteSparse delivers.
    #[arg(long, value_name = "FILE")]
    pub(crate) matrix: Option<PathBuf>,

    /// Extents of the grid that the rows of the matrix lie on, the direction whose index runs
    /// fastest first. Codecs then use neighbours in all directions; with several ranks, each has
    /// whole slices across the last one.
    #[arg(long, value_name = "NXxNYxNZ", conflicts_with = "poisson3d", help_heading = "Problem")]
    pub(crate) grid: Option<RowGrid>,

    /// File of the right-hand side [default: ones].
    ///
    /// In NumPy's format, Matrix Market's (array), with one number a line, or in HDF5 (dataset b,
    /// or the only one).
    #[arg(long, value_name = "FILE", conflicts_with = "rhs_kind")]
    pub(crate) rhs: Option<PathBuf>,

    /// Right-hand side: ones, random, or made from a smooth solution.
    #[arg(long, value_name = "ones|random|smooth", default_value = "ones", help_heading = "Problem")]
    pub(crate) rhs_kind: RightHandSide,

    /// Seed of a random right-hand side.
    #[arg(long, value_name = "S", help_heading = "Problem")]
    pub(crate) rhs_seed: Option<u64>,

    /// Storage of A: assembled rows, or matrix-free (3D Poisson only).
    #[arg(long, value_enum, default_value = "csr", help_heading = "Problem")]
    pub(crate) operator: OperatorKind,

    /// Threads of each rank, for the solver, and for the codecs while the solver waits [default:
    /// one per core].
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Threads, ranks, devices")]
    pub(crate) threads: Option<u16>,

    /// Solve on CUDA device N, with the residuals and the versions of the host bit for bit. Without
    /// N it is the first device, or with several ranks on a node one for each in turn. `recoup
    /// device` lists the devices.
    #[arg(long, value_name = "N|host", num_args = 0..=1, default_value = "host", default_missing_value = "cuda",
          help_heading = "Threads, ranks, devices")]
    pub(crate) device: DeviceChoice,

    /// Way in which a save takes vectors from the device: a copy of each within the device, or zone
    /// by zone where it has no room for one; or always zone by zone, through SIZE of the device's
    /// memory.
    #[arg(
        long,
        value_name = "copy|zones[:SIZE]",
        default_value = "copy",
        requires = "device",
        help_heading = "Threads, ranks, devices"
    )]
    pub(crate) device_staging: DeviceStaging,

    /// Distribute the rows over the ranks of an MPI job; RECOUP_MPI=PATH names its library.
    #[arg(long, help_heading = "Threads, ranks, devices")]
    pub(crate) mpi: bool,
}

impl ProblemArgs {
    /// Returns the grid that the rows lie on, if one is known.
    pub(crate) fn row_grid(&self) -> Option<RowGrid> {
        self.poisson3d.map(|n| RowGrid([n as usize; 3])).or(self.grid)
    }
}

/// Storage of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OperatorKind {
    /// Compressed rows.
    Csr,
    /// Matrix-free.
    Stencil,
}

/// Place where a solver computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    /// The processor.
    Host,
    /// A CUDA device: that of this number, or one by the place of this rank on its node.
    Cuda(Option<usize>),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "host" => Ok(Self::Host),
            "cuda" => Ok(Self::Cuda(None)),
            number => number.parse().map(|number| Self::Cuda(Some(number))).map_err(|_| {
                "expected the number of a CUDA device (see `recoup device`), cuda for any, or host".to_owned()
            }),
        }
    }
}

/// The way in which a save takes vectors from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceStaging {
    /// By copies within the device where it has room.
    Copy,
    /// Zone by zone, through this many bytes of its memory.
    Zones(Option<u64>),
}

impl FromStr for DeviceStaging {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "copy" => Ok(Self::Copy),
            None if text == "zones" => Ok(Self::Zones(None)),
            Some(("zones", size)) => bytes(size).map(|size| Self::Zones(Some(size))).map_err(|error| error.to_string()),
            _ => Err("expected copy, zones or zones:SIZE, such as zones:64M".to_owned()),
        }
    }
}

/// The iterative method and when it stops.
#[derive(Args, Clone, Debug)]
pub(crate) struct MethodArgs {
    /// Iterative method.
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) method: MethodKind,

    #[arg(long, value_name = "M", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=1000),
          help_heading = "Method",
          help = format!("Restart length of {}", methods_with(|method| method.takes(Setting::Restart))))]
    pub(crate) restart: u32,

    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(1..=HARVEST_MAX as i64),
          help_heading = "Method",
          help = format!("Directions {} carries over from each cycle to the next: those it is slowest in \
                          [default: {DEFAULT_HARVEST}]", methods_with(|method| method.takes(Setting::Harvest))))]
    pub(crate) harvest: Option<u8>,

    #[arg(long, value_enum, help_heading = "Method",
          help = format!("Storage of the basis vectors of {} [default: auto where doubles take 64 MB or more, on \
                          the host; else double]",
                         methods_with(|method| method.takes(Setting::Basis))))]
    pub(crate) basis: Option<BasisKind>,

    /// Preconditioner.
    #[arg(long, value_enum, default_value = "none", help_heading = "Method")]
    pub(crate) pc: PcKind,

    #[arg(long, value_enum, help_heading = "Method",
          help = format!("Preconditioner of each block of --pc bjacobi [default: icc for {}, ilu for the others]",
                         methods_with(|method| method.needs == Some(Need::Symmetry))))]
    pub(crate) sub_pc: Option<SubPcKind>,

    /// Row blocks of --pc bjacobi, over all ranks. More blocks cost iterations, and keep more
    /// threads busy where A is too wide for two to share a block. Numbers do not depend on
    /// --threads, nor on ranks that share the blocks evenly [default: 4; fewer below 16384 rows].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Method")]
    pub(crate) pc_blocks: Option<u32>,

    /// Rows of each block of --pc pbjacobi: the unknowns of a point.
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..=PointBlockJacobi::SIZE_MAX as i64),
          help_heading = "Method")]
    pub(crate) pc_block_size: Option<u32>,

    #[arg(long, value_enum, help_heading = "Method",
          help = format!("Side of the preconditioner, for {} [default: left]",
                         methods_with(|method| method.takes(Setting::Side))))]
    pub(crate) pc_side: Option<PcSide>,

    #[arg(long, value_name = "W", help_heading = "Method",
          help = format!("Damping or relaxation factor of {}, and of the SSOR preconditioner [default: 1]",
                         methods_with(|method| method.takes(Setting::Omega))))]
    pub(crate) omega: Option<f64>,

    /// Tolerance on ||b - A x|| / ||b||.
    ///
    /// The true relative residual: it is computed from x.
    #[arg(long, value_name = "E", default_value = "1e-6", value_parser = positive)]
    pub(crate) rtol: f64,

    /// Divergence limit: the solve ends where its residual norm reaches D times ||b||, or the
    /// initial residual's norm if that is larger; inf for no limit.
    #[arg(long, value_name = "D", default_value = "1e5", value_parser = above_one, help_heading = "Method")]
    pub(crate) dtol: f64,

    /// Stop after this many iterations.
    #[arg(long, value_name = "K", default_value = "200000", help_heading = "Method")]
    pub(crate) max_iterations: u64,
}

impl MethodArgs {
    /// Returns the number of directions gmres-dr carries over.
    pub(crate) fn harvest(&self) -> usize {
        self.harvest.map_or(DEFAULT_HARVEST, usize::from)
    }
}

/// Storage of a basis by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BasisKind {
    /// All digits, as computed
    Double,
    /// Half the bytes in memory and in versions of mid-cycle; on the host
    Float,
    /// Vector by vector as many bits, 64, 32 or 16, as the last cycle needed; on the host
    Auto,
}

impl From<BasisKind> for BasisStorage {
    fn from(kind: BasisKind) -> Self {
        match kind {
            BasisKind::Double => Self::Double,
            BasisKind::Float => Self::Float,
            BasisKind::Auto => Self::Auto,
        }
    }
}

/// A method by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MethodKind(&'static NamedMethod);

impl ValueEnum for MethodKind {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<MethodKind>> = LazyLock::new(|| METHODS.iter().map(MethodKind).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.summary))
    }
}

impl Deref for MethodKind {
    type Target = NamedMethod;

    fn deref(&self) -> &NamedMethod {
        self.0
    }
}

/// Lists the names of the chosen methods as a sentence does.
pub(crate) fn methods_with(is_chosen: impl Fn(&NamedMethod) -> bool) -> String {
    listed(METHODS.iter().filter(|method| is_chosen(method)).map(|method| method.name).collect(), "and")
}

/// Lists words as a sentence does, with `last` before the last one.
pub(crate) fn listed(words: Vec<&str>, last: &str) -> String {
    match words.split_last() {
        Some((only, [])) => (*only).to_owned(),
        Some((end, others)) => format!("{} {last} {end}", others.join(", ")),
        None => String::new(),
    }
}

/// Lists the values that methods have, each with the names of its methods; the most frequent one is
/// that of the others.
pub(crate) fn by_method(value: impl Fn(&NamedMethod) -> String) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for value in METHODS.iter().map(&value) {
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => groups.push((value, 1)),
        }
    }
    // The first of several that are equally frequent.
    let most = groups.iter().rev().max_by_key(|(_, count)| *count);
    let rest = most.map(|(value, _)| value.clone()).unwrap_or_default();
    let named = groups.iter().filter(|(other, _)| *other != rest);
    let named = named.map(|(known, _)| format!("{known} for {}", methods_with(|method| value(method) == *known)));
    let others = if groups.len() > 1 { format!("{rest} for the others") } else { rest.clone() };
    named.chain([others]).collect::<Vec<_>>().join(", ")
}

/// Preconditioners by their names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PcKind {
    /// No preconditioner.
    None,
    /// The diagonal.
    Jacobi,
    /// Blocks of many rows, each with --sub-pc: the threads share them.
    Bjacobi,
    /// Dense blocks of --pc-block-size rows, for several unknowns a point.
    Pbjacobi,
    /// A symmetric relaxation sweep.
    Ssor,
    /// Incomplete LU without fill, of all rows of a rank: threads share them if A is narrow.
    Ilu0,
    /// Incomplete Cholesky without fill, of all rows of a rank: threads share them if A is narrow.
    Ic0,
    /// Algebraic multigrid over all ranks, one V-cycle of hypre's BoomerAMG, which is loaded: for
    /// elliptic problems. One thread a rank.
    Amg,
}

/// Preconditioners of a block, by their names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SubPcKind {
    /// Incomplete Cholesky without fill.
    Icc,
    /// Incomplete LU without fill.
    Ilu,
    /// A symmetric relaxation sweep.
    Ssor,
}

/// Side of A on which the preconditioner is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PcSide {
    /// `M^-1 A x = M^-1 b`.
    Left,
    /// `A M^-1 u = b`.
    Right,
}

/// Returns the name of an enum value on the command line.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}

/// Reads a finite number above zero.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|v| v.is_finite() && *v > 0.0);
    value.ok_or_else(|| "expected a finite number above 0".to_owned())
}

/// Reads a number above 1, infinity included.
pub(crate) fn above_one(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|v| *v > 1.0);
    value.ok_or_else(|| "expected a number above 1, or inf".to_owned())
}

/// Silent errors that `--failures` takes, too.
pub(crate) const FLIPS: &str = "Silent errors: flip:IT or flip:IT:VARIABLE, several separated by commas (a bit of x, or \
                                of the vector named), flips (any bit, at exponential times)";

/// Source of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailureChoice {
    /// None.
    None,
    /// State lost inside the process at exponential times.
    Inject,
    /// The solver runs as a child process and gets SIGKILL at exponential times.
    Kill,
    /// The same, and the memory of its node is lost.
    KillNode,
    /// State lost after these iterations.
    At(Vec<u64>),
    /// Ranks of an MPI job get SIGKILL at exponential times, and the others continue.
    KillRank,
    /// A bit flip after each of these iterations, in the vector named or in the iterate.
    FlipAt(Vec<(u64, Option<String>)>),
    /// Flips of any bit of any vector at exponential times.
    Flips,
}

impl FromStr for FailureChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => return Ok(Self::None),
            "inject" => return Ok(Self::Inject),
            "kill" | "kill:job" => return Ok(Self::Kill),
            "kill:node" => return Ok(Self::KillNode),
            "flips" => return Ok(Self::Flips),
            "kill:rank" => return Ok(Self::KillRank),
            _ => {}
        }
        if let Some(list) = text.strip_prefix("flip:") {
            let flips: Option<Vec<_>> = list.split(',').map(flip).collect();
            let refused = "expected flips after iterations above 0, as in flip:40:x,90:p";
            return flips.map(Self::FlipAt).ok_or_else(|| refused.to_owned());
        }
        let expected =
            "expected none, inject, kill, kill:rank, kill:node, at:IT[,IT...], flip:IT[:VARIABLE][,...] or flips";
        let list = text.strip_prefix("at:").ok_or(expected)?;
        let iterations: Option<Vec<u64>> = list.split(',').map(|it| it.parse().ok().filter(|&it| it > 0)).collect();
        iterations.map(Self::At).ok_or_else(|| "expected iterations above 0, as in at:60,140".to_owned())
    }
}

/// Reads `IT` or `IT:VARIABLE`.
fn flip(text: &str) -> Option<(u64, Option<String>)> {
    let (iteration, variable) = match text.split_once(':') {
        Some((_, "")) => return None,
        Some((iteration, variable)) => (iteration, Some(variable.to_owned())),
        None => (text, None),
    };
    iteration.parse().ok().filter(|&it| it > 0).map(|it| (it, variable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_divergence_limit_is_above_one() {
        assert_eq!([above_one("1e4"), above_one("inf")], [Ok(1e4), Ok(f64::INFINITY)]);
        for text in ["1", "0.5", "-2", "nan", "far"] {
            assert!(above_one(text).is_err(), "{text}");
        }
    }

    #[test]
    fn failures_are_read_by_name() {
        assert_eq!("at:60,140".parse(), Ok(FailureChoice::At(vec![60, 140])));
        assert_eq!("kill".parse(), Ok(FailureChoice::Kill));
        assert_eq!("kill:job".parse(), Ok(FailureChoice::Kill));
        assert_eq!("kill:node".parse(), Ok(FailureChoice::KillNode));
        assert_eq!("kill:rank".parse(), Ok(FailureChoice::KillRank));
        let flips = vec![(40, Some("x".to_owned())), (90, None)];
        assert_eq!("flip:40:x,90".parse(), Ok(FailureChoice::FlipAt(flips)));
        assert_eq!("flips".parse(), Ok(FailureChoice::Flips));
        for text in ["at:", "at:0", "at:1,x", "flip:", "flip:0:x", "flip:3:", "flip:x", "kill:all", "often"] {
            assert!(text.parse::<FailureChoice>().is_err(), "{text}");
        }
    }
}
