//! The system's ways of seeing writes: userfaultfd with write protection, and the scan of pages
//! that were written (Linux, `ioctl_userfaultfd(2)`, `PAGEMAP_SCAN(2const)`).
//!
//! Nothing here knows a kernel by its version. What is missing is found by trying it.

mod sys;

pub(crate) use sys::{Faults, Userfault, Watching, WrittenPages};
