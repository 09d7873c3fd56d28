//! Decoded values as files for other programs: `.npy`, and plain HDF5.

use std::io::{self, Write};
use std::path::Path;

use recoup_core::{ElementType, StoreError, Values};

use crate::array::Array;
use crate::hdf5::plain_file;
use crate::publish::put_result;

/// Writes one array in NumPy's format 1.0, little-endian, C order.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`]; then a file that was there is as it was.
///
/// # Panics
/// When the extents do not multiply to the number of values.
pub fn write_npy(path: impl AsRef<Path>, array: &Array<'_>) -> Result<(), StoreError> {
    put_result(path.as_ref(), |file| {
        file.write_all(&npy_header(array))?;
        write_values(file, array)
    })
}

/// Writes an HDF5 file with one uncompressed dataset per array, under the root group.
///
/// # Errors
/// [`StoreError::Full`] or [`StoreError::Io`]; then a file that was there is as it was.
///
/// # Panics
/// When the extents do not multiply to the number of values.
pub fn write_plain_hdf5(path: impl AsRef<Path>, arrays: &[Array<'_>]) -> Result<(), StoreError> {
    let (superblock, tail) = plain_file(arrays);
    put_result(path.as_ref(), |file| {
        file.write_all(&superblock)?;
        arrays.iter().try_for_each(|array| write_values(file, array))?;
        file.write_all(&tail)
    })
}

fn write_values(file: &mut (impl Write + ?Sized), array: &Array<'_>) -> io::Result<()> {
    assert_eq!(array.dims.iter().product::<usize>(), array.values.len(), "extents of {}", array.name);
    match array.values {
        Values::F64(values) => values.iter().try_for_each(|v| file.write_all(&v.to_le_bytes())),
        Values::F32(values) => values.iter().try_for_each(|v| file.write_all(&v.to_le_bytes())),
        Values::I64(values) => values.iter().try_for_each(|v| file.write_all(&v.to_le_bytes())),
        Values::Bytes(values) => file.write_all(values),
    }
}

fn npy_header(array: &Array<'_>) -> Vec<u8> {
    const PREFIX: &[u8] = b"\x93NUMPY\x01\x00";
    const ALIGNMENT: usize = 64;
    let descr = match array.values.element() {
        ElementType::F64 => "<f8",
        ElementType::F32 => "<f4",
        ElementType::I64 => "<i8",
        ElementType::Bytes => "|u1",
    };
    let axes = array.dims.iter().rposition(|&extent| extent != 1).map_or(1, |last| last + 1);
    let shape: String = array.dims[..axes].iter().rev().map(|extent| format!("{extent}, ")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let total = (PREFIX.len() + 2 + text.len() + 1).next_multiple_of(ALIGNMENT);
    text.extend(std::iter::repeat_n(' ', total - PREFIX.len() - 2 - text.len() - 1));
    text.push('\n');
    let mut header = PREFIX.to_vec();
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npy_header_is_numpys() {
        let values = [1.0; 6];
        let array = Array { name: "x", dims: [3, 2, 1], values: Values::F64(&values) };
        let header = npy_header(&array);
        assert_eq!(header.len() % 64, 0);
        assert_eq!(&header[..10], b"\x93NUMPY\x01\x00\x76\x00");
        let text = std::str::from_utf8(&header[10..]).unwrap();
        assert_eq!(text.trim_end(), "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, ), }");
    }

    #[test]
    fn libhdf5_reads_exported_arrays_bit_for_bit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.h5");
        let x = [1.5, -0.0, f64::NAN, 4.0, 5.0, 6.0];
        let k = [-7_i64, 9];
        let arrays = [
            Array { name: "x", dims: [3, 2, 1], values: Values::F64(&x) },
            Array { name: "none", dims: [0, 1, 1], values: Values::F32(&[]) },
            Array { name: "k", dims: [2, 1, 1], values: Values::I64(&k) },
        ];
        write_plain_hdf5(&path, &arrays).unwrap();
        let file = hdf5_metno::File::open(&path).unwrap();
        let found = file.dataset("x").unwrap();
        assert_eq!(found.shape(), [2, 3]);
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&found.read_raw::<f64>().unwrap()), bits(&x));
        assert_eq!(file.dataset("k").unwrap().read_raw::<i64>().unwrap(), k);
        assert_eq!(file.dataset("none").unwrap().shape(), [0]);
    }
}
