//! Frames on a device that works late, fails a call, or gets lost: lines, tiles, fitted tiles and
//! frames against a parent, both directions.

use recoup_compress::{Qb, QbArrangement, QbCuda};
use recoup_core::{Bound, Chain, Codec, CodecError, Context, Parent, Values, ValuesMut};
use recoup_cuda_double::{Double, Settings};

const SEEDS: u64 = 100;
/// Two tiles, and two blocks of a line.
const DIMS: [usize; 3] = [17, 16, 16];
const BOUND: Bound = Bound::Absolute(1e-4);

const LINE: QbArrangement = QbArrangement { in_tiles: false, is_fitted: false, follows: false, is_halved: false };
const TILES: QbArrangement = QbArrangement { in_tiles: true, ..LINE };
const FITTED: QbArrangement = QbArrangement { is_fitted: true, ..TILES };
const CHAINED: QbArrangement = QbArrangement { follows: true, ..TILES };

/// Values, their parent, and the frame of the host.
struct Scenario {
    arrangement: QbArrangement,
    values: Vec<f64>,
    parent: Vec<f64>,
    frame: Vec<u8>,
    decoded: Vec<f64>,
}

impl Scenario {
    fn new(arrangement: QbArrangement) -> Self {
        let wave = |i: usize, of: f64| (i as f64 * of).sin();
        let at = |i: usize| wave(i % 17, 0.3) + wave(i / 17 % 16, 0.2) + wave(i / 272, 0.4) + 1e-3 * wave(i * i, 0.7);
        let parent: Vec<f64> = (0..DIMS.iter().product()).map(at).collect();
        let values: Vec<f64> = parent.iter().map(|x| x * 1.01).collect();
        let mut scenario = Self { arrangement, decoded: vec![0.0; values.len()], values, parent, frame: Vec::new() };
        let host = Qb::default().with_arrangement(arrangement);
        scenario.frame = scenario.encoded(&host).unwrap();
        scenario.decoded = scenario.decoded(&host).unwrap();
        scenario
    }

    fn context(&self) -> Context<'_> {
        let parent = Parent { values: Values::F64(&self.parent), hash: [3; 16] };
        Context::grid(DIMS).chained(if self.arrangement.follows { Chain::Follow(parent) } else { Chain::Alone })
    }

    fn encoded(&self, codec: &dyn Codec) -> Result<Vec<u8>, CodecError> {
        let mut frame = Vec::new();
        codec.encode(Values::F64(&self.values), BOUND, &self.context(), &mut frame)?;
        Ok(frame)
    }

    fn decoded(&self, codec: &dyn Codec) -> Result<Vec<f64>, CodecError> {
        let mut values = vec![0.0; self.values.len()];
        codec.decode(&self.frame, BOUND, &self.context(), ValuesMut::F64(&mut values))?;
        Ok(values)
    }

    /// Encodes or decodes; right, or the error of the device.
    fn run(&self, codec: &dyn Codec, encodes: bool) -> Result<(), CodecError> {
        match encodes {
            true => assert!(self.encoded(codec)? == self.frame, "{:?}: other bytes", self.arrangement),
            false => {
                let values = self.decoded(codec)?;
                let is_same = values.iter().zip(&self.decoded).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(is_same, "{:?}: other values", self.arrangement);
            }
        }
        Ok(())
    }
}

fn scenarios() -> impl Iterator<Item = (Scenario, bool)> {
    [LINE, TILES, FITTED, CHAINED]
        .into_iter()
        .flat_map(|arrangement| [true, false].map(|encodes| (Scenario::new(arrangement), encodes)))
}

fn open(arrangement: QbArrangement) -> QbCuda {
    QbCuda::with_slices(0, 1).unwrap().with_arrangement(arrangement)
}

#[test]
fn every_order_of_work_gives_the_hosts_bytes() {
    let double = Double::load();
    for (scenario, encodes) in scenarios() {
        double.reset(&Settings::default());
        let codec = open(scenario.arrangement);
        for seed in 0..SEEDS {
            double.change(&Settings { seed, ..Settings::default() });
            scenario.run(&codec, encodes).unwrap();
        }
        drop(codec);
        let report = double.report();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
#[ignore = "minutes of interpreted kernels"]
fn every_call_that_fails_is_an_error_and_the_next_run_is_right() {
    let double = Double::load();
    for (scenario, encodes) in scenarios() {
        double.reset(&Settings::default());
        let codec = open(scenario.arrangement);
        scenario.run(&codec, encodes).unwrap();
        let before = double.report().total_calls();
        scenario.run(&codec, encodes).unwrap();
        let calls = double.report().total_calls() - before;
        assert!(calls > 20, "{calls} calls");
        for call in 1..=calls {
            let before = double.report().total_calls();
            double.change(&Settings { fail_call: Some(before + call), ..Settings::default() });
            match scenario.run(&codec, encodes) {
                Ok(()) | Err(CodecError::Foreign { .. }) => (),
                Err(other) => panic!("call {call}: {other}"),
            }
            double.change(&Settings::default());
            // An error of a call that gives something back is kept, and told by the next.
            scenario.run(&codec, encodes).or_else(|_| scenario.run(&codec, encodes)).unwrap();
        }
    }
}

#[test]
#[ignore = "minutes of interpreted kernels"]
fn a_device_lost_at_any_call_is_an_error() {
    let double = Double::load();
    for (scenario, encodes) in scenarios() {
        double.reset(&Settings::default());
        let codec = open(scenario.arrangement);
        scenario.run(&codec, encodes).unwrap();
        let before = double.report().total_calls();
        scenario.run(&codec, encodes).unwrap();
        let calls = double.report().total_calls() - before;
        drop(codec);
        for call in 1..=calls {
            double.reset(&Settings::default());
            let codec = open(scenario.arrangement);
            let made = double.report().total_calls();
            double.change(&Settings { lost_at: Some(made + call), ..Settings::default() });
            let result = scenario.run(&codec, encodes);
            assert!(matches!(result, Err(CodecError::Foreign { .. })), "call {call}: {result:?}");
            drop(codec);
        }
    }
    double.reset(&Settings::default());
}
