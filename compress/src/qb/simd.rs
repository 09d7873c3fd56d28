//! The kernels, compiled once for every level of vector instructions, and the choice between them.
//!
//! Promises: the same integers and floats at every level: it is the same source, and neither level
//! allows itself to fuse or reorder floating-point operations.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls a kernel's form for vector instructions where the processor has them")
)]

use super::fitted::Weights;
use super::kernels::{self, GROUP, GroupLine, Int, LANES, QuantisedGroup, SignCounts, UnsignedWord};
use super::tile::TILE;
use crate::lattice::Lattice;
use crate::scalar::Scalar;

/// A set of vector instructions this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimdLevel(InstructionSet);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstructionSet {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl SimdLevel {
    /// The instructions that every processor of the architecture has.
    pub const PORTABLE: Self = Self(InstructionSet::Portable);

    /// The levels of this processor, ascending.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "one level only"))]
        let mut levels = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let has_avx2 = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt");
            let has_avx512 =
                has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("avx512cd");
            if has_avx2 {
                levels.push(Self(InstructionSet::Avx2));
            }
            if has_avx2 && has_avx512 {
                levels.push(Self(InstructionSet::Avx512));
            }
        }
        levels
    }

    /// Returns the highest level available.
    #[must_use]
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::PORTABLE)
    }

    /// Returns the name: portable, avx2 or avx512.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            InstructionSet::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => "avx512",
        }
    }
}

impl SimdLevel {
    /// Returns whether this is the level of AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn has_avx512(self) -> bool {
        self.0 == InstructionSet::Avx512
    }
}

/// Work that is compiled once for every level of vector instructions. All of it is to be inlined.
pub(crate) trait LevelKernel {
    /// The result.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

impl SimdLevel {
    /// Runs a kernel at this level.
    #[inline]
    pub(crate) fn run<K: LevelKernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
            fn avx2<K: LevelKernel>(kernel: K) -> K::Output {
                kernel.run()
            }
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt")]
            fn avx512<K: LevelKernel>(kernel: K) -> K::Output {
                kernel.run()
            }
            match self.0 {
                // SAFETY: a level above portable is made by `available` alone, which asked the
                // processor.
                InstructionSet::Avx2 => return unsafe { avx2(kernel) },
                // SAFETY: as above.
                InstructionSet::Avx512 => return unsafe { avx512(kernel) },
                InstructionSet::Portable => {}
            }
        }
        kernel.run()
    }
}

/// Prefetches memory that is read or written soon, where processors can; nothing waits for it.
#[inline(always)]
pub(crate) fn fetch<T>(soon: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for part in soon.chunks(64 / size_of::<T>()).chain(soon.windows(1).last()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, which reads nothing and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(part.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = soon;
}

/// Defines methods of [`SimdLevel`] that run a kernel at that level.
macro_rules! kernels {
    ($(fn $name:ident[$($g:ident: $bound:path),*]($($argument:ident: $kind:ty),+ $(,)?) $(-> $result:ty)?;)+) => {
        impl SimdLevel {$(
            #[inline]
            #[doc = concat!("[`kernels::", stringify!($name), "`] at this level.")]
            pub(super) fn $name<$($g: $bound),*>(self, $($argument: $kind),+) $(-> $result)? {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
                    fn avx2<$($g: $bound),*>($($argument: $kind),+) $(-> $result)? {
                        kernels::$name($($argument),+)
                    }
                    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,bmi1,bmi2,lzcnt")]
                    fn avx512<$($g: $bound),*>($($argument: $kind),+) $(-> $result)? {
                        kernels::$name($($argument),+)
                    }
                    match self.0 {
                        // SAFETY: a level above portable is made by `available` alone, which asked
                        // the processor.
                        InstructionSet::Avx2 => return unsafe { avx2($($argument),+) },
                        // SAFETY: as above.
                        InstructionSet::Avx512 => return unsafe { avx512($($argument),+) },
                        InstructionSet::Portable => {}
                    }
                }
                // A function of its own, as the others are: what compilers make of a loop hangs on
                // what is around it.
                #[inline(never)]
                fn portable<$($g: $bound),*>($($argument: $kind),+) $(-> $result)? {
                    kernels::$name($($argument),+)
                }
                portable($($argument),+)
            }
        )+}
    };
}

kernels! {
    fn quantise[T: Scalar, L: Lattice](lattice: &L, values: &[T; GROUP], codes: &mut [i64; GROUP]) -> QuantisedGroup;
    fn hold[T: Scalar, L: Lattice](
        lattice: &L, bound: f64, values: &[T; GROUP], parent: &[T; GROUP], codes: &mut [i64; GROUP],
    ) -> f64;
    fn subtract_parent[T: Scalar, L: Lattice](lattice: &L, parent: &[T; GROUP], codes: &mut [i64; GROUP]);
    fn add_parent[T: Scalar, L: Lattice](lattice: &L, parent: &[T; GROUP], codes: &mut [i64; GROUP]);
    fn count_signs[T: Scalar](values: &[T; GROUP], parent: Option<&[T; GROUP]>) -> SignCounts;
    fn dequantise[T: Scalar, L: Lattice](lattice: &L, codes: &[i64; GROUP], values: &mut [T; GROUP]);
    fn dequantise_from[T: Scalar, L: Lattice, I: Int](
        lattice: &L, base: i64, codes: &[I; GROUP], values: &mut [T; GROUP],
    );
    fn absolute[I: Int](base: i64, relative: &[I; GROUP], codes: &mut [i64; GROUP]);
    fn rebase[I: Int](base: i64, reach: i64, codes: &[i64], relative: &mut [I]) -> bool;
    fn costs[I: Int](line: &GroupLine<I>, stride: usize) -> [u32; 3];
    fn residuals[I: Int](order: usize, line: &GroupLine<I>, stride: usize, z: &mut [I::Unsigned; GROUP]);
    fn union[W: UnsignedWord](z: &[W; GROUP]) -> u64;
    fn window[W: UnsignedWord](z: &[W; GROUP], shift: u32, bytes: &mut [u8; GROUP]);
    fn count[](bytes: &[u8; GROUP], least: u8) -> u32;
    fn pack[](z: &[u32; GROUP], width: u32, words: &mut [u32]);
    fn unpack[](words: &[u32], width: u32, z: &mut [u32; GROUP]);
    fn fitted_residuals[I: Int](weights: &Weights, tile: &[I; TILE], residuals: &mut [I::Unsigned; TILE]);
    fn fitted_codes[I: Int](weights: &Weights, residuals: &[I::Unsigned; TILE], tile: &mut [I; TILE]);
}

/// Defines methods of [`SimdLevel`] for groups of 32 and of 64 bits, the first on rows in vector
/// registers.
macro_rules! row_kernels {
    ($(fn $name:ident / $wide:ident($($argument:ident: $narrow:ty | $kind:ty),+ $(,)?) $(-> $result:ty)?;)+) => {
        impl SimdLevel {$(
            #[inline]
            #[doc = concat!("[`kernels::", stringify!($name), "`] of 32 bits at this level.")]
            pub(super) fn $name(self, $($argument: $narrow),+) $(-> $result)? {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
                    fn avx2($($argument: $narrow),+) $(-> $result)? {
                        kernels::$name::<i32, std::arch::x86_64::__m256i>($($argument),+)
                    }
                    if self != Self::PORTABLE {
                        // SAFETY: a level above portable is made by `available` alone, which asked
                        // the processor.
                        return unsafe { avx2($($argument),+) };
                    }
                }
                #[inline(never)]
                fn portable($($argument: $narrow),+) $(-> $result)? {
                    kernels::$name::<i32, [i32; LANES]>($($argument),+)
                }
                portable($($argument),+)
            }

            #[inline]
            #[doc = concat!("[`kernels::", stringify!($name), "`] of 64 bits, at any level.")]
            pub(super) fn $wide(self, $($argument: $kind),+) $(-> $result)? {
                kernels::$name::<i64, [i64; LANES]>($($argument),+)
            }
        )+}
    };
}

row_kernels! {
    fn restore / restore_wide(
        order: usize | usize, z: &[u32; GROUP] | &[u64; GROUP], stride: usize | usize,
        line: &mut GroupLine<i32> | &mut GroupLine<i64>,
    );
    fn tile_differences / tile_differences_wide(
        tile: &[i32; TILE] | &[i64; TILE], differences: &mut [u32; TILE] | &mut [u64; TILE],
    );
    fn tile_sums / tile_sums_wide(
        differences: &[u32; TILE] | &[u64; TILE], tile: &mut [i32; TILE] | &mut [i64; TILE],
    );
    fn outliers / outliers_wide(z: &[u32; GROUP] | &[u64; GROUP], width: u32 | u32) -> [u32; LANES];
}

#[cfg(target_arch = "x86_64")]
mod row {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_alignr_epi8, _mm256_and_si256,
        _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_movemask_ps, _mm256_permute2x128_si256,
        _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_shuffle_epi32, _mm256_slli_epi32,
        _mm256_slli_si256, _mm256_srai_epi32, _mm256_srl_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
        _mm256_sub_epi32, _mm256_xor_si256,
    };

    use super::super::kernels::{LANES, Row};

    /// One AVX2 register. Used by kernels compiled for AVX2 alone.
    impl Row<i32> for __m256i {
        #[inline(always)]
        fn all(value: i32) -> Self {
            // SAFETY: only reached at a level whose processor has AVX2; so all below.
            unsafe { _mm256_set1_epi32(value) }
        }

        #[inline(always)]
        fn load(row: &[i32; LANES]) -> Self {
            // SAFETY: AVX2 as above; the array is as long as a register.
            unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
        }

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: AVX2 as above.
            unsafe { _mm256_sub_epi32(self, other) }
        }

        #[inline(always)]
        fn behind(self, before: Self) -> Self {
            // SAFETY: AVX2 as above.
            unsafe {
                // The high half of the one before, then the low half.
                let middle = _mm256_permute2x128_si256::<0x21>(before, self);
                _mm256_alignr_epi8::<12>(self, middle)
            }
        }

        #[inline(always)]
        fn zigzag(self) -> [u32; LANES] {
            let mut array = [0; LANES];
            // SAFETY: AVX2 as above; the array is as long as a register.
            unsafe {
                let z = _mm256_xor_si256(_mm256_slli_epi32::<1>(self), _mm256_srai_epi32::<31>(self));
                _mm256_storeu_si256(array.as_mut_ptr().cast(), z);
            }
            array
        }

        #[inline(always)]
        fn unzigzag(z: &[u32; LANES]) -> Self {
            // SAFETY: AVX2 as above; the array is as long as a register.
            unsafe {
                let z = _mm256_loadu_si256(z.as_ptr().cast());
                let sign = _mm256_and_si256(z, _mm256_set1_epi32(1));
                _mm256_xor_si256(_mm256_srli_epi32::<1>(z), _mm256_sub_epi32(_mm256_setzero_si256(), sign))
            }
        }

        #[inline(always)]
        fn to_array(self) -> [i32; LANES] {
            let mut array = [0; LANES];
            // SAFETY: AVX2 as above; the array is as long as a register.
            unsafe { _mm256_storeu_si256(array.as_mut_ptr().cast(), self) };
            array
        }

        #[inline(always)]
        fn reach(z: &[u32; LANES], width: u32) -> u32 {
            // SAFETY: AVX2 as above; the array is as long as a register.
            unsafe {
                let count: __m128i = _mm_cvtsi32_si128(width as i32);
                let high = _mm256_srl_epi32(_mm256_loadu_si256(z.as_ptr().cast()), count);
                let none = _mm256_cmpeq_epi32(high, _mm256_setzero_si256());
                !(_mm256_movemask_ps(_mm256_castsi256_ps(none)) as u32) & 0xff
            }
        }

        #[inline(always)]
        fn sums(self, last: &mut Self) -> Self {
            // SAFETY: AVX2 as above.
            unsafe {
                // Sums within each half, then the low half's last sum onto the high half.
                let pairs = _mm256_add_epi32(self, _mm256_slli_si256::<4>(self));
                let halves = _mm256_add_epi32(pairs, _mm256_slli_si256::<8>(pairs));
                let low = _mm256_permute2x128_si256::<0x08>(halves, halves);
                let row = _mm256_add_epi32(halves, _mm256_shuffle_epi32::<0xff>(low));
                let sums = _mm256_add_epi32(row, *last);
                // The chain from row to row is one addition: the row's own total is ready before.
                let total = _mm256_permutevar8x32_epi32(row, _mm256_set1_epi32(7));
                *last = _mm256_add_epi32(*last, total);
                sums
            }
        }
    }
}
