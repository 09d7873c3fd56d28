//! The values of a variable, lent where they rest: here or elsewhere.

use crate::{Afar, ElementType, Values, ValuesMut};

/// The values of a variable, lent to be read where they rest.
#[derive(Clone, Copy, Debug)]
pub enum Lent<'a> {
    /// In this process's memory.
    Near(Values<'a>),
    /// Elsewhere.
    Afar(&'a dyn Afar),
}

impl<'a> Lent<'a> {
    /// Returns the values where they are in this process's memory.
    #[must_use]
    pub fn near(self) -> Option<Values<'a>> {
        match self {
            Self::Near(values) => Some(values),
            Self::Afar(_) => None,
        }
    }
}

impl Lent<'_> {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Near(values) => values.len(),
            Self::Afar(values) => values.len(),
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
            Self::Near(values) => values.element(),
            Self::Afar(values) => values.element(),
        }
    }
}

impl<'a> From<Values<'a>> for Lent<'a> {
    fn from(values: Values<'a>) -> Self {
        Self::Near(values)
    }
}

/// The values of a variable, lent to be overwritten where they rest.
#[derive(Debug)]
pub enum LentMut<'a> {
    /// In this process's memory.
    Near(ValuesMut<'a>),
    /// Elsewhere.
    Afar(&'a mut dyn Afar),
}

impl<'a> LentMut<'a> {
    /// Returns the values where they are in this process's memory.
    #[must_use]
    pub fn near(self) -> Option<ValuesMut<'a>> {
        match self {
            Self::Near(values) => Some(values),
            Self::Afar(_) => None,
        }
    }
}

impl LentMut<'_> {
    /// Lends the same values to be read.
    #[must_use]
    pub fn as_lent(&self) -> Lent<'_> {
        match self {
            Self::Near(values) => Lent::Near(values.as_values()),
            Self::Afar(values) => Lent::Afar(&**values),
        }
    }
}

impl<'a> From<ValuesMut<'a>> for LentMut<'a> {
    fn from(values: ValuesMut<'a>) -> Self {
        Self::Near(values)
    }
}
