//! Kernels under the driver's rules: limits of launches, addresses, races, page-locked memory.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{CUdeviceptr, CUfunction, CUmodule, CUresult, CUstream};
use recoup_cuda_double::{DoubleReport, Settings};

use crate::bench::OpenedDevice;
use crate::sys::{self, Outcome, Shape};

/// Kernels that do one thing each, compiled for a device that the double is newer than.
const SOURCE: &str = r#"
__device__ int counter;
extern "C" __global__ void set(int* target, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) target[i] = i;
}
extern "C" __global__ void set_one_more(int* target, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) target[i] = i;
}
extern "C" __global__ void shift(char* target) { *(int*)(target + 2) = 1; }
extern "C" __global__ void count(int* target) { counter += 1; *target = counter; }
extern "C" __global__ void __launch_bounds__(64) narrow(int* target) { *target = 1; }
extern "C" __global__ void stage(int* target) {
    extern __shared__ int staged[];
    staged[threadIdx.x] = threadIdx.x;
    __syncthreads();
    target[threadIdx.x] = staged[blockDim.x - 1 - threadIdx.x];
}
"#;

/// A device with the module of these kernels.
struct LoadedModule {
    device: OpenedDevice,
    module: CUmodule,
}

fn ptx() -> CString {
    let compiled = recoup_device::compile(SOURCE, "kernels.cu", "compute_90").expect("NVRTC is installed for tests");
    CString::new(compiled.ptx).unwrap()
}

impl LoadedModule {
    fn with(settings: &Settings) -> Self {
        let device = OpenedDevice::with(settings);
        let mut module: CUmodule = null_mut();
        sys::load(&raw mut module, ptx().as_ptr().cast()).unwrap();
        Self { device, module }
    }

    /// Gives back the module, and what was made on the device; the account.
    fn give_back(self) -> DoubleReport {
        sys::unload(self.module).unwrap();
        self.device.give_back()
    }

    fn kernel(&self, name: &str) -> CUfunction {
        let name = CString::new(name).unwrap();
        let mut function: CUfunction = null_mut();
        sys::function(&raw mut function, self.module, name.as_ptr()).unwrap();
        function
    }
}

fn blocks(grid: u32, threads: u32) -> Shape {
    Shape { grid: [grid, 1, 1], block: [threads, 1, 1], shared_bytes: 0 }
}

/// Launches a kernel of an address and, for those that take it, a number.
fn launch(function: CUfunction, shape: Shape, stream: CUstream, address: CUdeviceptr, n: i32) -> Outcome {
    let mut values = (address, n);
    let parameters: [*mut c_void; 2] = [(&raw mut values.0).cast(), (&raw mut values.1).cast()];
    sys::launch(function, shape, stream, &mut { parameters })
}

#[test]
fn variables_of_a_module_keep_their_values_between_launches() {
    let loaded = LoadedModule::with(&Settings::default());
    let stream = loaded.device.stream();
    let address = loaded.device.allocate(4);
    for _ in 0..2 {
        launch(loaded.kernel("count"), blocks(1, 1), stream, address, 0).unwrap();
    }
    assert_eq!(loaded.device.read(address, 4, stream), 2i32.to_ne_bytes());
    assert!(loaded.give_back().is_clean());
}

#[test]
fn a_bound_that_is_off_by_one_is_found() {
    let loaded = LoadedModule::with(&Settings::default());
    let stream = loaded.device.stream();
    let address = loaded.device.allocate(400);
    launch(loaded.kernel("set_one_more"), blocks(4, 32), stream, address, 100).unwrap();
    assert_eq!(sys::finish_stream(stream), Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_eq!(sys::free(address), Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS), "it sticks");
    let report = loaded.device.close();
    assert!(report.faults[0].contains("kernel set_one_more") && report.faults[0].contains("4 bytes"), "{report}");
}

#[test]
fn a_misaligned_access_is_found() {
    let loaded = LoadedModule::with(&Settings::default());
    let stream = loaded.device.stream();
    let address = loaded.device.allocate(400);
    launch(loaded.kernel("shift"), blocks(1, 1), stream, address, 0).unwrap();
    assert_eq!(sys::finish_stream(stream), Err(CUresult::CUDA_ERROR_MISALIGNED_ADDRESS));
    loaded.device.close();
}

#[test]
fn a_swapped_stream_is_a_race_of_the_bytes_touched() {
    for is_swapped in [false, true] {
        let loaded = LoadedModule::with(&Settings::default());
        let a = loaded.device.stream();
        let b = loaded.device.stream();
        let address = loaded.device.allocate(400);
        sys::fill(address, 0, 400, a).unwrap();
        launch(loaded.kernel("set"), blocks(4, 32), if is_swapped { b } else { a }, address, 50).unwrap();
        // The other half is touched by the fill only.
        let other = loaded.device.recorded(a);
        sys::wait_event(b, other, 0).unwrap();
        sys::fill(address + 200, 1, 200, b).unwrap();
        sys::synchronize().unwrap();
        let report = loaded.give_back();
        assert_eq!(report.races.len(), usize::from(is_swapped), "{report}");
        assert!(report.races.iter().all(|race| race.contains("the same 200 bytes")), "{report}");
    }
}

#[test]
fn a_kernel_reaches_page_locked_memory_when_it_runs() {
    let loaded = LoadedModule::with(&Settings::default());
    let stream = loaded.device.stream();
    let pinned = loaded.device.pinned(4);
    launch(loaded.kernel("set"), blocks(1, 1), stream, pinned as u64, 1).unwrap();
    assert_eq!(sys::byte_at(pinned), 0xA5);
    sys::finish_stream(stream).unwrap();
    assert_eq!(sys::bytes_at(pinned, 4), [0; 4]);
    assert!(loaded.give_back().is_clean());
}

#[test]
fn a_kernel_that_reaches_into_the_program_is_found() {
    let loaded = LoadedModule::with(&Settings::default());
    let stream = loaded.device.stream();
    let mut own = [7i32];
    launch(loaded.kernel("set"), blocks(1, 1), stream, own.as_mut_ptr() as u64, 1).unwrap();
    assert_eq!(sys::finish_stream(stream), Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_eq!(own, [7]);
    loaded.device.close();
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    let loaded = LoadedModule::with(&Settings { registers: 64, ..Settings::default() });
    let device = &loaded.device;
    let stream = device.stream();
    let address = device.allocate(4096);
    let invalid = Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    let kernel = loaded.kernel("set");
    assert_eq!(launch(kernel, blocks(1, 1025), stream, address, 1), invalid);
    assert_eq!(launch(kernel, blocks(0, 1), stream, address, 1), invalid);
    assert_eq!(launch(loaded.kernel("narrow"), blocks(1, 65), stream, address, 1), invalid);
    launch(loaded.kernel("narrow"), blocks(1, 64), stream, address, 1).unwrap();
    // 64 registers for each of 1,024 threads are all there are.
    launch(kernel, blocks(1, 1024), stream, address, 1).unwrap();
    sys::finish_stream(stream).unwrap();
    sys::free(address).unwrap();
    sys::destroy_stream(stream).unwrap();
    sys::unload(loaded.module).unwrap();
    let report = loaded.device.close();
    assert_eq!(report.faults.len(), 3, "{report}");

    let loaded = LoadedModule::with(&Settings { registers: 65, ..Settings::default() });
    let result = launch(loaded.kernel("set"), blocks(1, 1024), null_mut(), 0, 1);
    assert_eq!(result, Err(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
    loaded.device.close();
}

#[test]
fn shared_memory_above_the_usual_is_refused() {
    let loaded = LoadedModule::with(&Settings::default());
    let stream = loaded.device.stream();
    let address = loaded.device.allocate(192);
    let kernel = loaded.kernel("stage");
    let shape = |shared_bytes| Shape { grid: [1; 3], block: [48, 1, 1], shared_bytes };
    assert_eq!(launch(kernel, shape(64 << 10), stream, address, 0), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
    launch(kernel, shape(48 << 10), stream, address, 0).unwrap();
    assert_eq!(loaded.device.read(address, 4, stream), 47i32.to_ne_bytes());
    assert_eq!(loaded.give_back().faults.len(), 1);
}

#[test]
fn kernel_stream_and_thread_are_of_one_context() {
    let loaded = LoadedModule::with(&Settings { devices: 2, ..Settings::default() });
    let stream = loaded.device.stream();
    let kernel = loaded.kernel("set");
    let mut other = null_mut();
    sys::retain(&raw mut other, 1).unwrap();
    sys::set_current(other).unwrap();
    let result = launch(kernel, blocks(1, 1), stream, 0, 0);
    assert_eq!(result, Err(CUresult::CUDA_ERROR_INVALID_HANDLE));
    sys::release(1).unwrap();
    sys::set_current(loaded.device.context).unwrap();
    assert_eq!(loaded.give_back().faults.len(), 1);
}

#[test]
fn a_module_is_for_this_device_and_this_driver() {
    let load = |settings: &Settings, image: &CString| {
        let device = OpenedDevice::with(settings);
        let mut module: CUmodule = null_mut();
        let result = sys::load(&raw mut module, image.as_ptr().cast());
        let report = device.close();
        (result, report.faults)
    };
    let ptx = ptx();
    let older = Settings { driver_version: Some(12_020), ..Settings::default() };
    let (result, faults) = load(&older, &ptx);
    assert_eq!(result, Err(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
    assert!(faults[0].contains("newer than the driver"), "{faults:?}");
    let smaller = Settings { capability: 80, ..Settings::default() };
    assert_eq!(load(&smaller, &ptx).0, Err(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU));
    let binary = CString::new("\x7fELF\x02").unwrap();
    assert_eq!(load(&Settings::default(), &binary).0, Err(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU));
    let unknown = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tfrob.u32 \t%r1, %r2;\n}\n";
    let (result, faults) = load(&Settings::default(), &CString::new(unknown).unwrap());
    assert_eq!(result, Err(CUresult::CUDA_ERROR_INVALID_PTX));
    assert!(faults[0].contains("frob"), "the opcode is named: {faults:?}");
}
