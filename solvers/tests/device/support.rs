//! A device for a test, and the account at its end.

use recoup_core::Operator;
use recoup_cuda_double::{Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceVec};
use recoup_solvers::Pool;
use recoup_solvers::device::DevicePasses;

/// Lengths around the borders of lanes and blocks.
pub(crate) const LENGTHS: [usize; 8] = [1, 15, 16, 17, 1023, 1024, 1025, 3001];

/// The double, unless the tests are for the machine's own device.
pub(crate) fn double() -> Option<Double> {
    Double::unless_real()
}

/// Runs `test` on a device, as [`Double::on_device`] says.
pub(crate) fn on_device(settings: &Settings, test: impl FnOnce(&Device)) -> Option<DoubleReport> {
    Double::on_device(settings, || test(&Device::open(0).unwrap()))
}

/// Passes on a device, and the threads of the host that do the same.
pub(crate) struct Both {
    pub(crate) passes: DevicePasses,
    pub(crate) pool: Pool,
}

impl Both {
    /// Runs `test` with both.
    pub(crate) fn with(test: impl FnOnce(&Self)) {
        on_device(&Settings::default(), |device| {
            test(&Self { passes: DevicePasses::load(device).unwrap(), pool: Pool::new(1) });
        });
    }

    /// Both, to sum as the rows of `a` are summed.
    pub(crate) fn for_rows_of(&self, a: &dyn Operator) -> Self {
        let passes = DevicePasses::load(self.passes.stream().device()).unwrap();
        Self { passes: passes.in_chunks(a.chunk_rows()), pool: Pool::new(1) }
    }

    /// A copy on the device.
    pub(crate) fn there(&self, values: &[f64]) -> DeviceVec<f64> {
        DeviceVec::copy_of(self.passes.stream(), values).unwrap()
    }

    /// Copies of several on the device.
    pub(crate) fn all_there(&self, vectors: &[Vec<f64>]) -> Vec<DeviceVec<f64>> {
        vectors.iter().map(|values| self.there(values)).collect()
    }

    /// Compares values of the device with those of the host, by their bits.
    pub(crate) fn compare(&self, label: &str, found: &DeviceVec<f64>, expected: &[f64]) {
        let mut here = vec![0.0; found.len()];
        self.passes.stream().download(found.view(), &mut here).unwrap();
        compare(label, &here, expected);
    }
}

/// Compares numbers by their bits.
pub(crate) fn compare(label: &str, found: &[impl Into<f64> + Copy], expected: &[impl Into<f64> + Copy]) {
    assert_eq!(found.len(), expected.len(), "{label}");
    let found: Vec<f64> = found.iter().map(|&value| value.into()).collect();
    let expected: Vec<f64> = expected.iter().map(|&value| value.into()).collect();
    let differs = found.iter().zip(&expected).position(|(found, expected)| found.to_bits() != expected.to_bits());
    if let Some(at) = differs {
        panic!("{label}, n {}: value {at} is {:e}, expected {:e}", found.len(), found[at], expected[at]);
    }
}

/// Numbers of many sizes and both signs; another `phase`, other numbers.
pub(crate) fn wave(n: usize, phase: usize) -> Vec<f64> {
    let value = |i: usize| (i as f64 * 0.7 + phase as f64 * 1.3).sin() * 1e3_f64.powi((i % 5) as i32);
    (0..n).map(value).collect()
}

/// Numbers above 1.
pub(crate) fn positive(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + (i % 17) as f64 * 0.37).collect()
}
