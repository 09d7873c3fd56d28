//! Memory of the host: registered, and given back.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::host_memory::{HostAddress, PinnedPiece};
use super::operation::{HostSource, StreamWork};
use super::state::Driver;
use crate::Refusable;

/// All flags of a registration.
const REGISTRATION_FLAGS: u32 = 15;

impl Driver {
    fn register(&mut self, start: HostAddress, bytes: usize, flags: u32) -> Refusable<()> {
        let context = self.context()?;
        if flags & !REGISTRATION_FLAGS != 0 {
            return Err(CudaStatus::InvalidValue);
        }
        let result = self.host.register(start, bytes, context);
        if result == Err(CudaStatus::HostMemoryAlreadyRegistered) {
            self.fault(format!("cuMemHostRegister_v2: part of {bytes} bytes is registered already"));
        }
        result
    }

    /// Ends a registration. Copies that still wait are a fault; they run first, as the memory may
    /// be gone right after.
    fn unregister(&mut self, start: HostAddress) -> Refusable<()> {
        self.context()?;
        let piece = self.host.piece(start)?;
        let users = self.backlog.select(|waiting| uses(&waiting.action, &piece));
        if !users.is_empty() {
            self.fault(format!("cuMemHostUnregister: {} copies of this memory still wait", users.len()));
            self.force(&users);
        }
        self.host.remove(start);
        Ok(())
    }
}

/// Returns whether a copy reads or writes a piece.
fn uses(action: &StreamWork, piece: &PinnedPiece) -> bool {
    let start = match action {
        StreamWork::ToDevice { source: HostSource::Pinned { start, .. }, .. } => start,
        StreamWork::ToHost { target, .. } => target,
        _ => return false,
    };
    (piece.start.number()..piece.start.number() + piece.bytes).contains(&start.number())
}
