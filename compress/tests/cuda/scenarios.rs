//! Frames on a device that works late, fails a call, or gets lost: lines, tiles, fitted tiles and
//! frames against a parent, both directions, from and to the host and where values are stored.

use recoup_compress::{Qb, QbArrangement, QbCuda};
use recoup_core::{
    Bound, Chain, Codec, CodecError, CodecId, CodecResult, Context, DeviceFrame, DeviceParent, DeviceSnapshot,
    DeviceValuesError, Parent, Values, ValuesMut,
};
use recoup_cuda_double::{Double, Settings};

use super::held::{START, rest};

const SEEDS: u64 = 100;
/// Two tiles, and two blocks of a line. A slice of one tile is one copy: with tiles next to each
/// other in a row it would be one for each row, and each of those copies would fail in turn.
const DIMS: [usize; 3] = [16, 16, 17];
const HASH: [u8; 16] = [3; 16];
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
        let at = |i: usize| wave(i % 16, 0.3) + wave(i / 16 % 16, 0.2) + wave(i / 256, 0.4) + 1e-3 * wave(i * i, 0.7);
        let parent: Vec<f64> = (0..DIMS.iter().product()).map(at).collect();
        let values: Vec<f64> = parent.iter().map(|x| x * 1.01).collect();
        let mut scenario = Self { arrangement, decoded: vec![0.0; values.len()], values, parent, frame: Vec::new() };
        let host = Qb::default().with_arrangement(arrangement);
        scenario.frame = scenario.encoded(&host).unwrap();
        scenario.decoded = scenario.decoded(&host).unwrap();
        scenario
    }

    fn context(&self) -> Context<'_> {
        let parent = Parent { values: Values::F64(&self.parent), hash: HASH };
        Context::grid(DIMS).chained(if self.arrangement.follows { Chain::Follow(parent) } else { Chain::Alone })
    }

    fn encoded(&self, codec: &dyn Codec) -> CodecResult<Vec<u8>> {
        let mut frame = Vec::new();
        codec.encode(Values::F64(&self.values), BOUND, &self.context(), &mut frame)?;
        Ok(frame)
    }

    fn decoded(&self, codec: &dyn Codec) -> CodecResult<Vec<f64>> {
        let mut values = vec![0.0; self.values.len()];
        codec.decode(&self.frame, BOUND, &self.context(), ValuesMut::F64(&mut values))?;
        Ok(values)
    }

    /// The context of values that are stored on the device: their parent does, too.
    fn device_context(&self) -> Context<'static> {
        Context::grid(DIMS).chained(if self.arrangement.follows { Chain::Start } else { Chain::Alone })
    }

    /// Runs one way; right, or the error of the device.
    fn run(&self, codec: &dyn Codec, way: Way, places: &mut Places) -> CodecResult<()> {
        match way {
            Way::Encode => self.check_frame(&self.encoded(codec)?),
            Way::Decode => self.check_values(&self.decoded(codec)?),
            Way::EncodeOnDevice => {
                let source =
                    DeviceFrame { values: places.values.as_ref(), start: START, parent: places.parent_of(self) };
                let mut frame = Vec::new();
                codec.encode_on_device(&source, BOUND, &self.device_context(), &mut frame).unwrap()?;
                self.check_frame(&frame);
            }
            Way::DecodeOnDevice => {
                let parent =
                    self.arrangement.follows.then(|| DeviceParent { values: places.parent.as_ref(), hash: HASH });
                let foreign =
                    |error: DeviceValuesError| CodecError::Foreign { codec: CodecId::Qb, message: error.to_string() };
                let target = places.target.as_mut();
                let mut all = vec![0.0; target.len()];
                target.put(0, Values::F64(&all)).map_err(foreign)?;
                codec.decode_on_device(&self.frame, BOUND, &self.device_context(), parent, target, START).unwrap()?;
                target.fetch(0, ValuesMut::F64(&mut all)).map_err(foreign)?;
                self.check_values(&all[START..START + self.values.len()]);
            }
        }
        Ok(())
    }

    fn check_frame(&self, frame: &[u8]) {
        assert!(frame == self.frame, "{:?}: other bytes", self.arrangement);
    }

    fn check_values(&self, values: &[f64]) {
        let is_same = values.iter().zip(&self.decoded).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(is_same, "{:?}: other values", self.arrangement);
    }
}

/// The direction of a frame, and the place of its values: the host's memory, or the device's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Encode,
    Decode,
    EncodeOnDevice,
    DecodeOnDevice,
}

/// The values of a scenario on the device, and room for those decoded.
struct Places {
    values: Box<dyn DeviceSnapshot>,
    parent: Box<dyn DeviceSnapshot>,
    target: Box<dyn DeviceSnapshot>,
}

impl Places {
    fn new(scenario: &Scenario, codec: &QbCuda) -> Self {
        let rest = |values: &[f64]| rest(codec.device(), Values::F64(values));
        let zeros = vec![0.0; scenario.values.len()];
        Self { values: rest(&scenario.values), parent: rest(&scenario.parent), target: rest(&zeros) }
    }

    fn parent_of(&self, scenario: &Scenario) -> Option<DeviceParent<'_>> {
        scenario.arrangement.follows.then(|| DeviceParent { values: self.parent.as_ref(), hash: HASH })
    }
}

fn scenarios() -> impl Iterator<Item = (Scenario, Way)> {
    let ways = [Way::Encode, Way::Decode, Way::EncodeOnDevice, Way::DecodeOnDevice];
    [LINE, TILES, FITTED, CHAINED]
        .into_iter()
        .flat_map(move |arrangement| ways.map(|way| (Scenario::new(arrangement), way)))
}

fn open(arrangement: QbArrangement) -> QbCuda {
    QbCuda::with_slices(0, 1).unwrap().with_arrangement(arrangement)
}

#[test]
fn every_order_of_work_gives_the_hosts_bytes() {
    let double = Double::load();
    // A scenario of a line or of plain tiles has no work where values rest that these lack.
    let is_told = |scenario: &Scenario, way: Way| {
        let is_near = matches!(way, Way::Encode | Way::Decode);
        is_near || [FITTED, CHAINED].contains(&scenario.arrangement)
    };
    for (scenario, way) in scenarios().filter(|(scenario, way)| is_told(scenario, *way)) {
        double.reset(&Settings::default());
        let codec = open(scenario.arrangement);
        let mut places = Places::new(&scenario, &codec);
        for seed in 0..SEEDS {
            double.change(&Settings { seed, ..Settings::default() });
            scenario.run(&codec, way, &mut places).unwrap();
        }
        drop((places, codec));
        let report = double.report();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
#[ignore = "two minutes of interpreted kernels"]
fn every_call_that_fails_is_an_error_and_the_next_run_is_right() {
    let double = Double::load();
    for (scenario, way) in scenarios() {
        double.reset(&Settings::default());
        let codec = open(scenario.arrangement);
        let mut places = Places::new(&scenario, &codec);
        scenario.run(&codec, way, &mut places).unwrap();
        let before = double.report().total_calls();
        scenario.run(&codec, way, &mut places).unwrap();
        let calls = double.report().total_calls() - before;
        println!("{:?}, {way:?}: {calls} calls", scenario.arrangement);
        assert!(calls > 20, "{calls} calls");
        for call in 1..=calls {
            let before = double.report().total_calls();
            double.change(&Settings { fail_call: Some(before + call), ..Settings::default() });
            match scenario.run(&codec, way, &mut places) {
                Ok(()) | Err(CodecError::Foreign { .. }) => (),
                Err(other) => panic!("{way:?}, call {call}: {other}"),
            }
            double.change(&Settings::default());
            // An error of a call that gives something back is kept, and told by the next.
            let again = scenario.run(&codec, way, &mut places);
            again.or_else(|_| scenario.run(&codec, way, &mut places)).unwrap();
        }
    }
}

#[test]
#[ignore = "minutes of interpreted kernels"]
fn a_device_lost_at_any_call_is_an_error() {
    let double = Double::load();
    for (scenario, way) in scenarios() {
        double.reset(&Settings::default());
        let codec = open(scenario.arrangement);
        let mut places = Places::new(&scenario, &codec);
        scenario.run(&codec, way, &mut places).unwrap();
        let before = double.report().total_calls();
        scenario.run(&codec, way, &mut places).unwrap();
        let calls = double.report().total_calls() - before;
        drop((places, codec));
        for call in 1..=calls {
            double.reset(&Settings::default());
            let codec = open(scenario.arrangement);
            let mut places = Places::new(&scenario, &codec);
            let made = double.report().total_calls();
            double.change(&Settings { lost_at: Some(made + call), ..Settings::default() });
            let result = scenario.run(&codec, way, &mut places);
            assert!(matches!(result, Err(CodecError::Foreign { .. })), "{way:?}, call {call}: {result:?}");
            drop((places, codec));
        }
    }
    double.reset(&Settings::default());
}
