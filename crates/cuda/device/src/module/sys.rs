//! Kernels and their launches.

#![expect(unsafe_code, reason = "a kernel is launched on its caller's word")]

use std::ffi::c_void;
use std::sync::Arc;

use bytemuck::Pod;

use super::loaded::LoadedCode;
use crate::driver::KernelHandle;
use crate::{DeviceError, DeviceView, DeviceViewMut, Grid, Stream};

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct DeviceKernel {
    /// Keeps the code loaded.
    _code: Arc<LoadedCode>,
    handle: KernelHandle,
    name: Arc<str>,
}

impl DeviceKernel {
    pub(super) fn new(code: &Arc<LoadedCode>, handle: KernelHandle, name: &str) -> Self {
        Self { _code: Arc::clone(code), handle, name: Arc::from(name) }
    }

    /// Launches it as the next work of `stream`.
    ///
    /// # Safety
    /// There is an argument for each parameter that the kernel declares, of its type. It reads only
    /// memory that views among the arguments show, and writes only what views to write show. Work
    /// of other streams on that memory is ordered with it.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], with the grid, when the driver refuses.
    pub unsafe fn launch(&self, stream: &Stream, grid: Grid, arguments: &[&dyn Argument]) -> Result<(), DeviceError> {
        let mut list: Vec<*mut c_void> = arguments.iter().map(|argument| argument.place().cast_mut()).collect();
        let current = stream.context().enter()?;
        // SAFETY: the caller knows the parameters; the driver copies arguments and does not write
        // them.
        unsafe { current.launch(self.handle, &self.name, grid, stream.handle(), &mut list) }
    }
}

/// An argument of a kernel: a plain value, passed as its bytes, or a view, passed as its address.
pub trait Argument {
    /// Address of the bytes that the kernel gets.
    fn place(&self) -> *const c_void;
}

impl<T: Pod> Argument for T {
    fn place(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
}

impl<T> Argument for DeviceView<'_, T> {
    fn place(&self) -> *const c_void {
        std::ptr::from_ref(self.address()).cast()
    }
}

impl<T> Argument for DeviceViewMut<'_, T> {
    fn place(&self) -> *const c_void {
        std::ptr::from_ref(self.address()).cast()
    }
}
