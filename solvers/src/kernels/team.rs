//! Partitions of rows among the threads of a pool.

use std::ops::Range;

use recoup_core::{BLOCK, ExactSum, chunk_rows};
use recoup_team::{Team, TeamJob};

/// Most pieces that rows are cut into for the threads of a pass without sums.
pub const CHUNKS_MAX: usize = 256;

/// Runs `job` for all parts, on the workers of `team` and the calling thread; on this one alone
/// while another has the workers.
pub(crate) fn run_on(team: &Team, job: TeamJob<'_>) {
    if !team.work_beside(job, || job(0)) {
        (1..team.threads()).for_each(job);
    }
}

/// Threads that share the parts of a job.
pub(crate) trait Crew {
    /// Number of threads, the calling one included.
    fn threads(&self) -> usize;

    /// Calls `job` once for each part, on the workers when they are free and there is work for two.
    fn run(&self, chunks: usize, job: TeamJob<'_>);

    /// Calls `body` once for each chunk with zeros to add to, and adds these to `sums` exactly.
    fn sum_chunks(&self, partition: &Partition, sums: &mut [ExactSum], body: &(dyn Fn(usize, &mut [f64]) + Sync));
}

/// The calling thread alone.
pub(crate) struct Alone;

impl Crew for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, _chunks: usize, job: TeamJob<'_>) {
        job(0);
    }

    fn sum_chunks(&self, partition: &Partition, sums: &mut [ExactSum], body: &(dyn Fn(usize, &mut [f64]) + Sync)) {
        add_chunks(0..partition.chunks(), sums, &mut vec![0.0; sums.len()], body);
    }
}

/// Adds to `sums` those of some chunks, each made in `room`.
pub(crate) fn add_chunks(
    chunks: Range<usize>,
    sums: &mut [ExactSum],
    room: &mut [f64],
    body: &(dyn Fn(usize, &mut [f64]) + Sync),
) {
    for chunk in chunks {
        room.fill(0.0);
        body(chunk, room);
        sums.iter_mut().zip(&*room).for_each(|(sum, value)| *sum += *value);
    }
}

/// The rows of a rank in a pass with sums, and how many make one double of a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummedRows {
    /// Rows of this rank.
    pub rows: usize,
    /// Rows of a chunk, as [`Operator::chunk_rows`](recoup_core::Operator::chunk_rows) has them.
    pub chunk_rows: usize,
}

/// Rows of an operator without a grid that has no others.
impl From<usize> for SummedRows {
    fn from(rows: usize) -> Self {
        Self { rows, chunk_rows: chunk_rows(rows, 1) }
    }
}

/// Rows cut into chunks of whole units; which chunks there are depends on the rows alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Partition {
    /// Rows in all.
    pub(crate) n: usize,
    chunk_rows: usize,
}

impl Partition {
    /// Makes at most [`CHUNKS_MAX`] chunks of whole units of `unit` rows.
    pub(crate) fn new(n: usize, unit: usize) -> Self {
        let units = n.div_ceil(unit);
        Self { n, chunk_rows: units.div_ceil(CHUNKS_MAX).max(1) * unit }
    }

    /// Cuts rows into the chunks of their sums.
    pub(crate) fn summed(SummedRows { rows, chunk_rows }: SummedRows) -> Self {
        Self { n: rows, chunk_rows }
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.n.div_ceil(self.chunk_rows)
    }

    /// The chunks of part `part` of `parts`.
    pub(crate) fn part(&self, part: usize, parts: usize) -> Range<usize> {
        self.chunks() * part / parts..self.chunks() * (part + 1) / parts
    }

    /// The rows of `chunks`.
    pub(crate) fn rows(&self, chunks: &Range<usize>) -> Range<usize> {
        (chunks.start * self.chunk_rows).min(self.n)..(chunks.end * self.chunk_rows).min(self.n)
    }

    /// The blocks of a chunk, as row ranges.
    pub(crate) fn blocks(&self, chunk: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows(&(chunk..chunk + 1));
        let end = rows.end;
        rows.step_by(BLOCK).map(move |first| first..(first + BLOCK).min(end))
    }
}
