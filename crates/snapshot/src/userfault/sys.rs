//! Calls to userfaultfd and to the scan of written pages.
//!
//! They say which pages were written and change no byte, so all are safe for memory that is mapped.

#![expect(unsafe_code, reason = "opens a userfaultfd and makes its calls")]

use std::fs::File;
use std::io;
use std::ops::Range;

use linux_raw_sys::general as raw;
use linux_raw_sys::ioctl as numbers;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use crate::no_monitor::NoMonitor;

/// The scan of pages of `/proc/self/pagemap`: `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: Opcode = opcode::read_write::<raw::pm_scan_arg>(b'f', 16);
/// Runs of written pages that one scan returns.
const RUNS_MAX: usize = 512;
/// Without it, no written page is noted.
const NOTES: NoMonitor = NoMonitor::OldKernel { feature: "notes of written pages", since: "6.7" };

/// A call that reads and overwrites one argument.
struct UserfaultCall<'a, T> {
    number: Opcode,
    argument: &'a mut T,
}

// SAFETY: those that make a call pass the type that its number asks for.
unsafe impl<T> Ioctl for UserfaultCall<'_, T> {
    type Output = usize;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.number
    }

    fn as_ptr(&mut self) -> *mut rustix::ffi::c_void {
        std::ptr::from_mut(self.argument).cast()
    }

    unsafe fn output_from_ptr(output: IoctlOutput, _: *mut rustix::ffi::c_void) -> rustix::io::Result<usize> {
        usize::try_from(output).map_err(|_| Errno::INVAL)
    }
}

/// Ranges of memory whose writes the system notices.
#[derive(Debug)]
pub(crate) struct Userfault {
    file: OwnedFd,
}

impl Userfault {
    /// Opens a userfaultfd for writes of this process's own code.
    pub(crate) fn open() -> Result<Self, NoMonitor> {
        let features = u64::from(raw::UFFD_FEATURE_WP_ASYNC | raw::UFFD_FEATURE_WP_UNPOPULATED);
        let offered = open_file().and_then(|file| file.greet(0))?;
        if offered & features != features {
            return Err(NOTES);
        }
        let userfault = open_file()?;
        userfault.greet(features)?;
        Ok(userfault)
    }

    /// Agrees on the interface, and returns the features there are.
    fn greet(&self, features: u64) -> Result<u64, NoMonitor> {
        let mut api = raw::uffdio_api { api: u64::from(raw::UFFD_API), features, ioctls: 0 };
        self.call(numbers::UFFDIO_API, &mut api).map_err(|error| system("UFFDIO_API", error))?;
        Ok(api.features)
    }

    fn call<T>(&self, number: u32, argument: &mut T) -> rustix::io::Result<usize> {
        // SAFETY: each caller below passes the argument of its number, and addresses of mapped
        // memory; no call changes what memory holds.
        unsafe { ioctl(&self.file, UserfaultCall { number: number as Opcode, argument }) }
    }

    /// Makes the system watch over pages.
    pub(crate) fn register(&self, addresses: Range<usize>) -> io::Result<()> {
        let mode = u64::from(raw::UFFDIO_REGISTER_MODE_WP);
        let mut register = raw::uffdio_register { range: range(addresses), mode, ioctls: 0 };
        self.call(numbers::UFFDIO_REGISTER, &mut register)?;
        Ok(())
    }
}

/// Opens the file, without any agreement so far.
fn open_file() -> Result<Userfault, NoMonitor> {
    let all = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
    let own = UserfaultfdFlags::from_bits_retain(raw::UFFD_USER_MODE_ONLY);
    // SAFETY: the file is used by this module only, for memory of this crate.
    let open = |flags| unsafe { userfaultfd(flags) };
    // Kernels that do not know the flag ask for a privilege without it.
    let (file, is_known) = match open(all | own) {
        Err(Errno::INVAL) => (open(all), false),
        file => (file, true),
    };
    match file {
        Ok(file) => Ok(Userfault { file }),
        Err(Errno::PERM) if !is_known && is_for_privileged() => Err(NoMonitor::Unprivileged),
        Err(Errno::PERM | Errno::ACCESS) => Err(NoMonitor::Forbidden),
        Err(Errno::NOSYS) => Err(NoMonitor::NotThere),
        Err(error) => Err(system("userfaultfd", error)),
    }
}

/// Returns whether the administrator keeps userfaultfd from unprivileged users.
fn is_for_privileged() -> bool {
    std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|text| text.trim() == "0")
}

fn system(call: &'static str, error: Errno) -> NoMonitor {
    NoMonitor::System { call, error: error.kind() }
}

fn range(addresses: Range<usize>) -> raw::uffdio_range {
    raw::uffdio_range { start: addresses.start as u64, len: addresses.len() as u64 }
}

/// The scan of pages that were written.
#[derive(Debug)]
pub(crate) struct WrittenPages {
    map: File,
}

impl WrittenPages {
    pub(crate) fn open() -> Result<Self, NoMonitor> {
        let map = File::open("/proc/self/pagemap").map_err(NoMonitor::system("open /proc/self/pagemap"))?;
        Ok(Self { map })
    }

    /// Calls `written` with each run of pages that were written since the scan before, and begins
    /// the next time.
    pub(crate) fn scan(&self, addresses: Range<usize>, mut written: impl FnMut(Range<usize>)) -> io::Result<()> {
        let mut runs = [raw::page_region { start: 0, end: 0, categories: 0 }; RUNS_MAX];
        let mut start = addresses.start;
        while start < addresses.end {
            let mut scan = raw::pm_scan_arg {
                size: size_of::<raw::pm_scan_arg>() as u64,
                flags: u64::from(raw::PM_SCAN_WP_MATCHING | raw::PM_SCAN_CHECK_WPASYNC),
                start: start as u64,
                end: addresses.end as u64,
                walk_end: 0,
                vec: runs.as_mut_ptr() as u64,
                vec_len: RUNS_MAX as u64,
                max_pages: 0,
                category_inverted: 0,
                category_mask: u64::from(raw::PAGE_IS_WRITTEN),
                category_anyof_mask: 0,
                return_mask: u64::from(raw::PAGE_IS_WRITTEN),
            };
            // SAFETY: the argument is the one of this number, and its vector has as many runs.
            let found = unsafe { ioctl(&self.map, UserfaultCall { number: PAGEMAP_SCAN, argument: &mut scan }) }?;
            runs[..found].iter().for_each(|run| written(run.start as usize..run.end as usize));
            if scan.walk_end as usize <= start {
                return Err(io::ErrorKind::InvalidData.into());
            }
            start = scan.walk_end as usize;
        }
        Ok(())
    }
}
