//! The versions that are frozen: small, and together with something of every codec, element type
//! and kind of bound.

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::Arc;

use recoup::comm::Threads;
use recoup::core::{
    Bound, BoundRule, CodecId, Comm, DeviceSnapshot, Distribution, Mark, Plan, Registered, Role, Scheme, Values,
    ValuesMut, Variable, VariableMut, Zones,
};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{Reference, Variables};
use recoup_testkit::progress;

use crate::support::{Problem, fixed, plan};

/// The newest version in every frozen directory.
pub(crate) const VERSION: u64 = 5;
/// Versions of a frozen chain.
const CHAIN: u64 = 3;
/// Error bound of the lossy cases.
const BOUND: f64 = 1e-6;

/// What saves a case's versions below a directory.
type Save = fn(&Path, Plan);

/// Name, plan and maker of every case.
pub(crate) fn cases() -> Vec<(&'static str, Plan, Save)> {
    let pointwise = |codec, e| Plan { rule: BoundRule::Fixed(Bound::Pointwise(e)), ..fixed(codec, BOUND) };
    vec![
        ("raw", plan(Scheme::Traditional), save_solve),
        ("zstd", fixed(CodecId::Zstd, BOUND), save_solve),
        ("zstd-types", fixed(CodecId::Zstd, BOUND), save_types),
        ("pco", fixed(CodecId::Pco, BOUND), save_solve),
        ("pco-lossless", fixed(CodecId::Pco, 0.0), save_ramp),
        ("pco-modes", fixed(CodecId::Pco, 0.0), save_modes),
        ("pco-odd", fixed(CodecId::Pco, 1e-3), save_odd),
        ("pco-pointwise", pointwise(CodecId::Pco, 1e-3), save_odd),
        ("pco-grids", fixed(CodecId::Pco, 1e-3), save_grids),
        ("pco-wide", fixed(CodecId::Pco, 0.02), save_waves),
        ("stored-raw", fixed(CodecId::Pco, 0.0), save_solve),
        ("zfp", fixed(CodecId::Zfp, BOUND), save_solve),
        ("zfp-reversible", fixed(CodecId::Zfp, 0.0), save_solve),
        ("zfp-pointwise", pointwise(CodecId::Zfp, 1e-3), save_grids),
        ("zfp-grids", fixed(CodecId::Zfp, 1e-3), save_grids),
        ("zfp-exact-grids", fixed(CodecId::Zfp, 0.0), save_grids),
        ("pyramid-grids", fixed(CodecId::Pyramid, 1e-3), save_grids),
        ("pyramid-odd", fixed(CodecId::Pyramid, 1e-3), save_odd),
        ("pyramid-tight", fixed(CodecId::Pyramid, 1e-13), save_grids),
        ("two-ranks", fixed(CodecId::Pco, BOUND), save_two_ranks),
        ("chain-qb", fixed(CodecId::Qb, BOUND), save_chain),
        ("chain-pco", fixed(CodecId::Pco, BOUND), save_chain),
        ("chain-pyramid", fixed(CodecId::Pyramid, BOUND), save_chain),
        ("chain-zfp", fixed(CodecId::Zfp, BOUND), save_chain),
        ("chain-increment-raw", Plan { codec: CodecId::Raw, ..plan(Scheme::Exact) }, save_increments),
        ("chain-increment-zstd", Plan { codec: CodecId::Zstd, ..plan(Scheme::Exact) }, save_increments),
        ("increment-types", fixed(CodecId::Increment, BOUND), save_types),
        ("chain-mixed", fixed(CodecId::Qb, BOUND), save_mixed_chain),
        ("block", fixed(CodecId::Qb, BOUND), save_block),
        ("parts", plan(Scheme::Traditional), save_parts),
        ("chain-parts", fixed(CodecId::Qb, BOUND), save_chain_in_parts),
        // Those above were frozen before the top said what is in each part.
        ("parts-told", plan(Scheme::Traditional), save_parts),
        ("chain-parts-told", fixed(CodecId::Qb, BOUND), save_chain_in_parts),
    ]
}

/// Five Jacobi iterations on a Poisson grid.
fn save_solve(dir: &Path, plan: Plan) {
    Problem::poisson(4).save("jacobi", dir, plan, VERSION, VERSION);
}

/// Two ranks with a variable of every type.
fn save_two_ranks(dir: &Path, plan: Plan) {
    Threads::launch(2, |comm| {
        let rank = comm.rank();
        let mut x: Vec<f64> = (0..40 + rank).map(|i| 1.0 / (1 + i + rank) as f64).collect();
        let mut single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let mut step = [VERSION as i64, -1];
        let mut tag = *b"any bytes";
        let rows = Distribution::Rows { first: 40 * rank as u64, global: 81 };
        let owner = Variables::new()
            .with("x", Role::Iterate, ValuesMut::F64(&mut x), rows)
            .with("single", Role::Dynamic, ValuesMut::F32(&mut single), Distribution::RankLocal)
            .counter("step", &mut step)
            .with("tag", Role::Dynamic, ValuesMut::Bytes(&mut tag), Distribution::Replicated);
        let mut session = recoup::open(dir).plan(plan).every(VERSION).build_on(&comm).unwrap();
        session.checkpoint(plan, progress(VERSION), &[&owner]).unwrap();
        session.wait().unwrap();
    });
}

/// Three ranks, two to a file, with the manifest in parts, at each of these iterations.
fn save_in_parts(dir: &Path, plan: Plan, iterations: RangeInclusive<u64>) {
    let open = |access| Hdf5Store::open(dir, "solve", access).unwrap().with_ranks_per_file(2).with_parts_from(1);
    Threads::launch(3, |comm| {
        let rank = comm.rank();
        let first = (rank == 0).then(|| open(Access::Write));
        comm.barrier().unwrap();
        let store = Arc::new(first.unwrap_or_else(|| open(Access::Join)));
        let mut session = recoup::open(dir).plan(plan).every(1).build_with(store, &comm).unwrap();
        let rows = Distribution::Rows { first: 200 * rank as u64, global: 600 };
        for iteration in iterations.clone() {
            let mut x = link(iteration)[200 * rank..][..200].to_vec();
            let mut step = [iteration as i64];
            let owner =
                Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows).counter("step", &mut step);
            session.checkpoint(plan, progress(iteration), &[&owner]).unwrap();
            session.wait().unwrap();
        }
    });
}

fn save_parts(dir: &Path, plan: Plan) {
    save_in_parts(dir, plan, VERSION..=VERSION);
}

fn save_chain_in_parts(dir: &Path, plan: Plan) {
    save_in_parts(dir, plan, VERSION - 1..=VERSION);
}

/// Iterates of every type.
fn save_types(dir: &Path, plan: Plan) {
    let mut x: Vec<f64> = (0..300).map(|i| 1.0 / f64::from(1 + i)).collect();
    let mut single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    let mut count: Vec<i64> = (0..300).map(|i| i * i - 1000).collect();
    let mut tag = b"any bytes, again and again, ".repeat(5);
    save(dir, plan, &types(&mut x, &mut single, &mut count, &mut tag));
}

/// An iterate of each type.
fn types<'a>(x: &'a mut [f64], single: &'a mut [f32], count: &'a mut [i64], tag: &'a mut [u8]) -> Variables<'a> {
    let local = Distribution::RankLocal;
    Variables::new()
        .iterate("x", x)
        .with("single", Role::Iterate, ValuesMut::F32(single), local)
        .with("count", Role::Iterate, ValuesMut::I64(count), local)
        .with("tag", Role::Iterate, ValuesMut::Bytes(tag), local)
}

/// Saves one version of what one rank has.
fn save(dir: &Path, plan: Plan, owner: &dyn Registered) {
    let mut session = recoup::open(dir).plan(plan).every(VERSION).build().unwrap();
    session.checkpoint(plan, progress(VERSION), &[owner]).unwrap();
    session.wait().unwrap();
}

/// Values that lossless codecs compress, where five Jacobi iterations do not.
fn save_ramp(dir: &Path, plan: Plan) {
    let mut x: Vec<f64> = (0..200).map(|i| 0.5 * f64::from(i)).collect();
    save(dir, plan, &Variables::new().iterate("x", &mut x));
}

/// A number in [0, 1) that looks like chance.
fn rough(i: usize) -> f64 {
    ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Every way pco has to code numbers as they are, for the types we have.
fn save_modes(dir: &Path, plan: Plan) {
    const N: usize = 700;
    let doubles = |value: &dyn Fn(usize) -> f64| (0..N).map(value).collect::<Vec<f64>>();
    let mut ramp = doubles(&|i| (i * i) as f64);
    let mut tenths = doubles(&|i| (rough(i) * 1e4).floor() * 0.1);
    let mut singles_as_doubles = doubles(&|i| f64::from((rough(i) * 7.0 - 3.0) as f32));
    let mut rough_powers = doubles(&|i| (rough(i) - 0.5) * 2.0_f64.powi((rough(2 * i) * 12.0) as i32 - 30));
    let mut repeated = doubles(&|i| rough(i % 61));
    let mut single_tenths: Vec<f32> = tenths.iter().map(|&x| x as f32 * 0.1).collect();
    let mut single_waves: Vec<f32> = (0..N).map(|i| (i as f32 * 0.01).sin()).collect();
    let mut cubes: Vec<i64> = (0..N as i64).map(|i| i * i * i - 5_000_000).collect();
    let mut multiples: Vec<i64> = (0..N).map(|i| (rough(i) * 1e5) as i64 * 1000 - 40_000_000).collect();
    let mut scattered: Vec<i64> = (0..N).map(|i| (rough(i) * 4e3) as i64 - 2000).collect();
    let mut bytes: Vec<u8> = (0..N).map(|i| (rough(i) * rough(3 * i) * 200.0) as u8).collect();
    let mut owner = Variables::new();
    let doubles = [("ramp", &mut ramp), ("tenths", &mut tenths), ("singles", &mut singles_as_doubles)];
    for (name, values) in doubles.into_iter().chain([("powers", &mut rough_powers), ("repeated", &mut repeated)]) {
        owner = owner.iterate(name, values);
    }
    for (name, values) in [("single-tenths", &mut single_tenths), ("single-waves", &mut single_waves)] {
        owner = owner.with(name, Role::Iterate, ValuesMut::F32(values), Distribution::RankLocal);
    }
    for (name, values) in [("cubes", &mut cubes), ("multiples", &mut multiples), ("scattered", &mut scattered)] {
        owner = owner.with(name, Role::Iterate, ValuesMut::I64(values), Distribution::RankLocal);
    }
    let owner = owner.with("bytes", Role::Iterate, ValuesMut::Bytes(&mut bytes), Distribution::RankLocal);
    save(dir, plan, &owner);
}

/// Values of both signs and types, among them some that no lattice holds.
fn save_odd(dir: &Path, plan: Plan) {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e300, -1e-300, 5e-324, f64::MIN_POSITIVE];
    let value = |i: usize| (i as f64 * 0.05).sin() * 10.0_f64.powi(i as i32 / 50 - 3);
    let mut x: Vec<f64> = (0..600).map(value).collect();
    let mut single: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    for (i, &odd) in odd.iter().enumerate() {
        (x[50 * i + 7], single[41 * i + 5]) = (odd, odd as f32);
    }
    let rows = Distribution::Rows { first: 0, global: 600 };
    let owner = Variables::new().iterate("x", &mut x);
    save(dir, plan, &owner.with("single", Role::Iterate, ValuesMut::F32(&mut single), rows));
}

/// A variable on a grid.
struct OnGrid {
    name: &'static str,
    values: Vec<f64>,
    singles: Vec<f32>,
    dims: [usize; 3],
    stride: usize,
}

impl OnGrid {
    /// Doubles, where `noise` is the part of them that is rough.
    fn new(name: &'static str, dims: [usize; 3], noise: f64) -> Self {
        let wave = |i: usize, of: f64| (i as f64 * of).sin();
        let [nx, ny, _] = dims;
        let smooth = |i: usize| wave(i % nx, 0.3) + wave(i / nx % ny, 0.4) + wave(i / nx / ny, 0.5);
        let values = (0..dims.iter().product()).map(|i| smooth(i) + noise * (rough(i) - 0.5)).collect();
        Self { name, values, singles: Vec::new(), dims, stride: 1 }
    }

    /// Twelve waves of different lengths and directions.
    fn of_waves(name: &'static str, dims: [usize; 3]) -> Self {
        let [nx, ny, _] = dims;
        let at = |i: usize| [i % nx, i / nx % ny, i / nx / ny].map(|place| place as f64);
        let wave = |[x, y, z]: [f64; 3], k: f64| (k.sin() * x + (2.0 * k).cos() * y + (3.0 * k).sin() * z + k).sin();
        let values = (0..dims.iter().product()).map(|i| (1..=12).map(|k| wave(at(i), f64::from(k))).sum()).collect();
        Self { name, values, singles: Vec::new(), dims, stride: 1 }
    }

    /// The same as singles.
    fn in_single(mut self) -> Self {
        self.singles = std::mem::take(&mut self.values).into_iter().map(|x| x as f32).collect();
        self
    }

    fn interleaved(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    fn variable(&self) -> Variable<'_> {
        let values = if self.values.is_empty() { Values::F32(&self.singles) } else { Values::F64(&self.values) };
        let distribution = Distribution::Rows { first: 0, global: values.len() as u64 };
        Variable {
            dims: self.dims,
            stride: self.stride,
            ..Variable::new(self.name, Role::Iterate, values, distribution)
        }
    }
}

struct Grids(Vec<OnGrid>);

impl Registered for Grids {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.0.iter().map(OnGrid::variable).collect()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        panic!("grids are saved, not restored")
    }
}

/// Grids of one to three axes, smooth and rough, and one of interleaved unknowns.
fn save_grids(dir: &Path, plan: Plan) {
    let grids = Grids(vec![
        OnGrid::new("smooth", [12, 10, 9], 0.0),
        OnGrid::new("smooth-single", [12, 10, 9], 0.0).in_single(),
        OnGrid::new("noisy", [12, 10, 9], 0.02),
        OnGrid::new("noisy-single", [12, 10, 9], 0.02).in_single(),
        OnGrid::new("noisy-plane", [30, 20, 1], 0.02),
        OnGrid::new("smooth-plane", [30, 20, 1], 0.0),
        OnGrid::new("rough", [10, 9, 8], 300.0),
        OnGrid::new("rough-single", [10, 9, 8], 3.0).in_single(),
        OnGrid::new("three-unknowns", [300, 1, 1], 0.0).interleaved(3),
    ]);
    save(dir, plan, &grids);
}

/// Grids of waves that only a wide predictor tells apart.
fn save_waves(dir: &Path, plan: Plan) {
    let grids = Grids(vec![
        OnGrid::of_waves("waves", [21, 19, 16]),
        OnGrid::of_waves("waves-single", [21, 19, 16]).in_single(),
        OnGrid::of_waves("waves-plane", [80, 50, 1]),
    ]);
    save(dir, plan, &grids);
}

/// The values of one link of a chain: rough in space and slow in time.
fn link(iteration: u64) -> Vec<f64> {
    let rough = |i: u32| f64::from((i + 1).wrapping_mul(0x9e37_79b9)) / f64::from(u32::MAX);
    (0..600).map(|i| rough(i) + 1e-6 * f64::from(i) * iteration as f64).collect()
}

/// Versions each coded against the one before.
fn save_chain(dir: &Path, plan: Plan) {
    let mut session = recoup::open(dir).plan(plan).every(1).build().unwrap();
    for iteration in VERSION + 1 - CHAIN..=VERSION {
        let mut x = link(iteration);
        let progress = progress(iteration);
        session.checkpoint(plan, progress, &[&Variables::new().iterate("x", &mut x)]).unwrap();
    }
    session.wait().unwrap();
}

/// Versions each coded against the one before, which another codec wrote; the last as `plan` says.
fn save_mixed_chain(dir: &Path, plan: Plan) {
    let plans = [fixed(CodecId::Zfp, BOUND), fixed(CodecId::Pco, BOUND), plan];
    for (iteration, plan) in (VERSION + 1 - CHAIN..).zip(plans) {
        // A session keeps the codec of its first version.
        let mut session = recoup::open(dir).plan(plan).every(1).build().unwrap();
        let mut x = link(iteration);
        session.restore_with(&mut [&mut Variables::new().iterate("x", &mut x)]).unwrap();
        let mut x = link(iteration);
        let progress = progress(iteration);
        session.checkpoint(plan, progress, &[&Variables::new().iterate("x", &mut x)]).unwrap();
        session.wait().unwrap();
    }
}

/// The columns of a block.
struct TwoColumns([Vec<f64>; 2]);

impl Registered for TwoColumns {
    fn variables(&self) -> Vec<Variable<'_>> {
        let mut lent = Vec::new();
        for (column, (name, values)) in ["x.0", "x.1"].into_iter().zip(&self.0).enumerate() {
            let rows = Distribution::Rows { first: 0, global: values.len() as u64 };
            let variable = Variable::new(name, Role::Iterate, Values::F64(values), rows);
            lent.push(Variable { column: Some(column), ..variable });
        }
        lent
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        panic!("columns are saved, not restored")
    }
}

/// The system of the frozen block.
pub(crate) const SYSTEM: u64 = 3;

/// The problem of the frozen block.
pub(crate) fn block_problem() -> Reference {
    let problem = Problem::poisson(4);
    let rhs: Vec<f64> = problem.b.iter().copied().chain(problem.b.iter().map(|b| 1e-3 * b)).collect();
    Reference { columns: 2, ..Reference::new(problem.a.clone(), rhs.into()) }
}

/// Two right-hand sides in one system of a run that solves many.
fn save_block(dir: &Path, plan: Plan) {
    let wave = |scale: f64| (0..64).map(|i| scale * (0.1 * f64::from(i)).sin()).collect();
    let mut session = recoup::open(dir).systems().plan(plan).every(VERSION).build().unwrap();
    session.begin_system(SYSTEM, block_problem()).unwrap();
    session.report_columns(&[1.0, 1e-3]);
    session.checkpoint(plan, progress(VERSION), &[&TwoColumns([wave(1.0), wave(1e-3)])]).unwrap();
    session.wait().unwrap();
}

/// A program that writes a few values between two versions, and says which.
struct FewWrites {
    x: Vec<f64>,
    count: Vec<i64>,
    version: u64,
}

impl FewWrites {
    /// Returns the runs of `x` that a version differs in from the one before.
    fn runs(version: u64) -> Vec<Range<usize>> {
        match version {
            4 => std::iter::once(100..400).collect(),
            VERSION => vec![10..13, 500..502],
            _ => Vec::new(),
        }
    }

    fn step(&mut self) {
        self.version += 1;
        let written = Self::runs(self.version).into_iter().flatten();
        written.zip(1..).for_each(|(at, value)| self.x[at] = f64::from(value));
    }
}

impl Zones for FewWrites {
    fn mark(&self) -> Mark {
        Mark { memory: 0, write: self.version }
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        Some((since.write + 1..=self.version).flat_map(Self::runs).collect())
    }

    fn freeze(&self, _: usize) -> Option<Box<dyn DeviceSnapshot>> {
        None
    }
}

/// Versions that hold only what changed, down to nothing.
fn save_increments(dir: &Path, plan: Plan) {
    let first = VERSION + 1 - CHAIN;
    let mut writer = FewWrites { x: link(first), count: (0..600).collect(), version: first };
    let mut session = recoup::open(dir).plan(plan).every(1).build().unwrap();
    for iteration in first..=VERSION {
        session.checkpoint(plan, progress(iteration), &[&writer]).unwrap();
        session.wait().unwrap();
        writer.step();
    }
}

impl Registered for FewWrites {
    fn variables(&self) -> Vec<Variable<'_>> {
        let rows = Distribution::Rows { first: 0, global: 600 };
        let x = Variable::new("x", Role::Iterate, Values::F64(&self.x), rows);
        let count = Variable::new("count", Role::Dynamic, Values::I64(&self.count), Distribution::RankLocal);
        vec![Variable { zones: Some(self), ..x }, count]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        let count = VariableMut::new("count", ValuesMut::I64(&mut self.count));
        vec![VariableMut::new("x", ValuesMut::F64(&mut self.x)), count]
    }
}
