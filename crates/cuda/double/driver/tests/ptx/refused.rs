//! What is not interpreted is an error with its name and line.

use super::harness::{kernel, kernel_with, refusal};
use cuda_double::ptx::Module;

/// The error for one instruction in a kernel.
fn refused(instruction: &str) -> String {
    let error = refusal(&kernel(instruction));
    assert!(error.line > 5, "{error}");
    error.to_string()
}

/// Instructions that are not interpreted, and the word of each that the error names.
const UNKNOWN: &[(&str, &str)] = &[
    ("tanh.approx.f32 %r0, %r1;", "tanh.approx.f32"),
    ("add.rn.ftz.f32 %r0, %r1, %r2;", "add.rn.ftz.f32"),
    ("add.sat.s32 %r0, %r1, %r2;", "add.sat.s32"),
    ("add.rm.f64 %d0, %d1, %d2;", "add.rm.f64"),
    ("add.cc.u32 %r0, %r1, %r2;", "add.cc.u32"),
    ("add.rz.f64 %d0, %d1, %d2;", "add.rz.f64"),
    ("fma.rn.f64 %d0, %d1, %d2, %d3;", "fma.rn.f64"),
    ("sqrt.rn.f64 %d0, %d1;", "sqrt.rn.f64"),
    ("max.f64 %d0, %d1, %d2;", "max.f64"),
    ("mad.wide.u32 %d0, %r1, %r2, %d3;", "mad.wide.u32"),
    ("bfe.u32 %r0, %r1, %r2, %r3;", "bfe.u32"),
    ("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", "shf.r.clamp.b32"),
    ("cvt.rzi.s32.f64 %r0, %d1;", "cvt.rzi.s32.f64"),
    ("brx.idx %r1, LIST;", "brx.idx"),
    ("sad.u32 %r0, %r1, %r2, %r3;", "sad.u32"),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", "lop3.b32"),
    ("testp.finite.f64 %p0, %d1;", "testp.finite.f64"),
    ("add.f16 %h0, %h1, %h2;", "add.f16"),
    ("div.full.f32 %r0, %r1, %r2;", "div.full.f32"),
    ("div.approx.f32 %r0, %r1, %r2;", "div.approx.f32"),
    ("rsqrt.approx.f64 %d0, %d1;", "rsqrt.approx.f64"),
    ("sqrt.approx.f32 %r0, %r1;", "sqrt.approx.f32"),
    ("and.u32 %r0, %r1, %r2;", "and.u32"),
    ("setp.lt.b32 %p0, %r1, %r2;", "setp.lt.b32"),
    ("setp.equ.s32 %p0, %r1, %r2;", "setp.equ.s32"),
    ("setp.lo.f32 %p0, %r1, %r2;", "setp.lo.f32"),
    ("setp.lt.and.s32 %p0, %r1, %r2, %p3;", "setp.lt.and.s32"),
    ("set.eq.u32.u32 %r0, %r1, %r2;", "set.eq.u32.u32"),
    ("cvt.f32.f64 %r0, %d1;", "cvt.f32.f64"),
    ("cvt.rz.f64.s64 %d0, %d1;", "cvt.rz.f64.s64"),
    ("cvt.sat.u8.s32 %r0, %r1;", "cvt.sat.u8.s32"),
    ("cvt.rn.f64.f32 %d0, %r1;", "cvt.rn.f64.f32"),
    ("cvt.rni.f32.s32 %r0, %r1;", "cvt.rni.f32.s32"),
    ("cvt.s32.b32 %r0, %r1;", "cvt.s32.b32"),
    ("prmt.b32.f4e %r0, %r1, %r2, %r3;", "prmt.b32.f4e"),
    ("shfl.sync.up.b64 %d0, %d1, 1, 0, -1;", "shfl.sync.up.b64"),
    ("shfl.up.b32 %r0, %r1, 1, 0;", "shfl.up.b32"),
    ("vote.sync.all.pred %p0, %p1, -1;", "vote.sync.all.pred"),
    ("redux.sync.add.f32 %r0, %r1, -1;", "redux.sync.add.f32"),
    ("redux.sync.and.b32 %r0, %r1, -1;", "redux.sync.and.b32"),
    ("membar.gl;", "membar.gl"),
    ("elect.sync %r0|%p1, -1;", "elect.sync"),
    ("match.any.sync.b32 %r0, %r1, -1;", "match.any.sync.b32"),
    ("activemask.b32 %r0;", "activemask.b32"),
    ("bar.arrive 0, 32;", "bar.arrive"),
    ("bar.sync 0, 32;", "bar.sync"),
    ("bar.red.popc.u32 %r0, 0, %p1;", "bar.red.popc.u32"),
    ("barrier.sync 0;", "barrier.sync"),
    ("bar.cluster.arrive;", "bar.cluster.arrive"),
    ("atom.global.add.u32 %r0, [%o], 1;", "atom.global.add.u32"),
    ("atom.local.or.b32 %r0, [%o], 1;", "atom.local.or.b32"),
    ("red.global.or.b32 [%o], %r1;", "red.global.or.b32"),
    ("ld.global.b128 %d0, [%o];", "ld.global.b128"),
    ("ld.global.v8.f32 {%r1}, [%o];", "ld.global.v8.f32"),
    ("ld.global.L2::128B.f32 %r0, [%o];", "ld.global.L2::128B.f32"),
    ("ld.relaxed.global.f32 %r0, [%o];", "ld.relaxed.global.f32"),
    ("ld.shared::cluster.u32 %r0, [%o];", "ld.shared::cluster.u32"),
    ("st.global.v2.u32 [%o], {%r1, %r2};", "st.global.v2.u32"),
    ("ld.const.u32 %r0, [%o];", "ld.const.u32"),
    ("ld.local.u32 %r0, [%o];", "ld.local.u32"),
    ("ld.volatile.global.u32 %r0, [%o];", "ld.volatile.global.u32"),
    ("st.param.u32 [out], %r1;", "st.param.u32"),
    ("cp.async.ca.shared.global [%o], [%o], 16;", "cp.async.ca.shared.global"),
    ("cvta.shared.u64 %d0, %d1;", "cvta.shared.u64"),
    ("isspacep.shared %p0, %d1;", "isspacep.shared"),
    ("tex.1d.v4.s32.s32 %r0, [%o];", "tex.1d.v4.s32.s32"),
    ("mma.sync.aligned.m8n8k4.f64 %d0, %d1;", "mma.sync.aligned.m8n8k4.f64"),
    ("call.uni f;", "call.uni"),
    ("mov.u32 %r0, %clock;", "%clock"),
    ("mov.u32 %r0, %smid;", "%smid"),
    ("mov.u32 %r0, %laneid;", "%laneid"),
    ("mov.u32 %r0, %unknown;", "%unknown"),
    ("bra.uni nowhere;", "nowhere"),
    (".pragma \"enable_smem_spilling\";", ".pragma"),
    (".reg .b128 %q;", ".b128"),
    (".local .u32 x;", ".local"),
    (".param .b32 x;", ".param"),
    (".loc 1 2 3", ".loc"),
];

#[test]
fn unknown_opcodes_modifiers_and_types_are_named() {
    for (instruction, name) in UNKNOWN {
        let error = refused(instruction);
        assert!(error.contains(name), "{instruction}: {error}");
    }
}

#[test]
fn operands_of_the_wrong_width_or_number_are_named() {
    for (instruction, name) in [
        ("add.s32 %r0, %r1, %d2;", "%d2"),
        ("add.s64 %d0, %d1, %r2;", "%r2"),
        ("shl.b64 %d0, %d1, %d2;", "%d2"),
        ("mul.wide.u32 %r0, %r1, %r2;", "%r0"),
        ("selp.b32 %r0, %r1, %r2, %r3;", "%r3"),
        ("st.global.u64 [%o], %r1;", "%r1"),
        ("ld.global.u32 %h0, [%o];", "%h0"),
        ("ld.global.u32 %r0, [%r1];", "%r1"),
        ("cvt.rn.f64.s32 %r0, %r1;", "%r0"),
        ("cvt.u32.u64 %r0, %r1;", "%r1"),
        ("add.s32 %r0, %r1;", "add.s32"),
        ("add.s32 %r0, %r1, %r2, %r3;", "add.s32"),
        ("add.s32 _, %r1, %r2;", "add.s32"),
        ("add.s32 5, %r1, %r2;", "add.s32"),
        ("add.rn.f32 %r0, %r1, 0d3FF0000000000000;", "add.rn.f32"),
        ("add.rn.f64 %d0, %d1, 0f3F800000;", "add.rn.f64"),
        ("ld.global.v2.u32 {%r1, %r2, %r3}, [%o];", "ld.global.v2.u32"),
        ("mov.b64 {%r1, %r2, %r3}, %d1;", "mov.b64"),
        ("bar.sync;", "bar.sync"),
    ] {
        let error = refused(instruction);
        assert!(error.contains(name), "{instruction}: {error}");
    }
}

#[test]
fn names_stand_for_one_thing() {
    for text in [
        kernel(".reg .b32 %r<20>;"),
        kernel("L: ret; L: ret;"),
        kernel_with(".global .u32 x;\n.global .u32 x;", "", ""),
        kernel_with("", ".shared .u32 x; .reg .b32 x;", ""),
    ] {
        assert!(refusal(&text).what.contains("there already"), "{text}");
    }
    // An inner scope has names of its own.
    assert!(Module::parse(&kernel("{ .reg .pred %p1; setp.eq.u32 %p1, %r1, 0; }")).is_ok());
}

#[test]
fn items_of_a_module_that_are_not_interpreted_are_named() {
    for (item, name) in [
        (".func f() { ret; }", ".func"),
        (".visible .func f() { ret; }", ".func"),
        (".extern .func f();", ".func"),
        (".extern .global .u32 x;", ".global"),
        (".global .texref t;", ".texref"),
        (".global .align 3 .u32 x;", ";"),
        (".const .u32 x;", ".const"),
        (".global .u64 x = y;", "y"),
        (".global .u32 x = 0d0000000000000000;", "0d0000000000000000"),
        (".file 1 \"x\"", ".file"),
        (".alias a, b;", ".alias"),
    ] {
        let error = refusal(&kernel_with(item, "", ""));
        assert!(error.line == 4 && error.to_string().contains(name), "{item}: {error}");
    }
}

#[test]
fn heads_of_other_versions_and_sizes_are_refused() {
    for (text, line) in [
        ("", 1),
        (".target sm_90", 1),
        (".version 10.0", 1),
        (".version 9.0\n.target compute_90", 2),
        (".version 9.0\n.target sm_90\n.address_size 32", 3),
        (".version 9.0\n.target sm_90, debug\n.address_size 64", 2),
    ] {
        assert_eq!(refusal(text).line, line, "{text}");
    }
}

#[test]
fn a_text_cut_anywhere_is_refused_and_nothing_panics() {
    let text = kernel_with(
        ".global .align 8 .b8 table[16];\n.extern .shared .align 16 .b8 dynamic[];",
        ".shared .u32 word;",
        "@%p1 bra L; ld.global.v2.u32 {%r1, _}, [%o+-8]; L: mov.b64 %d0, {%r1, %r2}; shfl.sync.up.b32 %r0|%p1, %r1, 1, 0, -1;",
    );
    assert!(Module::parse(&text).is_ok());
    for end in 0..text.trim_end().len() {
        // The head alone is a module, and so is all before the kernel.
        let cut = &text[..end];
        let is_whole = Module::parse(cut).is_ok_and(|module| module.kernels().is_empty());
        assert!(is_whole || Module::parse(cut).is_err(), "{cut}");
    }
}
