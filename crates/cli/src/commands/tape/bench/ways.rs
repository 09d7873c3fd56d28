//! Ways to keep states in memory of this machine, with the same calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use recoup::core::{Bound, Codec, Values, ValuesMut};
use recoup::tape::{PageRegion, PageSize, Tape, TapeBuilder, TouchMode, Touching};

/// Bytes of a place beyond those of its state, and more.
const PLACE_EXTRA_BYTES: u64 = 4096;

/// A way to keep states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeepingWay {
    /// A new `Vec` for each state.
    Vec,
    /// All memory made and locked before the first push.
    Direct,
    /// The tape with small pages.
    SmallPages,
    /// The tape with huge pages.
    HugePages,
    /// The tape with no page touched ahead.
    Untouched,
    /// The tape with a part of its memory, and this directory.
    Spill(PathBuf),
    /// The same, with a directory in memory.
    Tmpfs(PathBuf),
    /// The tape with a codec.
    Coded,
}

/// Sizes and settings that the ways share.
#[derive(Clone)]
pub(super) struct KeeperPlan {
    /// Pages of the ways that are not about pages.
    pub(super) pages: PageSize,
    /// Memory that holds all states of a process.
    pub(super) whole_bytes: u64,
    /// Memory of a tape that spills.
    pub(super) part_bytes: u64,
    pub(super) codec: Option<(Arc<dyn Codec>, Bound)>,
}

/// States of a process that are kept.
pub(super) enum StateKeeper {
    Vecs(Vec<Vec<f64>>),
    Locked {
        region: PageRegion,
        /// End of each state.
        ends: Vec<usize>,
    },
    Tape {
        /// Ends before its folder.
        tape: Box<Tape>,
        _folder: Option<ScratchFolder>,
    },
}

/// A new folder, removed when dropped.
pub(super) struct ScratchFolder(PathBuf);

impl KeepingWay {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Vec => "vec",
            Self::Direct => "direct",
            Self::SmallPages => "small-pages",
            Self::HugePages => "huge-pages",
            Self::Untouched => "untouched",
            Self::Spill(_) => "spill",
            Self::Tmpfs(_) => "tmpfs",
            Self::Coded => "coded",
        }
    }
}

impl KeeperPlan {
    /// Returns the memory that holds states of this many bytes in all.
    pub(super) fn memory_bytes(n_states: usize, state_bytes: u64) -> u64 {
        state_bytes + PLACE_EXTRA_BYTES * (n_states as u64 + 1)
    }

    /// Prepares a way, until the first push may come.
    ///
    /// # Errors
    /// Those of the system and of the tape.
    pub(super) fn open(&self, way: &KeepingWay, n_states: usize) -> Result<StateKeeper> {
        let whole = || Tape::builder().host(self.whole_bytes).pages(self.pages);
        let tape = |builder: TapeBuilder| StateKeeper::of_tape(builder, None);
        match way {
            KeepingWay::Vec => Ok(StateKeeper::Vecs(Vec::with_capacity(n_states))),
            KeepingWay::Direct => {
                let region = locked(self.whole_bytes, self.pages)?;
                Ok(StateKeeper::Locked { region, ends: Vec::with_capacity(n_states) })
            }
            KeepingWay::SmallPages => tape(whole().pages(PageSize::Small)),
            KeepingWay::HugePages => tape(whole().pages(PageSize::Huge)),
            KeepingWay::Untouched => tape(whole().touching(Touching::Fixed(TouchMode::Never))),
            KeepingWay::Coded => match &self.codec {
                Some((codec, bound)) => tape(whole().codec(Arc::clone(codec), *bound)),
                None => tape(whole()),
            },
            KeepingWay::Spill(directory) | KeepingWay::Tmpfs(directory) => {
                let folder = ScratchFolder::make(directory)?;
                let builder = Tape::builder().host(self.part_bytes).pages(self.pages).spill(&folder.0);
                StateKeeper::of_tape(builder, Some(folder))
            }
        }
    }
}

/// Returns memory whose pages are there for good.
///
/// # Errors
/// The system's: a process may lock as many bytes as `ulimit -l` says.
pub(super) fn locked(bytes: u64, pages: PageSize) -> Result<PageRegion> {
    let region = PageRegion::reserve(bytes as usize, pages)?;
    region.lock(0..bytes as usize).with_context(|| format!("locking {bytes} bytes (see ulimit -l)"))?;
    Ok(region)
}

impl StateKeeper {
    fn of_tape(builder: TapeBuilder, folder: Option<ScratchFolder>) -> Result<Self> {
        Ok(Self::Tape { tape: Box::new(builder.build()?), _folder: folder })
    }

    pub(super) fn push(&mut self, step: u64, state: &[f64]) -> Result<()> {
        match self {
            Self::Vecs(kept) => kept.push(state.to_vec()),
            Self::Locked { region, ends } => {
                let start = ends.last().copied().unwrap_or(0);
                let end = start + size_of_val(state);
                region.write(start..end).copy_from_slice(bytemuck::cast_slice(state));
                ends.push(end);
            }
            Self::Tape { tape, .. } => tape.push(step, Values::F64(state))?,
        }
        Ok(())
    }

    /// Begins the way back.
    pub(super) fn turn(&mut self) -> Result<()> {
        if let Self::Tape { tape, .. } = self {
            tape.turn()?;
        }
        Ok(())
    }

    /// Pops the newest state.
    pub(super) fn pop(&mut self, target: &mut [f64]) -> Result<()> {
        match self {
            Self::Vecs(kept) => {
                let state = kept.pop().context("no state is left")?;
                target.copy_from_slice(&state);
            }
            Self::Locked { region, ends } => {
                let end = ends.pop().context("no state is left")?;
                let start = ends.last().copied().unwrap_or(0);
                bytemuck::cast_slice_mut(target).copy_from_slice(&region.read(start..end));
            }
            Self::Tape { tape, .. } => _ = tape.pop(ValuesMut::F64(target))?,
        }
        Ok(())
    }

    /// Bytes that the kept states take on a tape.
    pub(super) fn stored_bytes(&self) -> Option<u64> {
        match self {
            Self::Tape { tape, .. } => Some(tape.report().stored_bytes),
            Self::Vecs(_) | Self::Locked { .. } => None,
        }
    }
}

impl ScratchFolder {
    fn make(parent: &Path) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("recoup-tape-bench-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("{} stays: {error}", self.0.display());
        }
    }
}
