//! The exception of the package, and its subclasses for the kinds that a program can react to.

use std::fmt::Display;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use recoup::core::{ErrorKind, KindedError};

create_exception!(
    recoup,
    Error,
    PyException,
    "An error of recoup: names what failed, what was expected and what was found."
);

/// Defines the subclasses from one line each: its kinds, and its docstring.
macro_rules! subclasses {
    ($($class:ident: $($kind:ident)|+ => $doc:literal;)+) => {
        $(create_exception!(recoup, $class, Error, $doc);)+

        fn new(kind: ErrorKind, message: String) -> PyErr {
            match kind {
                $($(ErrorKind::$kind)|+ => $class::new_err(message),)+
                ErrorKind::Refused => refused(message),
                _ => Error::new_err(message),
            }
        }

        /// Adds the subclasses to the module, and gives errors of the program their kind.
        pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add(stringify!($class), module.py().get_type::<$class>())?;)+
            module.py().get_type::<Error>().setattr("kind", ErrorKind::Refused.name())
        }
    };
}

subclasses! {
    DiskFullError: DiskFull | QuotaExceeded | FileTooLarge => "The disk, a quota or the limit on a file's size is used up.";
    ReadOnlyError: ReadOnly | PermissionDenied => "The file system is read-only, or the user may not write there.";
    InUseError: InUse => "Another process uses the directory or the file.";
    StorageError: DiskFault | Io => "The device or the operating system refused a call for another reason.";
    DamagedError: Damaged => "Bytes are not as they were written, or no version is whole.";
    CodecError: Codec => "A codec failed.";
    RankLostError: RankLost | Communication => "A rank is lost, or the communicator failed.";
    CallbackError: Callback => "A function of the program failed.";
    OutOfMemoryError: OutOfMemory => "Memory of the host or of a device is used up.";
    DeviceError: DeviceLost | DeviceFailed => "A device is lost, or refused a call.";
    InternalError: Panicked | Internal => "A thread of the library panicked, or the library made another mistake.";
}

/// Makes the exception of an argument that does not fit.
pub(crate) fn refused(error: impl Display) -> PyErr {
    of_class("UsageError", error)
}

/// Makes the exception of an array, a state or a version that is not there under its name.
pub(crate) fn not_held(error: impl Display) -> PyErr {
    of_class("NotHeldError", error)
}

/// Makes the exception of an argument of another type than expected.
pub(crate) fn of_other_type(error: impl Display) -> PyErr {
    of_class("UsageTypeError", error)
}

/// Makes an exception of the Python half: those that are exceptions of Python, too.
fn of_class(class: &str, error: impl Display) -> PyErr {
    Python::attach(|py| {
        let made = py.import("recoup._errors").and_then(|errors| errors.getattr(class)?.call1((error.to_string(),)));
        made.map_or_else(|failed| failed, PyErr::from_value)
    })
}

/// Makes the exception of an error of the library.
pub(crate) fn failed(error: impl KindedError) -> PyErr {
    of_kind(error.kind(), error.to_string())
}

/// Makes the exception of a kind, with the words given.
pub(crate) fn of_kind(kind: ErrorKind, message: String) -> PyErr {
    let error = new(kind, message);
    // Without its kind an exception is still of its class.
    Python::attach(|py| error.value(py).setattr("kind", kind.name())).ok();
    error
}
