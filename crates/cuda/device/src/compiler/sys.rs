//! Calls of NVRTC, looked up when it is loaded.

#![expect(unsafe_code, reason = "loads a foreign library and calls into it")]

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use libloading::Library;

use crate::{Compiled, CudaVersion};

/// A program being compiled, as the compiler knows it.
type ProgramHandle = *mut c_void;
type Size = unsafe extern "C" fn(ProgramHandle, *mut usize) -> c_int;
type Fill = unsafe extern "C" fn(ProgramHandle, *mut c_char) -> c_int;
type Create = unsafe extern "C" fn(
    *mut ProgramHandle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;

/// The compiler's functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nvrtc {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
    n_architectures: unsafe extern "C" fn(*mut c_int) -> c_int,
    architectures: unsafe extern "C" fn(*mut c_int) -> c_int,
    error_text: unsafe extern "C" fn(c_int) -> *const c_char,
    create: Create,
    destroy: unsafe extern "C" fn(*mut ProgramHandle) -> c_int,
    compile: unsafe extern "C" fn(ProgramHandle, c_int, *const *const c_char) -> c_int,
    log: Text,
    ptx: Text,
    binary: Text,
}

/// The two functions that give out a text or code.
#[derive(Clone, Copy, Debug)]
struct Text {
    size: Size,
    fill: Fill,
}

/// Looks a symbol up; `T` is the type of the function of that name.
///
/// # Safety
/// `T` is a function pointer of the type that the library declares.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller knows the type.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found.map(|found| *found).map_err(|_| format!("it has no {name}"))
}

/// The loader's own words: they are the source of the error.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

impl Nvrtc {
    /// Loads `parts`, then `library`, and keeps them for good. Says why it could not.
    pub(crate) fn load(library: &Path, parts: &[impl AsRef<Path>]) -> Result<Self, String> {
        for part in parts {
            // SAFETY: the initialisers of the compiler's libraries are trusted.
            let part = unsafe { Library::new(part.as_ref()) };
            part.map(std::mem::forget).map_err(|error| reason(&error))?;
        }
        // SAFETY: the same.
        let library = unsafe { Library::new(library) }.map_err(|error| reason(&error))?;
        let calls = Self::find(&library)?;
        std::mem::forget(library);
        Ok(calls)
    }

    fn find(library: &Library) -> Result<Self, String> {
        // SAFETY: every type is that of nvrtc.h, which has not changed since CUDA 11.2.
        unsafe {
            let text =
                |size, fill| Ok::<_, String>(Text { size: symbol(library, size)?, fill: symbol(library, fill)? });
            Ok(Self {
                version: symbol(library, "nvrtcVersion")?,
                n_architectures: symbol(library, "nvrtcGetNumSupportedArchs")?,
                architectures: symbol(library, "nvrtcGetSupportedArchs")?,
                error_text: symbol(library, "nvrtcGetErrorString")?,
                create: symbol(library, "nvrtcCreateProgram")?,
                destroy: symbol(library, "nvrtcDestroyProgram")?,
                compile: symbol(library, "nvrtcCompileProgram")?,
                log: text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?,
                ptx: text("nvrtcGetPTXSize", "nvrtcGetPTX")?,
                binary: text("nvrtcGetCUBINSize", "nvrtcGetCUBIN")?,
            })
        }
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the compiler returns a text of its own for every number, or null.
        let text = unsafe { (self.error_text)(code) };
        if text.is_null() {
            return Err(format!("NVRTC error {code}"));
        }
        // SAFETY: it is not null, ends with a zero byte and is never freed.
        Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    pub(crate) fn version(&self) -> Result<CudaVersion, String> {
        let mut major = 0;
        let mut minor = 0;
        // SAFETY: both numbers are written to places that are.
        self.check(unsafe { (self.version)(&raw mut major, &raw mut minor) })?;
        Ok(CudaVersion { major: major.unsigned_abs(), minor: minor.unsigned_abs() })
    }

    /// Returns the numbers of all architectures that it makes code for.
    pub(crate) fn architectures(&self) -> Result<Vec<u32>, String> {
        let mut count = 0;
        // SAFETY: the number is written to a place that is.
        self.check(unsafe { (self.n_architectures)(&raw mut count) })?;
        let mut numbers: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many numbers as the compiler has just told.
        self.check(unsafe { (self.architectures)(numbers.as_mut_ptr()) })?;
        Ok(numbers.into_iter().map(c_int::unsigned_abs).collect())
    }

    /// Compiles; the compiler's log when it refuses.
    pub(crate) fn compile(&self, source: &str, name: &str, options: &[&str]) -> Result<Compiled, String> {
        let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
        let options: Vec<CString> = options.iter().map(|option| text(option)).collect::<Result<_, _>>()?;
        let program = NvrtcProgram::new(self, &text(source)?, &text(name)?)?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is alive, and so are as many zero-terminated options as are told.
        let code = unsafe { (self.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr()) };
        let log = string(program.read(self.log)?);
        if let Err(error) = self.check(code) {
            return Err(if log.is_empty() { error } else { log });
        }
        let ptx = string(program.read(self.ptx)?);
        let binary = program.read(self.binary)?;
        Ok(Compiled { binary: (!binary.is_empty()).then_some(binary), ptx, log })
    }
}

/// A program of the compiler; freed when dropped.
struct NvrtcProgram<'a> {
    calls: &'a Nvrtc,
    handle: ProgramHandle,
}

impl<'a> NvrtcProgram<'a> {
    fn new(calls: &'a Nvrtc, source: &CStr, name: &CStr) -> Result<Self, String> {
        let mut handle: ProgramHandle = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: both texts end with a zero byte and are copied; there are no headers.
        let code = unsafe { (calls.create)(&raw mut handle, source.as_ptr(), name.as_ptr(), 0, none, none) };
        calls.check(code)?;
        Ok(Self { calls, handle })
    }

    /// One of the texts or codes of the program.
    fn read(&self, text: Text) -> Result<Vec<u8>, String> {
        let mut bytes = 0;
        // SAFETY: the program is alive and the size is written to a place that is.
        self.calls.check(unsafe { (text.size)(self.handle, &raw mut bytes) })?;
        let mut target = vec![0u8; bytes];
        if bytes > 0 {
            // SAFETY: the target has the size the compiler has just asked for.
            self.calls.check(unsafe { (text.fill)(self.handle, target.as_mut_ptr().cast()) })?;
        }
        Ok(target)
    }
}

impl Drop for NvrtcProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created by the compiler and is destroyed once.
        unsafe { (self.calls.destroy)(&raw mut self.handle) };
    }
}

/// Text without the zero byte that ends it.
fn string(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
