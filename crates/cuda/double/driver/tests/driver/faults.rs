//! Calls that are not there, too early, or for the memory of another device.

use cudarc::driver::sys::{CUlimit, CUresult};
use cudarc::driver::{CudaContext, DriverError};
use recoup_cuda_double::{Double, Settings};

use crate::bench::OpenedDevice;
use crate::sys;

#[test]
fn a_call_before_the_first_is_refused() {
    let double = Double::load();
    assert_eq!(sys::synchronize(), Err(CUresult::CUDA_ERROR_NOT_INITIALIZED));
    assert!(double.report().is_clean());
}

/// The loader says which one is missing.
#[test]
#[should_panic(expected = "cuCtxGetLimit")]
fn a_call_that_the_double_does_not_have_is_missing_by_its_name() {
    let _device = OpenedDevice::new();
    let mut bytes = 0;
    sys::limit(&raw mut bytes, CUlimit::CU_LIMIT_STACK_SIZE).unwrap();
}

#[test]
fn a_device_of_two_has_memory_of_its_own() {
    let double = Double::load();
    double.reset(&Settings { devices: 2, memory_bytes: 1 << 20, ..Settings::default() });
    let full = || -> Result<(), DriverError> {
        let [first, second] = [CudaContext::new(0)?, CudaContext::new(1)?];
        let one = first.default_stream().alloc_zeros::<u8>(1 << 20)?;
        let two = second.default_stream().alloc_zeros::<u8>(1 << 20)?;
        assert!(first.default_stream().alloc_zeros::<u8>(1).is_err());
        second.bind_to_thread()?;
        drop(two);
        first.bind_to_thread()?;
        drop(one);
        first.default_stream().alloc_zeros::<u8>(1 << 20).map(drop)
    };
    full().unwrap();
    assert!(double.report().is_clean(), "{}", double.report());
}
