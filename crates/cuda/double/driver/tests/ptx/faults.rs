//! Faults say what, where, and by which thread.

use super::harness::{Trial, kernel};
use cuda_double::ptx::{Arena, DeviceFault, Launch, Module, run};

/// The line of `needle` in a text, from 1.
fn line_of(text: &str, needle: &str) -> usize {
    text.lines().position(|line| line.contains(needle)).unwrap() + 1
}

#[test]
fn a_register_without_a_value_is_named() {
    for (body, register) in [
        ("add.s32 %r0, %r6, 1;", "%r6"),
        ("@%p7 mov.u32 %r0, 1;", "%p7"),
        ("st.global.u32 [%o], %r6;", "%r6"),
        ("ld.global.u32 %r6, [%d6];", "%d6"),
        ("bar.red.or.pred %p2, 0, %p7;", "%p7"),
        ("vote.sync.any.pred %p7, %p8, -1;", "%p8"),
        // Written on one of two ways only.
        ("@%p1 bra SKIP; mov.u32 %r6, 1; SKIP: add.s32 %r0, %r6, 1;", "%r6"),
        ("@%p1 mov.u32 %r6, 1; @!%p1 mov.u32 %r6, %r7;", "%r7"),
    ] {
        let text = kernel(body);
        let trial = Trial { numbers: [u64::from(body.contains("bra")), 0, 0, 0], ..Trial::new(&text, 1) };
        assert_eq!(trial.fault(), DeviceFault::Unset { register: register.to_owned() }, "{body}");
    }
    // Written by the guard or the branch that was taken.
    for body in [
        "@%p1 mov.u32 %r6, 1; @!%p1 mov.u32 %r6, 2; cvt.u64.u32 %d0, %r6; st.global.u64 [%o], %d0;",
        "@%p1 bra SKIP; mov.u32 %r6, 2; SKIP: @!%p1 add.s32 %r6, %r6, 0; mov.u64 %d0, 2; st.global.u64 [%o], %d0;",
    ] {
        assert_eq!(Trial::new(&kernel(body), 1).run().unwrap(), [2], "{body}");
    }
}

#[test]
fn each_block_begins_without_values() {
    let text = kernel("mov.u32 %r6, %ctaid.x; setp.ne.u32 %p6, %r6, 0; @!%p6 mov.u32 %r7, 1; mov.u32 %r0, %r7;");
    let module = Module::parse(&text).unwrap();
    let parameters = [0; 40];
    let launch = Launch {
        kernel: module.kernel("test").unwrap(),
        grid: [2, 1, 1],
        block: [1, 1, 1],
        dynamic_shared_bytes: 0,
        parameters: &parameters,
        globals: &[],
        seed: 0,
        instructions_max: 1000,
    };
    let fault = run(&launch, &mut Arena::default()).unwrap_err();
    assert_eq!((fault.block, fault.fault), ([1, 0, 0], DeviceFault::Unset { register: "%r7".to_owned() }));
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
