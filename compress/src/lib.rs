//! Codecs behind one trait, each keeping its error bound.
//!
//! [`recoup_core::Codec`] defines a codec. This crate holds one file per codec, and the table that
//! finds them by name. [`codec`] returns them inside [`Verified`], which decodes every payload and
//! compares every value. So each codec keeps the promise: every value within the bound, and NaN,
//! infinities and -0 bit for bit.
//!
//! SZ3 needs feature `sz3`. `sz3-sys` below it is GPL-3.0-only, and so is every binary built with
//! it; this crate without it is MIT or Apache-2.0. Its build needs cmake, a C++17 compiler,
//! libclang and the library that `pkg-config libzstd` finds; `scripts/bootstrap.sh long` installs
//! them.
//!
//! With feature `cuda` QB also runs on CUDA devices, which are found at run time:
//! [`codec_on_cuda`].
//!
//! Promises: no I/O, no clock, no thread but those QB is told to use; unsafe code in `simd.rs` and
//! `sys.rs` alone. Encoding allocates per frame, because it runs behind the solver. Must not know:
//! variables, versions, stores, ranks.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod bytes;
mod delta;
mod effective;
mod increment;
mod lattice;
mod least_squares;
mod neighbours;
mod parent;
mod pco;
mod pyramid;
mod qb;
mod raw;
mod scalar;
mod shuffle;
#[cfg(feature = "sz3")]
mod sz3;
mod verified;
mod zfp;
mod zstd;

use std::sync::Arc;

use recoup_core::{Codec, CodecError, CodecId, CodecResult, ValuesMut};

pub use delta::Delta;
pub use effective::effective_bound;
pub use increment::Increment;
pub use pco::Pco;
pub use pyramid::{Pyramid, PyramidContents};
#[cfg(feature = "cuda")]
pub use qb::cuda::{KernelTiming, QbCuda, source as cuda_source, sources as cuda_sources};
pub use qb::{Arrangement as QbArrangement, Contents as QbContents, FILTER as QB_FILTER, Qb, SimdLevel};
pub use raw::Raw;
#[cfg(feature = "sz3")]
pub use sz3::Sz3;
pub use verified::{Verified, bound_holds};
pub use zfp::Zfp;
pub use zstd::Zstd;

/// The codec named `id`, verified; lossy ones can follow a parent.
///
/// # Errors
/// [`CodecError::NotBuilt`] for SZ3 without feature `sz3`.
pub fn codec(id: CodecId) -> CodecResult<Arc<dyn Codec>> {
    match id {
        CodecId::Raw => Ok(Arc::new(Raw)),
        CodecId::Zstd => Ok(Arc::new(Verified::new(Zstd))),
        CodecId::Pco => Ok(Arc::new(Delta::new(Pco))),
        CodecId::Zfp => Ok(Arc::new(Delta::new(Zfp))),
        CodecId::Qb => Ok(Arc::new(Qb::default())),
        CodecId::Pyramid => Ok(Arc::new(Delta::new(Pyramid::default()))),
        CodecId::Increment => Ok(Arc::new(Increment)),
        #[cfg(feature = "sz3")]
        CodecId::Sz3 => Ok(Arc::new(Delta::new(Sz3))),
        #[cfg(not(feature = "sz3"))]
        CodecId::Sz3 => Err(CodecError::NotBuilt { codec: id, feature: "sz3" }),
    }
}

/// The codec named `id`, on the first CUDA device where the codec can use one: QB. The bytes are
/// those of [`codec`].
///
/// # Errors
/// [`CodecError::Foreign`] when there is no device, or no compiler for its kernels;
/// [`CodecError::NotBuilt`] for QB without feature `cuda`; those of [`codec`].
pub fn codec_on_cuda(id: CodecId) -> CodecResult<Arc<dyn Codec>> {
    if id != CodecId::Qb {
        return codec(id);
    }
    #[cfg(feature = "cuda")]
    return Ok(QbCuda::shared()?);
    #[cfg(not(feature = "cuda"))]
    Err(CodecError::NotBuilt { codec: id, feature: "cuda" })
}

/// Fills `target` from a payload that was stored raw, whatever codec was asked for.
///
/// # Errors
/// [`CodecError::Damaged`] when `source` is not as long as `target`'s values.
pub fn decode_raw(source: &[u8], target: ValuesMut<'_>) -> CodecResult<()> {
    bytes::fill(source, target, CodecId::Raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_of_the_table_says_its_own_name() {
        for id in CodecId::ALL {
            match codec(id) {
                Ok(found) => assert_eq!(found.id(), id),
                Err(error) => {
                    assert_eq!(error, CodecError::NotBuilt { codec: CodecId::Sz3, feature: "sz3" });
                }
            }
        }
    }
}
