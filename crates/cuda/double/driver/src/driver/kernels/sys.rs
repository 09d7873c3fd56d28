//! Calls about modules and kernels.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, give};
use super::super::state::call;
use super::LaunchCall;

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(module: ResultPlace<'_, u64>, image: HostAddress) -> u32 {
    call("cuModuleLoadData", |driver| give(module, driver.load(image)?))
}

/// Options choose how to compile; none is needed here.
#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadDataEx(
    module: ResultPlace<'_, u64>,
    image: HostAddress,
    _count: u32,
    _options: HostAddress,
    _values: HostAddress,
) -> u32 {
    call("cuModuleLoadDataEx", |driver| give(module, driver.load(image)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: u64) -> u32 {
    call("cuModuleUnload", |driver| driver.unload(module))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetFunction(function: ResultPlace<'_, u64>, module: u64, name: HostAddress) -> u32 {
    call("cuModuleGetFunction", |driver| match name.number() {
        0 => Err(CudaStatus::InvalidValue),
        _ => give(function, driver.function(module, name)?),
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetGlobal_v2(
    address: ResultPlace<'_, u64>,
    bytes: ResultPlace<'_, usize>,
    module: u64,
    name: HostAddress,
) -> u32 {
    call("cuModuleGetGlobal_v2", |driver| {
        if name.number() == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        let (found, len) = driver.global(module, name)?;
        address.map_or(Ok(()), |place| give(Some(place), found))?;
        bytes.map_or(Ok(()), |place| give(Some(place), len))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncGetAttribute(value: ResultPlace<'_, i32>, attribute: u32, function: u64) -> u32 {
    call("cuFuncGetAttribute", |driver| give(value, driver.function_attribute(function, attribute)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: u64, attribute: u32, value: i32) -> u32 {
    call("cuFuncSetAttribute", |driver| driver.set_function_attribute(function, attribute, value))
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    function: u64,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    dynamic_shared_bytes: u32,
    stream: u64,
    parameters: HostAddress,
    extra: HostAddress,
) -> u32 {
    let grid = [grid_x, grid_y, grid_z];
    let block = [block_x, block_y, block_z];
    call("cuLaunchKernel", |driver| {
        if extra.number() != 0 {
            driver.fault("cuLaunchKernel: parameters in one buffer are not known to the double".to_owned());
            return Err(CudaStatus::NotSupported);
        }
        driver.launch(&LaunchCall { function, grid, block, dynamic_shared_bytes, stream, parameters })
    })
}
