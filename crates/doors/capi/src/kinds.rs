//! The kinds of errors, as numbers for C.

/// The device has no space left.
pub const RECOUP_KIND_DISK_FULL: i32 = 1;
/// The user, group or project has used up its quota.
pub const RECOUP_KIND_QUOTA_EXCEEDED: i32 = 2;
/// A file would be larger than the process may write.
pub const RECOUP_KIND_FILE_TOO_LARGE: i32 = 3;
/// The file system is mounted read-only, perhaps since it met an error.
pub const RECOUP_KIND_READ_ONLY: i32 = 4;
/// The user may not do this, or other users could reach what is private.
pub const RECOUP_KIND_PERMISSION_DENIED: i32 = 5;
/// The device reports a fault (EIO).
pub const RECOUP_KIND_DISK_FAULT: i32 = 6;
/// The operating system or HDF5 refused a call for another reason.
pub const RECOUP_KIND_IO: i32 = 7;
/// Another process uses the directory or the file.
pub const RECOUP_KIND_IN_USE: i32 = 8;
/// Bytes are not as they were written, or no version is whole.
pub const RECOUP_KIND_DAMAGED: i32 = 9;
/// A codec failed or panicked.
pub const RECOUP_KIND_CODEC: i32 = 10;
/// A rank is lost.
pub const RECOUP_KIND_RANK_LOST: i32 = 11;
/// The communicator failed otherwise, or was closed.
pub const RECOUP_KIND_COMMUNICATION: i32 = 12;
/// A callback of the program returned an error.
pub const RECOUP_KIND_CALLBACK: i32 = 13;
/// Memory of the host or of a device is used up.
pub const RECOUP_KIND_OUT_OF_MEMORY: i32 = 14;
/// A device is lost, with all vectors on it.
pub const RECOUP_KIND_DEVICE_LOST: i32 = 15;
/// A device, or other memory that is not the program's own, refused a call.
pub const RECOUP_KIND_DEVICE_FAILED: i32 = 16;
/// A thread of the library panicked.
pub const RECOUP_KIND_PANICKED: i32 = 17;
/// The version was given up, as its state was lost or on purpose.
pub const RECOUP_KIND_GIVEN_UP: i32 = 18;
/// The call, an option, a variable or a version does not fit; the message says which.
pub const RECOUP_KIND_REFUSED: i32 = 19;
/// The library made a mistake.
pub const RECOUP_KIND_INTERNAL: i32 = 20;

#[cfg(test)]
mod tests {
    use recoup::core::ErrorKind;

    use super::*;

    #[test]
    fn every_kind_has_its_number_in_c() {
        let numbers = [
            RECOUP_KIND_DISK_FULL,
            RECOUP_KIND_QUOTA_EXCEEDED,
            RECOUP_KIND_FILE_TOO_LARGE,
            RECOUP_KIND_READ_ONLY,
            RECOUP_KIND_PERMISSION_DENIED,
            RECOUP_KIND_DISK_FAULT,
            RECOUP_KIND_IO,
            RECOUP_KIND_IN_USE,
            RECOUP_KIND_DAMAGED,
            RECOUP_KIND_CODEC,
            RECOUP_KIND_RANK_LOST,
            RECOUP_KIND_COMMUNICATION,
            RECOUP_KIND_CALLBACK,
            RECOUP_KIND_OUT_OF_MEMORY,
            RECOUP_KIND_DEVICE_LOST,
            RECOUP_KIND_DEVICE_FAILED,
            RECOUP_KIND_PANICKED,
            RECOUP_KIND_GIVEN_UP,
            RECOUP_KIND_REFUSED,
            RECOUP_KIND_INTERNAL,
        ];
        assert_eq!(numbers, ErrorKind::ALL.map(|kind| kind as i32));
    }
}
