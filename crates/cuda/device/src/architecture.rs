//! The architecture that kernels are compiled for.

use std::fmt;

/// The architecture a device's kernels are compiled for: 10 times the major number of a compute
/// capability, and the minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// The device's own: the compiler makes the code of the device.
    Real(u32),
    /// The highest below it that the compiler knows: the driver makes the device's code of PTX.
    Virtual(u32),
}

impl Architecture {
    /// The architecture for a device of a capability, by a compiler that knows `supported`; `None`
    /// if it only knows newer ones.
    pub(crate) fn choose(capability: Capability, supported: &[u32]) -> Option<Self> {
        let own = capability.number();
        if supported.contains(&own) {
            return Some(Self::Real(own));
        }
        supported.iter().copied().filter(|known| *known < own).max().map(Self::Virtual)
    }

    /// Returns how the code reaches the device: `cubin` or `PTX`.
    #[must_use]
    pub fn form(self) -> &'static str {
        match self {
            Self::Real(_) => "cubin",
            Self::Virtual(_) => "PTX",
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real(number) => write!(f, "sm_{number}"),
            Self::Virtual(number) => write!(f, "compute_{number}"),
        }
    }
}

/// The compute capability of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// The generation.
    pub major: u32,
    /// The member of it.
    pub minor: u32,
}

impl Capability {
    /// Returns the number that names its architecture: 90 for 9.0, 100 for 10.0.
    #[must_use]
    pub fn number(self) -> u32 {
        self.major * 10 + self.minor
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_its_own_code_or_the_ptx_of_the_highest_architecture_below() {
        let supported = [75, 80, 86, 90, 100, 120];
        let choose = |major, minor| Architecture::choose(Capability { major, minor }, &supported);
        assert_eq!(choose(9, 0), Some(Architecture::Real(90)));
        assert_eq!(choose(10, 0), Some(Architecture::Real(100)));
        assert_eq!(choose(9, 9), Some(Architecture::Virtual(90)));
        assert_eq!(choose(8, 7), Some(Architecture::Virtual(86)));
        assert_eq!(choose(13, 0), Some(Architecture::Virtual(120)));
        assert_eq!(choose(7, 0), None);
        let text = choose(9, 9).map(|found| format!("{found} as {}", found.form()));
        assert_eq!(text.as_deref(), Some("compute_90 as PTX"));
        assert_eq!(choose(9, 0).map(Architecture::form), Some("cubin"));
    }
}
