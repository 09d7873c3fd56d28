//! Memories: global, constant, shared, local, parameters, and addresses of any of them.

use super::harness::{Trial, kernel, kernel_with};
use cuda_double::ptx::{DeviceFault, Module};

/// What one thread leaves.
fn left(text: &str) -> u64 {
    Trial::new(text, 1).run().unwrap_or_else(|fault| panic!("{fault}: {text}"))[0]
}

#[test]
fn parameters_lie_at_multiples_of_their_alignments() {
    let text = ".version 9.0 .target sm_90 .address_size 64\n.entry k(.param .u8 a, .param .align 8 .b8 b[12], \
                .param .u32 c, .param .u64 .ptr .global .align 4 d) .maxntid 128, 2, 1 .minnctapersm 2 .maxnreg 32 { ret; }";
    let module = Module::parse(text).unwrap();
    let kernel = module.kernel("k").unwrap();
    let places: Vec<(usize, usize)> = kernel.parameters.iter().map(|place| (place.offset, place.bytes)).collect();
    assert_eq!(places, [(0, 1), (8, 12), (20, 4), (24, 8)]);
    assert_eq!(kernel.parameter_bytes(), 32);
    assert_eq!((kernel.block_max, kernel.registers_max, kernel.block_required), (Some([128, 2, 1]), Some(32), None));
    assert!(module.kernel("other").is_none());
}

#[test]
fn variables_have_their_first_values() {
    let variables = ".const .align 8 .b8 bytes[8] = {1, 2, 255};\n.global .align 8 .f64 x = 0d3FF0000000000000;\n\
                     .global .align 4 .u32 minus = -2;\n.global .f32 s = 0f40000000;\n.global .u16 none[3];";
    let module = Module::parse(&kernel_with(variables, "", "")).unwrap();
    let found: Vec<&[u8]> = module.globals().iter().map(|global| global.initial.as_slice()).collect();
    assert_eq!(found[0], [1, 2, 255, 0, 0, 0, 0, 0]);
    assert_eq!(found[1], 1f64.to_le_bytes());
    assert_eq!(found[2], (-2i32).to_le_bytes());
    assert_eq!(found[3], 2f32.to_le_bytes());
    assert_eq!(found[4], [0; 6]);
    assert!(module.globals()[0].is_constant && !module.globals()[1].is_constant);
    let text = kernel_with(
        variables,
        "",
        "mov.u64 %d1, bytes; ld.const.u8 %r1, [%d1+2]; ld.global.u32 %r2, [minus];\
                                           mov.b64 %d0, {%r1, %r2}; st.global.u64 [%o], %d0;",
    );
    assert_eq!(left(&text), 0xffff_fffe_0000_00ff);
}

#[test]
fn loads_extend_to_the_width_of_the_register() {
    for (load, expected) in [
        ("ld.global.s8 %r0, [%o];", 0xffff_ff80),
        ("ld.global.u8 %r0, [%o];", 0x80),
        ("ld.global.b8 %r0, [%o];", 0x80),
        ("ld.global.s16 %r0, [%o];", 0xffff_8080),
        ("ld.global.nc.u16 %r0, [%o];", 0x8080),
        ("ld.global.s8 %h0, [%o]; cvt.u32.u16 %r0, %h0;", 0xff80),
        ("ld.volatile.global.u32 %r0, [%o];", 0x8080_8080),
        ("ld.acquire.gpu.global.u32 %r0, [%o];", 0x8080_8080),
        ("ld.global.ca.u32 %r0, [%o];", 0x8080_8080),
        ("ld.u32 %r0, [%o];", 0x8080_8080),
        ("ld.weak.global.cg.v2.u16 {%r0, _}, [%o];", 0x8080),
    ] {
        let body = format!(
            "mov.u64 %d1, 0x8080808080808080; st.global.u64 [%o], %d1; {load} cvt.u64.u32 %d0, %r0; st.global.u64 [%o], %d0;"
        );
        assert_eq!(left(&kernel(&body)), expected, "{load}");
    }
    let text = kernel(
        "st.global.u64 [%o], 0; st.global.u8 [%o+1], %r1; st.release.sys.global.u16 [%o+2], %r1; st.volatile.u32 [%o+4], 7;",
    );
    let trial = Trial { numbers: [0x1_2345_6789, 0, 0, 0], ..Trial::new(&text, 1) };
    assert_eq!(trial.run().unwrap(), [0x0000_0007_6789_8900]);
}

#[test]
fn vectors_move_whole_and_aligned() {
    let declarations = ".shared .align 16 .b8 room[32];";
    let body = "mov.u64 %d1, room; mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3; mov.u32 %r4, 4;\
                st.shared.v4.u32 [%d1+16], {%r1, %r2, %r3, %r4}; ld.shared.v2.u64 {%d2, %d3}, [%d1+16];\
                st.global.u64 [%o], %d3;";
    assert_eq!(left(&kernel_with("", declarations, body)), 4 << 32 | 3);
    let misaligned = kernel_with("", declarations, "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [room+8];");
    let fault = Trial::new(&misaligned, 1).fault();
    assert!(matches!(fault, DeviceFault::Misaligned { bytes: 16, .. }), "{fault}");
}

#[test]
fn memory_of_blocks_and_threads_is_full_of_one_byte_at_first() {
    let declarations = ".shared .u64 own; .local .align 8 .b8 stack[16];";
    let body = "ld.shared.u64 %d1, [own]; mov.u64 %d2, stack; ld.local.u64 %d3, [%d2+8]; xor.b64 %d0, %d1, %d3;\
                add.s64 %d0, %d0, %d1; st.global.u64 [%o], %d0;";
    assert_eq!(left(&kernel_with("", declarations, body)), 0xa5a5_a5a5_a5a5_a5a5);
}

#[test]
fn threads_share_shared_memory_and_keep_local_memory_to_themselves() {
    let declarations = ".shared .u32 sum; .local .u32 own;";
    let body = "setp.ne.u32 %p1, %t, 0; @%p1 bra GO; st.shared.u32 [sum], 0; GO: bar.sync 0;\
                st.local.u32 [own], %t; red.shared.add.u32 [sum], %t; bar.sync 0;\
                ld.shared.u32 %r1, [sum]; ld.local.u32 %r2, [own]; mov.b64 %d0, {%r1, %r2}; st.global.u64 [%o], %d0;";
    let text = kernel_with("", declarations, body);
    for seed in 0..20 {
        let found = Trial { seed, ..Trial::new(&text, 70) }.run().unwrap();
        assert!(found.iter().enumerate().all(|(thread, x)| *x == ((thread as u64) << 32) + 70 * 69 / 2), "seed {seed}");
    }
}

#[test]
fn addresses_of_any_space_reach_all_memories() {
    let declarations = ".shared .u32 a; .local .u32 b;";
    let body = "mov.u64 %d1, a; cvta.shared.u64 %d1, %d1; mov.u64 %d2, b; cvta.local.u64 %d2, %d2;\
                cvta.global.u64 %d3, %o; mov.u32 %r1, 5; st.u32 [%d1], %r1; mov.u32 %r2, 6; st.u32 [%d2], %r2;\
                ld.shared.u32 %r3, [a]; ld.local.u32 %r4, [b]; mov.b64 %d0, {%r3, %r4}; st.u64 [%d3], %d0;\
                atom.add.u32 %r6, [%d1], 1; cvta.to.shared.u64 %d1, %d1; ld.shared.u32 %r7, [%d1];\
                add.s32 %r7, %r7, %r6; st.u32 [%o], %r7;";
    assert_eq!(left(&kernel_with("", declarations, body)), 6 << 32 | 11);
}

#[test]
fn the_memory_of_the_launch_follows_that_of_the_kernel() {
    let variables = ".extern .shared .align 16 .b8 dynamic[];";
    let body = "mov.u64 %d1, dynamic; mov.u64 %d2, own; sub.s64 %d0, %d1, %d2; st.shared.u8 [%d1+99], %r1;\
                st.global.u64 [%o], %d0;";
    let text = kernel_with(variables, ".shared .align 4 .b8 own[20];", body);
    let trial = Trial { dynamic_shared_bytes: 100, ..Trial::new(&text, 1) };
    assert_eq!(trial.run().unwrap(), [32]);
    let fault = Trial { dynamic_shared_bytes: 99, ..trial }.fault();
    assert!(matches!(fault, DeviceFault::Outside { memory: "shared", .. }), "{fault}");
}

#[test]
fn accesses_outside_are_faults() {
    for (body, memory) in [
        ("ld.shared.u32 %r0, [own+4];", "shared"),
        ("mov.u64 %d1, 0; ld.shared.u32 %r0, [%d1];", "shared"),
        ("mov.u64 %d1, own; cvta.shared.u64 %d1, %d1; ld.shared.u32 %r0, [%d1];", "shared"),
        ("st.local.u64 [stack+8], %d1;", "local"),
        ("mov.u64 %d1, stack; ld.local.u32 %r0, [%d1+-4];", "local"),
        ("mov.u64 %d1, n4; ld.param.u64 %d0, [%d1+8];", "parameter"),
    ] {
        let text = kernel_with("", ".shared .u32 own; .local .u64 stack;", body);
        let fault = Trial::new(&text, 1).fault();
        assert!(matches!(fault, DeviceFault::Outside { memory: found, .. } if found == memory), "{body}: {fault}");
    }
    for (body, bytes) in
        [("ld.global.u64 %d0, [%o+8];", 8), ("st.global.u8 [%d1], %r1;", 1), ("st.u64 [%o+-8], %d1;", 8)]
    {
        let fault = Trial::new(&kernel(body), 1).fault();
        assert!(matches!(fault, DeviceFault::Address { bytes: found, .. } if found == bytes), "{body}: {fault}");
    }
    for body in ["ld.global.u64 %d0, [%o+4];", "atom.global.add.u32 %r0, [%o+2], 1;", "st.global.u16 [%o+1], %h1;"] {
        assert!(matches!(Trial::new(&kernel(body), 1).fault(), DeviceFault::Misaligned { .. }), "{body}");
    }
}

#[test]
fn atomics_return_what_was_there() {
    for (atomic, first, expected) in [
        ("add.u32 %r0, [%o], 3", 0xffff_ffff, [0xffff_ffff, 2]),
        ("and.b32 %r0, [%o], 6", 3, [3, 2]),
        ("or.b32 %r0, [%o], 6", 3, [3, 7]),
        ("xor.b32 %r0, [%o], 6", 3, [3, 5]),
        ("exch.b32 %r0, [%o], 6", 3, [3, 6]),
        ("cas.b32 %r0, [%o], 3, 9", 3, [3, 9]),
        ("cas.b32 %r0, [%o], 4, 9", 3, [3, 3]),
        ("min.s32 %r0, [%o], -1", 3, [3, 0xffff_ffff]),
        ("min.u32 %r0, [%o], -1", 3, [3, 3]),
        ("max.s32 %r0, [%o], -1", 3, [3, 3]),
        ("max.u32 %r0, [%o], -1", 3, [3, 0xffff_ffff]),
        ("inc.u32 %r0, [%o], 3", 3, [3, 0]),
        ("inc.u32 %r0, [%o], 3", 2, [2, 3]),
        ("dec.u32 %r0, [%o], 3", 0, [0, 3]),
        ("dec.u32 %r0, [%o], 3", 9, [9, 3]),
        (
            "add.f32 %r0, [%o], 0f3F800000",
            u64::from(1f32.to_bits()),
            [u64::from(1f32.to_bits()), u64::from(2f32.to_bits())],
        ),
    ] {
        let body = format!(
            "st.global.u64 [%o], %d1; atom.global.{atomic}; ld.global.u32 %r1, [%o]; mov.b64 %d0, {{%r0, %r1}}; st.global.u64 [%o], %d0;"
        );
        let text = kernel(&body);
        let found = Trial { numbers: [first, 0, 0, 0], ..Trial::new(&text, 1) }.run().unwrap()[0];
        assert_eq!([found & 0xffff_ffff, found >> 32], expected, "{atomic}");
    }
    let body = "st.global.f64 [%o], %d1; atom.relaxed.gpu.global.add.f64 %d2, [%o], %d1; red.global.max.u64 [%o], %d3;\
                atom.acq_rel.sys.cas.b64 %d0, [%o], %d3, %d4;";
    let text = kernel(body);
    assert_eq!(Trial { numbers: [1.5f64.to_bits(), 0, 9, 7], ..Trial::new(&text, 1) }.run().unwrap(), [3f64.to_bits()]);
}
