//! The values of a variable, lent where they are stored: here or elsewhere.

use crate::{DeviceValues, ElementType, Values, ValuesMut};

/// The values of a variable, lent to be read where they are stored.
#[derive(Clone, Copy, Debug)]
pub enum Borrowed<'a> {
    /// In this process's memory.
    Host(Values<'a>),
    /// Elsewhere.
    Device(&'a dyn DeviceValues),
}

impl<'a> Borrowed<'a> {
    /// Returns the values where they are in this process's memory.
    #[must_use]
    pub fn host(self) -> Option<Values<'a>> {
        match self {
            Self::Host(values) => Some(values),
            Self::Device(_) => None,
        }
    }
}

impl Borrowed<'_> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Host(values) => values.len(),
            Self::Device(values) => values.len(),
        }
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::Host(values) => values.element(),
            Self::Device(values) => values.element(),
        }
    }
}

impl<'a> From<Values<'a>> for Borrowed<'a> {
    fn from(values: Values<'a>) -> Self {
        Self::Host(values)
    }
}

/// The values of a variable, lent to be overwritten where they are stored.
#[derive(Debug)]
pub enum BorrowedMut<'a> {
    /// In this process's memory.
    Host(ValuesMut<'a>),
    /// Elsewhere.
    Device(&'a mut dyn DeviceValues),
}

impl<'a> BorrowedMut<'a> {
    /// Returns the values where they are in this process's memory.
    #[must_use]
    pub fn host(self) -> Option<ValuesMut<'a>> {
        match self {
            Self::Host(values) => Some(values),
            Self::Device(_) => None,
        }
    }
}

impl BorrowedMut<'_> {
    /// Lends the same values to be read.
    #[must_use]
    pub fn as_borrowed(&self) -> Borrowed<'_> {
        match self {
            Self::Host(values) => Borrowed::Host(values.as_values()),
            Self::Device(values) => Borrowed::Device(&**values),
        }
    }
}

impl<'a> From<ValuesMut<'a>> for BorrowedMut<'a> {
    fn from(values: ValuesMut<'a>) -> Self {
        Self::Host(values)
    }
}
