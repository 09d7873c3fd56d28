//! The blocks of an HDF5 file that lie outside every frame: superblock, object headers, chunk
//! index, heap.
//!
//! They are gathered in memory and written in one piece behind the frames, so that their checksum
//! is known before they reach the disk. See FORMAT.md for their order.

use super::encode::{FixedArray, HeaderMessage, UNDEFINED, bytes_for};
use super::lookup3::lookup3;

/// Bytes of the superblock, which opens the file.
pub(super) const SUPERBLOCK_BYTES: u64 = 48;

/// The bytes behind the frames, as they grow.
pub(super) struct Tail {
    start: u64,
    bytes: Vec<u8>,
}

/// The place of one frame's chunk.
pub(super) struct Chunk {
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// The filters it skipped, one bit each.
    pub(super) filter_mask: u32,
}

impl Tail {
    /// A tail that will be written at byte `start`.
    pub(super) fn at(start: u64) -> Self {
        Self { start, bytes: Vec::new() }
    }

    /// Adds a block at the next multiple of 8 and gives its address.
    pub(super) fn put(&mut self, block: &[u8]) -> u64 {
        let address = (self.start + self.bytes.len() as u64).next_multiple_of(8);
        self.bytes.resize((address - self.start) as usize, 0);
        self.bytes.extend(block);
        address
    }

    /// Adds a block followed by its checksum.
    fn put_checked(&mut self, mut block: Vec<u8>) -> u64 {
        let checksum = lookup3(&block);
        block.extend(checksum.to_le_bytes());
        self.put(&block)
    }

    /// An object header (version 2) with these messages.
    pub(super) fn object(&mut self, messages: &[HeaderMessage]) -> u64 {
        const FOUR_BYTE_LENGTH: u8 = 0x02;
        let bytes: usize = messages.iter().map(|(_, data)| data.len() + 4).sum();
        let mut block = b"OHDR".to_vec();
        block.extend([2, FOUR_BYTE_LENGTH]);
        block.extend((bytes as u32).to_le_bytes());
        for (kind, data) in messages {
            block.push(*kind);
            block.extend((data.len() as u16).to_le_bytes());
            block.push(0);
            block.extend(data);
        }
        self.put_checked(block)
    }

    /// The index of a dataset's chunks, in their order: a fixed array of one page.
    ///
    /// `chunk_bytes` is the length of an unfiltered chunk; filtered chunks store their own.
    pub(super) fn fixed_array(&mut self, chunks: &[Chunk], chunk_bytes: Option<u64>) -> FixedArray {
        const PAGE_BITS_LEAST: u32 = 10;
        let page_bits = chunks.len().next_power_of_two().trailing_zeros().max(PAGE_BITS_LEAST) as u8;
        // The width HDF5 itself gives the stored length: one byte more than an unfiltered chunk
        // needs.
        let width = chunk_bytes.map(|bytes| (bytes_for(bytes) + 1).min(8));
        let client = u8::from(width.is_some());
        let entry_bytes = 8 + width.map_or(0, |w| w + 4);
        let n = chunks.len() as u64;

        // The header names the block and the block the header, so the header's place comes first.
        let header_bytes = 4 + 4 + 8 + 8 + 4;
        let header = (self.start + self.bytes.len() as u64).next_multiple_of(8);
        let block_address = (header + header_bytes).next_multiple_of(8);
        let mut head = b"FAHD".to_vec();
        head.extend([0, client, entry_bytes as u8, page_bits]);
        head.extend(n.to_le_bytes());
        head.extend(block_address.to_le_bytes());

        let mut block = b"FADB".to_vec();
        block.extend([0, client]);
        block.extend(header.to_le_bytes());
        for chunk in chunks {
            block.extend(chunk.address.to_le_bytes());
            if let Some(width) = width {
                block.extend(&chunk.bytes.to_le_bytes()[..width]);
                block.extend(chunk.filter_mask.to_le_bytes());
            }
        }
        assert_eq!(self.put_checked(head), header);
        assert_eq!(self.put_checked(block), block_address);
        FixedArray { address: header, page_bits }
    }

    /// A global heap with one object, whose index is 1.
    pub(super) fn heap(&mut self, object: &[u8]) -> u64 {
        const BYTES_LEAST: usize = 4096;
        const HEADER: usize = 16;
        let used = 2 * HEADER + object.len().next_multiple_of(8);
        let total = (used + HEADER).max(BYTES_LEAST);
        let mut block = b"GCOL".to_vec();
        block.extend([1, 0, 0, 0]);
        block.extend((total as u64).to_le_bytes());
        block.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        block.extend((object.len() as u64).to_le_bytes());
        block.extend(object);
        block.resize(used, 0);
        // Object 0 is the free space, its own header included.
        block.extend([0; 8]);
        block.extend(((total - used) as u64).to_le_bytes());
        block.resize(total, 0);
        self.put(&block)
    }

    /// The superblock (version 2) for a file with this root group, and the tail's bytes.
    pub(super) fn finish(self, root: u64) -> (Vec<u8>, Vec<u8>) {
        let mut superblock = b"\x89HDF\r\n\x1a\n".to_vec();
        superblock.extend([2, 8, 8, 0]);
        for address in [0, UNDEFINED, self.start + self.bytes.len() as u64, root] {
            superblock.extend(address.to_le_bytes());
        }
        superblock.extend(lookup3(&superblock).to_le_bytes());
        (superblock, self.bytes)
    }
}

/// The part of a virtual dataset that another dataset holds.
pub(super) struct Mapping {
    /// The source file, beside the virtual dataset's.
    pub(super) file: String,
    /// The dataset in it.
    pub(super) dataset: String,
    /// Extents of the dataset, slowest first; all of it is taken.
    pub(super) extents: Vec<u64>,
    /// Position of its first element in the virtual dataset, slowest first.
    pub(super) target_start: Vec<u64>,
    /// The box it fills there, slowest first; as many elements as the source has.
    pub(super) target_extents: Vec<u64>,
}

/// The list of sources of a virtual dataset, as a heap object.
pub(super) fn mappings(list: &[Mapping]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend((list.len() as u64).to_le_bytes());
    for mapping in list {
        for name in [&mapping.file, &mapping.dataset] {
            out.extend(name.as_bytes());
            out.push(0);
        }
        selection(&vec![0; mapping.extents.len()], &mapping.extents, &mut out);
        selection(&mapping.target_start, &mapping.target_extents, &mut out);
    }
    let checksum = lookup3(&out);
    out.extend(checksum.to_le_bytes());
    out
}

/// One box, as a regular hyperslab selection (version 2).
fn selection(start: &[u64], extents: &[u64], out: &mut Vec<u8>) {
    const HYPERSLAB: u32 = 2;
    const REGULAR: u8 = 1;
    out.extend(HYPERSLAB.to_le_bytes());
    out.extend(2_u32.to_le_bytes());
    out.push(REGULAR);
    out.extend((4 + 32 * start.len() as u32).to_le_bytes());
    out.extend((start.len() as u32).to_le_bytes());
    for (&start, &block) in start.iter().zip(extents) {
        // Start, stride, count, block.
        for number in [start, block.max(1), 1, block] {
            out.extend(number.to_le_bytes());
        }
    }
}
