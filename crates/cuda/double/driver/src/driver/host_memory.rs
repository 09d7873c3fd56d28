//! Memory of the host that the driver knows: page-locked by it, or registered.

mod sys;

use std::collections::BTreeMap;

pub(crate) use sys::HostAddress;

use recoup_cuda_double::CudaStatus;

use crate::Refusable;

/// A piece of page-locked memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedPiece {
    /// First byte of the piece.
    pub(crate) start: HostAddress,
    /// Length of the piece.
    pub(crate) bytes: usize,
    /// The context it was made in.
    pub(crate) context: u64,
    /// The program registered memory of its own.
    pub(crate) is_registered: bool,
}

/// Kind of a range of host memory, as the driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// Memory that is not page-locked: the driver copies it before, or waits.
    Pageable,
    /// Memory in one page-locked piece, which stays where it is.
    Pinned,
}

/// All page-locked memory.
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

    /// Makes page-locked memory.
    pub(crate) fn allocate(&mut self, bytes: usize, context: u64) -> Refusable<usize> {
        let start = sys::allocate(bytes).ok_or(CudaStatus::OutOfMemory)?;
        self.pieces.insert(start.number(), PinnedPiece { start, bytes, context, is_registered: false });
        Ok(start.number())
    }

    /// Registers memory of the program.
    pub(crate) fn register(&mut self, start: HostAddress, bytes: usize, context: u64) -> Refusable<()> {
        if start.number() == 0 || bytes == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        if self.meets(start.number(), bytes) {
            return Err(CudaStatus::HostMemoryAlreadyRegistered);
        }
        self.pieces.insert(start.number(), PinnedPiece { start, bytes, context, is_registered: true });
        Ok(())
    }

    /// Returns the piece that begins at an address, of the kind asked for.
    pub(crate) fn piece(&self, start: HostAddress, is_registered: bool) -> Refusable<PinnedPiece> {
        let found = self.pieces.get(&start.number()).copied().filter(|piece| piece.is_registered == is_registered);
        let refusal = if is_registered { CudaStatus::HostMemoryNotRegistered } else { CudaStatus::InvalidValue };
        found.ok_or(refusal)
    }

    /// Gives a piece back.
    pub(crate) fn remove(&mut self, start: HostAddress) {
        if let Some(piece) = self.pieces.remove(&start.number()).filter(|piece| !piece.is_registered) {
            sys::free(piece.start, piece.bytes);
        }
    }

    /// The pieces made in a context.
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
        let what = if self.is_registered { "registered" } else { "page-locked" };
        format!("{} {what} bytes of the host", self.bytes)
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let starts: Vec<HostAddress> = self.pieces.values().map(|piece| piece.start).collect();
        starts.into_iter().for_each(|start| self.remove(start));
    }
}
