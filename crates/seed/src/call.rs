//! A system call as the world sees it: what it does to the disk, to time and to other threads.

use std::time::Duration;

use crate::tree::NodeNumber;

/// Top of the paths that are on the disk of the world.
pub(crate) const TOP: &str = "/seed";

/// A file by its path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlace<'a> {
    /// The open directory that a relative path begins at.
    pub(crate) directory: i32,
    pub(crate) path: &'a [u8],
}

/// One call of a thread.
#[derive(Debug)]
pub(crate) enum SystemCall<'a> {
    Open {
        at: CallPlace<'a>,
        flags: i32,
    },
    Write {
        file: i32,
        parts: Vec<&'a [u8]>,
        offset: Option<u64>,
    },
    Resize {
        file: i32,
        bytes: u64,
    },
    Allocate {
        file: i32,
        bytes: u64,
    },
    Sync {
        file: i32,
    },
    MakeDirectory {
        at: CallPlace<'a>,
    },
    Remove {
        at: CallPlace<'a>,
    },
    Rename {
        from: CallPlace<'a>,
        to: CallPlace<'a>,
        is_exchange: bool,
    },
    Link {
        from: CallPlace<'a>,
        to: CallPlace<'a>,
    },
    /// Reads what others may be changing.
    Read,
    /// Changes nothing that a crash could lose.
    Other,
    Wait {
        address: usize,
        expected: u32,
        until: Option<Until>,
    },
    Wake {
        address: usize,
        count: usize,
    },
    Yield,
    Sleep {
        until: Until,
    },
    Random {
        target: &'a mut [u8],
    },
    /// Bits of the cores that the process may use.
    Cores {
        target: &'a mut [u8],
    },
    /// The number of the process.
    Process,
    /// Has the same answer always.
    Known(isize),
}

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    After(Duration),
    CallPlace(Duration),
}

/// The world's answer to a call.
pub(crate) enum CallAnswer {
    /// The result; the kernel does nothing.
    Done(isize),
    /// The kernel does it. What the call met before that.
    Enter(Met),
}

/// The file a call is about, as it was before the call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Met {
    /// A name that the call could make was taken.
    pub(crate) is_taken: bool,
    /// The open file of the world's disk that the call changes.
    pub(crate) node: Option<NodeNumber>,
}

/// Facts about a file that the kernel has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeFacts {
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    pub(crate) mode: u32,
}
