//! What a second thread is worth: `cargo bench -p recoup-compress --bench threads`.
//!
//! The same work by one thread and by two, one after the other, turn after turn. A virtual core is half of a real one at
//! times, and another program's at others, so a control that fills the units of a core and touches no memory runs before and after
//! every case. Two more controls share nothing either: arithmetic that waits for itself, to which half a core is a whole one,
//! and a copy. Prints quartiles of time of one over time of two: of all turns, and of those in which the control
//! gained as much as a whole core gives, before and after.

#[path = "shared/iterates.rs"]
mod iterates;

use std::hint::black_box;

use clap::Parser;
use rayon::{ThreadPool, ThreadPoolBuilder};
use recoup_compress::{Qb, QbWay};
use recoup_core::{Bound, Codec, Context, Values, ValuesMut};
use rustix::time::{ClockId, clock_gettime};

use crate::iterates::{N, iterates, value_range};

/// Options.
#[derive(Parser)]
struct Args {
    /// Turns of every case.
    #[arg(long, default_value_t = 41)]
    turns: usize,
    /// Frames coded as one: each is an iterate of 16 MiB, one behind the other along the slowest axis.
    #[arg(long, default_value_t = 1)]
    iterates: usize,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Steps of the controls in registers, which take about as long as a frame.
const STEPS: u64 = 1 << 21;

/// Where the control gains as much, there is a whole core for the second thread.
const WHOLE_CORE: f64 = 1.9;

/// Something one thread does, or two.
struct Case<'a> {
    name: &'static str,
    work: Box<dyn FnMut(usize) + 'a>,
    /// Seconds of one thread, and of two, per turn.
    seconds: [Vec<f64>; 2],
}

fn now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// So many chains of shifts (Marsaglia 2003, doi:10.18637/jss.v008.i14) side by side, which touch no memory.
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
        Self { name, work: Box::new(work), seconds: [Vec::new(), Vec::new()] }
    }

    /// Once by one thread and once by two; every other turn the other way round.
    fn turn(&mut self, turn: usize) {
        for half in 0..2 {
            let threads = 1 + (half + turn) % 2;
            let start = now();
            (self.work)(threads);
            self.seconds[threads - 1].push(now() - start);
        }
    }

    /// Median of the seconds of one thread.
    fn one(&self) -> f64 {
        quartiles(self.seconds[0].clone())[1]
    }

    /// Time of one thread over time of two, turn by turn.
    fn gains(&self) -> Vec<f64> {
        self.seconds[0].iter().zip(&self.seconds[1]).map(|(one, two)| one / two).collect()
    }
}

/// Encoding and decoding in an arrangement.
fn coding<'a>(names: [&'static str; 2], way: QbWay, (x, context): (&'a [f64], Context<'a>)) -> [Case<'a>; 2] {
    let codecs = [1, 2].map(|threads| Qb::with_threads(threads).expect("threads").by(way));
    let bound = Bound::Absolute(1e-4 * value_range(x));
    let (mut payload, mut decoded) = (Vec::new(), vec![0.0; x.len()]);
    let encoded = codecs[0].encode(Values::F64(x), bound, &context, &mut payload).expect("encodes");
    let frame = payload.clone();
    let decoders = codecs.clone();
    let encode = move |threads: usize| {
        codecs[threads - 1].encode(black_box(Values::F64(x)), bound, &context, &mut payload).expect("encodes");
    };
    let decode = move |threads: usize| {
        let target = ValuesMut::F64(&mut decoded);
        decoders[threads - 1].decode(black_box(&frame), encoded.bound, &context, target).expect("decodes");
    };
    [Case::new(names[0], encode), Case::new(names[1], decode)]
}

fn quartiles(mut of: Vec<f64>) -> [f64; 3] {
    of.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| of[(of.len() - 1) * quarter / 4])
}

fn main() {
    let args = Args::parse();
    let [_, x] = iterates();
    let x = x.repeat(args.iterates.max(1));
    let grid = Context::grid([N, N, x.len() / (N * N)]);
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("threads");
    let mut control = registers("busy", &pool, busy);
    let mut cases = vec![registers("waiting", &pool, waiting), copying(&pool, &x)];
    let tiles = QbWay { in_tiles: true, ..QbWay::default() };
    cases.extend(coding(["line, encode", "line, decode"], QbWay::default(), (&x, Context::flat(x.len()))));
    cases.extend(coding(["tiles, encode", "tiles, decode"], tiles, (&x, grid)));
    cases.extend(coding(["fitted, encode", "fitted, decode"], QbWay { is_fitted: true, ..tiles }, (&x, grid)));
    for turn in 0..args.turns.max(1) {
        control.turn(turn);
        for case in &mut cases {
            case.turn(turn);
            control.turn(turn);
        }
    }
    println!("{:>16} {:>10} {:>24} {:>40}", "", "one, ms", "one over two", "where the second core was a whole one");
    println!("{:>16} {:>10.2} {:>24}", control.name, 1e3 * control.one(), shown(&control.gains()));
    let beside: Vec<Vec<f64>> = control.gains().chunks(cases.len() + 1).map(<[f64]>::to_vec).collect();
    for (place, case) in cases.iter().enumerate() {
        let gains = case.gains();
        let is_whole = |beside: &Vec<f64>| beside[place..=place + 1].iter().all(|gain| *gain >= WHOLE_CORE);
        let there: Vec<f64> = gains.iter().zip(&beside).filter(|(_, b)| is_whole(b)).map(|(gain, _)| *gain).collect();
        let there = format!("{} in {} turns", shown(&there), there.len());
        println!("{:>16} {:>10.2} {:>24} {there:>40}", case.name, 1e3 * case.one(), shown(&gains));
    }
}

/// Median and quartiles.
fn shown(of: &[f64]) -> String {
    if of.is_empty() {
        return "-".to_owned();
    }
    let [low, middle, high] = quartiles(of.to_vec());
    format!("{middle:.2} ({low:.2} to {high:.2})")
}
