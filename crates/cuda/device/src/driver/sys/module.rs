//! Modules of code and their kernels.

use std::ffi::{CStr, c_void};

use super::context::Current;
use super::stream::StreamHandle;
use crate::DeviceError;
use crate::error::CallSize;

/// A module, as the driver knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModuleHandle(usize);

/// A kernel, as the driver knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelHandle(usize);

/// Thread blocks of a launch, and the threads of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Thread blocks, in a row.
    pub blocks: u32,
    /// Threads of each, in a row.
    pub threads: u32,
    /// Bytes of shared memory that each block gets besides those it declares.
    pub shared_bytes: u32,
}

impl Current<'_> {
    /// Loads code of the device, or PTX, which ends with a zero byte.
    pub(crate) fn load_module(&self, image: &[u8]) -> Result<ModuleHandle, DeviceError> {
        let mut handle = 0;
        // SAFETY: the driver finds the end of the image by its own headers or by the zero byte.
        let code = unsafe { (self.driver().functions.cuModuleLoadData)(&raw mut handle, image.as_ptr().cast()) };
        self.check("cuModuleLoadData", CallSize::Bytes(image.len()), code)?;
        Ok(ModuleHandle(handle))
    }

    /// Unloads a module; none of its kernels runs.
    pub(crate) fn unload(&self, module: ModuleHandle) -> Result<(), DeviceError> {
        // SAFETY: the module was loaded here, and its owner unloads it once.
        let code = unsafe { (self.driver().functions.cuModuleUnload)(module.0) };
        self.check("cuModuleUnload", CallSize::None, code)
    }

    pub(crate) fn kernel(&self, module: ModuleHandle, name: &CStr) -> Result<KernelHandle, DeviceError> {
        let mut handle = 0;
        // SAFETY: the module is alive: its owner calls; the name ends with a zero byte.
        let code = unsafe { (self.driver().functions.cuModuleGetFunction)(&raw mut handle, module.0, name.as_ptr()) };
        let size = || CallSize::Named(name.to_string_lossy().into_owned());
        self.check("cuModuleGetFunction", size(), code)?;
        Ok(KernelHandle(handle))
    }

    /// Launches a kernel as the next work of `stream`; `name` is for the error.
    ///
    /// # Safety
    /// There is an argument for each parameter of the kernel, of its size. The kernel keeps to the
    /// memory it was lent.
    pub(crate) unsafe fn launch(
        &self,
        kernel: KernelHandle,
        name: &str,
        grid: Grid,
        stream: StreamHandle,
        arguments: &mut [*mut c_void],
    ) -> Result<(), DeviceError> {
        let Grid { blocks, threads, shared_bytes } = grid;
        let list = arguments.as_mut_ptr();
        let none = std::ptr::null_mut();
        let launch = self.driver().functions.cuLaunchKernel;
        // SAFETY: as the caller promises; arguments are copied before the call returns.
        let code = unsafe { launch(kernel.0, blocks, 1, 1, threads, 1, 1, shared_bytes, stream.0, list, none) };
        self.check("cuLaunchKernel", CallSize::Launch { kernel: name.to_owned(), blocks, threads }, code)
    }
}
