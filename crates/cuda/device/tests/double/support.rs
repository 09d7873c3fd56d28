//! A device for a test, and the account at its end.

use recoup_cuda_double::{Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceError, DeviceKernel, DeviceModule};

use super::sys::AXPY;

/// Orders in which the double does its work, drawn from as many seeds.
pub(crate) const SEEDS: u64 = 100;

/// The double, unless the tests are for the machine's own device.
pub(crate) fn double() -> Option<Double> {
    Double::unless_real()
}

/// Runs `test` on a device, as [`Double::on_device`] says.
pub(crate) fn on_device(settings: &Settings, test: impl FnOnce(&Device)) -> Option<DoubleReport> {
    Double::on_device(settings, || test(&Device::open(0).unwrap()))
}

/// Runs `test` in the orders of all seeds; once on the machine's own device.
pub(crate) fn in_every_order(test: impl Fn(&Device)) {
    for seed in 0..SEEDS {
        if on_device(&Settings { seed, ..Settings::default() }, &test).is_none() {
            return;
        }
    }
}

/// The tests' kernel, compiled once for all of them.
pub(crate) fn load_axpy(device: &Device) -> Result<DeviceKernel, DeviceError> {
    DeviceModule::load(device, AXPY, "axpy.cu")?.kernel("axpy")
}

/// Numbers that differ, from a first one.
pub(crate) fn numbers(first: usize, n: usize) -> Vec<f64> {
    (first..first + n).map(|i| (i as f64).sqrt()).collect()
}
