//! Traits of the structures that a memory keeps versions of.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use crate::dirty::DirtyMap;
use crate::element::ElementKind;
use crate::error::MemoryError;
use crate::options::MemoryOptions;
use crate::version::StructureTable;

/// A state that a commit takes and a restore fills: one array, or several that belong together.
///
/// `#[derive(Versioned)]` implements it for a struct with named fields. The names of its calls are
/// long, since a call of a trait goes before a `step(&mut self)` of the program.
///
/// ```
/// use recoup_memory::{MvArray, Versioned};
///
/// #[derive(Versioned)]
/// #[versioned(crate = recoup_memory)] // `recoup::memory` without it
/// struct Heat {
///     #[versioned(counter)]
///     step: u64,
///     field: MvArray<f64>,
/// }
///
/// let heat = Heat { step: 7, field: vec![20.0; 100].into() };
/// assert_eq!(heat.version_step(), Some(7));
/// ```
///
/// A field of any other type does not compile, unless an attribute leaves it out:
///
/// ```compile_fail,E0277
/// #[derive(recoup_memory::Versioned)]
/// #[versioned(crate = recoup_memory)]
/// struct Heat {
///     n_values: usize,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in a version",
    label = "not a type that a version can hold",
    note = "a version holds `MvArray`, `MvGraph`, `MvOctree`, structs that derive `Versioned`, and f64, f32, i64, i32, \
            u64, u32 and u8: single ones, `Vec`s and arrays of them",
    note = "usize and isize differ between machines: use u64 or i64",
    note = "`#[versioned(skip)]` is for a field that a restart makes again, `#[versioned(constant)]` for one that stays"
)]
pub trait Versioned {
    /// Adds the arrays that make the state to a list, in a fixed order.
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>);

    /// Sets the parts that no version holds, after a restore has filled all others.
    fn renew_skipped(&mut self) {}

    /// Returns the program's own number of the state, an iteration or a time step; `None` if it
    /// counts none.
    fn version_step(&self) -> Option<u64> {
        None
    }

    /// Returns the settings of a file that is made for the state.
    #[must_use]
    fn memory_options() -> MemoryOptions
    where
        Self: Sized,
    {
        MemoryOptions::default()
    }
}

/// The arrays of a state under their names.
#[derive(Debug, Default)]
pub struct ArrayList<'a> {
    /// Name of the state that is being listed; empty for one that no field names.
    name: String,
    arrays: Vec<ListedArray<'a>>,
}

impl<'a> ArrayList<'a> {
    /// Makes the list of a state that a field names.
    pub(crate) fn under(name: &str) -> Self {
        Self { name: name.to_owned(), arrays: Vec::new() }
    }

    /// Adds what is in a field of the state. Its name stands behind that of the state and a dot.
    pub fn field(&mut self, name: &str, part: &'a mut dyn Versioned) {
        let end = self.name.len();
        if end > 0 {
            self.name.push('.');
        }
        self.name.push_str(name);
        part.list_arrays(self);
        self.name.truncate(end);
    }

    /// Adds a part of the state as a [`field`](Self::field) if the state is in a field itself, and
    /// under a name of its own otherwise.
    pub fn part(&mut self, name: &str, part: &'a mut dyn Versioned) {
        if self.name.is_empty() { part.list_arrays(self) } else { self.field(name, part) }
    }

    /// Adds an array under the name of the field it is in, or else its own.
    pub fn array(&mut self, array: &'a mut dyn VersionedArray) {
        let name = if self.name.is_empty() { array.name().to_owned() } else { self.name.clone() };
        self.arrays.push(ListedArray { name, source: ListedSource::Kept(array) });
    }

    /// Adds an array that is made for the list, under the name of the field.
    pub(crate) fn plain(&mut self, array: Box<dyn VersionedArray + 'a>) {
        self.arrays.push(ListedArray { name: self.name.clone(), source: ListedSource::Plain(array) });
    }

    pub(crate) fn into_arrays(self) -> Vec<ListedArray<'a>> {
        self.arrays
    }
}

/// An array under the name that it has in a version.
pub(crate) struct ListedArray<'a> {
    pub(crate) name: String,
    source: ListedSource<'a>,
}

/// The place that an array of a list comes from.
enum ListedSource<'a> {
    /// An array of the program, with its marks.
    Kept(&'a mut dyn VersionedArray),
    /// An array that is made for the list, around plain values of the program.
    Plain(Box<dyn VersionedArray + 'a>),
}

impl fmt::Debug for ListedArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedArray").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Deref for ListedArray<'a> {
    type Target = dyn VersionedArray + 'a;

    fn deref(&self) -> &Self::Target {
        match &self.source {
            ListedSource::Kept(array) => &**array,
            ListedSource::Plain(array) => &**array,
        }
    }
}

impl DerefMut for ListedArray<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.source {
            ListedSource::Kept(array) => &mut **array,
            ListedSource::Plain(array) => &mut **array,
        }
    }
}

/// One array of values in the memory of the process.
pub trait VersionedArray {
    /// Its name where no field names it, which no other array of a commit has.
    fn name(&self) -> &str;

    /// Type of its values.
    fn kind(&self) -> ElementKind;

    /// Its values as bytes.
    fn bytes(&self) -> &[u8];

    /// Marks of the values that were touched since the version that it came from.
    fn tracking(&self) -> &ArrayTracking;

    /// The same, to be changed.
    fn tracking_mut(&mut self) -> &mut ArrayTracking;

    /// Makes room for `len` values that are being restored, and lends its bytes. The array stays as
    /// it is until [`adopt_room`](Self::adopt_room).
    ///
    /// # Errors
    /// [`MemoryError::Length`] if the array cannot have as many values.
    fn make_room(&mut self, len: usize) -> Result<&mut [u8], MemoryError>;

    /// Takes the restored values in the place of its own.
    fn adopt_room(&mut self);

    /// Gives the room back.
    fn drop_room(&mut self);
}

/// Marks of the values of an array that were touched, and the table of all others. Every type with
/// values of its own that implements [`VersionedArray`] has one.
#[derive(Clone, Debug, Default)]
pub struct ArrayTracking {
    pub(crate) dirty: DirtyMap,
    /// Its blocks in the version that it was restored from or last committed to.
    pub(crate) base: Option<Arc<StructureTable>>,
    /// A commit compares the blocks that are not marked, too.
    pub(crate) is_compared: bool,
}

impl ArrayTracking {
    /// Marks bytes of the values that were written, or will be before the next commit.
    pub fn touch(&mut self, bytes: Range<usize>) {
        self.dirty.mark(bytes);
    }

    /// Has each commit compare the values with the version before, in place of marks.
    pub fn compare(&mut self) {
        self.is_compared = true;
    }

    /// Returns whether each commit compares the values.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        self.is_compared
    }

    /// Notes that the array is what a version holds.
    pub(crate) fn adopt(&mut self, table: &Arc<StructureTable>) {
        self.base = Some(Arc::clone(table));
        self.dirty.clear();
    }
}
