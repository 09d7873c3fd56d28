//! Every file of a draft read back by another rank than wrote it, before the draft may count.
//!
//! A host that loses the shared directory goes on with what is below the mount point, and a file of
//! a retired version may be left in the draft where its own was to be. The bytes outside the frames
//! name the version and the checksums of all frames, so no other file passes, of whatever length.
//! The rank before the first of a file reads it: wherever the ranks see more than one directory, a
//! rank and the one behind it see different ones. Promises: each rank reads a bounded number of
//! files, and no frame.

use std::io;
use std::path::Path;

use recoup_core::{Comm, CommError, CommonError, FileRecord, Manifest, StoreError, agreed};

use super::damage::{FrameExtent, extents_of, structure_crc32c};
use crate::regular;

/// A file of a draft, as the rank that wrote it describes it.
pub(super) type WrittenFile = (FileRecord, Vec<FrameExtent>);

/// Describes the files of a rank's part, whose frames are all in it.
pub(super) fn written_files(part: &Manifest) -> Vec<WrittenFile> {
    part.files.iter().map(|file| (file.clone(), extents_of(file, part))).collect()
}

/// Reads all files back, each rank those of the rank behind it. Collective.
pub(super) fn check(
    draft: &Path,
    version: u64,
    written: &[WrittenFile],
    comm: &dyn Comm,
) -> Result<(), CommonError<StoreError>> {
    let theirs = of_next_rank(written, comm)?;
    let check = |theirs: Vec<WrittenFile>| theirs.iter().try_for_each(|file| check_file(draft, version, file));
    agreed(comm, theirs.map_err(StoreError::from).and_then(check))
}

/// Sends the descriptions of this rank's files to the rank before it, and returns those of the rank
/// behind it, or why they cannot be read.
fn of_next_rank(written: &[WrittenFile], comm: &dyn Comm) -> Result<Result<Vec<WrittenFile>, CommError>, CommError> {
    let ranks = comm.size();
    if ranks == 1 {
        return Ok(Ok(written.to_vec()));
    }
    let next = (comm.rank() + 1) % ranks;
    let text = serde_json::to_vec(written).unwrap_or_default();
    let received = comm.exchange_bytes(&[((comm.rank() + ranks - 1) % ranks, &text)], &[next])?;
    let theirs = serde_json::from_slice(received.first().map(Vec::as_slice).unwrap_or_default());
    Ok(theirs.map_err(|error| CommError::Undecodable { rank: next, what: error.to_string() }))
}

fn check_file(draft: &Path, version: u64, written: &WrittenFile) -> Result<(), StoreError> {
    let (file, frames) = written;
    let fault = match structure_of(draft, file, frames) {
        Ok(found) if found == file.structure_crc32c => return Ok(()),
        Ok(_) => "another file than was written".to_owned(),
        Err(_) if !draft.is_dir() => return Err(StoreError::Missing { version }),
        Err(error) => error.to_string(),
    };
    let what = format!("file {}: {fault}; do all hosts see the same directory?", file.name);
    Err(StoreError::Manifest { version, what })
}

fn structure_of(draft: &Path, record: &FileRecord, frames: &[FrameExtent]) -> io::Result<u32> {
    let mut file = regular::open(&draft.join(&record.name))?;
    let found = file.metadata()?.len();
    if found != record.bytes {
        return Err(io::Error::other(format!("{} bytes expected, {found} found", record.bytes)));
    }
    structure_crc32c(&mut file, record.bytes, frames)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use recoup_comm::Threads;
    use recoup_core::Store as _;
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;
    use crate::{Access, Hdf5Store};

    /// Four ranks that see one directory or the other, in which files of the same lengths are left
    /// of another version.
    #[test]
    fn ranks_that_see_several_directories_publish_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Hdf5Store::open(dir.path(), "solve", Access::Write).unwrap();
        for version in [7, 9] {
            SampleVersion::of_one_variable(version, 4, 100).publish(&store).unwrap();
        }
        let mut manifest = store.manifest(9).unwrap();
        manifest.files.truncate(4);
        for seen in 0..1 << 4 {
            let views = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
            let view = |rank: usize| views[seen >> rank & 1].path();
            let put = |version, file: &FileRecord, view: &Path| {
                fs::copy(store.version_path(version).join(&file.name), view.join(&file.name)).unwrap();
            };
            for (rank, file) in manifest.files.iter().enumerate() {
                views.iter().for_each(|view| put(7, file, view.path()));
                put(9, file, view(rank));
            }
            let checked = Threads::launch(4, |comm| {
                let file = &manifest.files[comm.rank()];
                check(view(comm.rank()), 9, &[(file.clone(), extents_of(file, &manifest))], &comm)
            });
            let is_one_view = seen == 0 || seen == (1 << 4) - 1;
            assert!(checked.iter().all(|checked| checked.is_ok() == is_one_view), "views {seen:04b}: {checked:?}");
        }
    }
}
