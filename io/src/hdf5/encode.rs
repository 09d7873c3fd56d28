//! The parts of an HDF5 file as bytes: object header messages, by the HDF5 File Format
//! Specification 3.0.
//!
//! Only what recoup writes: little-endian numbers, fixed-length text, fixed extents, compact
//! groups. Written here instead of through libhdf5, so that every byte's place and checksum is
//! known before it reaches the disk, ranks share no lock, and no second HDF5 meets the one an
//! application brings. That library is the oracle in the tests.

use recoup_core::{ElementType, Filter};

/// An address or length that is not there.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// The data types written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datatype {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
    /// Byte.
    U8,
    /// ASCII text of this many bytes.
    Text(u32),
}

impl From<ElementType> for Datatype {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::F64 => Self::F64,
            ElementType::F32 => Self::F32,
            ElementType::I64 => Self::I64,
            ElementType::Bytes => Self::U8,
        }
    }
}

impl Datatype {
    /// Bytes of one element.
    pub(super) fn size(self) -> u32 {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 => 4,
            Self::U8 => 1,
            Self::Text(len) => len,
        }
    }

    /// The datatype message (type 3).
    fn message(self) -> Vec<u8> {
        const FIXED: u8 = 0x10;
        const FLOAT: u8 = 0x11;
        const TEXT: u8 = 0x13;
        let (class, bits) = match self {
            Self::F64 => (FLOAT, [0x20, 63, 0]),
            Self::F32 => (FLOAT, [0x20, 31, 0]),
            Self::I64 => (FIXED, [0x08, 0, 0]),
            Self::U64 | Self::U8 => (FIXED, [0, 0, 0]),
            Self::Text(_) => (TEXT, [0x01, 0, 0]),
        };
        let mut out = vec![class];
        out.extend(bits);
        out.extend(self.size().to_le_bytes());
        if !matches!(self, Self::Text(_)) {
            out.extend(0_u16.to_le_bytes());
            out.extend((8 * self.size() as u16).to_le_bytes());
        }
        match self {
            // Exponent position and size, mantissa position and size, exponent bias.
            Self::F64 => out.extend([52, 11, 0, 52, 0xff, 0x03, 0, 0]),
            Self::F32 => out.extend([23, 8, 0, 23, 0x7f, 0, 0, 0]),
            _ => {}
        }
        out
    }
}

/// One message of an object header: its type and its data.
pub(super) type HeaderMessage = (u8, Vec<u8>);

/// Extents, slowest first; none for a scalar.
fn dataspace(extents: &[u64]) -> Vec<u8> {
    let kind = u8::from(!extents.is_empty());
    let mut out = vec![2, extents.len() as u8, 0, kind];
    out.extend(extents.iter().flat_map(|e| e.to_le_bytes()));
    out
}

/// The messages every dataset has: what its elements are and how many.
pub(super) fn described(datatype: Datatype, extents: &[u64]) -> Vec<HeaderMessage> {
    vec![(0x01, dataspace(extents)), (0x03, datatype.message())]
}

/// The fill value message: `value` where nothing was written, zeros when it is empty.
pub(super) fn fill(value: &[u8]) -> HeaderMessage {
    const INCREMENTAL_IF_SET: u8 = 0x0b;
    const DEFINED: u8 = 0x20;
    if value.is_empty() {
        return (0x05, vec![3, INCREMENTAL_IF_SET]);
    }
    let mut out = vec![3, INCREMENTAL_IF_SET | DEFINED];
    out.extend((value.len() as u32).to_le_bytes());
    out.extend(value);
    (0x05, out)
}

/// All bytes in one piece.
pub(super) fn contiguous(address: u64, bytes: u64) -> HeaderMessage {
    let mut out = vec![3, 1];
    out.extend(address.to_le_bytes());
    out.extend(bytes.to_le_bytes());
    (0x08, out)
}

/// Chunks found through a fixed array. `chunk` is slowest first.
pub(super) fn chunked(chunk: &[u64], element_bytes: u32, index: &FixedArray) -> HeaderMessage {
    let mut extents = chunk.to_vec();
    extents.push(u64::from(element_bytes));
    let widest = extents.iter().copied().max().unwrap_or(1);
    let width = bytes_for(widest);
    let mut out = vec![4, 2, 0, extents.len() as u8, width as u8];
    for extent in &extents {
        out.extend(&extent.to_le_bytes()[..width]);
    }
    out.extend([3, index.page_bits]);
    out.extend(index.address.to_le_bytes());
    (0x08, out)
}

/// Parts of other datasets, listed in object `index` of the heap at `heap`.
pub(super) fn virtual_layout(heap: u64, index: u32) -> HeaderMessage {
    let mut out = vec![4, 3];
    out.extend(heap.to_le_bytes());
    out.extend(index.to_le_bytes());
    (0x08, out)
}

/// Least bytes that hold `value`.
pub(super) fn bytes_for(value: u64) -> usize {
    (64 - value.max(1).leading_zeros() as usize).div_ceil(8)
}

/// The filter pipeline, each filter optional so that a frame may skip it.
pub(super) fn pipeline(filters: &[Filter]) -> HeaderMessage {
    const NAMELESS_BELOW: u32 = 256;
    const OPTIONAL: u16 = 1;
    let mut out = vec![2, filters.len() as u8];
    for filter in filters {
        out.extend((filter.id as u16).to_le_bytes());
        if filter.id >= NAMELESS_BELOW {
            out.extend(0_u16.to_le_bytes());
        }
        out.extend(OPTIONAL.to_le_bytes());
        out.extend((filter.values.len() as u16).to_le_bytes());
        out.extend(filter.values.iter().flat_map(|v| v.to_le_bytes()));
    }
    (0x0b, out)
}

/// The place of the chunks' index, as the layout message names it.
pub(super) struct FixedArray {
    pub(super) address: u64,
    pub(super) page_bits: u8,
}

/// One attribute.
pub(super) struct Attribute {
    name: &'static str,
    datatype: Datatype,
    extents: Vec<u64>,
    value: Vec<u8>,
}

impl Attribute {
    /// Longest value an attribute can hold in an object header.
    pub(super) const BYTES_MAX: usize = 65_000;

    /// A text.
    pub(super) fn text(name: &'static str, text: &str) -> Self {
        let mut value = text.as_bytes().to_vec();
        value.truncate(Self::BYTES_MAX);
        value.resize(value.len().max(1), 0);
        Self { name, datatype: Datatype::Text(value.len() as u32), extents: Vec::new(), value }
    }

    /// A double.
    pub(super) fn float(name: &'static str, number: f64) -> Self {
        Self { name, datatype: Datatype::F64, extents: Vec::new(), value: number.to_le_bytes().to_vec() }
    }

    /// An unsigned integer.
    pub(super) fn count(name: &'static str, number: u64) -> Self {
        Self { name, datatype: Datatype::U64, extents: Vec::new(), value: number.to_le_bytes().to_vec() }
    }

    /// A list of unsigned integers; `None` when it is longer than an attribute can be.
    pub(super) fn list(name: &'static str, numbers: impl Iterator<Item = u64>) -> Option<Self> {
        let value: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        let extents = vec![value.len() as u64 / 8];
        let fits = !value.is_empty() && value.len() <= Self::BYTES_MAX;
        fits.then_some(Self { name, datatype: Datatype::U64, extents, value })
    }

    /// The attribute message.
    pub(super) fn message(&self) -> HeaderMessage {
        let datatype = self.datatype.message();
        let space = dataspace(&self.extents);
        let mut out = vec![3, 0];
        out.extend((self.name.len() as u16 + 1).to_le_bytes());
        out.extend((datatype.len() as u16).to_le_bytes());
        out.extend((space.len() as u16).to_le_bytes());
        out.push(0);
        out.extend(self.name.as_bytes());
        out.push(0);
        out.extend(datatype);
        out.extend(space);
        out.extend(&self.value);
        (0x0c, out)
    }
}

/// The target of a name in a group.
pub(super) enum LinkTarget {
    /// An object of the same file.
    Here(u64),
    /// An object of another file.
    There {
        /// Name of the file, which lies next to this one.
        file: String,
        /// The object's path in it.
        path: String,
    },
}

/// A name in a group.
pub(super) struct GroupLink {
    pub(super) name: String,
    pub(super) target: LinkTarget,
}

impl GroupLink {
    /// A name for an object of the same file.
    pub(super) fn here(name: impl Into<String>, address: u64) -> Self {
        Self { name: name.into(), target: LinkTarget::Here(address) }
    }

    fn message(&self) -> HeaderMessage {
        const TWO_BYTE_LENGTH: u8 = 0x01;
        const KIND_STORED: u8 = 0x08;
        const EXTERNAL: u8 = 64;
        let mut out = match self.target {
            LinkTarget::Here(_) => vec![1, TWO_BYTE_LENGTH],
            LinkTarget::There { .. } => vec![1, TWO_BYTE_LENGTH | KIND_STORED, EXTERNAL],
        };
        out.extend((self.name.len() as u16).to_le_bytes());
        out.extend(self.name.as_bytes());
        match &self.target {
            LinkTarget::Here(address) => out.extend(address.to_le_bytes()),
            LinkTarget::There { file, path } => {
                out.extend((file.len() as u16 + path.len() as u16 + 3).to_le_bytes());
                out.push(0);
                out.extend(file.as_bytes());
                out.push(0);
                out.extend(path.as_bytes());
                out.push(0);
            }
        }
        (0x06, out)
    }
}

/// The messages of a group.
pub(super) fn group(links: &[GroupLink], attributes: &[Attribute]) -> Vec<HeaderMessage> {
    let mut info = vec![0, 0];
    info.extend(UNDEFINED.to_le_bytes());
    info.extend(UNDEFINED.to_le_bytes());
    let mut messages = vec![(0x02, info), (0x0a, vec![0, 0])];
    messages.extend(links.iter().map(GroupLink::message));
    messages.extend(attributes.iter().map(Attribute::message));
    messages
}
