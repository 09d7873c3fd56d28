//! Faults say what, where, and by which thread.

use super::harness::{Trial, kernel};
use cuda_double::ptx::{Arena, DeviceFault, Launch, Module, run};

/// The line of `needle` in a text, from 1.
fn line_of(text: &str, needle: &str) -> usize {
    text.lines().position(|line| line.contains(needle)).unwrap() + 1
}

#[test]
fn a_fault_names_its_kernel_block_thread_and_line() {
    let text = kernel("setp.eq.u32 %p6, %t, 37;\n@%p6 trap;");
    let fault = Trial::new(&text, 64).run().unwrap_err();
    assert_eq!((fault.kernel.as_str(), fault.block, fault.thread), ("test", [0, 0, 0], [37, 0, 0]));
    assert_eq!((fault.line, &fault.fault), (line_of(&text, "trap"), &DeviceFault::Trap));
    let line = fault.line;
    assert_eq!(fault.to_string(), format!("test, block [0, 0, 0], thread [37, 0, 0], line {line}: trap"));
}

#[test]
fn an_endless_loop_is_a_fault() {
    let fault = Trial::new(&kernel("LOOP: bra.uni LOOP;"), 1).fault();
    assert_eq!(fault, DeviceFault::Endless { instructions: 1_000_000 });
}

#[test]
fn a_thread_that_waits_in_a_loop_is_not_alone() {
    // Thread 0 waits until thread 1 has written.
    let text = kernel(
        "setp.eq.u32 %p6, %t, 1; @%p6 bra WRITE;\n\
         LOOP: ld.global.u64 %d1, [%o+8]; setp.ne.u64 %p7, %d1, 7; @%p7 bra LOOP; st.global.u64 [%o], %d1; ret;\n\
         WRITE: mov.u64 %d1, 7; st.global.u64 [%o], %d1;",
    );
    for seed in 0..5 {
        assert_eq!(Trial { seed, ..Trial::new(&text, 2) }.run().unwrap(), [7, 7]);
    }
}

#[test]
fn launches_past_the_limits_are_refused() {
    let text = ".version 9.0 .target sm_90 .address_size 64 .global .u32 v;\n\
                .entry test(.param .u64 x) .maxntid 64 { ret; }\n\
                .entry named() { .reg .b64 %d; mov.u64 %d, v; ret; }";
    let module = Module::parse(text).unwrap();
    let launch = |name: &str| Launch {
        kernel: module.kernel(name).unwrap(),
        grid: [1, 1, 1],
        block: [32, 2, 1],
        dynamic_shared_bytes: 0,
        parameters: &[0; 8],
        globals: &[4096],
        seed: 0,
        instructions_max: 10_000,
    };
    let refused = |launch: Launch<'_>| matches!(run(&launch, &mut Arena::default()), Err(fault) if matches!(fault.fault, DeviceFault::Launch { .. }));
    for name in ["test", "named"] {
        assert!(!refused(launch(name)), "{name}");
    }
    for grid in [[0, 1, 1], [1, 65_536, 1], [1, 1, 65_536], [0x8000_0000, 1, 1]] {
        assert!(refused(Launch { grid, ..launch("test") }), "{grid:?}");
    }
    for block in [[0, 1, 1], [65, 1, 1], [1, 1, 65], [64, 2, 1]] {
        assert!(refused(Launch { block, ..launch("test") }), "{block:?}");
    }
    assert!(refused(Launch { block: [1024, 2, 1], ..launch("named") }));
    assert!(refused(Launch { parameters: &[0; 7], ..launch("test") }));
    assert!(refused(Launch { globals: &[], ..launch("named") }));
    assert!(refused(Launch { dynamic_shared_bytes: 227 * 1024 + 1, ..launch("test") }));
}
