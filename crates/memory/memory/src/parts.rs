//! Views of the parts of a state, in a version of it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::array::VersionedArray;
use crate::element::VersionedElement;
use crate::error::MemoryError;
use crate::file_array::FileArray;
use crate::plain::{PlainValue, lanes};
use crate::region::VersionedRegion;
use crate::structure::Versioned;
use crate::view::VersionView;

/// A struct whose versions can be looked at field by field. `#[derive(Versioned)]` implements it,
/// too.
pub trait Viewed {
    /// The struct of the views of its fields.
    type View;

    /// Looks at the state in the field of this name, or in none if it is empty. Nothing is read
    /// yet.
    fn view(version: &VersionView, name: &str) -> Self::View;
}

impl VersionView {
    /// Looks at the fields of a state, and reads nothing yet.
    #[must_use]
    pub fn of<S: Viewed>(&self) -> S::View {
        S::view(self, "")
    }
}

/// A field of a state in one version. Reads are checked, as those of [`VersionView`].
pub struct FieldView<T> {
    version: VersionView,
    name: String,
    field: PhantomData<fn() -> T>,
}

impl<T> FieldView<T> {
    /// Looks at a field of the state in the field `state`, or in none if that is empty.
    #[must_use]
    pub fn within(version: &VersionView, state: &str, field: &str) -> Self {
        let name = if state.is_empty() { field.to_owned() } else { format!("{state}.{field}") };
        Self { version: version.clone(), name, field: PhantomData }
    }

    /// Name of the field in the version.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<T> fmt::Debug for FieldView<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldView").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Versioned + Default> FieldView<T> {
    /// Reads the field.
    ///
    /// # Errors
    /// As for [`VersionView::fill`].
    pub fn load(&self) -> Result<T, MemoryError> {
        let mut field = T::default();
        self.version.fill_part(&self.name, &mut field)?;
        Ok(field)
    }
}

impl<S: Viewed> FieldView<S> {
    /// Looks at the fields of the state that the field holds.
    #[must_use]
    pub fn fields(&self) -> S::View {
        S::view(&self.version, &self.name)
    }
}

/// Reads of a part of the values of a field.
macro_rules! partial_reads {
    ($([$($generics:tt)*] $field:ty, $value:ty),* $(,)?) => {
        $(impl<$($generics)*> FieldView<$field> {
            /// Number of values.
            ///
            /// # Errors
            /// [`MemoryError::NoStructure`].
            pub fn n_values(&self) -> Result<usize, MemoryError> {
                Ok(self.version.blocks(&self.name)?.table.len as usize / lanes::<$value>())
            }

            /// Reads values from `first` on.
            ///
            /// # Errors
            /// As for [`VersionView::read`].
            pub fn read(&self, first: usize, target: &mut [$value]) -> Result<(), MemoryError> {
                let elements = bytemuck::cast_slice_mut::<$value, <$value as PlainValue>::Element>(target);
                self.version.read(&self.name, first.saturating_mul(lanes::<$value>()), elements)
            }
        })*
    };
}

partial_reads! {
    [V: PlainValue] Vec<V>, V,
    [V: PlainValue, const N: usize] [V; N], V,
    [T: VersionedElement + PlainValue] VersionedArray<T>, T,
    [T: VersionedElement + PlainValue] FileArray<T>, T,
    [T: VersionedElement + PlainValue, R: Deref<Target = [T]>] VersionedRegion<R>, T,
}
