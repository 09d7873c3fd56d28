//! Special registers: the numbers of a thread and the sizes of its launch.

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    Lane,
    Warp,
    LanesBelow,
    LanesUpTo,
    OwnLane,
    LanesFrom,
    LanesAbove,
    DynamicSharedBytes,
}

/// The numbers special registers are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadNumbers {
    pub(super) threads: [u32; 3],
    pub(super) blocks: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
    /// The thread's number among all of the block.
    pub(super) index: u32,
    pub(super) dynamic_shared_bytes: u32,
}

impl ThreadNumbers {
    /// Returns those of a thread of the same block.
    pub(super) fn of_thread(&self, index: u32) -> Self {
        let [width, height, _] = self.threads;
        let thread = [index % width, index / width % height, index / width / height];
        Self { thread, index, ..*self }
    }
}

impl Special {
    /// Returns the special register of a name; those of clocks and places of the device are none.
    pub(super) fn named(name: &str) -> Option<Self> {
        let along = |name: &str| ["x", "y", "z"].iter().position(|axis| *axis == name);
        if let Some((of, axis)) = name.split_once('.') {
            let axis = along(axis)?;
            return match of {
                "%tid" => Some(Self::Thread(axis)),
                "%ntid" => Some(Self::Threads(axis)),
                "%ctaid" => Some(Self::Block(axis)),
                "%nctaid" => Some(Self::Blocks(axis)),
                _ => None,
            };
        }
        Some(match name {
            "%laneid" => Self::Lane,
            "%warpid" => Self::Warp,
            "%lanemask_lt" => Self::LanesBelow,
            "%lanemask_le" => Self::LanesUpTo,
            "%lanemask_eq" => Self::OwnLane,
            "%lanemask_ge" => Self::LanesFrom,
            "%lanemask_gt" => Self::LanesAbove,
            "%dynamic_smem_size" => Self::DynamicSharedBytes,
            _ => return None,
        })
    }

    pub(super) fn value(self, of: &ThreadNumbers) -> u32 {
        let lane = of.index % 32;
        let own = 1u32 << lane;
        match self {
            Self::Thread(axis) => of.thread[axis],
            Self::Threads(axis) => of.threads[axis],
            Self::Block(axis) => of.block[axis],
            Self::Blocks(axis) => of.blocks[axis],
            Self::Lane => lane,
            Self::Warp => of.index / 32,
            Self::LanesBelow => own - 1,
            Self::LanesUpTo => (own - 1) | own,
            Self::OwnLane => own,
            Self::LanesFrom => !(own - 1),
            Self::LanesAbove => !((own - 1) | own),
            Self::DynamicSharedBytes => of.dynamic_shared_bytes,
        }
    }
}
