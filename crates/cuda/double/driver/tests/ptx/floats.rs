//! Floats: rounding, denormals, signed zeros, values that are no numbers.

use super::harness::{check, evaluate};

const NAN: u64 = 0x7ff8_0000_0000_0000;
const ONE_NAN: u64 = 0x7fff_ffff_ffff_ffff;
const SINGLE_NAN: u64 = 0x7fff_ffff;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
const SIGN: u64 = 1 << 63;

fn d(x: f64) -> u64 {
    x.to_bits()
}

fn s(x: f32) -> u64 {
    u64::from(x.to_bits())
}

#[test]
fn arithmetic_rounds_to_nearest_and_keeps_denormals() {
    check(&[
        ("add.rn.f64 %d0, %d1, %d2;", &[d(0.1), d(0.2)], d(0.1 + 0.2)),
        ("add.f64 %d0, %d1, %d2;", &[d(1.0), d(f64::EPSILON / 2.0)], d(1.0)),
        ("sub.rn.f64 %d0, %d1, %d2;", &[d(f64::MIN_POSITIVE), 1], d(f64::MIN_POSITIVE) - 1),
        ("mul.rn.f64 %d0, %d1, %d2;", &[1, d(0.75)], 1),
        ("mul.rn.f64 %d0, %d1, %d2;", &[1, d(0.5)], 0),
        ("mul.rn.f64 %d0, %d1, %d2;", &[d(-0.0), d(1.0)], SIGN),
        ("add.rn.f64 %d0, %d1, %d2;", &[d(-0.0), d(0.0)], 0),
        ("mul.rn.f32 %r0, %r1, %r2;", &[1, s(0.75)], 1),
        ("add.rn.f32 %r0, %r1, %r2;", &[s(16_777_216.0), s(1.0)], s(16_777_216.0)),
        ("div.rn.f64 %d0, %d1, %d2;", &[d(1.0), d(3.0)], d(1.0 / 3.0)),
        ("div.rn.f64 %d0, %d1, %d2;", &[d(-1.0), d(0.0)], d(f64::NEG_INFINITY)),
        ("div.rn.f32 %r0, %r1, %r2;", &[s(1.0), s(-0.0)], s(f32::NEG_INFINITY)),
        ("div.rn.f32 %r0, %r1, %r2;", &[s(0.0), s(0.0)], SINGLE_NAN),
        ("rcp.rn.f64 %d0, %d1;", &[d(49.0)], d(1.0 / 49.0)),
        ("sqrt.rn.f64 %d0, %d1;", &[d(2.0)], d(2f64.sqrt())),
        ("sqrt.rn.f64 %d0, %d1;", &[SIGN], SIGN),
        ("sqrt.rn.f32 %r0, %r1;", &[s(-1.0)], SINGLE_NAN),
    ]);
}

#[test]
fn sums_are_rounded_to_zero_where_it_is_asked_for() {
    let below_half = 0.5 - f64::EPSILON / 4.0;
    check(&[
        ("add.rz.f64 %d0, %d1, %d2;", &[d(below_half), d(0.5)], d(1.0) - 1),
        ("add.rz.f64 %d0, %d1, %d2;", &[d(-0.5), d(-below_half)], d(-1.0) - 1),
        ("add.rz.f64 %d0, %d1, %d2;", &[d(1.0), d(-1e-300)], d(1.0) - 1),
        ("add.rz.f64 %d0, %d1, %d2;", &[d(1e-300), d(1.0)], d(1.0)),
        ("add.rz.f64 %d0, %d1, %d2;", &[d(f64::MAX), d(f64::MAX)], d(f64::MAX)),
        ("add.rz.f64 %d0, %d1, %d2;", &[d(-f64::MAX), d(-f64::MAX)], d(-f64::MAX)),
        ("add.rz.f64 %d0, %d1, %d2;", &[INFINITY, d(1.0)], INFINITY),
        ("add.rz.f64 %d0, %d1, %d2;", &[d(1.5), d(-1.5)], 0),
        ("sub.rz.f64 %d0, %d1, %d2;", &[d(1.0), 1], d(1.0) - 1),
        ("sub.rz.f32 %r0, %r1, %r2;", &[s(16_777_216.0), s(0.5)], s(16_777_215.0)),
        ("add.rz.f32 %r0, %r1, %r2;", &[s(16_777_216.0), s(1.5)], s(16_777_216.0)),
        ("add.rz.f32 %r0, %r1, %r2;", &[s(f32::NAN), s(1.5)], SINGLE_NAN),
    ]);
}

#[test]
fn a_fused_product_and_sum_is_rounded_once() {
    let x = 1.0 + f64::EPSILON;
    // The product alone rounds to 1 + 2 epsilon: a sum after it would be 0.
    let expected = d(f64::EPSILON * f64::EPSILON);
    check(&[
        ("fma.rn.f64 %d0, %d1, %d2, %d3;", &[d(x), d(x), d(-(x * x))], expected),
        (
            "fma.rn.f32 %r0, %r1, %r2, %r3;",
            &[s(1.0 + f32::EPSILON), s(1.0 + f32::EPSILON), s(-1.0 - 2.0 * f32::EPSILON)],
            s(f32::EPSILON * f32::EPSILON),
        ),
        ("fma.rn.f64 %d0, %d1, %d2, %d3;", &[d(f64::MAX), d(2.0), d(f64::NEG_INFINITY)], d(f64::NEG_INFINITY)),
    ]);
    let infinite_minus_infinite = evaluate("fma.rn.f64 %d0, %d1, %d2, %d3;", &[INFINITY, d(1.0), INFINITY | SIGN]);
    assert!(f64::from_bits(infinite_minus_infinite).is_nan());
}

#[test]
fn extremes_leave_out_what_is_no_number_and_order_zeros() {
    check(&[
        ("min.f64 %d0, %d1, %d2;", &[NAN, d(1.0)], d(1.0)),
        ("min.f64 %d0, %d1, %d2;", &[d(1.0), NAN], d(1.0)),
        ("max.f64 %d0, %d1, %d2;", &[NAN, d(-1.0)], d(-1.0)),
        ("max.f64 %d0, %d1, %d2;", &[NAN, NAN | SIGN], ONE_NAN),
        ("min.f64 %d0, %d1, %d2;", &[d(0.0), SIGN], SIGN),
        ("min.f64 %d0, %d1, %d2;", &[SIGN, d(0.0)], SIGN),
        ("max.f64 %d0, %d1, %d2;", &[d(0.0), SIGN], 0),
        ("max.f64 %d0, %d1, %d2;", &[SIGN, d(0.0)], 0),
        ("max.f64 %d0, %d1, %d2;", &[d(2.0), d(3.0)], d(3.0)),
        ("min.f32 %r0, %r1, %r2;", &[SINGLE_NAN, SINGLE_NAN], SINGLE_NAN),
        ("min.f32 %r0, %r1, %r2;", &[s(f32::NEG_INFINITY), s(3.0)], s(f32::NEG_INFINITY)),
    ]);
}

#[test]
fn signs_are_bits() {
    check(&[
        ("neg.f64 %d0, %d1;", &[0], SIGN),
        ("neg.f32 %r0, %r1;", &[s(-0.0)], 0),
        ("abs.f64 %d0, %d1;", &[d(f64::NEG_INFINITY)], INFINITY),
        ("abs.f32 %r0, %r1;", &[s(-1.5)], s(1.5)),
        ("copysign.f64 %d0, %d1, %d2;", &[SIGN, d(2.0)], d(-2.0)),
        ("copysign.f32 %r0, %r1, %r2;", &[s(1.0), s(-2.0)], s(2.0)),
    ]);
}

#[test]
fn comparisons_with_what_is_no_number() {
    let holds = |name: &str, a: u64, b: u64| evaluate(&format!("setp.{name}.f64 %p0, %d1, %d2;"), &[a, b]) == 1;
    for name in ["eq", "ne", "lt", "le", "gt", "ge", "num"] {
        assert!(!holds(name, NAN, d(1.0)) && !holds(name, d(1.0), NAN) && !holds(name, NAN, NAN), "{name}");
    }
    for name in ["equ", "neu", "ltu", "leu", "gtu", "geu", "nan"] {
        assert!(holds(name, NAN, d(1.0)) && holds(name, d(1.0), NAN) && holds(name, NAN, NAN), "{name}");
    }
    for (name, less, same, more) in [
        ("eq", false, true, false),
        ("ne", true, false, true),
        ("lt", true, false, false),
        ("le", true, true, false),
        ("gt", false, false, true),
        ("ge", false, true, true),
        ("num", true, true, true),
        ("nan", false, false, false),
    ] {
        let found = [holds(name, d(1.0), d(2.0)), holds(name, SIGN, 0), holds(name, INFINITY, d(2.0))];
        assert_eq!(found, [less, same, more], "{name}");
        if !["num", "nan"].contains(&name) {
            let unordered = format!("{name}u");
            let found =
                [holds(&unordered, d(1.0), d(2.0)), holds(&unordered, SIGN, 0), holds(&unordered, INFINITY, d(2.0))];
            assert_eq!(found, [less, same, more], "{unordered}");
        }
    }
}
