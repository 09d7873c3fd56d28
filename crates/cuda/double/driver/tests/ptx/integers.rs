//! Integers and bits at the edges of their ranges.

use super::harness::{Trial, check, evaluate, kernel};
use cuda_double::ptx::DeviceFault;

const MIN_32: u64 = 0x8000_0000;
const MAX_32: u64 = 0xffff_ffff;
const MIN_64: u64 = 1 << 63;
const MAX_64: u64 = u64::MAX;

#[test]
fn sums_and_products_wrap_in_their_width() {
    check(&[
        ("add.s16 %h0, %h1, %h2;", &[0x7fff, 1], 0x8000),
        ("add.s32 %r0, %r1, %r2;", &[MAX_32, 1], 0),
        ("add.u64 %d0, %d1, %d2;", &[MAX_64, 2], 1),
        ("sub.u16 %h0, %h1, %h2;", &[0, 1], 0xffff),
        ("sub.s64 %d0, %d1, %d2;", &[0, 1], MAX_64),
        ("mul.lo.s32 %r0, %r1, %r2;", &[0x1_0001, 0x1_0001], 0x2_0001),
        ("mul.hi.u32 %r0, %r1, %r2;", &[MAX_32, MAX_32], 0xffff_fffe),
        ("mul.hi.s32 %r0, %r1, %r2;", &[MAX_32, 5], MAX_32),
        ("mul.hi.s32 %r0, %r1, %r2;", &[MIN_32, MIN_32], 0x4000_0000),
        ("mul.hi.u64 %d0, %d1, %d2;", &[MAX_64, MAX_64], MAX_64 - 1),
        ("mul.hi.s64 %d0, %d1, %d2;", &[MIN_64, 2], MAX_64),
        ("mul.hi.u16 %h0, %h1, %h2;", &[0xffff, 0xffff], 0xfffe),
        ("mul.wide.u32 %d0, %r1, %r2;", &[MAX_32, MAX_32], 0xffff_fffe_0000_0001),
        ("mul.wide.s32 %d0, %r1, %r2;", &[MAX_32, 3], MAX_64 - 2),
        ("mul.wide.s16 %r0, %h1, %h2;", &[0x8000, 2], 0xffff_0000),
        ("mad.lo.s32 %r0, %r1, %r2, %r3;", &[MAX_32, 2, 5], 3),
        ("neg.s32 %r0, %r1;", &[MIN_32], MIN_32),
        ("abs.s64 %d0, %d1;", &[MIN_64], MIN_64),
        ("abs.s16 %h0, %h1;", &[0xffff], 1),
    ]);
}

#[test]
fn quotients_round_to_zero_and_remainders_have_the_sign_of_the_dividend() {
    check(&[
        ("div.s32 %r0, %r1, %r2;", &[MAX_32 - 6, 2], MAX_32 - 2),
        ("div.u32 %r0, %r1, %r2;", &[MAX_32 - 6, 2], 0x7fff_fffc),
        ("rem.s32 %r0, %r1, %r2;", &[MAX_32 - 6, 2], MAX_32),
        ("rem.s64 %d0, %d1, %d2;", &[7, MAX_64 - 1], 1),
        ("rem.s32 %r0, %r1, %r2;", &[MIN_32, MAX_32], 0),
        ("div.u64 %d0, %d1, %d2;", &[MAX_64, 10], MAX_64 / 10),
        ("div.s16 %h0, %h1, %h2;", &[0x8000, 2], 0xc000),
    ]);
}

#[test]
fn a_quotient_without_a_value_is_a_fault() {
    for instruction in ["div.u32 %r0, %r1, %r2;", "rem.s32 %r0, %r1, %r2;", "div.s64 %d0, %d1, %d2;"] {
        let text = kernel(instruction);
        let trial = Trial { numbers: [7, 0, 0, 0], ..Trial::new(&text, 1) };
        assert_eq!(trial.fault(), DeviceFault::Division { dividend: 7, divisor: 0 }, "{instruction}");
    }
    let text = kernel("div.s32 %r0, %r1, %r2;");
    let trial = Trial { numbers: [MIN_32, MAX_32, 0, 0], ..Trial::new(&text, 1) };
    assert_eq!(trial.fault(), DeviceFault::Division { dividend: MIN_32, divisor: MAX_32 });
}

#[test]
fn shifts_clamp_at_the_width() {
    check(&[
        ("shl.b32 %r0, %r1, %r2;", &[1, 31], MIN_32),
        ("shl.b32 %r0, %r1, %r2;", &[1, 32], 0),
        ("shl.b32 %r0, %r1, %r2;", &[1, MAX_32], 0),
        ("shl.b64 %d0, %d1, %r2;", &[1, 63], MIN_64),
        ("shl.b64 %d0, %d1, %r2;", &[1, 64], 0),
        ("shl.b16 %h0, %h1, %r2;", &[3, 15], 0x8000),
        ("shl.b16 %h0, %h1, %r2;", &[3, 16], 0),
        ("shr.u32 %r0, %r1, %r2;", &[MAX_32, 31], 1),
        ("shr.u32 %r0, %r1, %r2;", &[MAX_32, 32], 0),
        ("shr.s32 %r0, %r1, %r2;", &[MIN_32, 31], MAX_32),
        ("shr.s32 %r0, %r1, %r2;", &[MIN_32, MAX_32], MAX_32),
        ("shr.s64 %d0, %d1, %r2;", &[MIN_64, 70], MAX_64),
        ("shr.u64 %d0, %d1, %r2;", &[MAX_64, 64], 0),
        ("shr.b32 %r0, %r1, %r2;", &[MIN_32, 4], 0x0800_0000),
        ("shr.s16 %h0, %h1, %r2;", &[0x8000, 99], 0xffff),
        ("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", &[0x8000_0001, 0xf, 36], 0xf8),
    ]);
}

#[test]
fn fields_follow_their_lengths_past_the_end() {
    check(&[
        ("bfi.b32 %r0, %r1, %r2, %r3, %r4;", &[0xabcd, 0, 8, 8], 0xcd00),
        ("bfi.b32 %r0, %r1, %r2, %r3, %r4;", &[MAX_32, 0, 28, 8], 0xf000_0000),
        ("bfi.b32 %r0, %r1, %r2, %r3, %r4;", &[MAX_32, 5, 32, 8], 5),
        ("bfi.b32 %r0, %r1, %r2, %r3, %r4;", &[MAX_32, 5, 0, 0], 5),
        ("bfi.b64 %d0, %d1, %d2, %r3, %r4;", &[0x1234, MAX_64, 16, 255], 0x1234_ffff),
        ("brev.b32 %r0, %r1;", &[1], MIN_32),
        ("brev.b64 %d0, %d1;", &[2], 1 << 62),
    ]);
}

#[test]
fn counts_of_none_and_of_all_bits() {
    check(&[
        ("popc.b32 %r0, %r1;", &[MAX_32], 32),
        ("popc.b64 %r0, %d1;", &[MAX_64], 64),
        ("clz.b32 %r0, %r1;", &[0], 32),
        ("clz.b32 %r0, %r1;", &[1], 31),
        ("clz.b64 %r0, %d1;", &[0], 64),
        ("bfind.shiftamt.u32 %r0, %r1;", &[1], 31),
        ("bfind.shiftamt.u32 %r0, %r1;", &[0], MAX_32),
    ]);
}

#[test]
fn logic_permutations_and_selections() {
    check(&[
        ("and.b16 %h0, %h1, %h2;", &[0xff0f, 0x0fff], 0x0f0f),
        ("or.b64 %d0, %d1, %d2;", &[1, MIN_64], MIN_64 | 1),
        ("xor.b32 %r0, %r1, %r2;", &[MAX_32, 1], MAX_32 - 1),
        ("not.b16 %h0, %h1;", &[0], 0xffff),
        ("not.b64 %d0, %d1;", &[0], MAX_64),
        ("prmt.b32 %r0, %r1, %r2, %r3;", &[0x3322_1100, 0x7766_5544, 0x1234], 0x1122_3344),
        ("prmt.b32 %r0, %r1, %r2, %r3;", &[0x8000_0000, 0x44, 0xb34b], 0xff80_44ff),
        ("prmt.b32 %r0, %r1, %r2, %r3;", &[0x7f, 0, 0xffff_8888], 0),
        ("selp.b32 %r0, %r1, %r2, %p3;", &[1, 2, 1], 1),
        ("selp.b64 %d0, %d1, -1, %p3;", &[1, 2, 0], MAX_64),
        ("and.pred %p0, %p1, %p2;", &[1, 0], 0),
        ("xor.pred %p0, %p1, %p2;", &[1, 0], 1),
        ("not.pred %p0, %p1;", &[1], 0),
        ("mov.pred %p0, -1;", &[], 1),
        ("mov.pred %p0, 0;", &[], 0),
    ]);
}

#[test]
fn extremes_and_comparisons_follow_the_sign_of_the_type() {
    check(&[
        ("min.s32 %r0, %r1, %r2;", &[MAX_32, 1], MAX_32),
        ("min.u32 %r0, %r1, %r2;", &[MAX_32, 1], 1),
        ("max.s64 %d0, %d1, %d2;", &[MAX_64, 0], 0),
        ("max.u16 %h0, %h1, %h2;", &[0xffff, 0], 0xffff),
    ]);
    // Both of 32 bits: -1 and 1, or the largest and 1.
    for (name, signed, unsigned) in [("lt", 1, 0), ("le", 1, 0), ("gt", 0, 1), ("ge", 0, 1), ("eq", 0, 0), ("ne", 1, 1)]
    {
        assert_eq!(evaluate(&format!("setp.{name}.s32 %p0, %r1, %r2;"), &[MAX_32, 1]), signed, "{name}");
        assert_eq!(evaluate(&format!("setp.{name}.u32 %p0, %r1, %r2;"), &[MAX_32, 1]), unsigned, "{name}");
    }
    for (name, expected) in [("lo", 1), ("ls", 1), ("hi", 0), ("hs", 0)] {
        assert_eq!(evaluate(&format!("setp.{name}.u16 %p0, %h1, %h2;"), &[1, 0x8000]), expected, "{name}");
    }
}

#[test]
fn values_are_taken_apart_and_put_together_low_part_first() {
    check(&[
        ("mov.b64 %d0, {%r1, %r2};", &[1, 2], 2 << 32 | 1),
        ("mov.b32 %r0, {%h1, %h2};", &[1, 2], 2 << 16 | 1),
        ("mov.b64 %d0, {%h1, %h2, %h3, %h4};", &[1, 2, 3, 4], 4 << 48 | 3 << 32 | 2 << 16 | 1),
    ]);
    let text =
        kernel("mov.b64 {%r6, %r7}, %d1; mov.b64 {_, %r8}, %d1; mov.b64 %d0, {%r7, %r6}; st.global.u64 [%o], %d0;");
    let trial = Trial { numbers: [0x1_0000_0002, 0, 0, 0], ..Trial::new(&text, 1) };
    assert_eq!(trial.run().unwrap(), [0x2_0000_0001]);
}
