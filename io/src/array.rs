//! Values with a name and extents, as other programs take them.

use recoup_core::Values;

/// Values with a name and extents.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// Name of the dataset.
    pub name: &'a str,
    /// Extents, fastest first; `[n, 1, 1]` for a vector.
    pub dims: [usize; 3],
    /// The values, as many as the extents multiply to.
    pub values: Values<'a>,
}

impl Array<'_> {
    /// Bytes of all values.
    pub(crate) fn bytes(&self) -> u64 {
        (self.values.len() * self.values.element().size()) as u64
    }
}
