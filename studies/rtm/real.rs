//! The two widths of the wave kernels: single to image with, double to prove the adjoint.

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use recoup::core::{Values, ValuesMut};

/// Arithmetic of a float, without fused operations: the same bits on every machine.
pub(crate) trait Arithmetic:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + PartialOrd
{
}

impl Arithmetic for f32 {}
impl Arithmetic for f64 {}

/// A float that waves are computed in.
pub(crate) trait Real: Arithmetic + Default + Send + Sync + 'static {
    /// Rounds to this type.
    fn of(value: f64) -> Self;

    /// Widens without loss.
    fn wide(self) -> f64;

    /// Lends values to a tape.
    fn lend(values: &[Self]) -> Values<'_>;

    /// Lends room to a tape.
    fn lend_mut(values: &mut [Self]) -> ValuesMut<'_>;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as Self
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn lend(values: &[Self]) -> Values<'_> {
        Values::F32(values)
    }

    fn lend_mut(values: &mut [Self]) -> ValuesMut<'_> {
        ValuesMut::F32(values)
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }

    fn wide(self) -> f64 {
        self
    }

    fn lend(values: &[Self]) -> Values<'_> {
        Values::F64(values)
    }

    fn lend_mut(values: &mut [Self]) -> ValuesMut<'_> {
        ValuesMut::F64(values)
    }
}
