//! Pages of the host that a device copies to and from, and who uses which of them.

#![expect(unsafe_code, reason = "lends memory that a device reads and writes")]

use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use recoup_pages::{HostPages, PageSize};

use super::uses::{HeldUse, HostAccess, Uses};
use crate::driver::PrimaryContext;
use crate::{DeviceError, DeviceTicket, DeviceView, DeviceViewMut, Stream};

/// Bytes touched at a time; others who wait to touch get their turn after it.
const TOUCHED_AT_ONCE: usize = 16 << 20;

/// Pages of the host, cut into chunks. No copy straddles two chunks.
#[derive(Debug)]
pub(super) struct SharedPages {
    mapping: HostPages,
    chunk_bytes: usize,
    /// Bytes whose pages exist; changed under `touching`.
    touched: AtomicUsize,
    touching: Mutex<()>,
    uses: Uses,
}

impl SharedPages {
    pub(super) fn reserve(bytes: usize, chunk_bytes: usize) -> Result<Self, DeviceError> {
        let refused = |error: std::io::Error| DeviceError::Host { call: "mmap", bytes, error: error.to_string() };
        let mapping = HostPages::reserve(bytes, PageSize::Huge).map_err(refused)?;
        let touched = AtomicUsize::new(0);
        let touching = Mutex::new(());
        Ok(Self { mapping, chunk_bytes, touched, touching, uses: Uses::default() })
    }

    pub(super) fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    pub(super) fn touched_bytes(&self) -> usize {
        self.touched.load(Ordering::Acquire)
    }

    /// Touches pages until the first `bytes` bytes have theirs.
    pub(super) fn touch(&self, bytes: usize) {
        let bytes = bytes.min(self.bytes());
        while self.touched_bytes() < bytes {
            // The mutex guards no data of its own.
            let _turn = self.touching.lock().unwrap_or_else(PoisonError::into_inner);
            let start = self.touched_bytes();
            let end = bytes.min(start + TOUCHED_AT_ONCE);
            if start < end {
                // SAFETY: copies and guards use bytes below `touched` only, which rises by whole
                // turns, one thread at a time.
                unsafe { self.mapping.make(start..end) };
                self.touched.store(end, Ordering::Release);
            }
        }
    }

    /// Registers the bytes of `range`, a chunk that was touched.
    pub(super) fn register(&self, context: &PrimaryContext, range: Range<usize>) -> Result<(), DeviceError> {
        assert!(range.end <= self.bytes(), "bytes {range:?} of {}", self.bytes());
        let current = context.enter()?;
        // SAFETY: the range lies in the mapping, which is unregistered before it is unmapped.
        unsafe { current.register(self.mapping.at(range.start), range.len()) }
    }

    /// Unregisters the chunks below byte `end`, with no copy under way, and keeps the pages if one
    /// may still be.
    pub(super) fn close(&mut self, context: &PrimaryContext, end: usize) {
        let is_idle = self.uses.wait().is_ok() || context.settle();
        for start in (0..end).step_by(self.chunk_bytes) {
            context.free(|current| current.unregister(self.mapping.at(start)));
        }
        if !is_idle {
            self.mapping.keep();
        }
    }

    pub(super) fn wait(&self) -> Result<(), DeviceError> {
        self.uses.wait()
    }

    pub(super) fn settle(&self, range: Range<usize>) -> Result<(), DeviceError> {
        self.uses.settle(&range)
    }

    /// The `len` bytes from `offset`, touched.
    fn touched(&self, offset: usize, len: usize) -> Range<usize> {
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes());
        let end = end.unwrap_or_else(|| panic!("{len} bytes from byte {offset} of {}", self.bytes()));
        self.touch(end);
        offset..end
    }

    /// The pieces of `range` that each lie in one chunk.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let chunk = self.chunk_bytes;
        let chunks = range.start / chunk..range.end.div_ceil(chunk);
        let pieces = chunks.map(move |n| range.start.max(n * chunk)..range.end.min((n + 1) * chunk));
        pieces.filter(|piece| !piece.is_empty())
    }

    /// Copies from the device to the bytes from `offset`.
    pub(super) fn store<T>(
        &self,
        stream: &Stream,
        source: DeviceView<'_, T>,
        offset: usize,
    ) -> Result<DeviceTicket, DeviceError> {
        let range = self.touched(offset, source.bytes());
        self.uses.submit(range.clone(), HostAccess::Write, stream, || {
            let current = stream.context().enter()?;
            for piece in self.pieces(range.clone()) {
                let address = *source.address() + (piece.start - range.start) as u64;
                let target = self.mapping.at(piece.start);
                // SAFETY: the piece lies in the mapping, and is neither used nor unmapped before
                // the copy is done: the table of uses sees to that.
                unsafe { current.download(address, target, piece.len(), stream.handle()) }?;
            }
            Ok(())
        })
    }

    /// Copies the bytes from `offset` to the device.
    pub(super) fn load<T>(
        &self,
        stream: &Stream,
        offset: usize,
        target: &mut DeviceViewMut<'_, T>,
    ) -> Result<DeviceTicket, DeviceError> {
        let range = self.touched(offset, target.bytes());
        self.uses.submit(range.clone(), HostAccess::Read, stream, || {
            let current = stream.context().enter()?;
            for piece in self.pieces(range.clone()) {
                let address = *target.address() + (piece.start - range.start) as u64;
                let source = self.mapping.at(piece.start);
                // SAFETY: the piece lies in the mapping, and is neither changed nor unmapped before
                // the copy is done: the table of uses sees to that.
                unsafe { current.upload(source, address, piece.len(), stream.handle()) }?;
            }
            Ok(())
        })
    }

    pub(super) fn read(&self, range: Range<usize>) -> Result<HostRead<'_>, DeviceError> {
        let range = self.touched(range.start, range.len());
        let held = self.uses.hold(range.clone(), HostAccess::Read)?;
        // SAFETY: the range lies in the mapping, and nothing writes to it while the use is held.
        let bytes = unsafe { std::slice::from_raw_parts(self.mapping.at(range.start), range.len()) };
        Ok(HostRead { bytes, _held: held })
    }

    pub(super) fn write(&self, range: Range<usize>) -> Result<HostWrite<'_>, DeviceError> {
        let range = self.touched(range.start, range.len());
        let held = self.uses.hold(range.clone(), HostAccess::Write)?;
        // SAFETY: the range lies in the mapping, and nothing else uses it while the use is held.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.mapping.at(range.start), range.len()) };
        Ok(HostWrite { bytes, _held: held })
    }
}

/// Bytes of a buffer, which no copy changes while this lives.
#[derive(Debug)]
pub struct HostRead<'a> {
    bytes: &'a [u8],
    _held: HeldUse<'a>,
}

impl Deref for HostRead<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// Bytes of a buffer, which no copy uses while this lives.
#[derive(Debug)]
pub struct HostWrite<'a> {
    bytes: &'a mut [u8],
    _held: HeldUse<'a>,
}

impl Deref for HostWrite<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for HostWrite<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}
