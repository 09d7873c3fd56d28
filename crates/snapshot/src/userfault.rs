//! The system's notes of writes: userfaultfd, and the scan of pages that were written (Linux,
//! `ioctl_userfaultfd(2)`, `PAGEMAP_SCAN(2const)`).
//!
//! Nothing here knows a kernel by its version. What is missing is found by trying it.

mod sys;

pub(crate) use sys::{Userfault, WrittenPages};
