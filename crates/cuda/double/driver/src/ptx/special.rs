//! Special registers: the numbers of a thread and the sizes of its launch.

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
}

/// The numbers special registers are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadNumbers {
    pub(super) threads: [u32; 3],
    pub(super) blocks: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) thread: [u32; 3],
}

impl ThreadNumbers {
    /// Returns those of a thread of the same block.
    pub(super) fn of_thread(&self, index: u32) -> Self {
        let [width, height, _] = self.threads;
        let thread = [index % width, index / width % height, index / width / height];
        Self { thread, ..*self }
    }
}

impl Special {
    /// Returns the special register of a name; those of lanes, clocks and places are none.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (of, axis) = name.split_once('.')?;
        let axis = ["x", "y", "z"].iter().position(|known| *known == axis)?;
        match of {
            "%tid" => Some(Self::Thread(axis)),
            "%ntid" => Some(Self::Threads(axis)),
            "%ctaid" => Some(Self::Block(axis)),
            "%nctaid" => Some(Self::Blocks(axis)),
            _ => None,
        }
    }

    pub(super) fn value(self, of: &ThreadNumbers) -> u32 {
        match self {
            Self::Thread(axis) => of.thread[axis],
            Self::Threads(axis) => of.threads[axis],
            Self::Block(axis) => of.block[axis],
            Self::Blocks(axis) => of.blocks[axis],
        }
    }
}
