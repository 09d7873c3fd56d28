//! Calls about modules and kernels.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, driver_calls, give};
use super::LaunchCall;

driver_calls! { driver:
    cuModuleLoadData(module: ResultPlace<'_, u64>, image: HostAddress) => give(module, driver.load(image)?);
    cuModuleUnload(module: u64) => driver.unload(module);
    cuModuleGetFunction(function: ResultPlace<'_, u64>, module: u64, name: HostAddress) => match name.number() {
        0 => Err(CudaStatus::InvalidValue),
        _ => give(function, driver.function(module, name)?),
    };
    cuLaunchKernel(
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
    ) => {
        let grid = [grid_x, grid_y, grid_z];
        let block = [block_x, block_y, block_z];
        if extra.number() != 0 {
            driver.fault("cuLaunchKernel: parameters in one buffer are not known to the double".to_owned());
            return Err(CudaStatus::NotSupported);
        }
        driver.launch(&LaunchCall { function, grid, block, dynamic_shared_bytes, stream, parameters })
    };
}
