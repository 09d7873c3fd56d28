//! Reading a memory while another process writes it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use recoup_io::open_regular;

use crate::blocks::ViewHold;
use crate::error::{MemoryError, MemoryFinding, refused};
use crate::file_medium::FileSource;
use crate::load::{LoadedMemory, load_while_written};
use crate::medium::ByteSource;
use crate::version::KeptVersion;
use crate::view::VersionView;

/// Looks at the versions of a file, and neither changes it nor holds its writer up.
///
/// The writer does not wait: a version may be retired while it is read. Its checksums tell, and the
/// read is [`MemoryError::Retired`]. A writer that keeps more versions leaves more time.
pub struct MemoryReader {
    source: Arc<dyn ByteSource>,
}

impl fmt::Debug for MemoryReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryReader").finish_non_exhaustive()
    }
}

impl MemoryReader {
    /// Opens a file to read.
    ///
    /// # Errors
    /// [`MemoryError::Io`], and what is wrong with a file that has no versions to look for.
    pub fn open(path: &Path) -> Result<Self, MemoryError> {
        let file = open_regular(path).map_err(refused("open the file"))?;
        let reader = Self::of(Arc::new(FileSource { file: Arc::new(file) }));
        reader.load()?;
        Ok(reader)
    }

    /// Reads any source of bytes.
    #[must_use]
    pub fn of(source: Arc<dyn ByteSource>) -> Self {
        Self { source }
    }

    /// Returns the versions that are kept now, the oldest first, and what is damaged. Roots, lists
    /// and block tables are read, and no blocks: see [`VersionView::verify`].
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn versions(&self) -> Result<(Vec<KeptVersion>, Vec<MemoryFinding>), MemoryError> {
        let loaded = self.load()?;
        Ok((loaded.versions.iter().map(|version| version.summary()).collect(), loaded.findings))
    }

    /// Returns bytes of a block.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn block_bytes(&self) -> Result<usize, MemoryError> {
        Ok(self.load()?.root.block_bytes as usize)
    }

    /// Looks at the newest version, if there is one.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn newest(&self) -> Result<Option<VersionView>, MemoryError> {
        let loaded = self.load()?;
        Ok(loaded.versions.last().map(|version| self.view_of(&loaded, version)))
    }

    /// Looks at a version.
    ///
    /// # Errors
    /// [`MemoryError::NoVersion`], and as for [`open`](Self::open).
    pub fn view(&self, number: u64) -> Result<VersionView, MemoryError> {
        let loaded = self.load()?;
        let version = loaded.versions.iter().find(|version| version.number == number);
        version.map(|version| self.view_of(&loaded, version)).ok_or(MemoryError::NoVersion { number })
    }

    fn load(&self) -> Result<LoadedMemory, MemoryError> {
        load_while_written(&*self.source)
    }

    fn view_of(&self, loaded: &LoadedMemory, version: &Arc<crate::version::VersionTables>) -> VersionView {
        VersionView {
            version: Arc::clone(version),
            source: Arc::clone(&self.source),
            block_bytes: loaded.root.block_bytes as usize,
            hold: ViewHold::Watched,
        }
    }
}
