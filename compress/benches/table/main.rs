//! Every codec on the vectors of real solves, in turns: `cargo xtask codecs`.
//!
//! Ratio, compress and decompress rates of one core (median over the repeats of uncompressed bytes
//! over CPU time of the thread, so that busy neighbours cost little) and the largest error over the
//! bound. Codecs take turns within a repeat. Where SZ3 is built, a line for each bound has the
//! figures of pyramid over those of SZ3. With `--drawn`, the ratios of vectors drawn by a seed.

mod drawn;
mod vectors;
#[path = "../../tests/zfp_oracle/sys.rs"]
mod zfp_c;

use clap::Parser;
use recoup_compress::{Pco, Pyramid, Qb, Zfp, Zstd, effective_bound};
use recoup_core::{Bound, Chain, Codec, Context, Parent, Values, ValuesMut};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::vectors::Vector;

/// Options.
#[derive(Parser)]
struct Args {
    /// Turns of every codec.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Only vectors whose name has this in it; others are not computed.
    #[arg(long, default_value = "")]
    vector: String,
    /// Draw grids, methods, right-hand sides and instants by this seed, and print ratios alone.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["repeats", "vector", "json"])]
    drawn: Option<u64>,
    /// Vectors that are drawn, each a row for every bound.
    #[arg(long, default_value_t = 34, requires = "drawn")]
    count: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The parent's hash, of which only sameness matters.
const HASH: [u8; 16] = [1; 16];

/// A codec, and how it is used.
struct CodecCase {
    name: &'static str,
    codec: Option<Box<dyn Codec>>,
    /// Of the value range, or exact.
    bound: Bound,
    arrangement: CaseArrangement,
}

#[derive(Clone, Copy, PartialEq)]
enum CaseArrangement {
    /// As the vector lies.
    Own,
    /// As a line without stride.
    Line,
    /// Against what the vector was before.
    Chain,
    /// As the vector lies, for a storage so fast that bytes hardly count.
    Fast,
}

/// Bytes per second of a storage faster than any codec.
const FAST: f64 = 1e11;

fn codec_cases() -> Vec<CodecCase> {
    use CaseArrangement::{Chain, Fast, Line, Own};
    let mut codec_cases = Vec::new();
    let mut add = |name, codec: fn() -> Option<Box<dyn Codec>>, bound, arrangement| {
        codec_cases.push(CodecCase { name, codec: codec(), bound, arrangement });
    };
    for e in [1e-3, 1e-4, 1e-5, 1e-6] {
        let range = Bound::Range(e);
        add("qb", || Some(Box::new(Qb::default())), range, Own);
        add("qb fast", || Some(Box::new(Qb::default())), range, Fast);
        add("qb line", || Some(Box::new(Qb::default())), range, Line);
        add("qb chain", || Some(Box::new(Qb::default())), range, Chain);
        add("qb pointwise", || Some(Box::new(Qb::default())), Bound::Pointwise(e), Own);
        add("pyramid", || Some(Box::new(Pyramid::default())), range, Own);
        add("pco", || Some(Box::new(Pco)), range, Own);
        add("zfp-rs", || Some(Box::new(Zfp)), range, Own);
        add("zfp C", || None, range, Own);
        #[cfg(feature = "sz3")]
        add("sz3", || Some(Box::new(recoup_compress::Sz3)), range, Own);
    }
    add("qb", || Some(Box::new(Qb::default())), Bound::Lossless, Own);
    add("pco", || Some(Box::new(Pco)), Bound::Lossless, Own);
    add("zstd", || Some(Box::new(Zstd)), Bound::Lossless, Own);
    codec_cases
}

/// The measurements of one case on one vector.
#[derive(Default)]
struct Cell {
    bytes: usize,
    encode: Vec<f64>,
    decode: Vec<f64>,
    /// Largest error over the bound; over the value for pointwise bounds.
    error: f64,
}

/// CPU seconds of this thread.
fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

fn main() {
    let args = Args::parse();
    if let Some(seed) = args.drawn {
        drawn::print(seed, args.count);
        return;
    }
    let vectors: Vec<Vector> = vectors::named(&args.vector);
    let codec_cases = codec_cases();
    for vector in &vectors {
        let mut cells: Vec<Option<Cell>> =
            codec_cases.iter().map(|case| applies(case, vector).then(Cell::default)).collect();
        for _ in 0..args.repeats {
            for (case, cell) in codec_cases.iter().zip(&mut cells) {
                if let Some(cell) = cell {
                    turn(case, vector, cell);
                }
            }
        }
        print(vector, &codec_cases, &mut cells, args.json);
    }
}

fn applies(case: &CodecCase, vector: &Vector) -> bool {
    match case.arrangement {
        CaseArrangement::Own => true,
        CaseArrangement::Line | CaseArrangement::Fast => vector.context != Context::flat(vector.values.len()),
        CaseArrangement::Chain => vector.before.is_some(),
    }
}

/// Encodes and decodes once.
fn turn(case: &CodecCase, vector: &Vector, cell: &mut Cell) {
    let x = &vector.values;
    let bound = effective_bound(Values::F64(x), case.bound).expect("a bound");
    let Some(codec) = &case.codec else {
        let start = cpu_seconds();
        cell.bytes = zfp_c::compress(Values::F64(x), vector.context.dims, bound).len();
        cell.encode.push(rate(x, cpu_seconds() - start));
        return;
    };
    let before = vector.before.as_ref().filter(|_| case.arrangement == CaseArrangement::Chain);
    let parent = before.map(|before| decoded(&**codec, before, bound, &vector.context));
    let mut context = if case.arrangement == CaseArrangement::Line { Context::flat(x.len()) } else { vector.context };
    context.bandwidth = (case.arrangement == CaseArrangement::Fast).then_some(FAST);
    if let Some(parent) = &parent {
        context = context.chained(Chain::Follow(Parent { values: Values::F64(parent), hash: HASH }));
    }
    let mut payload = Vec::new();
    // Memory that was written before, as that of a solver is: the first touch of a page takes as
    // long as decoding it.
    let mut target = vec![f64::NAN; x.len()];
    let start = cpu_seconds();
    let encoded = codec.encode(Values::F64(x), bound, &context, &mut payload).expect("encodes");
    cell.encode.push(rate(x, cpu_seconds() - start));
    cell.bytes = payload.len();
    if encoded.stored_raw {
        return;
    }
    let start = cpu_seconds();
    codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut target)).expect("decodes");
    cell.decode.push(rate(x, cpu_seconds() - start));
    let errors = x.iter().zip(&target).map(|(x, y)| match bound {
        Bound::Pointwise(e) if *x != 0.0 => (x - y).abs() / x.abs() / e,
        Bound::Absolute(e) => (x - y).abs() / e,
        _ => (x - y).abs(),
    });
    cell.error = errors.fold(0.0, f64::max);
}

/// The vector some iterations before, as a version gives it back.
fn decoded(codec: &dyn Codec, before: &[f64], bound: Bound, context: &Context) -> Vec<f64> {
    let mut payload = Vec::new();
    let mut target = vec![0.0; before.len()];
    let context = context.chained(Chain::Start);
    let encoded = codec.encode(Values::F64(before), bound, &context, &mut payload).expect("encodes");
    codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut target)).expect("decodes");
    target
}

/// GB/s.
fn rate(x: &[f64], seconds: f64) -> f64 {
    size_of_val(x) as f64 / seconds / 1e9
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The figures of a case, as the median of its turns.
#[derive(Clone, Copy)]
struct Figures {
    ratio: f64,
    encode: f64,
    decode: f64,
}

impl Figures {
    fn of(cell: &mut Cell, vector: &Vector) -> Self {
        let ratio = size_of_val(&vector.values[..]) as f64 / cell.bytes as f64;
        Self { ratio, encode: median(&mut cell.encode), decode: median(&mut cell.decode) }
    }

    fn over(self, other: Self) -> Self {
        let Self { ratio, encode, decode } = other;
        Self { ratio: self.ratio / ratio, encode: self.encode / encode, decode: self.decode / decode }
    }
}

fn print(vector: &Vector, codec_cases: &[CodecCase], cells: &mut [Option<Cell>], as_json: bool) {
    if !as_json {
        println!("\n{} ({} values)", vector.name, vector.values.len());
        println!(
            "{:>16} {:<16} {:>9} {:>12} {:>12} {:>12}",
            "bound", "codec", "ratio", "encode GB/s", "decode GB/s", "error/bound"
        );
    }
    let mut qb = 0.0;
    let mut pyramid = None;
    for (case, cell) in codec_cases.iter().zip(cells) {
        let Some(cell) = cell else { continue };
        let figures = Figures::of(cell, vector);
        let bound = case.bound.to_string();
        let Figures { ratio, encode, decode } = figures;
        if as_json {
            let row = json!({ "vector": vector.name, "values": vector.values.len(), "bound": bound,
                "codec": case.name, "ratio": ratio, "encode_gb_per_s": encode, "decode_gb_per_s": decode,
                "error_over_bound": cell.error });
            println!("{row}");
        } else {
            println!("{bound:>16} {:<16} {ratio:>9.2} {encode:>12.2} {decode:>12.2} {:>12.3}", case.name, cell.error);
        }
        match (case.name, pyramid) {
            ("qb", _) => qb = ratio,
            ("pyramid", _) => pyramid = Some(figures),
            ("sz3", Some(pyramid)) => {
                print_over_sz3(vector, &bound, pyramid.over(figures), f64::max(qb, pyramid.ratio) / ratio, as_json);
            }
            _ => {}
        }
    }
}

/// Prints the figures of pyramid over those of SZ3 at the same bound, and the ratio of the smaller
/// frame of QB and pyramid.
fn print_over_sz3(vector: &Vector, bound: &str, pyramid: Figures, smaller: f64, as_json: bool) {
    let Figures { ratio, encode, decode } = pyramid;
    let name = "pyramid over sz3";
    if as_json {
        let row = json!({ "vector": vector.name, "values": vector.values.len(), "bound": bound, "codec": name,
            "ratio_over_sz3": ratio, "encode_over_sz3": encode, "decode_over_sz3": decode,
            "smaller_of_qb_and_pyramid_over_sz3": smaller });
        println!("{row}");
    } else {
        println!("{bound:>16} {name:<16} {:>9} {:>12} {:>12}", times(ratio), times(encode), times(decode));
        println!("{bound:>16} {:<16} {:>9}", "smaller over sz3", times(smaller));
    }
}

fn times(factor: f64) -> String {
    format!("x {factor:.2}")
}
