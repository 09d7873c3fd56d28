//! Settings of simulated runs.

pub(crate) struct Lab {
    pub(crate) trials: u32,
    pub(crate) seed: u64,
}
