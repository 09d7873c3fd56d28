//! The choices a test makes about the device and its faults.

use crate::status::CudaStatus;

/// The device that the double plays, and the faults it is to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Draws the order of operations and the answers to queries.
    pub seed: u64,
    /// The call that fails, counted from 1.
    pub fail_call: Option<u64>,
    /// The error that it gives.
    pub error: CudaStatus,
    /// The first call, counted from 1, that finds the device lost; all later ones do, too.
    pub lost_at: Option<u64>,
    /// The error of a lost device.
    pub lost_error: CudaStatus,
    /// Memory of each device.
    pub memory_bytes: u64,
    /// Number of devices.
    pub devices: u32,
    /// The driver's version as `cuDriverGetVersion` gives it, 12020 for 12.2; `None` for a library
    /// without a driver.
    pub driver_version: Option<u32>,
    /// Compute capability, ten times the major number plus the minor one.
    pub capability: u32,
    /// Registers that a thread of every kernel takes.
    pub registers: u32,
    /// Memory can be mapped piece by piece.
    pub has_virtual_memory: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            fail_call: None,
            error: CudaStatus::Unknown,
            lost_at: None,
            lost_error: CudaStatus::DeviceUnavailable,
            memory_bytes: 4 << 30,
            devices: 1,
            driver_version: Some(13_000),
            // No compiler knows it, so kernels come as PTX.
            capability: 99,
            registers: 32,
            has_virtual_memory: true,
        }
    }
}

/// Names of all settings, as [`Settings::set`] takes them.
pub const NAMES: [&str; 11] = [
    "seed",
    "fail_call",
    "error",
    "lost_at",
    "lost_error",
    "memory_bytes",
    "devices",
    "driver_version",
    "capability",
    "registers",
    "has_virtual_memory",
];

impl Settings {
    /// Changes the setting called `name`; `false` if there is none of that name, or the value does
    /// not fit. The value 0 stands for "none" where there may be none.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        let positive = Some(value).filter(|value| *value > 0);
        let small = u32::try_from(value).ok();
        match name {
            "seed" => self.seed = value,
            "fail_call" => self.fail_call = positive,
            "lost_at" => self.lost_at = positive,
            "memory_bytes" => self.memory_bytes = value,
            "has_virtual_memory" => self.has_virtual_memory = value > 0,
            _ => return small.is_some_and(|value| self.set_small(name, value)),
        }
        true
    }

    fn set_small(&mut self, name: &str, value: u32) -> bool {
        let status = CudaStatus::of(value);
        match (name, status) {
            ("error", Some(status)) => self.error = status,
            ("lost_error", Some(status)) => self.lost_error = status,
            ("devices", _) => self.devices = value,
            ("driver_version", _) => self.driver_version = Some(value).filter(|version| *version > 0),
            ("capability", _) => self.capability = value,
            ("registers", _) => self.registers = value,
            _ => return false,
        }
        true
    }

    /// Returns the value that [`Settings::set`] takes for each name of [`NAMES`].
    pub fn values(&self) -> [u64; NAMES.len()] {
        [
            self.seed,
            self.fail_call.unwrap_or(0),
            self.error.code().into(),
            self.lost_at.unwrap_or(0),
            self.lost_error.code().into(),
            self.memory_bytes,
            self.devices.into(),
            self.driver_version.unwrap_or(0).into(),
            self.capability.into(),
            self.registers.into(),
            self.has_virtual_memory.into(),
        ]
    }

    /// Returns the settings that `values` hold, in the order of [`NAMES`].
    pub fn from_values(values: &[u64]) -> Option<Self> {
        let mut settings = Self::default();
        let is_whole = values.len() == NAMES.len();
        let all = NAMES.iter().zip(values).all(|(name, value)| settings.set(name, *value));
        (is_whole && all).then_some(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_from_their_values() {
        let settings = Settings {
            seed: 7,
            fail_call: Some(3),
            error: CudaStatus::OutOfMemory,
            driver_version: None,
            devices: 2,
            has_virtual_memory: false,
            ..Settings::default()
        };
        assert_eq!(Settings::from_values(&settings.values()), Some(settings));
        assert_eq!(Settings::from_values(&[1]), None);
        assert!(!Settings::default().set("error", 12_345) && !Settings::default().set("sed", 1));
    }
}
