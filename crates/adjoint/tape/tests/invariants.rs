//! Thousands of random runs: sizes, levels, orders, and failures of the mover.

#[path = "support/witness.rs"]
mod witness;

use recoup_model::Rng;
use recoup_tape::{
    Eviction, Growth, LevelSettings, PlaceError, Registration, StateId, TapeDriver, TapeEvent, TapeSettings, TouchMode,
    TouchModel, Touching,
};
use witness::{Betrayal, Witness, WitnessLevel};

/// Seeds of the runs.
const SEEDS: u64 = 10_000;
/// Work that a run may start. The largest level has 7,200 units, mapped one at a time at worst, and
/// each of 40 states is copied a few times, three more for each failure.
const WORKS_MAX: u64 = 10_000;
const MODEL: TouchModel = TouchModel {
    copy_rate: 6e9,
    untouched_copy_rate: 3e9,
    touch_rate: 8e9,
    shared_copy_rate: 3e9,
    shared_touch_rate: 4e9,
};

/// A number below `n`.
fn below(rng: &mut Rng, n: u64) -> u64 {
    rng.next_u64() % n
}

fn paged(rng: &mut Rng, unit: u64) -> Growth {
    let mode = [TouchMode::Concurrent, TouchMode::Sequential, TouchMode::Never][below(rng, 3) as usize];
    let touching = if below(rng, 2) == 0 { Touching::Fixed(mode) } else { Touching::Modelled(MODEL) };
    let chunks = Registration::Chunks { bytes: unit * (1 + below(rng, 200)) };
    let registration = [Registration::Never, Registration::Whole, chunks][below(rng, 3) as usize];
    let ahead_bytes = [unit * below(rng, 100), u64::MAX][below(rng, 2) as usize];
    Growth::Paged { touching, registration, ahead_bytes }
}

/// A run: settings, sizes, and the calls of the program.
struct RandomRun {
    rng: Rng,
    driver: TapeDriver<Witness>,
    unit: u64,
    /// The largest state that may be pushed.
    size_max: u64,
    /// All states fit the last level, with room to spare for gaps.
    is_roomy: bool,
    pushed: Vec<StateId>,
}

impl RandomRun {
    fn new(seed: u64, may_fail: bool, betrayal: Betrayal) -> Self {
        let mut rng = Rng::new(seed);
        let unit = if below(&mut rng, 2) == 0 { 1 } else { 1 << 20 };
        let n_levels = 1 + below(&mut rng, 3) as usize;
        let first = 20 + below(&mut rng, 200);
        let size_max = 1 + below(&mut rng, first.min(60));
        let is_roomy = n_levels == 1 || below(&mut rng, 3) > 0;
        let mut levels = Vec::new();
        // No level, or the lower ones.
        let coded_from = 1 + below(&mut rng, 4) as usize;
        for level in 0..n_levels {
            let is_last = level + 1 == n_levels;
            // 40 states of the largest size, twice, and as much again for gaps.
            let bytes = if is_last && is_roomy { 120 * size_max } else { first * (1 + level as u64) };
            let growth = match below(&mut rng, 3) {
                0 => Growth::Ready,
                1 => Growth::Mapped { chunk_bytes: unit * (1 + below(&mut rng, 80)) },
                _ => paged(&mut rng, unit),
            };
            levels.push(LevelSettings { bytes: bytes * unit, growth, is_coded: level >= coded_from });
        }
        let eviction = [Eviction::Fifo, Eviction::KnownOrder][below(&mut rng, 2) as usize];
        let witnessed = levels.iter().map(WitnessLevel::new).collect();
        let failures = if may_fail { 0.1 * rng.uniform() } else { 0.0 };
        let witness = Witness::new(Rng::new(seed ^ 0x5eed), witnessed, failures, betrayal);
        let driver = TapeDriver::new(TapeSettings { levels, eviction }, witness);
        Self { rng, driver, unit, size_max, is_roomy, pushed: Vec::new() }
    }

    /// Pushes up to 40 states, and pops all: in reverse, in an order that is announced, or in one
    /// that is not. Some are popped between pushes.
    fn run(mut self) -> Witness {
        let n_states = 1 + below(&mut self.rng, 40);
        let mut next = 0;
        for _ in 0..n_states {
            next = self.push(next);
            match below(&mut self.rng, 20) {
                0 | 1 => self.pop_any(),
                2 => self.peek_any(),
                3 => self.forget_any(),
                4 => self.keep(),
                _ => {}
            }
        }
        match below(&mut self.rng, 3) {
            0 => {}
            1 => {
                self.shuffle();
                let order = self.pushed.iter().rev().copied().collect();
                self.driver.tell(TapeEvent::Announce(order));
            }
            _ => self.shuffle(),
        }
        if below(&mut self.rng, 2) == 0 {
            self.driver.tell(TapeEvent::Turn);
        }
        while let Some(id) = self.pushed.pop() {
            self.pop(id);
        }
        self.settle();
        assert_eq!(self.driver.policy().n_states(), 0, "records of states that are gone");
        std::mem::replace(self.driver.mover(), Witness::new(Rng::new(0), Vec::new(), 0.0, Betrayal::None))
    }

    /// Waits until no work is under way.
    fn settle(&mut self) {
        while self.driver.mover().is_moving() {
            let reply = self.driver.pump();
            assert!(reply.is_none(), "no call waits");
        }
    }

    fn push(&mut self, next: u64) -> u64 {
        let bytes = self.unit * (1 + below(&mut self.rng, self.size_max));
        self.driver.mover().current = StateId(next);
        let before = self.usable();
        let pushed = self.driver.call(self.driver.push_event(bytes));
        assert!(self.usable() >= before, "memory that may be used has shrunk");
        match pushed {
            Ok(id) => {
                assert_eq!(id, StateId(next));
                self.driver.mover().live.insert(id);
                self.pushed.push(id);
                next + 1
            }
            Err(error) => {
                let has_failed = self.driver.mover().n_failed > 0;
                let is_full = !self.is_roomy && matches!(error, PlaceError::Full { .. });
                assert!(has_failed || is_full, "{error}");
                // A push that found no level has used no number.
                if matches!(error, PlaceError::TooLarge { .. }) { next } else { next + 1 }
            }
        }
    }

    fn usable(&self) -> u64 {
        self.driver.policy().usable_bytes(0)
    }

    fn pop_any(&mut self) {
        if !self.pushed.is_empty() {
            let index = below(&mut self.rng, self.pushed.len() as u64) as usize;
            let id = self.pushed.remove(index);
            self.pop(id);
        }
    }

    fn peek_any(&mut self) {
        let Some(&id) = self.pushed.first() else { return };
        self.driver.mover().current = id;
        self.driver.mover().is_peeking = true;
        match self.driver.call(TapeEvent::Peek { id }) {
            Ok(peeked) => assert_eq!(peeked, id),
            Err(error) => assert!(self.driver.mover().n_failed > 0, "{error}"),
        }
        self.driver.mover().is_peeking = false;
    }

    fn forget_any(&mut self) {
        if !self.pushed.is_empty() {
            let index = below(&mut self.rng, self.pushed.len() as u64) as usize;
            let id = self.pushed.remove(index);
            self.driver.mover().live.remove(&id);
            self.driver.tell(TapeEvent::Forget { id });
        }
    }

    fn keep(&mut self) {
        if let Err(error) = self.driver.call(TapeEvent::Keep) {
            let has_failed = self.driver.mover().n_failed > 0;
            assert!(has_failed || !self.is_roomy, "{error}");
            return;
        }
        let witness = self.driver.mover();
        let missing = self.pushed.iter().find(|id| !witness.holds_at_last(**id));
        witness.violations.extend(missing.map(|id| format!("{id:?} is not in the last level")));
    }

    /// Pops a state. A copy that failed is tried again.
    fn pop(&mut self, id: StateId) {
        self.driver.mover().current = id;
        for _ in 0..100 {
            match self.driver.call(TapeEvent::Pop { id }) {
                Ok(popped) => {
                    assert_eq!(popped, id);
                    return;
                }
                Err(error) => assert!(self.driver.mover().n_failed > 0, "{error}"),
            }
        }
        panic!("{id:?} was not given back in 100 attempts");
    }

    fn shuffle(&mut self) {
        for last in (1..self.pushed.len()).rev() {
            let other = below(&mut self.rng, last as u64 + 1) as usize;
            self.pushed.swap(last, other);
        }
    }
}

/// Runs all seeds and returns the violations.
fn violations(may_fail: bool, betrayal: Betrayal, seeds: u64) -> Vec<String> {
    let mut found = Vec::new();
    for seed in 0..seeds {
        let witness = RandomRun::new(seed, may_fail, betrayal).run();
        assert!(witness.n_started() <= WORKS_MAX, "seed {seed}: {} works", witness.n_started());
        if found.len() > 10 {
            break;
        }
        found.extend(witness.violations.into_iter().map(|violation| format!("seed {seed}: {violation}")));
    }
    found
}

#[test]
fn every_state_comes_back_whole_and_no_place_is_misused() {
    assert_eq!(violations(false, Betrayal::None, SEEDS), [""; 0]);
}

#[test]
fn every_state_comes_back_whole_where_work_fails() {
    assert_eq!(violations(true, Betrayal::None, SEEDS), [""; 0]);
}

#[test]
fn misused_places_are_found_whatever_the_book_keeping_gets_wrong() {
    for betrayal in [Betrayal::EarlyCopies, Betrayal::EarlyMemory, Betrayal::HiddenFailures, Betrayal::WrongPlace] {
        let may_fail = betrayal == Betrayal::HiddenFailures;
        assert!(!violations(may_fail, betrayal, 100).is_empty(), "{betrayal:?} was not found");
    }
}
