//! Sixteen numbers as an array, of whose loops the compiler makes vectors.

use super::{LANES, NumberLanes};
use crate::pyramid::lattice::code;

#[inline(always)]
fn map(a: [i32; LANES], f: impl Fn(i32) -> i32) -> [i32; LANES] {
    let mut result = [0; LANES];
    for lane in 0..LANES {
        result[lane] = f(a[lane]);
    }
    result
}

#[inline(always)]
fn zip(a: [i32; LANES], b: [i32; LANES], f: impl Fn(i32, i32) -> i32) -> [i32; LANES] {
    let mut result = [0; LANES];
    for lane in 0..LANES {
        result[lane] = f(a[lane], b[lane]);
    }
    result
}

impl NumberLanes for [i32; LANES] {
    #[inline(always)]
    fn all(value: i32) -> Self {
        [value; LANES]
    }

    #[inline(always)]
    fn load(values: &[i32; LANES]) -> Self {
        *values
    }

    #[inline(always)]
    fn store(self, values: &mut [i32; LANES]) {
        *values = self;
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        zip(self, other, i32::wrapping_add)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        zip(self, other, i32::wrapping_sub)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        zip(self, other, |a, b| a | b)
    }

    #[inline(always)]
    fn times(self, factor: i32) -> Self {
        map(self, |a| a.wrapping_mul(factor))
    }

    #[inline(always)]
    fn shifted<const N: u32>(self) -> Self {
        map(self, |a| a >> N)
    }

    #[inline(always)]
    fn replaced(self, bits: u16, other: Self) -> Self {
        std::array::from_fn(|lane| if bits >> lane & 1 != 0 { other[lane] } else { self[lane] })
    }

    #[inline(always)]
    fn sizes_up_to(self, limit: i32) -> Self {
        map(self, |a| a.unsigned_abs().min(limit as u32) as i32)
    }

    #[inline(always)]
    fn codes(self, inverse_step: f64) -> Self {
        map(self, |a| code(a, inverse_step))
    }

    #[inline(always)]
    fn sum_of(self, len: usize) -> u32 {
        let mut sum = 0;
        for (lane, size) in self.into_iter().enumerate() {
            sum += if lane < len { size as u32 } else { 0 };
        }
        sum
    }
}
