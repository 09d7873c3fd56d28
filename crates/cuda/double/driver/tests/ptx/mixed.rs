//! A kernel as the runtime compiler writes it, against a loop on the host: what the kernels of the
//! library do not use. Their own tests compare all else.

use cuda_double::ptx::{Arena, Arguments, INSTRUCTIONS_MAX, Launch, Module, run};
use recoup_device::compile;

const SOURCE: &str = include_str!("mixed.cu");

/// Numbers of all magnitudes, with zeros of both signs and denormals.
fn values(n: usize) -> Vec<f64> {
    let value = |i: usize| match i % 13 {
        3 => -0.0,
        7 => f64::from_bits(1 + i as u64),
        9 => (i as f64 - 50.0) * 1e-300,
        _ => (i as f64 * 0.7).sin(),
    };
    (0..n).map(value).collect()
}

fn expected(x: &[f64]) -> Vec<u64> {
    let n = x.len();
    let weights = [1.0, -2.5, 3.25, 0.5];
    let value = |i: usize| {
        let window: Vec<f64> = (0..8).map(|k| x[(i + k * k) % n] * weights[k % 4]).collect();
        let taken = window[(i * 5) % 8];
        match i % 7 {
            0 => taken.mul_add(2.0, 1.0),
            1 => taken.round_ties_even(),
            2 => f64::from(taken as f32),
            3 => taken.max(0.125),
            4 => f64::from((taken * 1000.0) as i32 / (1 + i as i32)),
            5 => (taken * 64.0).round(),
            _ => -taken,
        }
    };
    (0..n).map(|i| value(i).to_bits()).collect()
}

/// The compiler comes with what `make test` installs, and without it this fails. It writes two
/// dialects for the three architectures.
#[test]
fn atomics_constants_local_arrays_and_jump_tables_of_the_compiler_run() {
    let x = values(100);
    for architecture in ["sm_80", "sm_90", "sm_120"] {
        let module = Module::parse(&compile(SOURCE, "mixed.cu", architecture).unwrap().ptx).unwrap();
        for seed in 0..3 {
            let mut arena = Arena::default();
            let globals: Vec<u64> = module.globals().iter().map(|global| arena.upload(&global.initial)).collect();
            let from = arena.upload(&x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
            let target = arena.allocate(8 * x.len());
            let count = arena.upload(&[0; 4]);
            let arguments = Arguments::default().word(100).double_word(from).double_word(target).double_word(count);
            let launch = Launch {
                kernel: module.kernel("mixed").unwrap(),
                grid: [2, 1, 1],
                block: [64, 1, 1],
                dynamic_shared_bytes: 0,
                parameters: arguments.bytes(),
                globals: &globals,
                seed,
                instructions_max: INSTRUCTIONS_MAX,
            };
            run(&launch, &mut arena).unwrap_or_else(|fault| panic!("{fault}"));
            let found = arena.bytes(target).as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            assert_eq!(found.collect::<Vec<u64>>(), expected(&x), "{architecture}, seed {seed}");
            let positive = x.iter().filter(|x| **x > 0.0).count() as u32;
            assert_eq!(arena.bytes(count), positive.to_le_bytes());
        }
    }
}
