//! Memory of the host that a program has registered.

mod sys;

use std::collections::BTreeMap;

pub(crate) use sys::HostAddress;

use recoup_cuda_double::CudaStatus;

use crate::Refusable;

/// A piece of registered memory, which is page-locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedPiece {
    /// First byte of the piece.
    pub(crate) start: HostAddress,
    /// Length of the piece.
    pub(crate) bytes: usize,
    /// The context it was registered in.
    pub(crate) context: u64,
}

/// Kind of a range of host memory, as the driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// Memory that is not page-locked: the driver copies it before, or waits.
    Pageable,
    /// Memory in one page-locked piece, which stays where it is.
    Pinned,
}

/// All registered memory.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    pieces: BTreeMap<usize, PinnedPiece>,
}

impl HostMemory {
    /// The piece that holds a byte.
    pub(crate) fn piece_at(&self, address: usize) -> Option<&PinnedPiece> {
        let (start, piece) = self.pieces.range(..=address).next_back()?;
        (address - start < piece.bytes).then_some(piece)
    }

    fn meets(&self, address: usize, bytes: usize) -> bool {
        let is_within = self.piece_at(address).is_some();
        is_within || self.pieces.range(address..address.saturating_add(bytes)).next().is_some()
    }

    /// Tells pageable memory from pinned.
    ///
    /// # Errors
    /// [`CudaStatus::InvalidValue`] for a range that leaves a piece, or begins outside of one.
    pub(crate) fn kind(&self, address: HostAddress, bytes: usize) -> Refusable<HostKind> {
        let address = address.number();
        match self.piece_at(address) {
            Some(piece) if bytes <= piece.bytes - (address - piece.start.number()) => Ok(HostKind::Pinned),
            None if !self.meets(address, bytes) => Ok(HostKind::Pageable),
            _ => Err(CudaStatus::InvalidValue),
        }
    }

    /// Registers memory of the program.
    pub(crate) fn register(&mut self, start: HostAddress, bytes: usize, context: u64) -> Refusable<()> {
        if start.number() == 0 || bytes == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        if self.meets(start.number(), bytes) {
            return Err(CudaStatus::HostMemoryAlreadyRegistered);
        }
        self.pieces.insert(start.number(), PinnedPiece { start, bytes, context });
        Ok(())
    }

    /// Returns the piece that begins at an address.
    pub(crate) fn piece(&self, start: HostAddress) -> Refusable<PinnedPiece> {
        self.pieces.get(&start.number()).copied().ok_or(CudaStatus::HostMemoryNotRegistered)
    }

    /// Forgets a piece.
    pub(crate) fn remove(&mut self, start: HostAddress) {
        self.pieces.remove(&start.number());
    }

    /// The pieces registered in a context.
    pub(crate) fn of_context(&self, context: u64) -> Vec<PinnedPiece> {
        self.pieces.values().filter(|piece| piece.context == context).copied().collect()
    }

    /// All pieces, in words.
    pub(crate) fn live(&self) -> impl Iterator<Item = String> {
        self.pieces.values().map(PinnedPiece::describe)
    }
}

impl PinnedPiece {
    /// Names it in a report.
    pub(crate) fn describe(&self) -> String {
        format!("{} registered bytes of the host", self.bytes)
    }
}
