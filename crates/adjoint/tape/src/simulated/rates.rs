//! Rates of a simulated machine.

use crate::touching::TouchModel;

/// Order of registrations of several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinningTurns {
    /// One process after the other.
    Serial,
    /// All at once, at a share of the rate each.
    Parallel,
}

/// Rates of a machine in bytes per second. Level 0 is memory of a device, level 1 memory of the
/// host, level 2 a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRates {
    /// Copies within a device.
    pub device_copy: f64,
    /// Mapping of device memory, of one process.
    pub map_process: f64,
    /// Mapping of device memory, of all processes together.
    pub map_node: f64,
    /// Link to registered memory of the host, in each direction, of all devices on it.
    pub link_registered: f64,
    /// Link to memory of the host that is not registered.
    pub link_unregistered: f64,
    /// Devices that share a link.
    pub devices_per_link: usize,
    /// Copies to pages that were not touched, of one process.
    pub untouched_copy: f64,
    /// Touching of pages, of one process.
    pub touch: f64,
    /// Share of their rates that touching and a copy to unregistered memory keep if a process does
    /// both at once.
    pub together: f64,
    /// Registration of touched pages, of all processes together.
    pub pin: f64,
    /// Registration of untouched pages, of all processes together.
    pub pin_untouched: f64,
    /// Copies to and from a directory, of all processes together.
    pub spill: f64,
    /// Encoding on a device before each copy to the host, and decoding after each copy back, of one
    /// process. Infinite where states are copied as they are.
    pub codec: f64,
}

/// A codec on each device, by what it reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedCodec {
    /// Raw bytes divided by encoded bytes.
    pub ratio: f64,
    /// Raw bytes per second that a device encodes or decodes.
    pub rate: f64,
}

impl NodeRates {
    /// Rates of an eight-device A100 machine, as Maurya et al. (HiPC 2022) state them.
    ///
    /// Stated: copies within a device 500 GB/s; mapping 1.2 TB/s for one process and 160 GB/s for
    /// each of eight; links 25 GB/s to registered and 12 GB/s to other memory, each shared by two
    /// devices; 3 GB/s to untouched pages; registration 3 GB/s, shared by all processes.
    ///
    /// Not stated, thus parameters: `touch` with pages of 2 MB, `together`, `pin` of touched pages,
    /// and `spill`. The first two are fitted to Figure 6a for eight processes. `pin` is fitted to
    /// the difference between Figures 6b and 6a for one process: 32 GiB in 0.96 s.
    #[must_use]
    pub fn a100() -> Self {
        Self {
            device_copy: 500e9,
            map_process: 1200e9,
            map_node: 8.0 * 160e9,
            link_registered: 25e9,
            link_unregistered: 12e9,
            devices_per_link: 2,
            untouched_copy: 3e9,
            touch: 8e9,
            together: 0.55,
            pin: 36e9,
            pin_untouched: 3e9,
            spill: 4e9,
            codec: f64::INFINITY,
        }
    }

    /// Returns the rates, in raw bytes, of a machine whose devices encode states before they leave.
    ///
    /// Links, pages and directory have fewer bytes to carry: their rates are multiplied by the
    /// ratio. Bytes of the host's memory count raw as well, so that memory is smaller by the ratio.
    #[must_use]
    pub fn coded(&self, codec: SimulatedCodec) -> Self {
        let SimulatedCodec { ratio, rate } = codec;
        Self {
            link_registered: self.link_registered * ratio,
            link_unregistered: self.link_unregistered * ratio,
            untouched_copy: self.untouched_copy * ratio,
            touch: self.touch * ratio,
            pin: self.pin * ratio,
            pin_untouched: self.pin_untouched * ratio,
            spill: self.spill * ratio,
            codec: rate,
            ..self.clone()
        }
    }

    /// Returns what a process expects of its copies to the host while both devices of its link are
    /// in use.
    #[must_use]
    pub fn touch_model(&self) -> TouchModel {
        let link_rate = self.link_unregistered / self.devices_per_link as f64;
        // An encode and its copy follow each other.
        let with_codec = |rate: f64| 1.0 / (1.0 / rate + 1.0 / self.codec);
        TouchModel {
            copy_rate: with_codec(link_rate),
            untouched_copy_rate: with_codec(self.untouched_copy.min(link_rate)),
            touch_rate: self.touch,
            shared_copy_rate: with_codec(link_rate * self.together),
            shared_touch_rate: self.touch * self.together,
        }
    }
}
