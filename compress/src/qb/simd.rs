//! The kernels, compiled once for every level of vector instructions, and the choice between them.
//!
//! Promises: the same integers and floats at every level: it is the same source, and neither level allows
//! itself to fuse or reorder floating-point operations.
#![expect(unsafe_code, reason = "calls a kernel's form for vector instructions where the processor has them")]

use super::kernels::{self, GROUP, Int, Line, Word};
use super::lattice::{Lattice, Scalar};
use super::tile::TILE;

/// A set of vector instructions this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// What every processor of the architecture has.
    pub const PORTABLE: Self = Self(Kind::Portable);

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
                levels.push(Self(Kind::Avx2));
            }
            if has_avx2 && has_avx512 {
                levels.push(Self(Kind::Avx512));
            }
        }
        levels
    }

    /// The highest of them.
    #[must_use]
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(Self::PORTABLE)
    }

    /// Its name: portable, avx2 or avx512.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }
}

/// Defines methods of [`Level`] that run a kernel at that level.
macro_rules! kernels {
    ($(fn $name:ident[$($g:ident: $bound:path),*]($($argument:ident: $kind:ty),+ $(,)?) $(-> $result:ty)?;)+) => {
        impl Level {$(
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
                        // SAFETY: a level above portable is made by `available` alone, which asked the processor.
                        Kind::Avx2 => return unsafe { avx2($($argument),+) },
                        // SAFETY: as above.
                        Kind::Avx512 => return unsafe { avx512($($argument),+) },
                        Kind::Portable => {}
                    }
                }
                kernels::$name($($argument),+)
            }
        )+}
    };
}

kernels! {
    fn quantise[T: Scalar, L: Lattice<T>](lattice: &L, values: &[T; GROUP], codes: &mut [i64; GROUP]) -> (bool, f64);
    fn hold[T: Scalar, L: Lattice<T>](
        lattice: &L, bound: f64, values: (&[T; GROUP], &[T; GROUP]), codes: &mut [i64; GROUP],
    ) -> f64;
    fn subtract_parent[T: Scalar, L: Lattice<T>](lattice: &L, parent: &[T; GROUP], codes: &mut [i64; GROUP]);
    fn add_parent[T: Scalar, L: Lattice<T>](lattice: &L, parent: &[T; GROUP], codes: &mut [i64; GROUP]);
    fn dequantise[T: Scalar, L: Lattice<T>](lattice: &L, codes: &[i64; GROUP], values: &mut [T; GROUP]);
    fn dequantise_from[T: Scalar, L: Lattice<T>, I: Int](
        lattice: &L, base: i64, codes: &[I; GROUP], values: &mut [T; GROUP],
    );
    fn absolute[I: Int](base: i64, relative: &[I; GROUP], codes: &mut [i64; GROUP]);
    fn zigzags[I: Int](residuals: &[I; GROUP], z: &mut [I::Unsigned; GROUP]);
    fn unzigzags[I: Int](z: &[I::Unsigned; GROUP], residuals: &mut [I; GROUP]);
    fn rebase[I: Int](base: i64, codes: &[i64], relative: &mut [I]) -> bool;
    fn costs[I: Int](line: &Line<I>, stride: usize) -> [u32; 3];
    fn residuals[I: Int](order: usize, line: &Line<I>, stride: usize, z: &mut [I::Unsigned; GROUP]);
    fn restore[I: Int](order: usize, z: &[I::Unsigned; GROUP], stride: usize, line: &mut Line<I>);
    fn union[W: Word](z: &[W; GROUP]) -> u64;
    fn count[W: Word](z: &[W; GROUP], width: u32) -> u32;
    fn pack[](z: &[u32; GROUP], width: u32, words: &mut [u32]);
    fn unpack[](words: &[u32], width: u32, z: &mut [u32; GROUP]);
    fn tile_differences[I: Int](tile: &mut [I; TILE]);
    fn tile_sums[I: Int](tile: &mut [I; TILE]);
}
