//! The ways to save the vectors, and the time that each takes from the solver.

use std::sync::Arc;

use recoup_core::{Clock, DeviceSnapshot, ValuesMut};
use recoup_io::SystemClock;
use recoup_snapshot::{Monitors, PageSize, WriteWatch};

use crate::passes::{Iterated, LEN};
use crate::vectors::{Written, touched, watched};

/// Iterations during which a copy is fetched, and as many undisturbed.
const ITERATIONS: usize = 2;
/// Values that are fetched at a time: 8 MiB.
const FRAME: usize = 1 << 20;

/// A way to save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    monitor: WayMonitor,
    size: PageSize,
    /// Threads of the solver.
    threads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WayMonitor {
    /// The solver copies, with these threads.
    Copy(usize),
    /// A thread copies as much of other memory, and nothing is frozen: what the bandwidth costs.
    Other,
    Touch,
    /// The vector that is written last is fetched second.
    TouchUnordered,
    Watch,
}

/// Seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayTimes {
    /// The solver is stopped.
    pub(crate) pause: f64,
    /// One undisturbed iteration.
    pub(crate) iteration: f64,
    pub(crate) overhead: f64,
}

impl Way {
    /// All ways that this machine has.
    pub(crate) fn all() -> Vec<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let has_watch = Monitors::probe().watch.inspect_err(|reason| println!("no watch: {reason}")).is_ok();
        let monitors = [
            WayMonitor::Copy(1),
            WayMonitor::Copy(2),
            WayMonitor::Other,
            WayMonitor::Touch,
            WayMonitor::TouchUnordered,
            WayMonitor::Watch,
        ];
        let sizes = [PageSize::Small, PageSize::Huge];
        let ways = [1, cores].into_iter().flat_map(|threads| {
            let sized = move |monitor| sizes.map(|size| Self { monitor, size, threads });
            monitors.into_iter().flat_map(sized)
        });
        ways.filter(|way| has_watch || way.monitor != WayMonitor::Watch).collect()
    }

    pub(crate) fn name(&self) -> String {
        let monitor = match self.monitor {
            WayMonitor::Copy(threads) => format!("copy by {threads}"),
            WayMonitor::Other => "copy of other memory".to_owned(),
            WayMonitor::Touch => "touch".to_owned(),
            WayMonitor::TouchUnordered => "touch in another order".to_owned(),
            WayMonitor::Watch => "watch".to_owned(),
        };
        let pages = if self.size == PageSize::Huge { "huge pages" } else { "small pages" };
        let idle = if self.threads == 1 { "" } else { ", no idle core" };
        format!("{monitor}, {pages}{idle}")
    }

    /// The copy by one thread with the same solver: its place among `ways`.
    pub(crate) fn compared_with(&self, ways: &[Self]) -> usize {
        let copy = Self { monitor: WayMonitor::Copy(1), ..*self };
        ways.iter().position(|way| *way == copy).expect("a copy of each kind")
    }

    pub(crate) fn run(&self) -> WayTimes {
        match self.monitor {
            WayMonitor::Copy(copiers) => {
                let vectors = std::array::from_fn(|_| touched(LEN, self.size));
                self.measure(vectors, |vectors, staged| {
                    copy(vectors, staged, copiers);
                    nothing()
                })
            }
            WayMonitor::Other => {
                let other = Arc::new(touched(LEN, self.size));
                self.measure(std::array::from_fn(|_| touched(LEN, self.size)), move |_, _| {
                    let other = Arc::clone(&other);
                    Box::new(move |staged| staged.iter_mut().for_each(|target| copy_frames(&other, target)))
                })
            }
            WayMonitor::Touch => {
                self.measure(std::array::from_fn(|_| touched(LEN, self.size)), |vectors, _| freeze(vectors, WRITTEN))
            }
            WayMonitor::TouchUnordered => {
                self.measure(std::array::from_fn(|_| touched(LEN, self.size)), |vectors, _| freeze(vectors, UNORDERED))
            }
            WayMonitor::Watch => {
                let watch: Arc<WriteWatch> = WriteWatch::new().expect("the watch was tried");
                self.measure(std::array::from_fn(|_| watched(&watch, LEN, self.size)), |vectors, _| {
                    freeze(vectors, WRITTEN)
                })
            }
        }
    }

    /// Times some iterations undisturbed, and as many after `save`.
    fn measure<V: Written>(&self, vectors: [V; 3], save: impl Fn(&[V; 3], &mut [Vec<f64>; 3]) -> Rest) -> WayTimes {
        let clock = SystemClock::new();
        let mut solver = Iterated::new(vectors, self.threads);
        let mut staged: [Vec<f64>; 3] = std::array::from_fn(|_| vec![1.0; LEN]);
        solver.iterate();
        let begun = clock.now();
        (0..ITERATIONS).for_each(|_| solver.iterate());
        let undisturbed = clock.now() - begun;
        let begun = clock.now();
        let rest = save(&solver.vectors, &mut staged);
        let pause = clock.now() - begun;
        let after = std::thread::scope(|scope| {
            let begun = clock.now();
            scope.spawn(move || rest(&mut staged));
            (0..ITERATIONS).for_each(|_| solver.iterate());
            clock.now() - begun
        });
        WayTimes {
            pause: pause.as_secs_f64(),
            iteration: undisturbed.as_secs_f64() / ITERATIONS as f64,
            overhead: (pause + after).as_secs_f64() - undisturbed.as_secs_f64(),
        }
    }
}

/// What is left to be done beside the solver.
type Rest = Box<dyn FnOnce(&mut [Vec<f64>; 3]) + Send>;

fn nothing() -> Rest {
    Box::new(|_| ())
}

/// The order in which vectors are fetched: that of the solver's writes.
const WRITTEN: [usize; 3] = [0, 1, 2];
const UNORDERED: [usize; 3] = [0, 2, 1];

/// Freezes all vectors, to be fetched in this order.
fn freeze<V: Written>(vectors: &[V; 3], order: [usize; 3]) -> Rest {
    let frozen = order.map(|vector| vectors[vector].freeze(LEN).expect("nothing else is frozen"));
    Box::new(|staged| fetch(frozen, staged))
}

/// Copies all vectors by some threads.
fn copy<V: Written>(vectors: &[V; 3], staged: &mut [Vec<f64>; 3], copiers: usize) {
    for (vector, staged) in vectors.iter().zip(staged) {
        let rows = LEN.div_ceil(copiers);
        std::thread::scope(|scope| {
            for (part, (source, target)) in vector.chunks(rows).zip(staged.chunks_mut(rows)).enumerate() {
                let mut work = move || target.copy_from_slice(source);
                if part + 1 == copiers { work() } else { drop(scope.spawn(work)) }
            }
        });
    }
}

/// Copies in frames, as a fetch does.
fn copy_frames(source: &[f64], target: &mut [f64]) {
    source.chunks(FRAME).zip(target.chunks_mut(FRAME)).for_each(|(source, target)| target.copy_from_slice(source));
}

/// Fetches all frozen values, and ends the copies one after the other.
fn fetch(frozen: [Box<dyn DeviceSnapshot>; 3], staged: &mut [Vec<f64>; 3]) {
    for (frozen, staged) in frozen.into_iter().zip(staged) {
        for (frame, target) in staged.chunks_mut(FRAME).enumerate() {
            frozen.fetch(frame * FRAME, ValuesMut::F64(target)).expect("each value is fetched once");
        }
    }
}
