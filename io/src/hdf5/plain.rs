//! A plain HDF5 file of decoded values, for export.

use super::blocks::{SUPERBLOCK_BYTES, Tail};
use super::encode::{self, Datatype, GroupLink, UNDEFINED};
use super::rank_file::extents;
use crate::array::Array;

/// The bytes before and after the arrays' own, which follow each other from the end of the first.
pub(crate) fn plain_file(arrays: &[Array<'_>]) -> (Vec<u8>, Vec<u8>) {
    let bytes: u64 = arrays.iter().map(Array::bytes).sum();
    let mut tail = Tail::at(SUPERBLOCK_BYTES + bytes);
    let mut links = Vec::new();
    let mut offset = SUPERBLOCK_BYTES;
    for array in arrays {
        let address = if array.bytes() == 0 { UNDEFINED } else { offset };
        let mut messages = encode::described(Datatype::from(array.values.element()), &extents(array.dims));
        messages.extend([encode::fill(&[]), encode::contiguous(address, array.bytes())]);
        links.push(GroupLink::here(array.name, tail.object(&messages)));
        offset += array.bytes();
    }
    let root = tail.object(&encode::group(&links, &[]));
    tail.finish(root)
}
