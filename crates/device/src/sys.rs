//! Calls into the driver and the runtime compiler that no safe layer makes.

#![expect(unsafe_code, reason = "loads foreign libraries and calls into them")]

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, DeviceRepr, DriverError, HostSlice, PinnedHostSlice, ValidAsZeroBits};
use cudarc::{driver, nvrtc};
use libloading::Library;
use nvrtc::sys::{nvrtcProgram, nvrtcResult};

use crate::{Compiled, DeviceError};

/// Returns whether the driver's library is there; every other call panics without it.
pub(crate) fn is_driver_present() -> bool {
    // SAFETY: it opens the driver's library, whose initialisers are trusted as the system's.
    unsafe { driver::sys::is_culib_present() }
}

/// `len` zeros in page-locked memory, cached by the processor as any other.
pub(crate) fn pinned<T: DeviceRepr + ValidAsZeroBits>(
    context: &Arc<CudaContext>,
    len: usize,
) -> Result<PinnedHostSlice<T>, DriverError> {
    // SAFETY: the memory is filled with zeros, which are a value of T, before anyone sees it.
    let mut memory = unsafe { context.alloc_pinned_with_flags::<T>(len, 0)? };
    zero(&mut memory)?;
    Ok(memory)
}

fn zero<T: DeviceRepr + ValidAsZeroBits>(memory: &mut PinnedHostSlice<T>) -> Result<(), DriverError> {
    let stream = memory.context().default_stream();
    let len = memory.len();
    // SAFETY: no work on this memory was ever submitted, so nothing else writes it.
    let (slice, _guard) = unsafe { memory.stream_synced_mut_slice(&stream) };
    // SAFETY: the slice is `len` values long and lives until the end of this function.
    unsafe { std::ptr::write_bytes(slice.as_mut_ptr(), 0, len) };
    Ok(())
}

/// Loads the runtime compiler, once.
pub(crate) fn find_compiler() -> Result<(), DeviceError> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let is_found = *FOUND.get_or_init(|| {
        // SAFETY: it opens the compiler's library, whose initialisers are trusted as the system's.
        folders().iter().any(|folder| load_from(folder)) || unsafe { nvrtc::sys::is_culib_present() }
    });
    if is_found {
        return Ok(());
    }
    let why = "install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc==13.0.*` and name the folder of \
               libnvrtc.so.13 in RECOUP_NVRTC";
    Err(DeviceError::NotAvailable { what: "runtime compiler", why: why.to_owned() })
}

/// Returns folders that may hold the compiler and that the system does not search.
fn folders() -> Vec<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let mut folders: Vec<PathBuf> = named("RECOUP_NVRTC").into_iter().collect();
    let pythons = named("VIRTUAL_ENV").and_then(|root| std::fs::read_dir(root.join("lib")).ok());
    let packages = pythons.into_iter().flatten().flatten().map(|entry| entry.path().join("site-packages/nvidia"));
    folders.extend(packages.map(|nvidia| nvidia.join("cu13/lib")));
    folders.extend(named("CUDA_HOME").map(|root| root.join("lib64")));
    folders
}

/// Loads the compiler and what it will ask for by name, and keeps both: a later load by name finds
/// them.
fn load_from(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut libraries: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_nvrtc(path)).collect();
    // libnvrtc-builtins comes before libnvrtc.so.
    libraries.sort();
    // SAFETY: the initialisers of libraries in a folder the user names are trusted.
    let loaded = libraries.iter().map(|path| unsafe { Library::new(path) });
    let kept = loaded.map(|library| library.map(std::mem::forget).is_ok());
    !libraries.is_empty() && kept.fold(true, |all, is_kept| all & is_kept)
}

fn is_nvrtc(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    (name.starts_with("libnvrtc.so.") || name.starts_with("libnvrtc-builtins.so.")) && !name.contains(".alt.")
}

/// A program of the compiler; freed when dropped.
struct Program(nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program was created by the compiler and is destroyed once.
        unsafe { nvrtc::sys::nvrtcDestroyProgram(&raw mut self.0) };
    }
}

/// Compiles; the compiler's log when it refuses. [`find_compiler`] has succeeded before.
pub(crate) fn compile(source: &str, name: &str, options: &[&str]) -> Result<Compiled, String> {
    let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
    let source = text(source)?;
    let name = text(name)?;
    let options: Vec<CString> = options.iter().map(|option| text(option)).collect::<Result<_, _>>()?;
    let program = nvrtc::result::create_program(&source, Some(&name)).map_err(|error| error.to_string())?;
    let program = Program(program);
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: the program is alive, and so are as many zero-terminated options as are told.
    let result = unsafe { nvrtc::sys::nvrtcCompileProgram(program.0, pointers.len() as c_int, pointers.as_ptr()) };
    let log = string(read(&program, nvrtc::sys::nvrtcGetProgramLogSize, nvrtc::sys::nvrtcGetProgramLog)?);
    if result != nvrtcResult::NVRTC_SUCCESS {
        return Err(log);
    }
    let ptx = string(read(&program, nvrtc::sys::nvrtcGetPTXSize, nvrtc::sys::nvrtcGetPTX)?);
    let binary = read(&program, nvrtc::sys::nvrtcGetCUBINSize, nvrtc::sys::nvrtcGetCUBIN)?;
    Ok(Compiled { binary, ptx, log })
}

type Size = unsafe fn(nvrtcProgram, *mut usize) -> nvrtcResult;
type Fill = unsafe fn(nvrtcProgram, *mut c_char) -> nvrtcResult;

/// One of the texts or codes of a program.
fn read(program: &Program, size: Size, fill: Fill) -> Result<Vec<u8>, String> {
    let mut bytes = 0;
    // SAFETY: the program is alive and the size is written to a place that is.
    unsafe { size(program.0, &raw mut bytes) }.result().map_err(|error| error.to_string())?;
    let mut target = vec![0u8; bytes];
    // SAFETY: the target has the size the compiler has just asked for.
    unsafe { fill(program.0, target.as_mut_ptr().cast()) }.result().map_err(|error| error.to_string())?;
    Ok(target)
}

/// Text without the zero byte that ends it.
fn string(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
