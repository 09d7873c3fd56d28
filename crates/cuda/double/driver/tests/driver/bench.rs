//! A device opened by hand, with the few things the tests make on it.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUevent, CUstream};
use recoup_cuda_double::{Double, DoubleReport, Settings};

use crate::sys;

/// Streams that do not wait for the legacy stream.
const NON_BLOCKING: u32 = 1;

/// The primary context of device 0, current on this thread.
pub(crate) struct OpenedDevice {
    pub(crate) double: Double,
    pub(crate) context: CUcontext,
    /// What the calls below have made.
    made: RefCell<Vec<Made>>,
}

/// Something that is given back.
#[derive(Clone, Copy)]
enum Made {
    Memory(CUdeviceptr),
    Registered(*mut c_void),
    Stream(CUstream),
    Event(CUevent),
}

impl OpenedDevice {
    pub(crate) fn new() -> Self {
        Self::with(&Settings::default())
    }

    pub(crate) fn with(settings: &Settings) -> Self {
        let double = Double::load();
        double.reset(settings);
        Self::on(double)
    }

    /// Opens the device of a double that was set before.
    pub(crate) fn on(double: Double) -> Self {
        let mut context: CUcontext = null_mut();
        sys::init(0).unwrap();
        sys::retain(&raw mut context, 0).unwrap();
        sys::set_current(context).unwrap();
        Self { double, context, made: RefCell::default() }
    }

    pub(crate) fn allocate(&self, bytes: usize) -> CUdeviceptr {
        let mut address = 0;
        sys::allocate(&raw mut address, bytes).unwrap();
        self.made.borrow_mut().push(Made::Memory(address));
        address
    }

    pub(crate) fn stream(&self) -> CUstream {
        let mut stream: CUstream = null_mut();
        sys::create_stream(&raw mut stream, NON_BLOCKING).unwrap();
        self.made.borrow_mut().push(Made::Stream(stream));
        stream
    }

    pub(crate) fn event(&self) -> CUevent {
        let mut event: CUevent = null_mut();
        sys::create_event(&raw mut event, 0).unwrap();
        self.made.borrow_mut().push(Made::Event(event));
        event
    }

    /// An event recorded at the end of a stream.
    pub(crate) fn recorded(&self, stream: CUstream) -> CUevent {
        let event = self.event();
        sys::record(event, stream).unwrap();
        event
    }

    /// Registered memory, full of the byte that fresh memory of a device has.
    pub(crate) fn pinned(&self, bytes: usize) -> *mut c_void {
        let address = Box::leak(vec![0xA5_u8; bytes].into_boxed_slice()).as_mut_ptr().cast();
        sys::register(address, bytes, 0).unwrap();
        self.made.borrow_mut().push(Made::Registered(address));
        address
    }

    /// The bytes of a device, by a copy that waits.
    pub(crate) fn read(&self, address: CUdeviceptr, len: usize, stream: CUstream) -> Vec<u8> {
        let mut bytes = vec![0; len];
        sys::to_host(bytes.as_mut_ptr().cast(), address, len, stream).unwrap();
        bytes
    }

    /// Gives back all that was made here, the last first, and the context; the account.
    pub(crate) fn give_back(self) -> DoubleReport {
        for made in self.made.take().into_iter().rev() {
            let given = match made {
                Made::Memory(address) => sys::free(address),
                Made::Registered(address) => sys::unregister(address),
                Made::Stream(stream) => sys::destroy_stream(stream),
                Made::Event(event) => sys::destroy_event(event),
            };
            given.unwrap();
        }
        self.close()
    }

    /// Gives the context back; the account.
    pub(crate) fn close(self) -> DoubleReport {
        sys::release(0).ok();
        sys::set_current(null_mut()).ok();
        self.double.report()
    }
}
