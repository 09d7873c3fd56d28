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
        Ok((loaded.versions().map(|version| version.summary()).collect(), loaded.findings))
    }

    /// Looks at all versions that are kept now. They come one after the other: a list of all
    /// names may need more memory than the file is long.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn look(&self) -> Result<MemoryLook, MemoryError> {
        Ok(MemoryLook { loaded: self.load()?, source: Arc::clone(&self.source) })
    }

    /// Looks at the newest version, if there is one.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn newest(&self) -> Result<Option<VersionView>, MemoryError> {
        Ok(self.look()?.views().next_back())
    }

    /// Looks at a version.
    ///
    /// # Errors
    /// [`MemoryError::NoVersion`], and as for [`open`](Self::open).
    pub fn view(&self, number: u64) -> Result<VersionView, MemoryError> {
        let found = self.look()?.views().find(|view| view.version.number == number);
        found.ok_or(MemoryError::NoVersion { number })
    }

    fn load(&self) -> Result<LoadedMemory, MemoryError> {
        load_while_written(&*self.source)
    }
}

/// The versions of a file at one moment.
pub struct MemoryLook {
    loaded: LoadedMemory,
    source: Arc<dyn ByteSource>,
}

impl fmt::Debug for MemoryLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLook").field("root", &self.loaded.root).finish_non_exhaustive()
    }
}

impl MemoryLook {
    /// Returns bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.loaded.root.block_bytes as usize
    }

    /// Returns what is damaged of roots, lists and block tables.
    #[must_use]
    pub fn findings(&self) -> &[MemoryFinding] {
        &self.loaded.findings
    }

    /// Looks at each version, the oldest first.
    pub fn views(&self) -> impl DoubleEndedIterator<Item = VersionView> {
        let hold = ViewHold::Watched(Arc::clone(&self.loaded.roots));
        self.loaded.versions().map(move |version| VersionView {
            version,
            source: Arc::clone(&self.source),
            block_bytes: self.block_bytes(),
            hold: hold.clone(),
        })
    }
}
