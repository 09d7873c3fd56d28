//! The calls of the driver that the tests make themselves.

#![expect(unsafe_code, reason = "the driver's functions are foreign, and take addresses")]

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{self as cuda, CUcontext, CUdeviceptr, CUevent, CUfunction, CUresult, CUstream};

/// The result of a call.
pub(crate) type Outcome = Result<(), CUresult>;

/// Declares calls under names of our own.
macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),*) = $call:ident;)*) => {
        $(
            pub(crate) fn $name($($argument: $type),*) -> Outcome {
                // SAFETY: the double checks handles and addresses of a device; memory of the host
                // belongs to the test and outlives all work on it.
                let status = unsafe { cuda::$call($($argument),*) };
                if status == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(status) }
            }
        )*
    };
}

calls! {
    init(flags: c_uint) = cuInit;
    retain(context: *mut CUcontext, device: c_int) = cuDevicePrimaryCtxRetain;
    release(device: c_int) = cuDevicePrimaryCtxRelease_v2;
    set_current(context: CUcontext) = cuCtxSetCurrent;
    synchronize() = cuCtxSynchronize;
    limit(bytes: *mut usize, limit: cuda::CUlimit) = cuCtxGetLimit;
    allocate(address: *mut CUdeviceptr, bytes: usize) = cuMemAlloc_v2;
    free(address: CUdeviceptr) = cuMemFree_v2;
    room(free: *mut usize, total: *mut usize) = cuMemGetInfo_v2;
    create_stream(stream: *mut CUstream, flags: c_uint) = cuStreamCreate;
    destroy_stream(stream: CUstream) = cuStreamDestroy_v2;
    finish_stream(stream: CUstream) = cuStreamSynchronize;
    wait_event(stream: CUstream, event: CUevent, flags: c_uint) = cuStreamWaitEvent;
    create_event(event: *mut CUevent, flags: c_uint) = cuEventCreate;
    destroy_event(event: CUevent) = cuEventDestroy_v2;
    record(event: CUevent, stream: CUstream) = cuEventRecord;
    finish_event(event: CUevent) = cuEventSynchronize;
    query_event(event: CUevent) = cuEventQuery;
    elapsed(milliseconds: *mut f32, start: CUevent, end: CUevent) = cuEventElapsedTime;
    to_device(target: CUdeviceptr, source: *const c_void, bytes: usize, stream: CUstream) = cuMemcpyHtoDAsync_v2;
    to_host(target: *mut c_void, source: CUdeviceptr, bytes: usize, stream: CUstream) = cuMemcpyDtoHAsync_v2;
    on_device(target: CUdeviceptr, source: CUdeviceptr, bytes: usize, stream: CUstream) = cuMemcpyDtoDAsync_v2;
    fill(target: CUdeviceptr, value: u8, count: usize, stream: CUstream) = cuMemsetD8Async;
    fill_now(target: CUdeviceptr, value: u8, count: usize) = cuMemsetD8_v2;
    register(address: *mut c_void, bytes: usize, flags: c_uint) = cuMemHostRegister_v2;
    unregister(address: *mut c_void) = cuMemHostUnregister;
    reserve(
        address: *mut CUdeviceptr, bytes: usize, alignment: usize, hint: CUdeviceptr, flags: u64
    ) = cuMemAddressReserve;
    release_addresses(address: CUdeviceptr, bytes: usize) = cuMemAddressFree;
    create_memory(handle: *mut u64, bytes: usize, properties: *const cuda::CUmemAllocationProp, flags: u64) = cuMemCreate;
    release_memory(handle: u64) = cuMemRelease;
    map(address: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: u64) = cuMemMap;
    unmap(address: CUdeviceptr, bytes: usize) = cuMemUnmap;
    set_access(address: CUdeviceptr, bytes: usize, access: *const cuda::CUmemAccessDesc, count: usize) = cuMemSetAccess;
    granularity(
        bytes: *mut usize, properties: *const cuda::CUmemAllocationProp, option: cuda::CUmemAllocationGranularity_flags
    ) = cuMemGetAllocationGranularity;
    pointer_attribute(
        target: *mut c_void, attribute: cuda::CUpointer_attribute, address: CUdeviceptr
    ) = cuPointerGetAttribute;
    load(module: *mut cuda::CUmodule, image: *const c_void) = cuModuleLoadData;
    unload(module: cuda::CUmodule) = cuModuleUnload;
    function(function: *mut CUfunction, module: cuda::CUmodule, name: *const std::ffi::c_char) = cuModuleGetFunction;
}

/// A launch: blocks, threads, shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
}

/// Launches a kernel with an address for each parameter.
pub(crate) fn launch(function: CUfunction, shape: Shape, stream: CUstream, parameters: &mut [*mut c_void]) -> Outcome {
    let Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = shape;
    let parameters = parameters.as_mut_ptr();
    let extra = std::ptr::null_mut();
    // SAFETY: the double reads as many parameters as the kernel has, and the test passes as many.
    let status =
        unsafe { cuda::cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, parameters, extra) };
    if status == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(status) }
}

/// Registered memory as bytes.
pub(crate) fn bytes_at<'a>(address: *mut c_void, len: usize) -> &'a mut [u8] {
    // SAFETY: the test has registered as many bytes there, and uses one slice of them.
    unsafe { std::slice::from_raw_parts_mut(address.cast(), len) }
}

/// Reads a byte that a copy may have changed behind the compiler's back.
pub(crate) fn byte_at(address: *const c_void) -> u8 {
    // SAFETY: the test passes an address within memory it has made.
    unsafe { std::ptr::read_volatile(address.cast()) }
}
