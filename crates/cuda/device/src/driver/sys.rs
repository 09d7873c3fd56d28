//! Functions of libcuda, looked up when it is loaded, and the calls that need no context.

#![expect(unsafe_code, reason = "loads a foreign library and calls into it")]

pub(crate) mod context;
mod layouts;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod pointer;
pub(crate) mod stream;
pub(crate) mod virtual_memory;

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use libloading::Library;

use self::layouts::{AccessDescription, AllocationProperties};
use crate::error::CallSize;
use crate::{CudaVersion, DeviceError};

/// Names of the library, in the order in which the loader is asked for them.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

const NO_DEVICE: c_int = 100;

/// Declares the table of functions. Opaque pointers of the driver are numbers here.
macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// The functions of the driver, by its own names.
        #[derive(Clone, Copy, Debug)]
        #[expect(non_snake_case, reason = "these are the driver's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            /// Looks all of them up; the name of the first that is missing.
            fn find(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the type is that of cuda.h, for this name.
                        let found = unsafe { library.get(stringify!($name).as_bytes()) };
                        *found.map_err(|_| stringify!($name))?
                    },)*
                })
            }
        }
    };
}

functions! {
    cuInit(c_uint);
    cuGetErrorName(c_int, *mut *const c_char);
    cuGetErrorString(c_int, *mut *const c_char);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut c_int, c_int);
    cuDeviceGetName(*mut c_char, c_int, c_int);
    cuDeviceGetAttribute(*mut c_int, c_int, c_int);
    cuDeviceTotalMem_v2(*mut usize, c_int);
    cuDevicePrimaryCtxRetain(*mut usize, c_int);
    cuDevicePrimaryCtxRelease_v2(c_int);
    cuCtxGetCurrent(*mut usize);
    cuCtxSetCurrent(usize);
    cuCtxSynchronize();
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut u64, usize);
    cuMemFree_v2(u64);
    cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, usize);
    cuMemcpyDtoHAsync_v2(*mut c_void, u64, usize, usize);
    cuMemcpyDtoDAsync_v2(u64, u64, usize, usize);
    cuMemsetD8Async(u64, u8, usize, usize);
    cuMemHostRegister_v2(*mut c_void, usize, c_uint);
    cuMemHostUnregister(*mut c_void);
    cuMemGetAllocationGranularity(*mut usize, *const AllocationProperties, c_uint);
    cuMemAddressReserve(*mut u64, usize, usize, u64, c_ulonglong);
    cuMemAddressFree(u64, usize);
    cuMemCreate(*mut u64, usize, *const AllocationProperties, c_ulonglong);
    cuMemRelease(u64);
    cuMemMap(u64, usize, usize, u64, c_ulonglong);
    cuMemUnmap(u64, usize);
    cuMemSetAccess(u64, usize, *const AccessDescription, usize);
    cuStreamCreate(*mut usize, c_uint);
    cuStreamDestroy_v2(usize);
    cuStreamSynchronize(usize);
    cuStreamWaitEvent(usize, usize, c_uint);
    cuEventCreate(*mut usize, c_uint);
    cuEventDestroy_v2(usize);
    cuEventRecord(usize, usize);
    cuEventQuery(usize);
    cuEventSynchronize(usize);
    cuEventElapsedTime(*mut f32, usize, usize);
    cuModuleLoadData(*mut usize, *const c_void);
    cuModuleUnload(usize);
    cuModuleGetFunction(*mut usize, usize, *const c_char);
    cuLaunchKernel(
        usize, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, usize, *mut *mut c_void, *mut *mut c_void
    );
}

/// The driver's library, once it was asked for.
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// The driver of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CudaDriver {
    functions: Functions,
    version: CudaVersion,
}

impl CudaDriver {
    /// Loads the driver when first called, and keeps it for good. Its version is asked for before
    /// anything else.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] when there is none, or one older than
    /// [`CudaVersion::OLDEST`], or one that does not start.
    pub(crate) fn find() -> Result<Self, DeviceError> {
        static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
        let missing = |why: String| DeviceError::NotAvailable { what: "driver", why };
        let library = load().map_err(missing)?;
        let version = version(library).map_err(missing)?;
        if version < CudaVersion::OLDEST {
            let oldest = CudaVersion::OLDEST;
            return Err(missing(format!("it is of CUDA {version}, needed is {oldest}; update the driver")));
        }
        let lacking = |name| format!("it states CUDA {version} and has no {name}");
        let functions = once(&FUNCTIONS, || Functions::find(library).map_err(lacking));
        let driver = Self { functions: *functions.map_err(missing)?, version };
        // SAFETY: the flags must be zero.
        match unsafe { (driver.functions.cuInit)(0) } {
            NO_DEVICE => {
                Err(DeviceError::NotAvailable { what: "device", why: "the driver finds no device".to_owned() })
            }
            code => driver.check("cuInit", CallSize::None, code).map_err(|error| missing(error.to_string())),
        }?;
        Ok(driver)
    }

    pub(crate) fn version(&self) -> CudaVersion {
        self.version
    }

    /// Turns a result of `call` into an error with the driver's words.
    pub(super) fn check(&self, call: &'static str, size: CallSize, code: c_int) -> Result<(), DeviceError> {
        if code == 0 {
            return Ok(());
        }
        let Functions { cuGetErrorName, cuGetErrorString, .. } = self.functions;
        Err(DeviceError::Driver {
            call,
            size,
            code,
            name: words(cuGetErrorName, code),
            text: words(cuGetErrorString, code),
        })
    }

    pub(crate) fn device_count(&self) -> Result<usize, DeviceError> {
        let mut count = 0;
        // SAFETY: the number is written to a place that is.
        let code = unsafe { (self.functions.cuDeviceGetCount)(&raw mut count) };
        self.check("cuDeviceGetCount", CallSize::None, code)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Returns the driver's name of device number `ordinal`.
    pub(crate) fn device(&self, ordinal: usize) -> Result<DeviceHandle, DeviceError> {
        let mut device = 0;
        let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: the number is written to a place that is.
        let code = unsafe { (self.functions.cuDeviceGet)(&raw mut device, number) };
        self.check("cuDeviceGet", CallSize::Ordinal(ordinal), code)?;
        Ok(DeviceHandle(device))
    }

    pub(crate) fn device_name(&self, device: DeviceHandle) -> Result<String, DeviceError> {
        let mut name = [0u8; 256];
        // SAFETY: there is room for as many bytes as are told.
        let code = unsafe { (self.functions.cuDeviceGetName)(name.as_mut_ptr().cast(), 256, device.0) };
        self.check("cuDeviceGetName", CallSize::None, code)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    pub(crate) fn device_bytes(&self, device: DeviceHandle) -> Result<usize, DeviceError> {
        let mut bytes = 0;
        // SAFETY: the number is written to a place that is.
        let code = unsafe { (self.functions.cuDeviceTotalMem_v2)(&raw mut bytes, device.0) };
        self.check("cuDeviceTotalMem", CallSize::None, code)?;
        Ok(bytes)
    }

    pub(crate) fn attribute(&self, device: DeviceHandle, attribute: DeviceAttribute) -> Result<u32, DeviceError> {
        let mut value = 0;
        // SAFETY: the number is written to a place that is.
        let code = unsafe { (self.functions.cuDeviceGetAttribute)(&raw mut value, attribute as c_int, device.0) };
        self.check("cuDeviceGetAttribute", CallSize::Named(format!("{attribute:?}")), code)?;
        Ok(value.unsigned_abs())
    }
}

/// A device, as the driver knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceHandle(pub(super) c_int);

/// Attributes of a device that are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeviceAttribute {
    CapabilityMajor = 75,
    CapabilityMinor = 76,
    VirtualMemory = 102,
}

/// Returns the value that `make` gives when first asked; after an error it is asked again.
fn once<T>(place: &'static OnceLock<T>, make: impl FnOnce() -> Result<T, String>) -> Result<&'static T, String> {
    if let Some(found) = place.get() {
        return Ok(found);
    }
    let made = make()?;
    Ok(place.get_or_init(|| made))
}

/// Loads the driver's library when first called.
fn load() -> Result<&'static Library, String> {
    once(&LIBRARY, || open().ok_or_else(|| "the library libcuda is not installed".to_owned()))
}

fn open() -> Option<Library> {
    // SAFETY: it opens the driver's library, whose initialisers are trusted as the system's.
    NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())
}

/// The version of the driver in `library`; why it could not be asked for.
fn version(library: &Library) -> Result<CudaVersion, String> {
    // SAFETY: the type is that of cuda.h.
    let ask = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion") };
    let ask = ask.map_err(|_| "the library libcuda has no cuDriverGetVersion".to_owned())?;
    let mut number = 0;
    // SAFETY: the number is written to a place that is.
    match unsafe { ask(&raw mut number) } {
        0 => Ok(CudaVersion::from_number(number)),
        code => Err(format!("cuDriverGetVersion: {} ({code})", name_of(library, code))),
    }
}

/// The name of an error, before all functions have been looked up.
fn name_of(library: &Library, code: c_int) -> String {
    // SAFETY: the type is that of cuda.h.
    let ask = unsafe { library.get::<ErrorWords>(b"cuGetErrorName") };
    ask.map_or_else(|_| "error".to_owned(), |ask| words(*ask, code))
}

/// A function that gives out the driver's words for an error.
type ErrorWords = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;

/// The driver's name or text for an error.
fn words(ask: ErrorWords, error: c_int) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the pointer is written to a place that is.
    let code = unsafe { ask(error, &raw mut text) };
    if code != 0 || text.is_null() {
        return "unknown".to_owned();
    }
    // SAFETY: it is not null, ends with a zero byte and is never freed.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
