//! Drivers that are missing, old or without a device.

use recoup_cuda_double::Settings;
use recoup_device::{Device, DeviceError, driver_version, probe};

use super::support::double;

#[test]
fn an_old_driver_is_not_available_and_both_versions_are_named() {
    let Some(double) = double() else { return };
    for version in [11_040, 12_010] {
        double.reset(&Settings { driver_version: Some(version), ..Settings::default() });
        let text = probe().unwrap_err().to_string();
        let stated = format!("{}.{}", version / 1000, version % 1000 / 10);
        assert_eq!(text, format!("no CUDA here: driver: it is of CUDA {stated}, needed is 12.2; update the driver"));
        assert_eq!(Device::open(0).err().map(|error| error.to_string()), Some(text));
        assert_eq!(double.report().count("cuInit"), 0, "its version is asked for before anything else");
    }
}

#[test]
fn a_driver_of_12_2_is_enough_and_says_which_compiler_it_needs() {
    let Some(double) = double() else { return };
    double.reset(&Settings { driver_version: Some(12_020), ..Settings::default() });
    assert_eq!(driver_version().unwrap().to_string(), "12.2");
    let device = Device::open(0).unwrap();
    // Another compiler may be installed that fits.
    if let Err(error) = device.compiler() {
        let text = error.to_string();
        assert!(text.contains("CUDA 12.2") && text.contains("nvidia-cuda-nvrtc-cu12==12.2.*"), "{text}");
    }
    drop(device);
    assert!(double.report().is_clean());
}

#[test]
fn a_library_without_a_driver_one_without_devices_and_a_number_too_high_are_not_available() {
    let Some(double) = double() else { return };
    double.reset(&Settings { driver_version: None, ..Settings::default() });
    assert!(matches!(probe(), Err(DeviceError::NotAvailable { what: "driver", .. })));
    double.reset(&Settings { devices: 0, ..Settings::default() });
    assert!(matches!(probe(), Err(DeviceError::NotAvailable { .. })));
    double.reset(&Settings { devices: 2, ..Settings::default() });
    let found = probe().unwrap();
    assert_eq!(found.iter().map(|info| info.ordinal).collect::<Vec<_>>(), [0, 1]);
    let text = Device::open(2).unwrap_err().to_string();
    assert_eq!(text, "no CUDA here: device: number 2 asked for, 2 found, counted from 0");
    assert!(double.report().is_clean());
}
