//! The writes of a program: kernels in order, and the pieces of device memory that each writes.

use std::ops::Range;

/// Bytes of a piece: the granularity of a trace, and a zone at its finest.
pub(crate) const PIECE_BYTES: u64 = 4096;
/// Bytes of the zones that the publication tracks by default. Allocations begin at one.
pub(crate) const ZONE_BYTES: u64 = 64 << 10;

/// Work of a kernel, from which its time follows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelWork {
    /// Bytes read from and written to the device's memory.
    pub(crate) moved_bytes: f64,
    /// Operations on doubles.
    pub(crate) flops: f64,
}

/// A kernel that has run.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) work: KernelWork,
    /// Pieces in the order of their first writes.
    pub(crate) pieces: Vec<Range<u32>>,
}

impl Kernel {
    /// The pieces, one after the other.
    pub(crate) fn each_piece(&self) -> impl Iterator<Item = u32> + '_ {
        self.pieces.iter().cloned().flatten()
    }

    /// Number of pieces.
    pub(crate) fn n_pieces(&self) -> usize {
        self.pieces.iter().map(ExactSizeIterator::len).sum()
    }
}

/// A program around one checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct WriteTrace {
    pub(crate) name: &'static str,
    /// The program in words, for tables.
    pub(crate) what: String,
    /// Bytes of device memory that it has allocated.
    pub(crate) footprint_bytes: u64,
    /// Bytes that a program which names its variables saves.
    pub(crate) named: Vec<Range<u64>>,
    /// Kernels since the version before.
    pub(crate) before: Vec<Kernel>,
    /// Kernels behind the version, repeated as long as it drains.
    pub(crate) after: Vec<Kernel>,
}

/// Records the kernels of a program.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    allocated_bytes: u64,
    kernels: Vec<Kernel>,
    before: Vec<Kernel>,
}

impl Recorder {
    /// Allocates memory of the device; returns where it lies.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Range<u64> {
        let start = self.allocated_bytes;
        self.allocated_bytes = (start + bytes).next_multiple_of(ZONE_BYTES);
        start..start + bytes
    }

    /// Records a kernel that writes these ranges from front to back, side by side: a zone of each
    /// in turn.
    pub(crate) fn stream(&mut self, work: KernelWork, ranges: &[Range<u64>]) {
        let is_allocated = |range: &Range<u64>| range.end <= self.allocated_bytes;
        assert!(ranges.iter().all(is_allocated), "kernels write what was allocated");
        let longest = ranges.iter().map(|range| range.end - range.start).max().unwrap_or(0);
        let part = |range: &Range<u64>, from: u64| {
            let start = range.start + from;
            (start < range.end).then(|| pieces_of(start..(start + ZONE_BYTES).min(range.end)))
        };
        let zones = (0..longest).step_by(ZONE_BYTES as usize);
        let pieces = zones.flat_map(|from| ranges.iter().filter_map(move |range| part(range, from))).collect();
        self.kernels.push(Kernel { work, pieces });
    }

    /// Records a kernel that writes bytes at these places, in this order.
    pub(crate) fn scatter(&mut self, work: KernelWork, places: impl IntoIterator<Item = u64>) {
        let mut is_written = vec![false; self.allocated_bytes.div_ceil(PIECE_BYTES) as usize];
        let mut pieces: Vec<Range<u32>> = Vec::new();
        for place in places {
            let piece = (place / PIECE_BYTES) as u32;
            if std::mem::replace(&mut is_written[piece as usize], true) {
                continue;
            }
            match pieces.last_mut() {
                Some(last) if last.end == piece => last.end += 1,
                _ => pieces.push(piece..piece + 1),
            }
        }
        self.kernels.push(Kernel { work, pieces });
    }

    /// Forgets the kernels so far: the version before is taken here.
    pub(crate) fn start(&mut self) {
        self.kernels.clear();
    }

    /// Takes the version that the trace is about.
    pub(crate) fn take_version(&mut self) {
        self.before = std::mem::take(&mut self.kernels);
    }

    /// Ends the trace.
    pub(crate) fn finish(self, name: &'static str, what: String, named: Vec<Range<u64>>) -> WriteTrace {
        let Self { allocated_bytes, kernels, before } = self;
        WriteTrace { name, what, footprint_bytes: allocated_bytes, named, before, after: kernels }
    }
}

/// The pieces that a range touches.
pub(crate) fn pieces_of(bytes: Range<u64>) -> Range<u32> {
    (bytes.start / PIECE_BYTES) as u32..bytes.end.div_ceil(PIECE_BYTES) as u32
}
