//! Kernels: compiled for a device the compiler does not know, loaded, launched.

use recoup_cuda_double::Settings;
use recoup_device::{Architecture, Device, DeviceError, DeviceModule, DeviceVec, Stream};

use super::support::{double, in_every_order, load_axpy, numbers, on_device};
use super::sys::{AXPY, axpy};

#[test]
fn a_kernel_computes_what_the_host_does() {
    in_every_order(|device| {
        let kernel = load_axpy(device).unwrap();
        let stream = Stream::new(device).unwrap();
        let x = numbers(3, 1000);
        let mut y = numbers(100, 1000);
        let there = DeviceVec::copy_of(&stream, &x).unwrap();
        let mut sum = DeviceVec::copy_of(&stream, &y).unwrap();
        axpy(&stream, &kernel, 128, 1.5, there.view(), &mut sum.view_mut()).unwrap();
        // A part of it once more.
        axpy(&stream, &kernel, 32, -3.0, there.slice(10..20), &mut sum.slice_mut(10..20)).unwrap();
        let mut found = vec![0.0; 1000];
        stream.download(sum.view(), &mut found).unwrap();
        y.iter_mut().zip(&x).for_each(|(y, x)| *y += 1.5 * x);
        y[10..20].iter_mut().zip(&x[10..20]).for_each(|(y, x)| *y += -3.0 * x);
        assert!(found.iter().zip(&y).all(|(a, b)| a.to_bits() == b.to_bits()));
    });
}

#[test]
fn a_device_that_no_compiler_knows_gets_ptx() {
    let Some(double) = double() else { return };
    drop(double);
    on_device(&Settings::default(), |device| {
        let compiler = device.compiler().unwrap();
        let architecture = compiler.architecture(device.info().capability).unwrap();
        assert!(matches!(architecture, Architecture::Virtual(_)), "{architecture}");
        assert!(DeviceModule::load(device, AXPY, "axpy.cu").is_ok());
    });
}

#[test]
fn a_launch_that_is_too_large_and_a_kernel_that_is_not_there_are_named() {
    let double = double();
    {
        let device = Device::open(0).unwrap();
        let module = DeviceModule::load(&device, AXPY, "axpy.cu").unwrap();
        let error = module.kernel("axpi").err().unwrap().to_string();
        assert!(error.contains("cuModuleGetFunction of axpi: CUDA_ERROR_NOT_FOUND"), "{error}");
        let kernel = module.kernel("axpy").unwrap();
        let stream = Stream::new(&device).unwrap();
        drop(module);
        let x = DeviceVec::<f64>::zeros(&stream, 5000).unwrap();
        let mut y = DeviceVec::<f64>::zeros(&stream, 5000).unwrap();
        let error = axpy(&stream, &kernel, 2048, 1.0, x.view(), &mut y.view_mut()).err().unwrap().to_string();
        assert!(error.contains("cuLaunchKernel of axpy, 3 blocks of 2048 threads: CUDA_ERROR_"), "{error}");
        axpy(&stream, &kernel, 64, 1.0, x.view(), &mut y.view_mut()).unwrap();
        stream.synchronize().unwrap();
    }
    let Some(report) = double.map(|double| double.report()) else { return };
    assert_eq!(report.faults, ["launch of axpy: threads of a block: 2048, at most 1024"]);
    assert!(report.live.is_empty() && report.leaks.is_empty(), "{report}");
}

#[test]
fn a_source_is_compiled_once_and_loaded_each_time() {
    let report = on_device(&Settings::default(), |device| {
        for name in ["axpy", "twice"] {
            let source = AXPY.replace("axpy", name);
            for _ in 0..3 {
                let module = DeviceModule::load(device, &source, "axpy.cu").unwrap();
                assert!(module.kernel(name).is_ok());
            }
        }
    });
    assert!(report.is_none_or(|report| report.count("cuModuleLoadData") == 6));
}

#[test]
fn a_source_that_does_not_compile_loads_nothing() {
    on_device(&Settings::default(), |device| {
        let result = DeviceModule::load(device, "__global__ void broken( {", "broken.cu");
        assert!(matches!(result, Err(DeviceError::Compile { log, .. }) if log.contains("error")));
    });
}
