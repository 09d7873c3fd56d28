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

use recoup_core::{Comm, CommonError, FileRecord, Manifest, StoreError, agreed};

use super::damage;
use crate::regular;

/// Reads all files back, each rank its share. Collective.
pub(super) fn check(
    draft: &Path,
    manifest: &Manifest,
    per_file: usize,
    comm: &dyn Comm,
) -> Result<(), CommonError<StoreError>> {
    let ranks = comm.size();
    let reader = |index: usize| (index.saturating_mul(per_file) + ranks - 1) % ranks;
    let files = manifest.files.iter().enumerate().filter(|(index, _)| reader(*index) == comm.rank());
    agreed(comm, files.map(|(_, file)| file).try_for_each(|file| check_file(draft, file, manifest)))
}

fn check_file(draft: &Path, file: &FileRecord, manifest: &Manifest) -> Result<(), StoreError> {
    let version = manifest.version;
    let fault = match structure_crc32c(draft, file, manifest) {
        Ok(found) if found == file.structure_crc32c => return Ok(()),
        Ok(_) => "another file than was written".to_owned(),
        Err(_) if !draft.is_dir() => return Err(StoreError::Missing { version }),
        Err(error) => error.to_string(),
    };
    let what = format!("file {}: {fault}; do all hosts see the same directory?", file.name);
    Err(StoreError::Manifest { version, what })
}

fn structure_crc32c(draft: &Path, record: &FileRecord, manifest: &Manifest) -> io::Result<u32> {
    let mut file = regular::open(&draft.join(&record.name))?;
    let found = file.metadata()?.len();
    if found != record.bytes {
        return Err(io::Error::other(format!("{} bytes expected, {found} found", record.bytes)));
    }
    damage::structure_crc32c(&mut file, record.bytes, &damage::frames_of(record, manifest))
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
            let checked = Threads::launch(4, |comm| check(view(comm.rank()), &manifest, 1, &comm));
            let is_one_view = seen == 0 || seen == (1 << 4) - 1;
            assert!(checked.iter().all(|checked| checked.is_ok() == is_one_view), "views {seen:04b}: {checked:?}");
        }
    }
}
