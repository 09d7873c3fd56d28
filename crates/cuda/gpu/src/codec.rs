//! The kernels of QB in each arrangement, against the bandwidth of the device's memory.

use anyhow::Result;
use recoup::compress::{QbArrangement, QbCuda};
use recoup::core::{Bound, Context};
use recoup::device::DeviceVec;

use crate::figure::{TimedFigure, TurnSample, in_turns};
use crate::measured::MeasuredDevice;
use crate::waves::waves;

/// Values in a line.
const LINE: QbArrangement = QbArrangement { in_tiles: false, is_fitted: false, follows: false, is_halved: false };
/// Values in tiles of their grid.
const TILES: QbArrangement = QbArrangement { in_tiles: true, ..LINE };
/// Tiles predicted by fitted weights.
const FITTED: QbArrangement = QbArrangement { is_fitted: true, ..TILES };

/// Values of a block.
const BLOCK: usize = 4096;

/// An arrangement and a bound.
struct CodecCase {
    name: &'static str,
    arrangement: QbArrangement,
    bound: Bound,
}

const CASES: [CodecCase; 6] = [
    CodecCase { name: "lines, absolute 1e-6", arrangement: LINE, bound: Bound::Absolute(1e-6) },
    CodecCase { name: "lines, pointwise 1e-6", arrangement: LINE, bound: Bound::Pointwise(1e-6) },
    CodecCase { name: "lines, lossless", arrangement: LINE, bound: Bound::Lossless },
    CodecCase { name: "tiles, absolute 1e-6", arrangement: TILES, bound: Bound::Absolute(1e-6) },
    CodecCase { name: "tiles, lossless", arrangement: TILES, bound: Bound::Lossless },
    CodecCase { name: "fitted tiles, absolute 1e-6", arrangement: FITTED, bound: Bound::Absolute(1e-6) },
];

/// Measures all cases, each in turns with the triad.
pub(crate) fn figures(measured: &mut MeasuredDevice) -> Result<Vec<TimedFigure>> {
    let side = measured.sizes.codec_side;
    let values = waves(side);
    let there = DeviceVec::copy_of(&measured.stream, &values)?;
    let context = Context::grid([side; 3]);
    let raw = size_of_val(&values[..]);
    let MeasuredDevice { device, triad, sizes, .. } = measured;
    let mut found = Vec::new();
    for case in CASES {
        let codec = QbCuda::with_slices(device.info().ordinal, values.len().div_ceil(BLOCK))?;
        let codec = codec.with_arrangement(case.arrangement);
        found.extend(in_turns(sizes.turns, || {
            let timing = codec.time_kernels(&values, there.view(), case.bound, &context)?;
            let triad = triad.bytes_per_second()?;
            let name = case.name;
            // Values are read once and the payload is written once, or the other way round.
            let moved = (raw + timing.bytes) as f64;
            Ok(vec![
                TurnSample::ratio(format!("{name}: raw bytes over encoded"), raw, raw as f64 / timing.bytes as f64),
                TurnSample::rate(format!("{name}: encoding"), raw, timing.encode_seconds),
                TurnSample::ratio(
                    format!("{name}: encoding over the triad"),
                    raw,
                    moved / timing.encode_seconds / triad,
                ),
                TurnSample::rate(format!("{name}: decoding"), raw, timing.decode_seconds),
                TurnSample::ratio(
                    format!("{name}: decoding over the triad"),
                    raw,
                    moved / timing.decode_seconds / triad,
                ),
            ])
        })?);
    }
    Ok(found)
}
