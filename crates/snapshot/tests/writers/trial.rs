//! One seed: rounds of writes, with up to two frozen copies that are fetched meanwhile.

use recoup_core::{DeviceSnapshot, Mark, ValuesMut, Zones};
use recoup_testkit::Random;

use super::plan::ThreadPlan;

/// Elements of the largest memory: 1.6 MB, 25 zones of a region.
const LEN_MAX: usize = 200_000;
const ROUNDS: usize = 6;

/// An owner of values that several threads write.
pub(crate) trait Owner {
    fn zones(&self) -> &dyn Zones;

    /// Writes as planned, each plan by a thread of its own.
    fn write(&mut self, plans: &[ThreadPlan]);

    fn values(&self) -> Vec<f64>;
}

/// A frozen copy, and what it must give.
struct Expected {
    frozen: Box<dyn DeviceSnapshot>,
    values: Vec<f64>,
    /// How it is fetched.
    draw: Random,
}

impl Expected {
    fn new(owner: &dyn Owner, reference: &[f64], draw: &mut Random) -> Option<Self> {
        let padding = draw.below(3) * draw.below(5000);
        let frozen = owner.zones().freeze(reference.len() + padding)?;
        let last = reference.last().copied().unwrap_or_default();
        let values = reference.iter().copied().chain(std::iter::repeat_n(last, padding)).collect();
        Some(Self { frozen, values, draw: Random(draw.bits()) })
    }

    /// Fetches all values in pieces, from the first on or to the last, or gives up on the way.
    fn check(mut self, seed: u64) {
        let piece = 1 + self.draw.below(60_000);
        let mut pieces: Vec<usize> = (0..self.values.len()).step_by(piece).collect();
        if self.draw.below(3) == 0 {
            pieces.reverse();
        }
        if self.draw.below(4) == 0 {
            pieces.truncate(self.draw.below(pieces.len() + 1));
        }
        for start in pieces {
            let expected = &self.values[start..self.values.len().min(start + piece)];
            let mut found = vec![f64::NAN; expected.len()];
            self.frozen.fetch(start, ValuesMut::F64(&mut found)).expect("each value is fetched once");
            let is_same = found.iter().zip(expected).all(|(found, expected)| found.to_bits() == expected.to_bits());
            assert!(is_same, "seed {seed}: values {start} and {} more differ", expected.len());
        }
    }
}

/// Runs one seed.
pub(crate) fn trial(seed: u64, make: impl Fn(usize, &mut Random) -> Box<dyn Owner>) {
    let mut draw = Random(seed);
    let len = 1 + draw.below([100, 20_000, LEN_MAX][draw.clone().below(3)]);
    let mut owner = make(len, &mut draw);
    let mut reference = vec![0.0; len];
    std::thread::scope(|scope| {
        let mut fetching = Vec::new();
        for _ in 0..ROUNDS {
            let before = owner.zones().mark();
            if draw.below(3) > 0
                && let Some(expected) = Expected::new(owner.as_ref(), &reference, &mut draw)
            {
                fetching.push(scope.spawn(move || expected.check(seed)));
            }
            let plans = ThreadPlan::several(len, &mut draw);
            owner.write(&plans);
            plans.iter().for_each(|plan| plan.apply(&mut reference));
            check_written(owner.as_ref(), before, &plans, seed);
            if draw.below(3) == 0 {
                fetching.drain(..).for_each(|thread| thread.join().expect("frozen values"));
            }
        }
    });
    assert_eq!(owner.values(), reference, "seed {seed}");
}

/// Whatever was written since a mark is listed, and a mark changes exactly if there was a write.
fn check_written(owner: &dyn Owner, since: Mark, plans: &[ThreadPlan], seed: u64) {
    let listed = owner.zones().written_since(since).expect("a mark of this memory");
    assert!(listed.windows(2).all(|runs| runs[0].end < runs[1].start), "seed {seed}: {listed:?}");
    let mut is_listed = vec![false; owner.values().len()];
    listed.iter().for_each(|run| is_listed[run.clone()].fill(true));
    let missing = plans.iter().flat_map(ThreadPlan::written).find(|element| !is_listed[*element]);
    assert_eq!(missing, None, "seed {seed}: a written element in none of {listed:?}");
    let is_quiet = plans.iter().all(|plan| plan.written().next().is_none());
    assert_eq!(owner.zones().mark() == since, is_quiet, "seed {seed}");
}
