//! Writes frames for the target `pyramid` to start from, each behind the two bytes that choose type
//! and stride: `cargo run --manifest-path crates/fuzz/Cargo.toml --example seeds`. Without them the
//! fuzzer hardly gets past the head of a frame.

use std::error::Error;
use std::f64::consts::TAU;
use std::path::Path;

use recoup_compress::Pyramid;
use recoup_core::{Bound, Codec, Context, Values, mix};

/// Extents of the frames that the target decodes, the fastest first.
const EXTENTS: [usize; 3] = [9, 8, 7];
const N: usize = EXTENTS[0] * EXTENTS[1] * EXTENTS[2];
/// Bounds of values of about 1, from those with which all of a frame is zero to those beyond which
/// frames are QB's.
const BOUNDS: [f64; 7] = [10.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9];

/// Fields by their name, functions of a point of the unit cube and of the number of the value.
const FIELDS: [(&str, fn([f64; 3], u64) -> f64); 8] = [
    ("zero", |_, _| 0.0),
    ("slope", |[x, y, z], _| x + 2.0 * y - z),
    ("waves", |[x, y, z], _| (TAU * x).sin() * (TAU * y).cos() * (TAU * z).sin()),
    ("hill", |p, _| p.map(|t| t * (1.0 - t)).iter().product()),
    ("plateau", |[x, _, _], _| if x < 0.5 { 1.0 } else { (x - 0.5).powi(3) }),
    ("noise", |_, i| (mix(i) >> 11) as f64 / 9007199254740992.0),
    ("spikes", |[x, y, _], i| if i % 97 == 5 { 1e30 } else { x * y }),
    ("exceptions", |[x, y, z], i| [f64::NAN, f64::INFINITY, -0.0, x + y * z][(mix(i) % 8).min(3) as usize]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/pyramid");
    std::fs::create_dir_all(&folder)?;
    let mut n_seeds = 0;
    for (name, field) in FIELDS {
        let doubles: Vec<f64> = (0..N).map(|i| field(point(i), i as u64)).collect();
        let singles: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
        for (number, bound) in BOUNDS.into_iter().enumerate() {
            for (is_single, stride) in [(false, 1), (true, 1), (false, 3), (false, 8)] {
                let source = if is_single { Values::F32(&singles) } else { Values::F64(&doubles) };
                let mut seed = vec![u8::from(is_single), stride];
                let context = Context { stride: usize::from(stride), ..Context::grid(EXTENTS) };
                if Pyramid::default().encode(source, Bound::Absolute(bound), &context, &mut seed)?.stored_raw {
                    continue;
                }
                std::fs::write(folder.join(format!("{name}-{number}-{is_single}-{stride}")), seed)?;
                n_seeds += 1;
            }
        }
    }
    println!("{n_seeds} seeds in {}", folder.display());
    Ok(())
}

/// The place of a value in the unit cube.
fn point(i: usize) -> [f64; 3] {
    let [nx, ny, _] = EXTENTS;
    let at = [i % nx, i / nx % ny, i / nx / ny];
    std::array::from_fn(|axis| at[axis] as f64 / (EXTENTS[axis] - 1) as f64)
}
