//! The system calls that write, and the files that they are about.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::sys::WaitingCall;

/// Longest path that is read, as the kernel's.
const PATH_BYTES_MAX: usize = 4096;

/// The arguments of a call that say which file it is about.
#[derive(Clone, Copy)]
enum FileArgument {
    /// A descriptor.
    Descriptor(usize),
    /// A path, relative to the folder of a descriptor or to the current one.
    Path { folder: Option<usize>, path: usize },
    /// A path and flags: the call writes if it may make the file.
    Opened { folder: Option<usize>, path: usize, flags: usize },
    /// An address within a mapped file.
    Mapped(usize),
}

/// A system call that writes.
pub(super) struct WritingCall {
    pub(super) name: &'static str,
    pub(super) number: i64,
    /// A full disk lets it succeed.
    pub(super) frees_space: bool,
    file: FileArgument,
}

/// Returns all of them.
pub(super) fn all() -> Vec<WritingCall> {
    use FileArgument::{Descriptor, Mapped, Opened, Path};
    let here = |path| Path { folder: None, path };
    let below = |folder, path| Path { folder: Some(folder), path };
    let mut calls = vec![
        call("write", libc::SYS_write, Descriptor(0)),
        call("pwrite64", libc::SYS_pwrite64, Descriptor(0)),
        call("writev", libc::SYS_writev, Descriptor(0)),
        call("pwritev", libc::SYS_pwritev, Descriptor(0)),
        call("pwritev2", libc::SYS_pwritev2, Descriptor(0)),
        call("ftruncate", libc::SYS_ftruncate, Descriptor(0)),
        call("truncate", libc::SYS_truncate, here(0)),
        call("fallocate", libc::SYS_fallocate, Descriptor(0)),
        call("fsync", libc::SYS_fsync, Descriptor(0)),
        call("fdatasync", libc::SYS_fdatasync, Descriptor(0)),
        call("msync", libc::SYS_msync, Mapped(0)),
        call("sendfile", libc::SYS_sendfile, Descriptor(0)),
        call("copy_file_range", libc::SYS_copy_file_range, Descriptor(2)),
        call("openat", libc::SYS_openat, Opened { folder: Some(0), path: 1, flags: 2 }),
        call("mkdirat", libc::SYS_mkdirat, below(0, 1)),
        call("linkat", libc::SYS_linkat, below(2, 3)),
        call("symlinkat", libc::SYS_symlinkat, below(1, 2)),
        call("renameat2", libc::SYS_renameat2, below(2, 3)),
        call("renameat", libc::SYS_renameat, below(2, 3)),
        freeing("unlinkat", libc::SYS_unlinkat, below(0, 1)),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        call("open", libc::SYS_open, Opened { folder: None, path: 0, flags: 1 }),
        call("creat", libc::SYS_creat, here(0)),
        call("mkdir", libc::SYS_mkdir, here(0)),
        call("link", libc::SYS_link, here(1)),
        call("symlink", libc::SYS_symlink, here(1)),
        call("rename", libc::SYS_rename, here(1)),
        freeing("unlink", libc::SYS_unlink, here(0)),
        freeing("rmdir", libc::SYS_rmdir, here(0)),
    ]);
    calls
}

fn call(name: &'static str, number: i64, file: FileArgument) -> WritingCall {
    WritingCall { name, number, frees_space: false, file }
}

fn freeing(name: &'static str, number: i64, file: FileArgument) -> WritingCall {
    WritingCall { frees_space: true, ..call(name, number, file) }
}

impl WritingCall {
    /// Returns the file that a call is about; `None` if it does not write.
    pub(super) fn path(&self, call: &WaitingCall) -> Option<PathBuf> {
        match self.file {
            FileArgument::Descriptor(fd) => descriptor(call, fd),
            FileArgument::Path { folder, path } => named(call, folder, path),
            FileArgument::Opened { folder, path, flags } => {
                let flags = call.arguments[flags] as i32;
                // A file without a name is made in the folder that is named.
                let makes = flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
                makes.then(|| named(call, folder, path)).flatten()
            }
            FileArgument::Mapped(address) => mapped(call, call.arguments[address]),
        }
    }
}

fn proc(call: &WaitingCall, entry: &str) -> PathBuf {
    Path::new("/proc").join(call.thread.to_string()).join(entry)
}

fn descriptor(call: &WaitingCall, argument: usize) -> Option<PathBuf> {
    fs::read_link(proc(call, &format!("fd/{}", call.arguments[argument] as i32))).ok()
}

/// A path in the memory of the process, made absolute.
fn named(call: &WaitingCall, folder: Option<usize>, path: usize) -> Option<PathBuf> {
    let mut bytes = vec![0; PATH_BYTES_MAX];
    let memory = File::open(proc(call, "mem")).ok()?;
    let n_read = memory.read_at(&mut bytes, call.arguments[path]).ok()?;
    let end = bytes[..n_read].iter().position(|byte| *byte == 0)?;
    bytes.truncate(end);
    let path = PathBuf::from(OsString::from_vec(bytes));
    if path.is_absolute() {
        return Some(path);
    }
    let folder = match folder.filter(|folder| call.arguments[*folder] as i32 != libc::AT_FDCWD) {
        Some(folder) => descriptor(call, folder)?,
        None => fs::read_link(proc(call, "cwd")).ok()?,
    };
    Some(folder.join(path))
}

/// The file that is mapped at an address.
fn mapped(call: &WaitingCall, address: u64) -> Option<PathBuf> {
    let maps = fs::read_to_string(proc(call, "maps")).ok()?;
    let holds = |line: &&str| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let bound = |text: &str| u64::from_str_radix(text, 16).ok();
        range.is_some_and(|(begin, end)| bound(begin) <= Some(address) && Some(address) < bound(end))
    };
    let line = maps.lines().find(holds)?;
    line.find('/').map(|start| PathBuf::from(&line[start..]))
}
