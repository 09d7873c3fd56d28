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

/// Exports calls of the driver's interface by their names. A call is counted, and fails where the
/// settings say so; else it takes the named driver and does what stands behind the arrow.
macro_rules! driver_calls {
    ($driver:ident: $(
        $(#[$note:meta])* $name:ident($($argument:ident: $type:ty),* $(,)?) => $body:expr;
    )*) => { $(
        $(#[$note])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> u32 {
            $crate::driver::state::call(stringify!($name), |$driver| {
                _ = &$driver;
                $body
            })
        }
    )* };
}
pub(crate) use driver_calls;
