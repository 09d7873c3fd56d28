//! Vectors of other programs: `.npy`, and HDF5 files with one plain dataset.
//!
//! Promises: what does not fit is refused by file, with what was expected and what was found; no
//! byte outside the file is asked for, whatever the file claims.

mod dataset;

use std::fmt;
use std::io;
use std::path::Path;

/// The reason why a file is no vector.
#[derive(Debug)]
pub struct ImportError {
    path: String,
    expected: String,
    found: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} expected, {} found", self.path, self.expected, self.found)
    }
}

impl std::error::Error for ImportError {}

/// The expected and the found, before the file's name is added.
struct ImportRefusal {
    expected: String,
    found: String,
}

fn refuse<T>(expected: impl Into<String>, found: impl Into<String>) -> Result<T, ImportRefusal> {
    Err(ImportRefusal { expected: expected.into(), found: found.into() })
}

/// Reads the values of an array of doubles or singles in NumPy's format, in the order in which they
/// lie in the file.
///
/// # Errors
/// [`ImportError`].
pub fn read_npy(path: impl AsRef<Path>) -> Result<Vec<f64>, ImportError> {
    read(path.as_ref(), parse_npy)
}

/// Reads the values of a dataset of doubles or singles in an HDF5 file: the one of this name, or
/// the only one there is. It lies under the root group, in one piece and without filters; a group
/// of many links, or of links in the order of their making, is not read.
///
/// # Errors
/// [`ImportError`].
pub fn read_hdf5(path: impl AsRef<Path>, name: &str) -> Result<Vec<f64>, ImportError> {
    read(path.as_ref(), |bytes| dataset::parse(bytes, name))
}

fn read(path: &Path, parse: impl FnOnce(&[u8]) -> Result<Vec<f64>, ImportRefusal>) -> Result<Vec<f64>, ImportError> {
    let bytes = std::fs::read(path).map_err(|source: io::Error| ImportRefusal {
        expected: "a file to read".to_owned(),
        found: source.to_string(),
    });
    bytes.and_then(|bytes| parse(&bytes)).map_err(|ImportRefusal { expected, found }| ImportError {
        path: path.display().to_string(),
        expected,
        found,
    })
}

fn parse_npy(bytes: &[u8]) -> Result<Vec<f64>, ImportRefusal> {
    let other = || refuse("an array in NumPy's format", "something else");
    let Some((b"\x93NUMPY", rest)) = bytes.split_at_checked(6) else { return other() };
    let (length, rest) = match rest {
        [1, _, low, high, rest @ ..] => (usize::from(u16::from_le_bytes([*low, *high])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        _ => return other(),
    };
    let Some((header, data)) = rest.split_at_checked(length) else { return other() };
    let header = String::from_utf8_lossy(header);
    let entry = |key: &str| header.split_once(&format!("'{key}':")).map_or("", |(_, value)| value.trim_start());
    let extents = entry("shape").trim_start_matches('(').split(')').next().unwrap_or_default();
    let extents: Vec<&str> = extents.split(',').map(str::trim).filter(|e| !e.is_empty()).collect();
    let axes = extents.iter().filter(|extent| **extent != "1").count();
    if axes > 1 && entry("fortran_order").starts_with("True") {
        return refuse("an array in C order", "one in Fortran order");
    }
    let Some(values) = extents.iter().try_fold(1_usize, |n, extent| n.checked_mul(extent.parse().ok()?)) else {
        return other();
    };
    let descr = entry("descr").trim_start_matches('\'').split('\'').next().unwrap_or_default().to_owned();
    let width = match descr.as_str() {
        "<f8" => 8,
        "<f4" => 4,
        _ => return refuse("doubles or singles, <f8 or <f4", descr),
    };
    decode(data, width, values)
}

/// Decodes the first `values` little-endian numbers of `data`, of 8 or 4 bytes each.
fn decode(data: &[u8], width: usize, values: usize) -> Result<Vec<f64>, ImportRefusal> {
    let Some(data) = values.checked_mul(width).and_then(|bytes| data.get(..bytes)) else {
        return refuse(format!("{values} values"), format!("room for {}", data.len() / width));
    };
    let wide = data.as_chunks::<8>().0;
    let narrow = data.as_chunks::<4>().0;
    Ok(match width {
        8 => wide.iter().map(|value| f64::from_le_bytes(*value)).collect(),
        _ => narrow.iter().map(|value| f64::from(f32::from_le_bytes(*value))).collect(),
    })
}

#[cfg(test)]
mod tests {
    use recoup_core::Values;

    use super::*;
    use crate::{Array, write_npy, write_plain_hdf5};

    #[test]
    fn what_is_exported_is_read_back_bit_for_bit() {
        let dir = tempfile::tempdir().unwrap();
        let values = [1.5, -0.0, 4.0, 1e-300, 5.0, 6.0];
        let array = Array { name: "x", dims: [3, 2, 1], values: Values::F64(&values) };
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        write_npy(dir.path().join("x.npy"), &array).unwrap();
        assert_eq!(bits(&read_npy(dir.path().join("x.npy")).unwrap()), bits(&values));
        let single = [2.5_f32; 3];
        let other = Array { name: "s", dims: [3, 1, 1], values: Values::F32(&single) };
        write_plain_hdf5(dir.path().join("x.h5"), &[other, array]).unwrap();
        assert_eq!(bits(&read_hdf5(dir.path().join("x.h5"), "x").unwrap()), bits(&values));
        assert_eq!(read_hdf5(dir.path().join("x.h5"), "s").unwrap(), [2.5; 3]);
        let refused = read_hdf5(dir.path().join("x.h5"), "y").unwrap_err().to_string();
        assert!(refused.ends_with("x.h5: a dataset y, or only one, expected, 2 others found"), "{refused}");
    }

    #[test]
    fn damaged_files_are_refused_and_never_read_beyond() {
        let dir = tempfile::tempdir().unwrap();
        let array = Array { name: "x", dims: [4, 1, 1], values: Values::F64(&[1.0; 4]) };
        write_npy(dir.path().join("x.npy"), &array).unwrap();
        write_plain_hdf5(dir.path().join("x.h5"), &[array]).unwrap();
        let npy = std::fs::read(dir.path().join("x.npy")).unwrap();
        let hdf5 = std::fs::read(dir.path().join("x.h5")).unwrap();
        for cut in 0..npy.len() {
            assert!(parse_npy(&npy[..cut]).is_err(), "{cut}");
        }
        for cut in 0..hdf5.len() {
            dataset::parse(&hdf5[..cut], "x").ok();
        }
        for place in 0..hdf5.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bent = hdf5.clone();
                bent[place] = value;
                dataset::parse(&bent, "x").ok();
            }
        }
    }

    #[test]
    fn what_the_hdf5_crate_writes_is_read_in_its_oldest_and_newest_form() {
        let dir = tempfile::tempdir().unwrap();
        let values = [1.5, -2.0, 1e-300];
        for is_newest in [false, true] {
            let path = dir.path().join("x.h5");
            let mut form = hdf5_metno::FileBuilder::new();
            if is_newest {
                form.with_fapl(|form| form.libver_latest());
            }
            let file = form.create(&path).unwrap();
            file.new_dataset::<f64>().shape(values.len()).create("x").unwrap().write(&values).unwrap();
            file.close().unwrap();
            assert_eq!(read_hdf5(&path, "x").unwrap(), values, "{is_newest}");
        }
    }
}
