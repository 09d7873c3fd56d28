//! The speed of QB on the first CUDA device: kernels alone, and from the device's memory to a frame
//! on the host.
//!
//! `cargo bench -p recoup-compress --features cuda --bench cuda`; says so and ends where there is
//! no device.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use recoup_compress::QbCuda;
use recoup_core::Bound;
use recoup_device::{DeviceVec, DeviceView, HostBuffer, Stream};

/// Values of a slice, the most that kernels are timed on.
const SLICE: usize = 1 << 23;
const SLICES: usize = 32;
const REPEATS: usize = 5;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let codec = match QbCuda::open(0) {
        Ok(codec) => codec,
        Err(error) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
    };
    let info = codec.device().info();
    println!("{}, compute capability {}", info.name, info.capability);
    let stream = Stream::new(codec.device())?;
    let vectors = [("smooth", smooth(SLICE * SLICES)), ("noisy", noisy(SLICE * SLICES))];
    println!("| vector | bound | ratio | encode GB/s | decode GB/s | to host GB/s | plain copy GB/s |");
    println!("|---|---|---|---|---|---|---|");
    for (name, values) in &vectors {
        let resident = DeviceVec::copy_of(&stream, values)?;
        let copy = copy_rate(&stream, resident.slice(0..SLICE))?;
        let bounds = [Bound::Absolute(1e-3), Bound::Absolute(1e-6), Bound::Pointwise(1e-4), Bound::Lossless];
        for bound in bounds {
            let row = measure(&codec, resident.view(), bound)?;
            println!(
                "| {name} | {bound:?} | {:.2} | {:.0} | {:.0} | {:.1} | {copy:.1} |",
                row[0], row[1], row[2], row[3]
            );
        }
    }
    Ok(())
}

/// A sum of waves, as a converged iterate looks along a row.
fn smooth(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 1e-3).sin() + 0.1 * (i as f64 * 0.037).cos()).collect()
}

/// The same under noise of 1e-3, from a linear congruence.
fn noisy(n: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut values = smooth(n);
    for x in &mut values {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *x += 1e-3 * (state >> 11) as f64 / (1u64 << 53) as f64;
    }
    values
}

/// Ratio; raw bytes a second of the kernels that encode and decode, and of the whole way to a frame
/// on the host.
fn measure(codec: &QbCuda, values: DeviceView<'_, f64>, bound: Bound) -> Result<[f64; 4], Failure> {
    let mut times =
        (0..REPEATS).map(|_| codec.time_kernels(values.slice(0..SLICE), bound)).collect::<Result<Vec<_>, _>>()?;
    let raw = (SLICE * 8) as f64;
    times.sort_by(|a, b| a.encode_seconds.total_cmp(&b.encode_seconds));
    let encode = raw / times[REPEATS / 2].encode_seconds * 1e-9;
    times.sort_by(|a, b| a.decode_seconds.total_cmp(&b.decode_seconds));
    let decode = raw / times[REPEATS / 2].decode_seconds * 1e-9;
    let mut target = Vec::new();
    codec.encode_resident(values, bound, 1, &mut target)?;
    let start = Instant::now();
    codec.encode_resident(values, bound, 1, &mut target)?;
    let effective = (values.len() * 8) as f64 / start.elapsed().as_secs_f64() * 1e-9;
    Ok([(values.len() * 8) as f64 / target.len() as f64, encode, decode, effective])
}

/// Bytes a second of a copy to page-locked memory of the host.
fn copy_rate(stream: &Stream, values: DeviceView<'_, f64>) -> Result<f64, Failure> {
    let target = HostBuffer::registered(stream.device(), values.bytes())?;
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = Instant::now();
        target.store(stream, values, 0)?.wait()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(values.bytes() as f64 / best * 1e-9)
}
