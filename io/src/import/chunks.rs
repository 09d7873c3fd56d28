//! A dataset of an HDF5 file in chunks, found by a tree of version 1, and the filters that its
//! chunks went through.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::bytes::{UntakenBytes, bytes_of, number};
use super::refusal::{ImportRefusal, refuse};

/// Levels of the tree, at most.
const LEVELS_MAX: u64 = 64;
/// Bytes that deflate makes of one, at most.
const EXPANSION_MAX: u64 = 1032;
/// Bytes of the checksum behind a chunk.
const FLETCHER32_BYTES: usize = 4;
/// Filters in a row, at most.
const FILTERS_MAX: usize = 32;

/// The chunks of a dataset.
pub(super) struct Chunks<'a> {
    file: &'a [u8],
    tree: u64,
    /// Extents of the dataset, the fastest last.
    extents: Vec<u64>,
    /// Extents of a chunk.
    chunk: Vec<u64>,
    /// Bytes of a value.
    width: usize,
}

/// A chunk as it lies in the file.
struct StoredChunk<'a> {
    /// Position of its first value, along each axis.
    offsets: Vec<u64>,
    /// Filters it did not go through, one bit each.
    skipped: u64,
    data: &'a [u8],
}

/// The chunks that a walk through a tree has met.
struct StoredChunks<'a> {
    chunks: Vec<StoredChunk<'a>>,
    n_max: u64,
    untaken: UntakenBytes,
}

/// The filters of a dataset, in the order of writing: number and client data.
pub(super) struct Pipeline(Vec<(u64, Vec<u64>)>);

impl<'a> Chunks<'a> {
    /// Reads the layout message, behind its version and class.
    pub(super) fn of(file: &'a [u8], layout: &[u8], extents: Vec<u64>, width: usize) -> Option<Self> {
        // The last extent is the width of a value.
        let axes = usize::from(*layout.first()?).checked_sub(1)?;
        let extent = |axis: usize| number(layout, 9 + 4 * axis, 4);
        let chunk: Vec<u64> = (0..axes).map(extent).collect::<Option<_>>()?;
        let is_sound = axes == extents.len() && axes > 0 && chunk.iter().all(|extent| *extent > 0);
        let tree = number(layout, 1, 8)?;
        (is_sound && extent(axes)? == width as u64).then_some(Self { file, tree, extents, chunk, width })
    }

    /// Reads the values in C order, as bytes.
    pub(super) fn read(&self, pipeline: &Pipeline) -> Result<Vec<u8>, ImportRefusal> {
        let product = |extents: &[u64]| extents.iter().try_fold(self.width as u64, |n, extent| n.checked_mul(*extent));
        let largest = (self.file.len() as u64).saturating_mul(EXPANSION_MAX);
        let fits = |bytes: Option<u64>| bytes.filter(|bytes| *bytes <= largest).and_then(|b| usize::try_from(b).ok());
        let (Some(bytes), Some(chunk_bytes)) = (fits(product(&self.extents)), fits(product(&self.chunk))) else {
            return refuse("no more values than the file has room for", "more");
        };
        let pieces = self.extents.iter().zip(&self.chunk).map(|(extent, chunk)| extent.div_ceil(*chunk));
        let expected = pieces.fold(1_u64, u64::saturating_mul);
        let mut stored = StoredChunks { chunks: Vec::new(), n_max: expected, untaken: UntakenBytes::of(self.file) };
        if expected > 0 && self.tree != u64::MAX && self.walk(self.tree, LEVELS_MAX, &mut stored).is_none() {
            return refuse("a tree of chunks", "one that is damaged");
        }
        let stored = stored.chunks;
        if stored.len() as u64 != expected {
            return refuse(format!("{expected} chunks with values"), stored.len().to_string());
        }
        let mut values = vec![0; bytes];
        for chunk in stored {
            let decoded = pipeline.undo(&chunk, chunk_bytes, self.width)?;
            self.place(&decoded, &chunk.offsets, &mut values);
        }
        Ok(values)
    }

    /// Collects the chunks under a node, whose level is below `above`.
    fn walk(&self, node: u64, above: u64, stored: &mut StoredChunks<'a>) -> Option<()> {
        let head = bytes_of(self.file, node, 24)?;
        let level = number(head, 5, 1)?;
        if !head.starts_with(b"TREE\x01") || level >= above {
            return None;
        }
        let axes = self.chunk.len();
        // The bytes of the chunk, its filters, and its offsets: one more than there are axes.
        let key_bytes = 8 + 8 * (axes as u64 + 1);
        let n_entries = number(head, 6, 2)?;
        stored.untaken.take(24 + n_entries * (key_bytes + 8))?;
        for entry in 0..n_entries {
            let key = bytes_of(self.file, node.checked_add(24 + entry * (key_bytes + 8))?, key_bytes + 8)?;
            let child = number(key, key_bytes as usize, 8)?;
            if level > 0 {
                self.walk(child, level, stored)?;
                continue;
            }
            let data = bytes_of(self.file, child, number(key, 0, 4)?)?;
            let offsets = (0..axes).map(|axis| number(key, 8 + 8 * axis, 8)).collect::<Option<Vec<_>>>()?;
            let is_inside = offsets.iter().zip(&self.extents).all(|(offset, extent)| offset < extent);
            stored.untaken.take(data.len() as u64)?;
            if !is_inside || stored.chunks.len() as u64 == stored.n_max {
                return None;
            }
            stored.chunks.push(StoredChunk { offsets, skipped: number(key, 4, 4)?, data });
        }
        Some(())
    }

    /// Copies the values of a chunk to their places, as far as they lie inside the dataset.
    fn place(&self, decoded: &[u8], offsets: &[u64], values: &mut [u8]) {
        let last = self.chunk.len() - 1;
        let row_bytes = self.chunk[last] as usize * self.width;
        let kept = (self.extents[last] - offsets[last]).min(self.chunk[last]) as usize * self.width;
        for (row, source) in decoded.chunks_exact(row_bytes).enumerate() {
            let mut rest = row as u64;
            let mut index = offsets.to_vec();
            for axis in (0..last).rev() {
                index[axis] += rest % self.chunk[axis];
                rest /= self.chunk[axis];
            }
            if index.iter().zip(&self.extents).any(|(index, extent)| index >= extent) {
                continue;
            }
            let at = index.iter().zip(&self.extents).fold(0, |at, (index, extent)| at * extent + index);
            let start = at as usize * self.width;
            values[start..start + kept].copy_from_slice(&source[..kept]);
        }
    }
}

impl Pipeline {
    /// Reads the message of the filters; there are none without it.
    pub(super) fn of(message: Option<&[u8]>) -> Option<Self> {
        let Some(message) = message else { return Some(Self(Vec::new())) };
        let is_second = match *message.first()? {
            1 => false,
            2 => true,
            _ => return None,
        };
        let mut at = if is_second { 2 } else { 8 };
        let mut filters = Vec::new();
        for _ in 0..usize::from(*message.get(1)?).min(FILTERS_MAX) {
            let mut word = |width: usize| {
                let value = number(message, at, width);
                at += width;
                value
            };
            let id = word(2)?;
            let name_bytes = if is_second && id < 256 { 0 } else { word(2)? as usize };
            word(2)?;
            let n_values = word(2)? as usize;
            let padded = if is_second { name_bytes } else { name_bytes.next_multiple_of(8) };
            at += padded;
            let values = (0..n_values).map(|i| number(message, at + 4 * i, 4)).collect::<Option<_>>()?;
            at += 4 * if is_second { n_values } else { n_values.next_multiple_of(2) };
            filters.push((id, values));
        }
        Some(Self(filters))
    }

    /// Undoes the filters of a chunk, the last first.
    fn undo(&self, chunk: &StoredChunk<'_>, chunk_bytes: usize, width: usize) -> Result<Vec<u8>, ImportRefusal> {
        let mut data = chunk.data.to_vec();
        for (place, (id, values)) in self.0.iter().enumerate().rev() {
            if (chunk.skipped >> place) & 1 > 0 {
                continue;
            }
            data = match *id {
                1 => {
                    let mut inflated = Vec::new();
                    let limit = (chunk_bytes + FLETCHER32_BYTES) as u64;
                    match ZlibDecoder::new(&data[..]).take(limit).read_to_end(&mut inflated) {
                        Ok(_) => inflated,
                        Err(error) => return refuse("a chunk packed by gzip", error.to_string()),
                    }
                }
                2 => unshuffled(&data, values.first().map_or(width, |width| *width as usize)),
                3 => data[..data.len().saturating_sub(FLETCHER32_BYTES)].to_vec(),
                other => return refuse("chunks plain, or through gzip, shuffle or fletcher32,", filter_name(other)),
            };
        }
        let found = data.len();
        if found == chunk_bytes {
            Ok(data)
        } else {
            refuse(format!("a chunk of {chunk_bytes} bytes"), found.to_string())
        }
    }
}

/// Brings the bytes of each value together again: those behind the last whole value stay.
fn unshuffled(data: &[u8], width: usize) -> Vec<u8> {
    let n = data.len() / width.max(1);
    let whole = (0..n * width).map(|place| data[place % width * n + place / width]);
    whole.chain(data[n * width..].iter().copied()).collect()
}

fn filter_name(id: u64) -> String {
    let name = match id {
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        32_000 => "lzf",
        32_001 => "blosc",
        32_015 => "zstd",
        _ => return format!("filter {id}"),
    };
    format!("filter {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node of a tree over two axes. All entries are of the same child.
    fn node(level: u8, n_entries: u16, data_bytes: u32, child: u64) -> Vec<u8> {
        let mut bytes = [b"TREE\x01", &[level][..], &n_entries.to_le_bytes(), &[0xff; 16]].concat();
        for entry in 0..u64::from(n_entries) {
            bytes.extend([data_bytes, 0].map(u32::to_le_bytes).concat());
            bytes.extend([entry, 0, 0, child].map(u64::to_le_bytes).concat());
        }
        bytes
    }

    fn read(file: &[u8], extents: [u64; 2], chunk: [u64; 2]) -> Result<Vec<u8>, String> {
        let chunks = Chunks { file, tree: 0, extents: extents.to_vec(), chunk: chunk.to_vec(), width: 8 };
        chunks.read(&Pipeline(Vec::new())).map_err(|refusal| refusal.found)
    }

    /// One chunk was read for every entry that named it, and one node for every one above: a small
    /// file took as long as there are ways through its tree.
    #[test]
    fn no_more_is_read_than_the_file_is_long() {
        let one = [node(0, 1, 8, 64), vec![7; 8]].concat();
        assert_eq!(read(&one, [1, 1], [1, 1]), Ok(vec![7; 8]));
        let leaf = node(0, 100, 8000, 24 + 100 * 40);
        let shared = [leaf, vec![7; 8000]].concat();
        assert_eq!(read(&shared, [100, 1], [1, 1000]), Err("one that is damaged".to_owned()));
        let mut ways = Vec::new();
        for level in (0..40).rev() {
            let next = ways.len() as u64 + 24 + 40 * 2;
            ways.extend(node(level, if level > 0 { 2 } else { 0 }, 0, next));
        }
        assert_eq!(read(&ways, [100, 1], [1, 1]), Err("one that is damaged".to_owned()));
    }
}
