//! The way of our own code: a device opened, memory, copies, a kernel.

use recoup_cuda_double::Double;
use recoup_device::Device;

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
        let module = device.load(AXPY, "axpy.cu").unwrap();
        let kernel = module.load_function("axpy").unwrap();
        let stream = device.context().new_stream().unwrap();
        let x: Vec<f64> = (0..1000).map(f64::from).collect();
        let source = stream.clone_htod(&x).unwrap();
        let mut target = stream.alloc_zeros::<f64>(x.len()).unwrap();
        launch_axpy(&stream, &kernel, 2.0, &source, &mut target).unwrap();
        let y = stream.clone_dtoh(&target).unwrap();
        stream.synchronize().unwrap();
        assert!(x.iter().zip(&y).all(|(x, y)| 2.0 * x == *y), "{:?}", double.report());
    }
    let report = double.report();
    assert!(report.is_clean(), "{report}");
}
