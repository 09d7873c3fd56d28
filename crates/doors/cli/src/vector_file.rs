//! Files with one vector: NumPy's format, Matrix Market's or HDF5. A file is written in the format
//! that its name states, and read in the one that its first bytes show.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use recoup::core::Values;
use recoup::io::{Array, put_result, read_hdf5, read_npy, write_npy, write_plain_hdf5};
use recoup::solvers::{read_vector, write_vector};

use crate::exit::Exit;

/// Name of the iterate in HDF5 files.
pub(crate) const ITERATE: &str = "x";
/// Name of the right-hand side in HDF5 files.
pub(crate) const RIGHT_HAND_SIDE: &str = "b";

/// Kinds of files with one vector, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// NumPy's format.
    Npy,
    /// Matrix Market, array format.
    Mtx,
    /// Plain HDF5.
    Hdf5,
}

impl FileKind {
    /// Returns the kind in which a file of this name is written.
    ///
    /// # Errors
    /// Exit 2, with the option that gave the name.
    pub(crate) fn written(path: &Path, option: &str) -> Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let kinds = [(Self::Npy, &[".npy"] as &[&str]), (Self::Mtx, &[".mtx"]), (Self::Hdf5, &[".h5", ".hdf5"])];
        let found = kinds.into_iter().find(|(_, ends)| ends.iter().any(|end| name.ends_with(end)));
        found.map(|(kind, _)| kind).ok_or_else(|| refused(path, option))
    }

    /// Returns the kind that the first bytes of a file show. Text is packed or plain.
    fn shown(path: &Path) -> std::io::Result<Self> {
        let mut start = Vec::new();
        // What was read of a pipe would be missing later.
        if !std::fs::metadata(path)?.is_file() {
            return Ok(Self::Mtx);
        }
        File::open(path)?.take(8).read_to_end(&mut start)?;
        Ok(match &start[..] {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Self::Npy,
            [0x89, b'H', b'D', b'F', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Hdf5,
            _ => Self::Mtx,
        })
    }
}

fn refused(path: &Path, option: &str) -> anyhow::Error {
    Exit::Usage.because(format!("{option} {}: expected FILE.npy, FILE.mtx or FILE.h5", path.display()))
}

/// Writes an array of doubles; in Matrix Market's format as a vector.
///
/// # Errors
/// When the file cannot be written; one that was there is as it was then.
pub(crate) fn write(path: &Path, option: &str, array: &Array<'_>) -> Result<()> {
    let kind = FileKind::written(path, option)?;
    write_arrays(path, kind, std::slice::from_ref(array))
}

/// Writes arrays in HDF5, or the first of them in another format.
///
/// # Errors
/// As [`write()`]; for anything but doubles in Matrix Market's format.
pub(crate) fn write_arrays(path: &Path, kind: FileKind, arrays: &[Array<'_>]) -> Result<()> {
    match (kind, arrays) {
        (FileKind::Npy, [first, ..]) => write_npy(path, first)?,
        (FileKind::Mtx, [Array { values: Values::F64(values), .. }, ..]) => {
            put_result(path, |out| write_vector(out, values))?;
        }
        (FileKind::Mtx, [first, ..]) => {
            bail!("{}: Matrix Market files are written of doubles; take .npy for {}", path.display(), first.name)
        }
        _ => write_plain_hdf5(path, arrays)?,
    }
    Ok(())
}

/// Reads a vector; from HDF5 the dataset of this name, or the only one.
///
/// # Errors
/// What is wrong with the file that the option named.
pub(crate) fn read(path: &Path, option: &str, name: &str) -> Result<Vec<f64>> {
    let named = |error: &dyn std::fmt::Display| anyhow!("{option} {error}");
    match FileKind::shown(path).map_err(|error| named(&format!("{}: {error}", path.display())))? {
        FileKind::Npy => read_npy(path).map_err(|error| named(&error)),
        FileKind::Hdf5 => read_hdf5(path, name).map_err(|error| named(&error)),
        FileKind::Mtx => read_vector(path).map_err(|error| named(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_brings_a_vector_back_bit_for_bit() {
        let dir = tempfile::tempdir().unwrap();
        let values = [0.1, -0.0, 1e-300, -7.25e20];
        for name in ["x.npy", "x.mtx", "x.h5"] {
            let path = dir.path().join(name);
            let array = Array { name: ITERATE, dims: [4, 1, 1], values: Values::F64(&values) };
            write(&path, "--solution", &array).unwrap();
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&read(&path, "--x0", ITERATE).unwrap()), bits(&values), "{name}");
        }
        assert!(FileKind::written(Path::new("x.txt"), "--solution").is_err());
    }

    /// The name decided: a vector under another name, or packed, was refused.
    #[test]
    fn a_vector_is_read_by_its_first_bytes_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        for (written, named) in [("x.npy", "x.mtx"), ("x.h5", "x.dat"), ("x.mtx", "x")] {
            let array = Array { name: ITERATE, dims: [2, 1, 1], values: Values::F64(&[1.5, -2.0]) };
            write(&dir.path().join(written), "--solution", &array).unwrap();
            let path = dir.path().join(named);
            std::fs::copy(dir.path().join(written), &path).unwrap();
            assert_eq!(read(&path, "--x0", ITERATE).unwrap(), [1.5, -2.0], "{written}");
        }
        let text = dir.path().join("b.txt");
        std::fs::write(&text, "1.0D+00\n-2.5D-01\n").unwrap();
        assert_eq!(read(&text, "--rhs", RIGHT_HAND_SIDE).unwrap(), [1.0, -0.25]);
    }
}
