//! Versions of CUDA, of the driver and of the runtime compiler.

use std::fmt;

/// A version of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CudaVersion {
    /// Releases of one major version load each other's device code.
    pub major: u32,
    /// Each minor version adds calls, and versions of PTX.
    pub minor: u32,
}

impl CudaVersion {
    /// The oldest driver that has every call made here.
    pub const OLDEST: Self = Self { major: 12, minor: 2 };

    /// The version that the driver states as one number, such as 12020.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        let number = number.unsigned_abs();
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_driver_are_read_as_versions_in_order() {
        let of = CudaVersion::from_number;
        assert_eq!(of(12020), CudaVersion::OLDEST);
        assert_eq!(of(13000).to_string(), "13.0");
        assert_eq!(of(11080).to_string(), "11.8");
        assert!(of(12010) < CudaVersion::OLDEST && CudaVersion::OLDEST < of(12090) && of(12090) < of(13000));
    }
}
