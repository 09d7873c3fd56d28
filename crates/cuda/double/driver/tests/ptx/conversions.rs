//! Conversions between integers, and to floats.

use super::harness::{NAN, check, d, s};

#[test]
fn integers_are_cut_or_extended() {
    check(&[
        ("cvt.u64.u32 %d0, %r1;", &[0xffff_ffff], 0xffff_ffff),
        ("cvt.s64.s32 %d0, %r1;", &[0xffff_ffff], u64::MAX),
        ("cvt.u32.u64 %r0, %d1;", &[0x1_0000_0005], 5),
        ("cvt.s16.s8 %h0, %h1;", &[0x1280], 0xff80),
        ("cvt.s32.s8 %r0, %r1;", &[0x80], 0xffff_ff80),
        ("cvt.u32.u8 %r0, %r1;", &[0x1280], 0x80),
        ("cvt.u16.u32 %h0, %r1;", &[0x1_2345], 0x2345),
        // A register wider than the type takes its sign.
        ("cvt.s8.s32 %r0, %r1;", &[0x80], 0xffff_ff80),
        ("cvt.u8.u32 %r0, %r1;", &[0x1ff], 0xff),
        ("cvt.s16.s64 %d0, %d1;", &[0x8000], 0xffff_ffff_ffff_8000),
    ]);
}

#[test]
fn integers_become_the_nearest_float() {
    check(&[
        ("cvt.rn.f64.u64 %d0, %d1;", &[u64::MAX], d(18_446_744_073_709_551_616.0)),
        ("cvt.rn.f64.s64 %d0, %d1;", &[(1 << 53) + 1], d((1u64 << 53) as f64)),
        ("cvt.rn.f32.s32 %r0, %r1;", &[0x8000_0000], s(-2_147_483_648.0)),
        ("cvt.rn.f32.u32 %r0, %r1;", &[0x0100_0001], s(16_777_216.0)),
        ("cvt.rn.f64.s16 %d0, %h1;", &[0xffff], d(-1.0)),
        ("cvt.rn.f64.u8 %d0, %r1;", &[0x1ff], d(255.0)),
    ]);
}

#[test]
fn floats_become_the_nearest_float() {
    check(&[
        ("cvt.rn.f32.f64 %r0, %d1;", &[d(1.0 + f64::EPSILON)], s(1.0)),
        ("cvt.rn.f32.f64 %r0, %d1;", &[d(1e300)], s(f32::INFINITY)),
        ("cvt.rn.f32.f64 %r0, %d1;", &[d(1e-45)], 1),
        ("cvt.rn.f32.f64 %r0, %d1;", &[1 << 63], 1 << 31),
        ("cvt.rn.f32.f64 %r0, %d1;", &[NAN | 1 << 63], 0x7fff_ffff),
        ("cvt.f64.f32 %d0, %r1;", &[1], d(f64::from(f32::from_bits(1)))),
        ("cvt.f64.f32 %d0, %r1;", &[s(-0.0)], 1 << 63),
    ]);
}
