//! The way of our own code: a device opened, memory, copies, a kernel.

use recoup_cuda_double::Double;
use recoup_device::{Device, DeviceModule, DeviceVec, Stream};

use crate::sys::launch_axpy;

const AXPY: &str = r#"
extern "C" __global__ void axpy(double a, const double* x, double* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"#;

#[test]
fn a_kernel_of_our_own_compiler_runs_on_the_double() {
    let double = Double::load();
    {
        let device = Device::open(0).unwrap();
        assert_eq!(device.info().name, "recoup CUDA double");
        let kernel = DeviceModule::load(&device, AXPY, "axpy.cu").unwrap().kernel("axpy").unwrap();
        let stream = Stream::new(&device).unwrap();
        let x: Vec<f64> = (0..1000).map(f64::from).collect();
        let source = DeviceVec::copy_of(&stream, &x).unwrap();
        let mut target = DeviceVec::zeros(&stream, x.len()).unwrap();
        launch_axpy(&stream, &kernel, 2.0, source.view(), &target.view_mut()).unwrap();
        let mut y = vec![0.0; x.len()];
        stream.download(target.view(), &mut y).unwrap();
        assert!(x.iter().zip(&y).all(|(x, y)| 2.0 * x == *y), "{:?}", double.report());
    }
    let report = double.report();
    assert!(report.is_clean(), "{report}");
}
