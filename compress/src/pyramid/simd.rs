//! Sixteen numbers of the lattice at a time: an array, two registers of AVX2, or one of AVX-512.
//!
//! Promises: the same integers in every form.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls a kernel's form for vector instructions where the processor has them")
)]

use crate::qb::SimdLevel;

mod array;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// Numbers of the lattice at a time.
pub(super) const LANES: usize = 16;

/// Numbers side by side. All arithmetic wraps.
pub(super) trait NumberLanes: Copy {
    fn all(value: i32) -> Self;
    fn load(values: &[i32; LANES]) -> Self;
    fn store(self, values: &mut [i32; LANES]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn times(self, factor: i32) -> Self;
    /// Shifted right by `N` bits, with the sign.
    fn shifted<const N: u32>(self) -> Self;
    /// The lanes of `other` whose bit is set, and own ones elsewhere.
    fn replaced(self, bits: u16, other: Self) -> Self;
    /// Sizes, at most `limit`, which is not negative.
    fn sizes_up_to(self, limit: i32) -> Self;
    /// The codes of distances.
    fn codes(self, inverse_step: f64) -> Self;
    /// The sum of the first lanes, none of them negative.
    fn sum_of(self, len: usize) -> u32;

    /// Half of each number, halves rounded up.
    #[inline(always)]
    fn halved(self) -> Self {
        self.plus(Self::all(1)).shifted::<1>()
    }
}

/// The bits of the first lanes.
#[inline(always)]
pub(super) fn first_bits(len: usize) -> u16 {
    ((1u32 << len) - 1) as u16
}

/// Work on numbers side by side, compiled once for every form. All of it is to be inlined: a
/// closure over lanes may stay a function of its own, without the instructions of the level.
pub(super) trait LaneKernel {
    /// The result.
    type Output;

    /// Does the work.
    fn run<V: NumberLanes>(self) -> Self::Output;
}

/// Runs a kernel at a level of vector instructions.
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is one level"))]
#[inline]
pub(super) fn run<K: LaneKernel>(level: SimdLevel, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
        fn avx2<K: LaneKernel>(kernel: K) -> K::Output {
            kernel.run::<avx2::RegisterPair>()
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt")]
        fn avx512<K: LaneKernel>(kernel: K) -> K::Output {
            kernel.run::<std::arch::x86_64::__m512i>()
        }
        if level.has_avx512() {
            // SAFETY: a level above portable is made by `available` alone, which asked the
            // processor.
            return unsafe { avx512(kernel) };
        }
        if level != SimdLevel::PORTABLE {
            // SAFETY: as above.
            return unsafe { avx2(kernel) };
        }
    }
    #[inline(never)]
    fn portable<K: LaneKernel>(kernel: K) -> K::Output {
        kernel.run::<[i32; LANES]>()
    }
    portable(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation on some lanes.
    struct Operations([i32; LANES], [i32; LANES]);

    impl LaneKernel for Operations {
        type Output = ([[i32; LANES]; 10], [u32; 3]);

        fn run<V: NumberLanes>(self) -> Self::Output {
            let [a, b] = [V::load(&self.0), V::load(&self.1)];
            let sizes = a.sizes_up_to(1 << 20);
            let results = [
                V::all(-7),
                a.plus(b),
                a.minus(b),
                a.or(b),
                a.times(-22),
                a.shifted::<7>(),
                a.replaced(0b1010_0000_1111_0001, b),
                sizes,
                a.codes(1.0 / 63.0),
                a.halved(),
            ];
            let mut arrays = [[0; LANES]; 10];
            results.iter().zip(&mut arrays).for_each(|(lanes, array)| lanes.store(array));
            (arrays, [0, 5, LANES].map(|len| sizes.sum_of(len)))
        }
    }

    #[test]
    fn every_operation_gives_the_same_numbers_at_every_level() {
        for seed in 1..200u32 {
            let number = |lane: usize| (seed.wrapping_mul(lane as u32 + 1).wrapping_mul(0x9e37_79b9)) as i32;
            let mut a = std::array::from_fn(|lane| number(lane) >> (seed % 31));
            a[..3].copy_from_slice(&[i32::MIN, i32::MAX, 0]);
            let b = std::array::from_fn(|lane| number(lane + 77));
            let expected = run(SimdLevel::PORTABLE, Operations(a, b));
            for level in SimdLevel::available() {
                assert_eq!(run(level, Operations(a, b)), expected, "{} {seed}", level.name());
            }
        }
    }
}
