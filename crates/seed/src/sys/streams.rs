//! Directories that are read: libc's functions of them, whose calls would each be a signal.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::functions::called;

/// Bytes of entries that are read at a time: as many as libc reads.
const ENTRIES_BYTES: usize = 32 << 10;

/// A directory that is read, in place of libc's own stream.
struct DirectoryStream {
    file: usize,
    /// Entries as the kernel writes them.
    entries: Vec<u64>,
    /// The bytes of them that are still to be given out.
    at: usize,
    end: usize,
}

/// The stream that was closed last, to be used again.
static SPARE: AtomicPtr<DirectoryStream> = AtomicPtr::new(ptr::null_mut());

/// Opens the directory at a path.
///
/// # Safety
/// As libc's: the path ends with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: usize) -> *mut DirectoryStream {
    let flags = libc::O_NONBLOCK | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let opened = called(libc::SYS_openat, &[libc::AT_FDCWD as usize, path, flags as usize]);
    usize::try_from(opened).map_or(ptr::null_mut(), |file| fdopendir(file))
}

/// Takes over an open directory. Libc refuses what is none here, and we with the first entry.
#[unsafe(no_mangle)]
extern "C" fn fdopendir(file: usize) -> *mut DirectoryStream {
    let spare = SPARE.swap(ptr::null_mut(), Ordering::Acquire);
    if spare.is_null() {
        let entries = Vec::with_capacity(ENTRIES_BYTES / size_of::<u64>());
        return Box::into_raw(Box::new(DirectoryStream { file, entries, at: 0, end: 0 }));
    }
    // SAFETY: the stream that was put there is closed, and no other thread has it now.
    let stream = unsafe { &mut *spare };
    stream.file = file;
    stream.at = 0;
    stream.end = 0;
    spare
}

/// Returns the next entry; null behind the last one and after an error.
///
/// # Safety
/// As libc's: the stream is open, and the caller is done with the entry before.
#[unsafe(no_mangle)]
unsafe extern "C" fn readdir64(stream: *mut DirectoryStream) -> *mut libc::dirent64 {
    // SAFETY: the stream is from `fdopendir`, and the caller's alone.
    let stream = unsafe { &mut *stream };
    let entries = stream.entries.as_mut_ptr();
    if stream.at == stream.end {
        let arguments = [stream.file, entries.expose_provenance(), ENTRIES_BYTES];
        let read = called(libc::SYS_getdents64, &arguments);
        stream.at = 0;
        stream.end = usize::try_from(read).unwrap_or(0);
        if stream.end == 0 {
            return ptr::null_mut();
        }
    }
    // SAFETY: the kernel has written whole entries up to the end, each with its length.
    unsafe {
        let entry = entries.byte_add(stream.at).cast::<libc::dirent64>();
        stream.at += usize::from((&raw const (*entry).d_reclen).read());
        entry
    }
}

/// Returns the open directory behind a stream.
///
/// # Safety
/// As libc's: the stream is open.
#[unsafe(no_mangle)]
unsafe extern "C" fn dirfd(stream: *const DirectoryStream) -> c_int {
    // SAFETY: the stream is from `fdopendir`.
    unsafe { (*stream).file as c_int }
}

/// Closes a stream, and the directory behind it.
///
/// # Safety
/// As libc's: the stream is open, and not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn closedir(stream: *mut DirectoryStream) -> c_int {
    // SAFETY: the stream is from `fdopendir`.
    let file = unsafe { (*stream).file } as c_int;
    let before = SPARE.swap(stream, Ordering::AcqRel);
    if !before.is_null() {
        // SAFETY: what was put there is from a box, and no other thread has it.
        drop(unsafe { Box::from_raw(before) });
    }
    // SAFETY: the file is the stream's own.
    unsafe { libc::close(file) }
}

/// Makes the linker take these functions in place of libc's, because it names them.
pub(super) fn name() {
    let functions = [opendir as *const (), fdopendir as *const (), readdir64 as *const (), dirfd as *const ()];
    std::hint::black_box((functions, closedir as *const ()));
}
