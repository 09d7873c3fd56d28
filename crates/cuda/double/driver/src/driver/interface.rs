//! The form of the driver's calls.

use std::mem::MaybeUninit;

use recoup_cuda_double::CudaStatus;

use crate::Refusable;

/// The place where a call puts a result; a null pointer is `None`.
pub(crate) type ResultPlace<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Puts a result where the caller wants it.
///
/// # Errors
/// [`CudaStatus::InvalidValue`] for a null pointer.
pub(crate) fn give<T>(place: ResultPlace<'_, T>, value: T) -> Refusable<()> {
    place.ok_or(CudaStatus::InvalidValue)?.write(value);
    Ok(())
}
