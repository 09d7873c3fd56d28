//! The time that kernels take.

/// Seconds of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelTiming {
    /// Encoding, with blocks put one after the other.
    pub encode_seconds: f64,
    /// Decoding them.
    pub decode_seconds: f64,
    /// Bytes of the blocks.
    pub bytes: usize,
}
