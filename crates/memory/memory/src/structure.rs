//! The states that a memory keeps versions of.

use crate::any_array::AnyVersionedArray;
use crate::filed::FiledBytes;
use crate::listed::{ListedArray, ListedSource};
use crate::options::MemoryOptions;

/// A state that a commit takes and a restore fills: one array, or several that belong together.
///
/// `#[derive(Versioned)]` implements it for a struct with named fields. The names of its calls are
/// long, since a call of a trait goes before a `step(&mut self)` of the program.
///
/// ```
/// use recoup_memory::{VersionedArray, Versioned};
///
/// #[derive(Versioned)]
/// #[versioned(crate = recoup_memory)] // `recoup::memory` without it
/// struct Heat {
///     #[versioned(counter)]
///     step: u64,
///     field: VersionedArray<f64>,
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
    note = "a version holds `VersionedArray`, `VersionedRegion`, `FileArray`, `VersionedGraph`, `VersionedOctree`, structs that derive `Versioned`, \
            and f64, f32, i64, i32, u64, u32 and u8: single ones, `Vec`s and arrays of them",
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
    pub fn array(&mut self, array: &'a mut dyn AnyVersionedArray) {
        let name = array.name().to_owned();
        self.push(&name, ListedSource::Kept(array));
    }

    /// Adds an array that is made for the list, under the name of the field.
    pub(crate) fn plain(&mut self, array: Box<dyn AnyVersionedArray + 'a>) {
        self.push("", ListedSource::Plain(array));
    }

    /// Adds an array that stays in the file, under the name of the field it is in, or else its own.
    pub(crate) fn filed(&mut self, name: &str, array: &'a mut FiledBytes) {
        self.push(name, ListedSource::Filed(array));
    }

    fn push(&mut self, own_name: &str, source: ListedSource<'a>) {
        let name = if self.name.is_empty() { own_name } else { &self.name };
        self.arrays.push(ListedArray { name: name.to_owned(), source });
    }

    pub(crate) fn into_arrays(self) -> Vec<ListedArray<'a>> {
        self.arrays
    }
}
