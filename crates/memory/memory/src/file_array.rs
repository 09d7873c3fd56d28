//! Arrays that stay in the file: for values of which most are read and few are written.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::element::VersionedElement;
use crate::error::MemoryError;
use crate::filed::FiledBytes;
use crate::structure::{ArrayList, Versioned};

/// An array whose values stay in the file of the memory, which may be larger than the memory of the
/// process.
///
/// Values that are written are in memory until the next commit, which stores their blocks in other
/// places and names them with all others of the version. So a program that fills a large array
/// commits at times. In `/dev/shm` values are lent without a copy; elsewhere they are read. A block
/// is checked when it is first lent, and each time it is read. A restore reads none.
///
/// ```
/// use recoup_memory::{FileArray, Memory, MemoryOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("table.memory");
/// let mut table = FileArray::<f64>::zeros("table", 1_000_000);
/// let mut memory = Memory::open(&path, MemoryOptions::default())?;
/// memory.restore_newest(&mut [&mut table])?;
/// table.write(70_000, &[0.5, 1.5])?;
/// memory.commit(1, &mut [&mut table])?;
/// assert_eq!(table.get(69_999..70_002)?[..], [0.0, 0.5, 1.5]);
/// assert_eq!(table.bytes_in_memory(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileArray<T> {
    name: String,
    bytes: FiledBytes,
    values: PhantomData<T>,
}

impl<T> fmt::Debug for FileArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes, .. } = self;
        f.debug_struct("FileArray").field("name", name).field("n_bytes", &bytes.n_bytes()).finish_non_exhaustive()
    }
}

impl<T: VersionedElement> FileArray<T> {
    /// Makes an array of zeros, which take no memory. The first commit stores all of them.
    #[must_use]
    pub fn zeros(name: impl Into<String>, len: usize) -> Self {
        let bytes = FiledBytes::zeros(T::KIND, len * size_of::<T>());
        Self { name: name.into(), bytes, values: PhantomData }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.n_bytes() / size_of::<T>()
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of values in memory: what was written since the last version, and what is hot.
    #[must_use]
    pub fn bytes_in_memory(&self) -> usize {
        self.bytes.bytes_in_memory()
    }

    /// Lends values where they are stored one after the other, in memory or in a mapped file, and
    /// reads them otherwise.
    ///
    /// # Errors
    /// [`MemoryError::Damaged`], [`MemoryError::Retired`] for an array that a
    /// [`MemoryReader`](crate::MemoryReader) has filled, and [`MemoryError::Io`].
    ///
    /// # Panics
    /// If the range does not lie in the array.
    pub fn get(&self, range: Range<usize>) -> Result<Cow<'_, [T]>, MemoryError> {
        let bytes = self.byte_range(&range);
        if let Some(lent) = self.bytes.lend(bytes.clone())? {
            return Ok(Cow::Borrowed(bytemuck::cast_slice(lent)));
        }
        let mut values = vec![T::zeroed(); range.len()];
        self.bytes.read(bytes.start, bytemuck::cast_slice_mut(&mut values))?;
        Ok(Cow::Owned(values))
    }

    /// Reads values from `first` on into memory of the program.
    ///
    /// # Errors
    /// As for [`get`](Self::get); then `target` is undefined.
    ///
    /// # Panics
    /// If the array has fewer values.
    pub fn read(&self, first: usize, target: &mut [T]) -> Result<(), MemoryError> {
        let bytes = self.byte_range(&(first..first + target.len()));
        self.bytes.read(bytes.start, bytemuck::cast_slice_mut(target))
    }

    /// Overwrites values from `first` on. They are in memory until the next commit.
    ///
    /// # Errors
    /// As for [`get`](Self::get), of the values next to them; then none has changed.
    ///
    /// # Panics
    /// If the array has fewer values.
    pub fn write(&mut self, first: usize, values: &[T]) -> Result<(), MemoryError> {
        let bytes = self.byte_range(&(first..first + values.len()));
        self.bytes.write(bytes.start, bytemuck::cast_slice(values))
    }

    /// Changes the number of values. New ones are zeros.
    ///
    /// # Errors
    /// As for [`get`](Self::get), of the values next to the new ones; then nothing has changed.
    pub fn resize(&mut self, len: usize) -> Result<(), MemoryError> {
        self.bytes.resize(len * size_of::<T>())
    }

    /// Has the values of a range stay in memory, to be read at the speed of memory. A restore reads
    /// them, and values that are written stay behind a commit. Values of the array are the same
    /// with any range.
    pub fn set_hot(&mut self, range: Range<usize>) {
        self.bytes.set_hot(range.start * size_of::<T>()..range.end * size_of::<T>());
    }

    fn byte_range(&self, range: &Range<usize>) -> Range<usize> {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {}", self.len());
        range.start * size_of::<T>()..range.end * size_of::<T>()
    }
}

/// Makes an array without values or a name, for a field of a state.
impl<T: VersionedElement> Default for FileArray<T> {
    fn default() -> Self {
        Self::zeros("", 0)
    }
}

impl<T: VersionedElement> Versioned for FileArray<T> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.filed(&self.name, &mut self.bytes);
    }
}
