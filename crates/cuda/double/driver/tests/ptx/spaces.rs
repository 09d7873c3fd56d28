//! Memories: global, shared, parameters.

use super::harness::{Trial, kernel, kernel_with};
use cuda_double::ptx::{DeviceFault, Module};

/// What one thread leaves.
fn left(text: &str) -> u64 {
    Trial::new(text, 1).run().unwrap_or_else(|fault| panic!("{fault}: {text}"))[0]
}

#[test]
fn parameters_lie_at_multiples_of_their_alignments() {
    let text = ".version 9.0 .target sm_90 .address_size 64\n.entry k(.param .u8 a, .param .align 8 .b8 b[12], \
                .param .u32 c, .param .u64 .ptr .global .align 4 d) .maxntid 128, 2, 1 .minnctapersm 2 { ret; }";
    let module = Module::parse(text).unwrap();
    let kernel = module.kernel("k").unwrap();
    let places: Vec<(usize, usize)> = kernel.parameters.iter().map(|place| (place.offset, place.bytes)).collect();
    assert_eq!(places, [(0, 1), (8, 12), (20, 4), (24, 8)]);
    assert_eq!(kernel.parameter_bytes(), 32);
    assert_eq!(kernel.block_max, Some([128, 2, 1]));
    assert!(module.kernel("other").is_none());
}

#[test]
fn variables_have_addresses_and_first_values() {
    let variables = ".global .align 8 .u64 first;\n.global .align 4 .u32 second = -2;";
    let text = kernel_with(
        variables,
        "",
        "mov.u64 %d1, first; ld.global.u64 %d2, [%d1]; ld.global.u32 %r1, [second]; cvt.u64.u32 %d3, %r1;\
         add.s64 %d0, %d2, %d3; st.global.u64 [first], 7; ld.global.u64 %d4, [%d1]; add.s64 %d0, %d0, %d4;\
         st.global.u64 [%o], %d0;",
    );
    let module = Module::parse(&text).unwrap();
    let found = module.globals().iter().map(|global| (global.name.as_str(), global.bytes, global.alignment));
    assert!(found.eq([("first", 8, 8), ("second", 4, 4)]));
    assert_eq!(module.globals()[1].initial, (-2i32).to_le_bytes());
    assert_eq!(left(&text), 0xffff_fffe + 7);
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
        ("ld.u32 %r0, [%o];", 0x8080_8080),
        ("ld.global.v2.u16 {%r0, _}, [%o];", 0x8080),
    ] {
        let body = format!(
            "mov.u64 %d1, 0x8080808080808080; st.global.u64 [%o], %d1; {load} cvt.u64.u32 %d0, %r0; st.global.u64 [%o], %d0;"
        );
        assert_eq!(left(&kernel(&body)), expected, "{load}");
    }
    let text = kernel("st.global.u64 [%o], 0; st.global.u8 [%o+1], %r1; st.global.u16 [%o+2], %r1; st.u32 [%o+4], 7;");
    let trial = Trial { numbers: [0x1_2345_6789, 0, 0, 0], ..Trial::new(&text, 1) };
    assert_eq!(trial.run().unwrap(), [0x0000_0007_6789_8900]);
}

#[test]
fn vectors_move_whole_and_aligned() {
    let declarations = ".shared .align 16 .b8 room[32];";
    let body = "mov.u64 %d1, room; mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3; mov.u32 %r4, 4;\
                st.shared.u32 [%d1+16], %r1; st.shared.u32 [%d1+20], %r2; st.shared.u32 [%d1+24], %r3;\
                st.shared.u32 [%d1+28], %r4; ld.shared.v2.u64 {%d2, %d3}, [%d1+16];\
                st.global.u64 [%o], %d3;";
    assert_eq!(left(&kernel_with("", declarations, body)), 4 << 32 | 3);
    let misaligned = kernel_with("", declarations, "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [room+8];");
    let fault = Trial::new(&misaligned, 1).fault();
    assert!(matches!(fault, DeviceFault::Misaligned { bytes: 16, .. }), "{fault}");
}

#[test]
fn memory_of_blocks_is_full_of_one_byte_at_first() {
    let body = "ld.shared.u64 %d0, [own]; st.global.u64 [%o], %d0;";
    assert_eq!(left(&kernel_with("", ".shared .u64 own;", body)), 0xa5a5_a5a5_a5a5_a5a5);
}

#[test]
fn threads_share_shared_memory() {
    let body = "setp.ne.u32 %p1, %t, 0; @%p1 bra GO; st.shared.u32 [bits], 0; GO: bar.sync 0;\
                and.b32 %r1, %t, 31; shl.b32 %r2, 1, %r1; atom.shared.or.b32 _, [bits], %r2; bar.sync 0;\
                ld.shared.u32 %r1, [bits]; mov.b64 %d0, {%r1, %t}; st.global.u64 [%o], %d0;";
    let text = kernel_with("", ".shared .u32 bits;", body);
    for seed in 0..20 {
        let found = Trial { seed, ..Trial::new(&text, 70) }.run().unwrap();
        assert!(found.iter().enumerate().all(|(thread, x)| *x == (thread as u64) << 32 | 0xffff_ffff), "seed {seed}");
    }
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
        ("mov.u64 %d1, n4; ld.param.u64 %d0, [%d1+8];", "parameter"),
    ] {
        let text = kernel_with("", ".shared .u32 own;", body);
        let fault = Trial::new(&text, 1).fault();
        assert!(matches!(fault, DeviceFault::Outside { memory: found, .. } if found == memory), "{body}: {fault}");
    }
    for (body, bytes) in
        [("ld.global.u64 %d0, [%o+8];", 8), ("st.global.u8 [%d1], %r1;", 1), ("st.u64 [%o+-8], %d1;", 8)]
    {
        let fault = Trial::new(&kernel(body), 1).fault();
        assert!(matches!(fault, DeviceFault::Address { bytes: found, .. } if found == bytes), "{body}: {fault}");
    }
    for body in ["ld.global.u64 %d0, [%o+4];", "atom.global.or.b32 %r0, [%o+2], 1;", "st.global.u16 [%o+1], %h1;"] {
        assert!(matches!(Trial::new(&kernel(body), 1).fault(), DeviceFault::Misaligned { .. }), "{body}");
    }
}

#[test]
fn an_atomic_returns_what_was_there() {
    let text = kernel(
        "st.global.u64 [%o], 3; atom.global.or.b32 %r0, [%o], 6; ld.global.u32 %r1, [%o];\
         mov.b64 %d0, {%r0, %r1}; st.global.u64 [%o], %d0;",
    );
    assert_eq!(left(&text), 7 << 32 | 3);
}
