//! Bare copies of bytes to a file: the least that storing as many bytes by hand costs.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::Failed;
use crate::unloaded::timed;

/// Returns the seconds of writes of these sizes to one place of a file after the other, of two
/// places that take turns. Nothing is checked, synced or found again.
pub(crate) fn copy_seconds(root: &Path, sizes: &[u64]) -> Result<f64, Failed> {
    let most = sizes.iter().copied().max().unwrap_or(0);
    let bytes = vec![1_u8; most as usize];
    let file: File = tempfile::tempfile_in(root)?;
    // A checkpoint by hand has its places, and its pages, from the start.
    [0, most].into_iter().try_for_each(|place| file.write_all_at(&bytes, place))?;
    let mut written = Ok(());
    let write = |index: usize, size: u64| file.write_all_at(&bytes[..size as usize], index as u64 % 2 * most);
    let seconds = timed(|| written = sizes.iter().enumerate().try_for_each(|(index, size)| write(index, *size)));
    written?;
    Ok(seconds)
}
