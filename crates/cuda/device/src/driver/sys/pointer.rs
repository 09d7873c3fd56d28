//! The driver's account of an address.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{LIBRARY, load, name_of};
use crate::DeviceError;
use crate::error::CallSize;

/// Memory of a device that an address lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePlace {
    /// Number of the device.
    pub ordinal: usize,
    /// Address at which the allocation begins.
    pub start: usize,
    /// Bytes of the allocation.
    pub bytes: usize,
}

/// Attributes of an address that are asked for, by the driver's numbers: kind of memory, managed,
/// device, begin and size of the allocation.
const ATTRIBUTES: [c_uint; 5] = [2, 8, 9, 11, 12];
const ON_DEVICE: c_uint = 2;

/// The driver has not been started, has ended, is a stub, or knows no device: it has given out no
/// address.
const GIVES_NONE: [c_int; 4] = [3, 4, 34, 100];

type AskAttributes = unsafe extern "C" fn(c_uint, *mut c_uint, *mut *mut c_void, u64) -> c_int;

/// The driver's answers about an address.
#[derive(Default)]
struct Answers {
    kind: c_uint,
    is_managed: c_uint,
    ordinal: c_int,
    start: u64,
    bytes: usize,
}

impl Answers {
    fn ask(&mut self, ask: AskAttributes, address: usize) -> c_int {
        let mut attributes = ATTRIBUTES;
        let mut targets: [*mut c_void; ATTRIBUTES.len()] = [
            (&raw mut self.kind).cast(),
            (&raw mut self.is_managed).cast(),
            (&raw mut self.ordinal).cast(),
            (&raw mut self.start).cast(),
            (&raw mut self.bytes).cast(),
        ];
        let count = ATTRIBUTES.len() as c_uint;
        // SAFETY: each attribute is written to a place of its type. The address is looked up only.
        unsafe { ask(count, attributes.as_mut_ptr(), targets.as_mut_ptr(), address as u64) }
    }

    /// Managed memory counts as the device's.
    fn place(&self) -> Option<DevicePlace> {
        let Self { kind, is_managed, ordinal, start, bytes } = *self;
        let ordinal = usize::try_from(ordinal).ok()?;
        (kind == ON_DEVICE || is_managed != 0).then_some(DevicePlace { ordinal, start: start as usize, bytes })
    }
}

/// Returns the memory of a device that `address` lies in; `None` for memory of the host. A driver
/// of any version is asked, and only one that the process has loaded.
pub(crate) fn place(address: usize) -> Result<Option<DevicePlace>, DeviceError> {
    if !is_loaded() {
        return Ok(None);
    }
    let Ok(library) = load() else { return Ok(None) };
    // SAFETY: the type is that of cuda.h.
    let Ok(ask) = (unsafe { library.get::<AskAttributes>(b"cuPointerGetAttributes") }) else { return Ok(None) };
    let mut answers = Answers::default();
    match answers.ask(*ask, address) {
        0 => Ok(answers.place()),
        code if GIVES_NONE.contains(&code) => Ok(None),
        code => {
            let name = name_of(library, code);
            let text = "the address cannot be asked about".to_owned();
            Err(DeviceError::Driver { call: "cuPointerGetAttributes", size: CallSize::None, code, name, text })
        }
    }
}

/// Returns whether this process has loaded a driver, by us or by the program. No file is looked
/// for.
fn is_loaded() -> bool {
    static SEEN: AtomicBool = AtomicBool::new(false);
    // Libraries stay loaded, so only a "no" is asked for again.
    let is_loaded = SEEN.load(Ordering::Relaxed) || LIBRARY.get().is_some() || is_among_libraries();
    SEEN.store(is_loaded, Ordering::Relaxed);
    is_loaded
}

/// The beginning of what the loader tells of a library.
#[repr(C)]
struct LoadedLibrary {
    address: usize,
    name: *const c_char,
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn dl_iterate_phdr(
        seen: extern "C" fn(*const LoadedLibrary, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// Returns 1, which ends the search, if this is the driver's library.
extern "C" fn is_driver(library: *const LoadedLibrary, _bytes: usize, _data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a library that stays loaded meanwhile.
    let name = unsafe { (*library).name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: it is a C string of the loader, not null.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let file = Path::new(name.as_ref()).file_name().unwrap_or_default();
    c_int::from(file.to_string_lossy().starts_with("libcuda.so"))
}

/// Returns whether the driver's library is among those the loader has loaded.
#[cfg(target_os = "linux")]
fn is_among_libraries() -> bool {
    // SAFETY: the function called back reads what it is given and nothing else.
    unsafe { dl_iterate_phdr(is_driver, std::ptr::null_mut()) != 0 }
}

/// Other systems have no driver.
#[cfg(not(target_os = "linux"))]
fn is_among_libraries() -> bool {
    false
}
