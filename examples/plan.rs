//! Planning for a machine one does not own: how often to save, how exactly, and when lossy stops
//! paying.
//!
//! Nothing is solved here: the model needs only sizes, rates and the mean time to interrupt.
//! `cargo run --release -p recoup-examples --example plan`

use recoup::core::{BoundRule, Scheme};
use recoup::model::break_even::{CodecRates, LossyBreakEven};
use recoup::model::decide::{MachineBandwidths, Question};
use recoup::model::interval::Checkpointing;
use recoup::model::residual_bound::{Norms, bound};

/// Mean time to interrupt of the whole job: an hour.
const MTTI_SECONDS: f64 = 3600.0;
/// Unknowns: 2160^3, as in the published experiments (doi 10.1145/3208040.3208050).
const UNKNOWNS: f64 = 2160.0 * 2160.0 * 2160.0;
/// Time of one iteration on that machine.
const ITERATION_SECONDS: f64 = 1.2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One vector of 2160^3 doubles takes two minutes to write.
    let vector_bytes = 8.0 * UNKNOWNS;
    let machine = MachineBandwidths {
        write_bytes_per_second: vector_bytes / 120.0,
        read_bytes_per_second: vector_bytes / 120.0,
        copy_bytes_per_second: 4e9,
        ranks: 2048,
    };

    // How often: Young's interval, and the exact optimum for exponential failures.
    let young = Checkpointing { mtti_seconds: MTTI_SECONDS, checkpoint_seconds: 120.0 };
    println!(
        "raw, 120 s a version: every {:.0} s (Young), {:.0} s (exact)",
        young.young_seconds(),
        young.exact_seconds()
    );

    // How exactly: what each scheme costs a job that has 35 minutes of computing ahead.
    let lossless = CodecRates { ratio: 1.2, encode_bytes_per_second: 300e6, decode_bytes_per_second: 600e6 };
    let lossy = CodecRates { ratio: 4.8, encode_bytes_per_second: 200e6, decode_bytes_per_second: 400e6 };
    let costs = vec![
        (Scheme::Traditional, machine.cost(vector_bytes, &CodecRates::RAW)),
        (Scheme::Lossless, machine.cost(vector_bytes, &lossless)),
        (Scheme::Lossy, machine.cost(vector_bytes, &lossy)),
    ];
    let question = Question {
        mtti_seconds: MTTI_SECONDS,
        iteration_seconds: ITERATION_SECONDS,
        remaining_seconds: 35.0 * 60.0,
        at_risk_seconds: 0.0,
        asynchronous: false,
        costs,
        safe_point_seconds: 0.0,
    };
    let answer = question.answer(0.0);
    println!("decision: {}", question.why_of(&answer, answer.scheme));

    // When lossy stops paying: Theorem 1, extra iterations a recovery may cost.
    let break_even = LossyBreakEven {
        mtti_seconds: MTTI_SECONDS,
        traditional_seconds: 120.0,
        lossy_seconds: 25.0,
        iteration_seconds: ITERATION_SECONDS,
    };
    println!("lossy pays up to {:.1} extra iterations per recovery", break_even.max_extra_iterations());

    // How exact is exact enough: the bound that lets the residual grow by at most half, from norms
    // alone; a session then measures it before a version counts.
    let norms = Norms {
        residual: 1e-3,
        rhs: UNKNOWNS.sqrt(),
        iterate: 1e3 * UNKNOWNS.sqrt(),
        n: UNKNOWNS as u64,
        // The 7-point Laplacian has rows of one 6 and six -1.
        frobenius: Some((42.0 * UNKNOWNS).sqrt()),
        spectral_bound: Some(12.0),
        abs_product: None,
    };
    for rule in [BoundRule::Statistical, BoundRule::Guaranteed] {
        println!("{rule}: {}", bound(rule, &norms, 0.5)?);
    }
    Ok(())
}
