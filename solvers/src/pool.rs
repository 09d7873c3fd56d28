//! The threads of one rank.

/// A fixed set of threads with a static partition of the rows.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
}

impl Pool {
    /// A pool of `threads` threads, the calling one included; at least one.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self { threads: threads.max(1) }
    }

    /// How many threads work.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }
}
