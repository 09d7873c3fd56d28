//! Vectors of other programs: `.npy`, and HDF5 files with one plain dataset.
//!
//! Promises: what does not fit is refused by file, with what was expected and what was found; no
//! byte outside the file is asked for, whatever the file claims.

mod bytes;
mod chunks;
mod dataset;
mod number;
mod refusal;

use std::fmt;
use std::io;
use std::path::Path;

use self::number::{NumberForm, NumberKind};
use self::refusal::{ImportRefusal, refuse};

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

/// Reads the values of an array of floats or integers in NumPy's format, of either order of bytes,
/// in C order whichever the file has.
///
/// # Errors
/// [`ImportError`].
pub fn read_npy(path: impl AsRef<Path>) -> Result<Vec<f64>, ImportError> {
    read(path.as_ref(), parse_npy)
}

/// Reads the values of a dataset of floats or integers in an HDF5 file: the one of this name, or
/// the only one there is. It lies under the root group, in one piece or in chunks, plain or through
/// gzip, shuffle and fletcher32, as h5py writes them. A group of many links, or of links in the
/// order of their making, is not read, nor are the chunks of `libver="latest"`.
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
    let extents: Option<Vec<usize>> = extents.iter().map(|extent| extent.parse().ok()).collect();
    let Some(extents) = extents else { return other() };
    let Some(values) = extents.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent)) else { return other() };
    let descr = entry("descr").trim_start_matches('\'').split('\'').next().unwrap_or_default();
    let Some(form) = npy_form(descr) else {
        return refuse("floats or integers, such as <f8, >f4 or <i8,", descr);
    };
    let decoded = form.decode(data, values)?;
    let is_fortran = entry("fortran_order").starts_with("True");
    Ok(if is_fortran { in_c_order(&decoded, &extents) } else { decoded })
}

/// Reads the description of a type as NumPy writes it: `<f8`, `>i4`, `|u1`.
fn npy_form(descr: &str) -> Option<NumberForm> {
    let mut letters = descr.chars();
    let is_big_endian = match letters.next()? {
        '<' | '|' => false,
        '>' => true,
        _ => return None,
    };
    let kind = match letters.next()? {
        'f' => NumberKind::Float,
        'i' => NumberKind::Signed,
        'u' => NumberKind::Unsigned,
        _ => return None,
    };
    NumberForm::new(kind, letters.as_str().parse().ok()?, is_big_endian)
}

/// Arranges values whose first axis runs fastest so that the last one does.
fn in_c_order(values: &[f64], extents: &[usize]) -> Vec<f64> {
    let at = |place: usize| {
        let mut rest = place;
        let mut index = vec![0; extents.len()];
        for (axis, extent) in extents.iter().enumerate().rev() {
            index[axis] = rest % extent;
            rest /= extent;
        }
        index.iter().zip(extents).rev().fold(0, |at, (index, extent)| at * extent + index)
    };
    (0..values.len()).map(|place| values[at(place)]).collect()
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

    fn npy(descr: &str, is_fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if is_fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    /// Integers, the other order of bytes and arrays in Fortran order were refused.
    #[test]
    fn arrays_of_every_number_and_order_are_read() {
        let read = |bytes: Vec<u8>| parse_npy(&bytes).map_err(|refused| refused.found).unwrap();
        let ints: Vec<u8> = [1_i32, -2, 3].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(read(npy("<i4", false, "(3,)", &ints)), [1.0, -2.0, 3.0]);
        let longs: Vec<u8> = [1_i64, -2].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(read(npy(">i8", false, "(2, 1)", &longs)), [1.0, -2.0]);
        let singles: Vec<u8> = [0.5_f32, 2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(read(npy(">f4", true, "(2,)", &singles)), [0.5, 2.0]);
        // [[0, 1, 2], [3, 4, 5]], column by column.
        let columns = [0_u8, 3, 1, 4, 2, 5];
        assert_eq!(read(npy("|u1", true, "(2, 3)", &columns)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        for descr in ["<c16", "|b1", "<f2", "<U3", "f8"] {
            let refused = parse_npy(&npy(descr, false, "(1,)", &[0; 16])).unwrap_err();
            assert_eq!(refused.found, descr);
        }
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

    /// Writes a dataset through the filters of these bits, and one that may grow. The file is
    /// closed with the last of what was made of it.
    fn write_chunks(path: &Path, values: &[f64], filters: u32) {
        let file = hdf5_metno::File::create(path).unwrap();
        let mut made = file.new_dataset::<f64>().shape([100, 10]).chunk([32, 4]);
        made = if filters & 1 > 0 { made.shuffle() } else { made };
        made = if filters & 2 > 0 { made.deflate(4) } else { made };
        made = if filters & 4 > 0 { made.fletcher32() } else { made };
        made.create("b").unwrap().write_raw(values).unwrap();
        let grows = file.new_dataset::<i32>().shape(hdf5_metno::Extents::resizable(300.into())).chunk(64);
        grows.create("n").unwrap().write(&(0..300).collect::<Vec<i32>>()).unwrap();
    }

    /// h5py makes chunks where a dataset is compressed or may grow, and both were refused.
    #[test]
    fn chunks_are_read_plain_and_through_the_filters_of_h5py() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.h5");
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i % 50) * 0.5).collect();
        for filters in 0..8 {
            write_chunks(&path, &values, filters);
            assert_eq!(read_hdf5(&path, "b").unwrap(), values, "{filters}");
            assert_eq!(read_hdf5(&path, "n").unwrap(), (0..300).map(f64::from).collect::<Vec<_>>());
        }
        let whole = std::fs::read(&path).unwrap();
        for cut in (0..whole.len()).step_by(7) {
            dataset::parse(&whole[..cut], "b").ok();
        }
        for place in (0..whole.len()).step_by(3) {
            let mut bent = whole.clone();
            bent[place] ^= 0xff;
            dataset::parse(&bent, "b").ok();
        }
    }

    #[test]
    fn chunks_that_are_not_read_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.h5");
        let mut form = hdf5_metno::FileBuilder::new();
        form.with_fapl(|form| form.libver_latest());
        let file = form.create(&path).unwrap();
        file.new_dataset::<f64>().shape(100).chunk(10).create("b").unwrap().write(&[1.0; 100]).unwrap();
        file.close().unwrap();
        let refused = read_hdf5(&path, "b").unwrap_err().to_string();
        assert!(refused.contains("chunks as libver=\"earliest\" makes them expected"), "{refused}");
        let file = hdf5_metno::File::create(&path).unwrap();
        file.new_dataset::<f64>().shape(100).chunk(10).create("b").unwrap();
        file.close().unwrap();
        let refused = read_hdf5(&path, "b").unwrap_err().to_string();
        assert!(refused.ends_with("10 chunks with values expected, 0 found"), "{refused}");
    }
}
