//! Calls to userfaultfd and to the scan of written pages.
//!
//! Each protects pages or says which were written. None changes a byte, so all are safe for memory
//! that is mapped; a page that stays protected makes its writer wait.

#![expect(unsafe_code, reason = "opens a userfaultfd and makes its calls")]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;

use linux_raw_sys::general as raw;
use linux_raw_sys::ioctl as numbers;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use crate::no_monitor::NoMonitor;

/// The scan of pages of `/proc/self/pagemap`: `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: Opcode = opcode::read_write::<raw::pm_scan_arg>(b'f', 16);
/// The mode of `UFFDIO_WRITEPROTECT` that protects: `UFFDIO_WRITEPROTECT_MODE_WP`.
const WRITE_PROTECT: u64 = 1;
/// Runs of written pages that one scan returns.
const RUNS_MAX: usize = 512;
/// Answers that are asked for again, of a system that is changing the mappings.
const TRIES_MAX: usize = 1000;

/// Without it, no page can be protected.
const PROTECTION: NoMonitor = NoMonitor::OldKernel { feature: "protection of pages by userfaultfd", since: "5.7" };
/// Without it, no written page is noted.
const NOTES: NoMonitor = NoMonitor::OldKernel { feature: "notes of written pages", since: "6.7" };

/// The task of a userfaultfd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    /// Writers of protected pages wait.
    Protect,
    /// Written pages are noted.
    Note,
}

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
    pub(crate) fn open(watching: Watching) -> Result<Self, NoMonitor> {
        let (features, missing) = match watching {
            Watching::Protect => (raw::UFFD_FEATURE_PAGEFAULT_FLAG_WP, PROTECTION),
            Watching::Note => (raw::UFFD_FEATURE_WP_ASYNC | raw::UFFD_FEATURE_WP_UNPOPULATED, NOTES),
        };
        let offered = open_file().and_then(|file| file.greet(0))?;
        if offered & u64::from(features) != u64::from(features) {
            return Err(missing);
        }
        let userfault = open_file()?;
        userfault.greet(u64::from(features))?;
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

    /// Ends that: writers of these pages wait no longer.
    pub(crate) fn unregister(&self, addresses: Range<usize>) -> io::Result<()> {
        self.call(numbers::UFFDIO_UNREGISTER, &mut range(addresses))?;
        Ok(())
    }

    /// Makes writers of these pages wait.
    pub(crate) fn protect(&self, addresses: Range<usize>) -> io::Result<()> {
        self.write_protect(addresses, WRITE_PROTECT)
    }

    /// Lets writers of these pages continue.
    pub(crate) fn lift(&self, addresses: Range<usize>) -> io::Result<()> {
        self.write_protect(addresses, 0)
    }

    fn write_protect(&self, addresses: Range<usize>, mode: u64) -> io::Result<()> {
        let mut argument = raw::uffdio_writeprotect { range: range(addresses), mode };
        let mut answer = Err(Errno::AGAIN);
        for _ in 0..TRIES_MAX {
            answer = self.call(numbers::UFFDIO_WRITEPROTECT, &mut argument);
            if answer != Err(Errno::AGAIN) {
                break;
            }
            std::thread::yield_now();
        }
        answer?;
        Ok(())
    }

    /// The address of a write that waits, if there is one.
    fn next_fault(&self) -> io::Result<Option<usize>> {
        let mut message = MaybeUninit::<raw::uffd_msg>::zeroed();
        // SAFETY: the message has these bytes, all of them initialised.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(message.as_mut_ptr().cast::<u8>(), size_of::<raw::uffd_msg>()) };
        match rustix::io::read(&self.file, bytes) {
            Ok(read) if read == size_of::<raw::uffd_msg>() => {}
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // SAFETY: the kernel has written a whole message, and every bit pattern is one.
        let message = unsafe { message.assume_init() };
        // No other event was asked for.
        // SAFETY: every member of the union is plain numbers.
        let address = unsafe { message.arg.pagefault.address };
        Ok((u32::from(message.event) == raw::UFFD_EVENT_PAGEFAULT).then_some(address as usize))
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

/// The end of waiting for faults, for another thread to say.
#[derive(Debug)]
pub(crate) struct Faults {
    end: OwnedFd,
}

impl Faults {
    pub(crate) fn new() -> Result<Self, NoMonitor> {
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { end: end.map_err(|error| system("eventfd", error))? })
    }

    /// Ends [`Faults::handle`].
    pub(crate) fn end(&self) {
        // The counter of the file is far from its end, where alone this could fail.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
    }

    /// Calls `handle` with the address of each write that waits, until [`Faults::end`].
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn handle(&self, userfault: &Userfault, handle: impl Fn(usize)) -> io::Result<()> {
        loop {
            let mut files = [
                PollFd::new(&userfault.file, PollFlags::IN),
                PollFd::from_borrowed_fd(self.end.as_fd(), PollFlags::IN),
            ];
            match poll(&mut files, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            while let Some(address) = userfault.next_fault()? {
                handle(address);
            }
            if !files[1].revents().is_empty() {
                return Ok(());
            }
        }
    }
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
