//! Floats: rounding, denormals, signed zeros, values that are no numbers.

use super::harness::{NAN, check, d, evaluate, s};

const SINGLE_NAN: u64 = 0x7fff_ffff;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;
const SIGN: u64 = 1 << 63;

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
    ]);
}

#[test]
fn signs_are_bits() {
    check(&[
        ("neg.f64 %d0, %d1;", &[0], SIGN),
        ("neg.f32 %r0, %r1;", &[s(-0.0)], 0),
        ("abs.f64 %d0, %d1;", &[d(f64::NEG_INFINITY)], INFINITY),
        ("abs.f32 %r0, %r1;", &[s(-1.5)], s(1.5)),
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
