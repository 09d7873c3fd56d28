//! Kinds of errors, by what a program can do about them, and errors on their way between ranks.
//!
//! The one place that reads error numbers of the operating system. Errors keep their fields on the
//! rank that met them; the other ranks get a [`RankFailure`].

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// The number of an I/O error of a device, the same on every Unix.
const EIO: i32 = 5;

/// Defines [`ErrorKind`] from one line per kind: its number in C, and its name in Python and in
/// messages between ranks.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $number:literal, $name:literal;)+) => {
        /// The kind of an error, by what a program can do about it. Its number is that of the C
        /// interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum ErrorKind {$(
            $(#[doc = $doc])+
            #[serde(rename = $name)]
            $variant = $number,
        )+}

        impl ErrorKind {
            /// All kinds.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns its name, as in Python.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {$(
                    Self::$variant => $name,
                )+}
            }
        }
    };
}

kinds! {
    /// The device has no space left.
    DiskFull = 1, "disk_full";
    /// The user, group or project has used up its quota.
    QuotaExceeded = 2, "quota_exceeded";
    /// A file would be larger than the process may write.
    FileTooLarge = 3, "file_too_large";
    /// The file system is mounted read-only, perhaps since it met an error.
    ReadOnly = 4, "read_only";
    /// The user may not do this, or other users could reach what is private.
    PermissionDenied = 5, "permission_denied";
    /// The device reports a fault (`EIO`).
    DiskFault = 6, "disk_fault";
    /// The operating system or HDF5 refused a call for another reason.
    Io = 7, "io";
    /// Another process uses the directory or the file.
    InUse = 8, "in_use";
    /// Bytes are not as they were written, or no version is whole.
    Damaged = 9, "damaged";
    /// A codec failed or panicked.
    Codec = 10, "codec";
    /// A rank is lost.
    RankLost = 11, "rank_lost";
    /// The communicator failed otherwise, or was closed.
    Communication = 12, "communication";
    /// A callback of the program returned an error.
    Callback = 13, "callback";
    /// Memory of the host or of a device is used up.
    OutOfMemory = 14, "out_of_memory";
    /// A device is lost, with all vectors on it.
    DeviceLost = 15, "device_lost";
    /// A device, or other memory that is not the program's own, refused a call.
    DeviceFailed = 16, "device_failed";
    /// A thread of the library panicked.
    Panicked = 17, "panicked";
    /// The version was given up, as its state was lost or on purpose.
    GivenUp = 18, "given_up";
    /// The call, an option, a variable or a version does not fit; the message says which.
    Refused = 19, "refused";
    /// The library made a mistake.
    Internal = 20, "internal";
}

impl ErrorKind {
    /// Returns the kind of an error of the operating system.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            io::ErrorKind::OutOfMemory => Self::OutOfMemory,
            _ if error.raw_os_error() == Some(EIO) => Self::DiskFault,
            _ => FullCause::of(error).map_or(Self::Io, Self::from),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The limit that a file met when it was to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FullCause {
    /// The device has no space left.
    #[error("no space left on device")]
    Device,
    /// The user, group or project has used up its quota.
    #[error("disk quota exceeded")]
    Quota,
    /// The process may write no larger files.
    #[error("the file would be larger than the process may write (ulimit -f)")]
    FileSize,
}

impl FullCause {
    /// Returns the limit that an error of the operating system is about, if it is about one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::StorageFull => Some(Self::Device),
            io::ErrorKind::QuotaExceeded => Some(Self::Quota),
            io::ErrorKind::FileTooLarge => Some(Self::FileSize),
            _ => None,
        }
    }
}

impl From<FullCause> for ErrorKind {
    fn from(cause: FullCause) -> Self {
        match cause {
            FullCause::Device => Self::DiskFull,
            FullCause::Quota => Self::QuotaExceeded,
            FullCause::FileSize => Self::FileTooLarge,
        }
    }
}

/// An error that has a kind.
pub trait KindedError: fmt::Display {
    /// Returns its kind.
    fn kind(&self) -> ErrorKind;
}

impl<E: KindedError> KindedError for &E {
    fn kind(&self) -> ErrorKind {
        (*self).kind()
    }
}

/// The error of one rank as the others have it: its kind, and its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("rank {rank}: {message}")]
pub struct RankFailure {
    /// The rank.
    pub rank: usize,
    /// The kind of its error.
    pub kind: ErrorKind,
    /// The message of that rank.
    pub message: String,
}

impl RankFailure {
    /// Takes the error of a rank.
    pub fn of(rank: usize, error: &impl KindedError) -> Self {
        Self { rank, kind: error.kind(), message: error.to_string() }
    }

    /// A mistake of the library that a rank found.
    #[must_use]
    pub fn internal(rank: usize, message: impl Into<String>) -> Self {
        Self { rank, kind: ErrorKind::Internal, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user whose quota was used up looked for room on a disk that had plenty.
    #[test]
    fn a_quota_is_told_from_a_full_device() {
        let words = |kind: io::ErrorKind| FullCause::of(&kind.into()).map(|cause| cause.to_string());
        assert_eq!(words(io::ErrorKind::QuotaExceeded).unwrap(), "disk quota exceeded");
        assert_eq!(words(io::ErrorKind::StorageFull).unwrap(), "no space left on device");
        assert_eq!(words(io::ErrorKind::PermissionDenied), None);
    }

    #[test]
    fn every_kind_has_a_number_and_a_name_of_its_own() {
        for (i, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i + 1);
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{:?}", kind.name()));
        }
    }

    #[test]
    fn error_numbers_of_linux_have_their_kinds() {
        let kinds = [
            (28, ErrorKind::DiskFull),
            (122, ErrorKind::QuotaExceeded),
            (27, ErrorKind::FileTooLarge),
            (30, ErrorKind::ReadOnly),
            (13, ErrorKind::PermissionDenied),
            (5, ErrorKind::DiskFault),
            (12, ErrorKind::OutOfMemory),
            (2, ErrorKind::Io),
        ];
        for (number, expected) in kinds {
            let source = io::Error::from_raw_os_error(number);
            assert_eq!(ErrorKind::of_io(&source), expected, "{source}");
        }
    }
}
