//! Modules, their kernels, and launches.

mod sys;

use std::sync::Arc;

use recoup_cuda_double::CudaStatus;

use super::devices;
use super::host_memory::HostAddress;
use super::operation::{StreamWork, WaitingKernel};
use super::parsed;
use super::state::{Driver, FunctionState, ModuleState};
use crate::Refusable;
use crate::ptx::{self, Kernel};

/// Begins of images that are binaries: ELF, and the container of several.
const BINARIES: [&[u8]; 2] = [b"\x7fELF", &0xba55_ed50_u32.to_le_bytes()];
/// Registers are given to a warp in groups of this many.
const REGISTER_GROUP: u32 = 256;
const WARP: u32 = 32;

/// A launch as it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchCall {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    stream: u64,
    /// An address for each parameter.
    parameters: HostAddress,
}

impl Driver {
    /// Loads the PTX at an address.
    fn load(&mut self, image: HostAddress) -> Refusable<u64> {
        let context = self.context()?;
        if image.number() == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        let image = image.read_text();
        if BINARIES.iter().any(|begin| image.starts_with(begin)) {
            self.fault("cuModuleLoadData: a binary is not for this device, which takes PTX".to_owned());
            return Err(CudaStatus::NoBinaryForGpu);
        }
        let text = String::from_utf8(image).map_err(|_| CudaStatus::InvalidImage)?;
        self.check_version(&text)?;
        let code = parsed::parse(text).map_err(|error| {
            self.fault(error.to_string());
            CudaStatus::InvalidPtx
        })?;
        let globals = self.place_globals(context, &code)?;
        let module = self.new_handle();
        self.modules.insert(module, ModuleState { context, code, globals });
        Ok(module)
    }

    /// Refuses PTX that is newer than the driver, or for a device that is newer than this one.
    fn check_version(&mut self, text: &str) -> Refusable<()> {
        let word = |directive: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(directive))?;
            line.split([',', ' ', '\t']).find(|word| !word.is_empty())
        };
        let (major, minor) = word(".version").and_then(|word| word.split_once('.')).ok_or(CudaStatus::InvalidPtx)?;
        let digits = |text: &str| text.trim().parse::<u32>().map_err(|_| CudaStatus::InvalidPtx);
        let found = digits(major)? * 10 + digits(minor)?;
        let most = isa(self.settings.driver_version.unwrap_or(0));
        if found > most {
            self.fault(format!("PTX {major}.{minor} is newer than the driver, which takes {most} tenths at most"));
            return Err(CudaStatus::UnsupportedPtxVersion);
        }
        let target = word(".target").and_then(|word| word.strip_prefix("sm_")).ok_or(CudaStatus::InvalidPtx)?;
        let is_exact = target.ends_with(|letter: char| letter.is_alphabetic());
        let wanted = digits(target.trim_end_matches(char::is_alphabetic))?;
        let fits = if is_exact { wanted == self.settings.capability } else { wanted <= self.settings.capability };
        fits.then_some(()).ok_or(CudaStatus::NoBinaryForGpu)
    }

    /// Gives the variables of a module memory and their first values.
    fn place_globals(&mut self, context: u64, code: &ptx::Module) -> Refusable<Vec<u64>> {
        let device = self.device_of(context)?;
        let total: usize = code.globals().iter().map(|global| global.bytes).sum();
        self.make_room(device, total as u64)?;
        let place = |global: &ptx::Global| {
            let address = self.memory.allocate(context, device, global.bytes.max(1) as u64);
            self.memory.write(address, &global.initial).map_err(|_| CudaStatus::InvalidPtx)?;
            Ok(address)
        };
        code.globals().iter().map(place).collect()
    }

    fn unload(&mut self, module: u64) -> Refusable<()> {
        self.context()?;
        let state = self.modules.remove(&module).ok_or(CudaStatus::InvalidHandle)?;
        state.globals.iter().for_each(|address| self.memory.end(*address));
        self.functions.retain(|_, function| function.module != module);
        Ok(())
    }

    fn function(&mut self, module: u64, name: HostAddress) -> Refusable<u64> {
        self.context()?;
        let state = self.modules.get(&module).ok_or(CudaStatus::InvalidHandle)?;
        let name = String::from_utf8(name.read_text()).map_err(|_| CudaStatus::NotFound)?;
        state.code.kernel(&name).ok_or(CudaStatus::NotFound)?;
        let same = |function: &FunctionState| function.module == module && function.name == name;
        if let Some((handle, _)) = self.functions.iter().find(|(_, function)| same(function)) {
            return Ok(*handle);
        }
        let handle = self.new_handle();
        self.functions.insert(handle, FunctionState { module, name });
        Ok(handle)
    }

    /// The kernel of a function, with its module.
    fn of_function(&self, function: u64) -> Refusable<(&ModuleState, &Kernel)> {
        let state = self.functions.get(&function).ok_or(CudaStatus::InvalidHandle)?;
        let module = self.modules.get(&state.module).ok_or(CudaStatus::InvalidHandle)?;
        let kernel = module.code.kernel(&state.name).ok_or(CudaStatus::InvalidHandle)?;
        Ok((module, kernel))
    }

    /// Adds a launch to its stream, once its limits hold.
    fn launch(&mut self, wanted: &LaunchCall) -> Refusable<()> {
        let context = self.context()?;
        let stream = self.stream(wanted.stream)?;
        let of_stream = self.context_of(stream)?;
        let (module, kernel) = self.of_function(wanted.function)?;
        let name = kernel.name.clone();
        if module.context != context || of_stream != context {
            self.fault(format!("launch of {name}: kernel, stream and thread are not of one context"));
            return Err(CudaStatus::InvalidHandle);
        }
        if let Err((status, what)) = self.check_launch(wanted) {
            self.fault(format!("launch of {name}: {what}"));
            return Err(status);
        }
        let (module, kernel) = self.of_function(wanted.function)?;
        let waiting = WaitingKernel {
            module: Arc::clone(&module.code),
            grid: wanted.grid,
            block: wanted.block,
            dynamic_shared_bytes: wanted.dynamic_shared_bytes as usize,
            parameters: read_parameters(kernel, wanted.parameters)?,
            globals: module.globals.clone(),
            name,
        };
        self.submit(stream, StreamWork::Kernel(Box::new(waiting))).map(|_| ())
    }

    /// The limits of a launch.
    fn check_launch(&self, wanted: &LaunchCall) -> Result<(), (CudaStatus, String)> {
        let invalid = |what: String| Err((CudaStatus::InvalidValue, what));
        let (_, kernel) = self.of_function(wanted.function).map_err(|status| (status, String::new()))?;
        if let Err(fault) = ptx::check_sizes(kernel, wanted.grid, wanted.block) {
            return invalid(fault.to_string());
        }
        if kernel.static_shared_bytes + wanted.dynamic_shared_bytes as usize > devices::SHARED_BYTES {
            return invalid(format!("{} bytes of shared memory", wanted.dynamic_shared_bytes));
        }
        let warps = wanted.block.iter().product::<u32>().div_ceil(WARP);
        let registers = warps * (self.settings.registers * WARP).next_multiple_of(REGISTER_GROUP);
        if registers > devices::BLOCK_REGISTERS {
            return Err((CudaStatus::LaunchOutOfResources, format!("{registers} registers")));
        }
        Ok(())
    }
}

/// Ten times the version of PTX, plus its minor number, that a driver takes at most.
fn isa(driver_version: u32) -> u32 {
    let major = driver_version / 1000;
    let minor = driver_version % 1000 / 10;
    // CUDA 12.6 came without a new version of PTX.
    let minor = if major == 12 && minor > 5 { minor - 1 } else { minor };
    major.saturating_sub(4) * 10 + minor
}

/// Copies the parameters, each from its address to its offset.
fn read_parameters(kernel: &Kernel, addresses: HostAddress) -> Refusable<Vec<u8>> {
    let mut bytes = vec![0; kernel.parameter_bytes()];
    if addresses.number() == 0 && !bytes.is_empty() {
        return Err(CudaStatus::InvalidValue);
    }
    for (index, parameter) in kernel.parameters.iter().enumerate() {
        let address = addresses.later(index * size_of::<usize>()).read_address();
        if address.number() == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        address.read(&mut bytes[parameter.offset..parameter.offset + parameter.bytes]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_ptx_are_those_of_the_toolkits() {
        for (driver, ptx) in [(11_040, 74), (11_080, 78), (12_000, 80), (12_020, 82), (12_050, 85), (12_060, 85)] {
            assert_eq!(isa(driver), ptx, "{driver}");
        }
        assert_eq!([isa(12_080), isa(12_090), isa(13_000)], [87, 88, 90]);
    }
}
