//! The gain of a second thread: `cargo bench -p recoup-compress --bench threads`.
//!
//! The same work by one thread on one core, by one thread on the other, and by two, turn after
//! turn. A virtual core is half of a real one at times, the other is not, and which it is changes
//! within seconds: so two threads are held against the mean of what the two cores did alone just
//! before, which is twice one's speed where both are alike. Three controls share nothing:
//! arithmetic that fills the units of a core and touches no memory, arithmetic that waits for
//! itself, to which half a core is a whole one, and a copy. Prints medians and quartiles of all
//! turns.

#[path = "shared/iterates.rs"]
mod iterates;

use std::hint::black_box;

use clap::Parser;
use rayon::{ThreadPool, ThreadPoolBuilder};
use recoup_compress::{Qb, QbArrangement, SimdLevel};
use recoup_core::{Bound, Codec, Context, Values, ValuesMut};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::iterates::{N, iterates, value_range};

/// Options.
#[derive(Parser)]
struct Args {
    /// Turns of every case.
    #[arg(long, default_value_t = 41)]
    turns: usize,
    /// Size of a frame: planes of an iterate of 16 MiB, from the first again behind the last. A
    /// pipeline's frames have 8 at most.
    #[arg(long, default_value_t = 16)]
    mib: usize,
    /// Frames coded one after the other in each turn, as those of a variable are; the other thread
    /// has to be woken for the first.
    #[arg(long, default_value_t = 1)]
    frames: usize,
    /// Without vector instructions that not every processor has.
    #[arg(long)]
    portable: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Steps of the controls in registers, which take about as long as a frame.
const STEPS: u64 = 1 << 21;

/// Something one thread does, or two.
struct Case<'a> {
    name: &'static str,
    work: Box<dyn FnMut(usize) + 'a>,
    /// Seconds per turn: of one thread on each of two cores, and of two threads.
    seconds: [Vec<f64>; 3],
}

/// Two of the cores this process may run on, and all of them.
struct Cores {
    two: [CpuSet; 2],
    all: CpuSet,
}

impl Cores {
    fn of_process() -> Self {
        let all = sched_getaffinity(None).expect("the cores of this process");
        let mut each = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).map(|core| {
            let mut only = CpuSet::new();
            only.set(core);
            only
        });
        let mut next = || each.next().expect("two threads are worth nothing on one core");
        Self { two: [next(), next()], all }
    }
}

/// Binds the calling thread to cores from now on.
fn run_on(cores: &CpuSet) {
    sched_setaffinity(None, cores).expect("a thread may move among its own cores");
}

fn now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// `CHAINS` chains of shifts (Marsaglia 2003, doi:10.18637/jss.v008.i14) side by side, which touch
/// no memory.
fn chains<const CHAINS: usize>(steps: u64) -> u64 {
    let step = |mut chains: [u64; CHAINS], _| {
        for x in &mut chains {
            *x ^= *x << 13;
            *x ^= *x >> 7;
            *x ^= *x << 17;
        }
        chains
    };
    let first = black_box(std::array::from_fn(|i| i as u64 + 1));
    black_box((0..steps).fold(first, step)).iter().fold(0, |all, x| all ^ x)
}

/// One waits for itself at every shift, and leaves most of a core unused.
fn waiting(steps: u64) -> u64 {
    chains::<1>(steps)
}

/// As many as keep the units of a core busy.
fn busy(steps: u64) -> u64 {
    chains::<16>(steps / 4)
}

/// Half of the work here and half on a thread of the pool, as QB shares it.
fn both(pool: &ThreadPool, here: impl FnOnce(), there: impl FnOnce() + Send) {
    pool.in_place_scope(|scope| {
        scope.spawn(|_| there());
        here();
    });
}

/// Arithmetic shared by two threads.
fn registers<'a>(name: &'static str, pool: &'a ThreadPool, work: fn(u64) -> u64) -> Case<'a> {
    Case::new(name, move |threads| match threads {
        1 => _ = work(STEPS),
        _ => both(pool, || _ = work(STEPS / 2), || _ = work(STEPS / 2)),
    })
}

fn copying<'a>(pool: &'a ThreadPool, x: &'a [f64]) -> Case<'a> {
    let mut copied = vec![0.0; x.len()];
    let half = x.len() / 2;
    Case::new("copy", move |threads| match threads {
        1 => copied.copy_from_slice(black_box(x)),
        _ => {
            let (first, second) = copied.split_at_mut(half);
            both(pool, || first.copy_from_slice(&x[..half]), || second.copy_from_slice(&x[half..]));
        }
    })
}

impl<'a> Case<'a> {
    fn new(name: &'static str, work: impl FnMut(usize) + 'a) -> Self {
        Self { name, work: Box::new(work), seconds: [Vec::new(), Vec::new(), Vec::new()] }
    }

    /// Once on each core and once by two threads; every turn in another order.
    fn turn(&mut self, turn: usize, cores: &Cores) {
        for part in 0..3 {
            let place = (part + turn) % 3;
            run_on(cores.two.get(place).unwrap_or(&cores.all));
            let start = now();
            (self.work)(1 + place / 2);
            self.seconds[place].push(now() - start);
        }
    }

    /// Milliseconds of one thread, and the time of one over that of two, of all turns.
    fn results(&self) -> (f64, Vec<f64>) {
        let [first, second, two] = &self.seconds;
        // Of speeds, hence harmonic.
        let one: Vec<f64> = first.iter().zip(second).map(|(a, b)| 2.0 / (1.0 / a + 1.0 / b)).collect();
        let gains = one.iter().zip(two).map(|(one, two)| one / two).collect();
        (1e3 * quartiles(one)[1], gains)
    }
}

/// Encoding and decoding in an arrangement.
fn coding<'a>(names: [&'static str; 2], codec: Qb, frames: usize, x: &'a [f64], context: Context<'a>) -> [Case<'a>; 2] {
    let on = move |threads| Context { threads, ..context };
    let bound = Bound::Absolute(1e-4 * value_range(x));
    let mut payload = Vec::new();
    let mut decoded = vec![0.0; x.len()];
    let encoded = codec.encode(Values::F64(x), bound, &context, &mut payload).expect("encodes");
    let frame = payload.clone();
    let decoder = codec.clone();
    let encode = move |threads: usize| {
        for _ in 0..frames {
            codec.encode(black_box(Values::F64(x)), bound, &on(threads), &mut payload).expect("encodes");
        }
    };
    let decode = move |threads: usize| {
        for _ in 0..frames {
            let target = ValuesMut::F64(&mut decoded);
            decoder.decode(black_box(&frame), encoded.bound, &on(threads), target).expect("decodes");
        }
    };
    [Case::new(names[0], encode), Case::new(names[1], decode)]
}

fn quartiles(mut times: Vec<f64>) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| times[(times.len() - 1) * quarter / 4])
}

fn main() {
    let args = Args::parse();
    let cores = Cores::of_process();
    let [_, x] = iterates();
    let planes = (args.mib << 20).div_ceil(size_of::<f64>() * N * N).max(1);
    let x: Vec<f64> = x.into_iter().cycle().take(planes * N * N).collect();
    let grid = Context::grid([N, N, planes]);
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("threads");
    let mut cases = vec![registers("busy", &pool, busy), registers("waiting", &pool, waiting), copying(&pool, &x)];
    let level = if args.portable { SimdLevel::PORTABLE } else { SimdLevel::best() };
    let frames = args.frames.max(1);
    let lines = QbArrangement::default();
    let codec = |arrangement| Qb::default().with_arrangement(arrangement).at_level(level);
    let tiles = QbArrangement { in_tiles: true, ..lines };
    let fitted = QbArrangement { is_fitted: true, ..tiles };
    cases.extend(coding(["line, encode", "line, decode"], codec(lines), frames, &x, Context::flat(x.len())));
    cases.extend(coding(["tiles, encode", "tiles, decode"], codec(tiles), frames, &x, grid));
    cases.extend(coding(["fitted, encode", "fitted, decode"], codec(fitted), frames, &x, grid));
    for turn in 0..args.turns.max(1) {
        cases.iter_mut().for_each(|case| case.turn(turn, &cores));
    }
    println!("{:>16} {:>10} {:>24}", "", "one, ms", "one over two");
    for case in &cases {
        let (one, gains) = case.results();
        let [low, middle, high] = quartiles(gains);
        println!("{:>16} {one:>10.2} {:>24}", case.name, format!("{middle:.2} ({low:.2} to {high:.2})"));
    }
}
