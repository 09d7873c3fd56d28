//! One dataset of an HDF5 file, by the HDF5 File Format Specification 3.0: groups as
//! libhdf5 makes them by default (superblock 0, symbol tables), and compact ones as recoup writes
//! them (superblock 2, links in the header).

use super::bytes::{UntakenBytes, bytes_of, number};
use super::chunks::{Chunks, Pipeline};
use super::number::{NumberForm, NumberKind};
use super::refusal::{ImportRefusal, refuse};

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// Blocks of one object header, and levels of a group's tree, at most.
const BLOCKS_MAX: usize = 64;
/// Datasets of a group at most.
const LINKS_MAX: usize = 10_000;

/// The values of the dataset `name`, or of the only one.
pub(super) fn parse(bytes: &[u8], name: &str) -> Result<Vec<f64>, ImportRefusal> {
    if !bytes.starts_with(SIGNATURE) {
        return refuse("an HDF5 file", "something else");
    }
    let file = File(bytes);
    let Some(links) = file.links() else {
        return refuse("an HDF5 file with a small root group", "one that is damaged or of another kind");
    };
    let named = links.iter().find(|(link, _)| link.as_slice() == name.as_bytes());
    let Some((_, address)) = named.or(if links.len() == 1 { links.first() } else { None }) else {
        return refuse(format!("a dataset {name}, or only one,"), format!("{} others", links.len()));
    };
    file.dataset(*address)
}

/// The bytes of a file; whatever lies outside is `None`.
struct File<'a>(&'a [u8]);

/// A message of an object header.
type FoundMessage<'a> = (u16, &'a [u8]);

impl<'a> File<'a> {
    fn bytes(&self, start: u64, length: u64) -> Option<&'a [u8]> {
        bytes_of(self.0, start, length)
    }

    fn number(&self, start: u64, width: u64) -> Option<u64> {
        number(self.bytes(start, width)?, 0, width as usize)
    }

    /// Names under the root group, and where their objects are.
    fn links(&self) -> Option<Vec<(Vec<u8>, u64)>> {
        let root = match self.number(8, 1)? {
            0 => self.number(64, 8)?,
            1 => self.number(68, 8)?,
            _ => self.number(36, 8)?,
        };
        let mut links = Vec::new();
        let mut untaken = UntakenBytes::of(self.0);
        for (kind, data) in self.messages(root)? {
            match kind {
                0x06 => links.extend(hard_link(data)),
                0x11 => self.symbols(number(data, 0, 8)?, number(data, 8, 8)?, &mut links, &mut untaken, BLOCKS_MAX)?,
                _ => {}
            }
        }
        Some(links)
    }

    /// The entries of a symbol table: a tree of nodes, and a heap with the names.
    fn symbols(
        &self,
        node: u64,
        heap: u64,
        links: &mut Vec<(Vec<u8>, u64)>,
        untaken: &mut UntakenBytes,
        levels: usize,
    ) -> Option<()> {
        let entries = self.number(node.checked_add(6)?, 2)?;
        // An entry of a tree has 16 bytes, and one of a node 40.
        untaken.take(8 + 16 * entries)?;
        if levels == 0 || links.len() > LINKS_MAX {
            return None;
        }
        if self.bytes(node, 4)? == b"TREE" {
            // Behind the two neighbours: a key before each child.
            let child = |i: u64| self.number(node.checked_add(24 + 8 + 16 * i)?, 8);
            return (0..entries).try_for_each(|i| self.symbols(child(i)?, heap, links, untaken, levels - 1));
        }
        let names = self.number(heap.checked_add(24)?, 8)?;
        for entry in (0..entries).map(|i| node.checked_add(8 + 40 * i)) {
            let entry = entry?;
            let start = usize::try_from(names.checked_add(self.number(entry, 8)?)?).ok()?;
            let name = self.0.get(start..)?.split(|byte| *byte == 0).next()?;
            untaken.take(name.len() as u64)?;
            links.push((name.to_vec(), self.number(entry.checked_add(8)?, 8)?));
        }
        Some(())
    }

    /// The messages of an object header, those of its continuations too.
    fn messages(&self, address: u64) -> Option<Vec<FoundMessage<'a>>> {
        let mut messages = Vec::new();
        let mut blocks = Vec::new();
        let (is_second, prefix);
        if self.bytes(address, 4)? == b"OHDR" {
            let flags = self.number(address.checked_add(5)?, 1)?;
            let times = if flags & 0x20 > 0 { 16 } else { 0 };
            let phases = if flags & 0x10 > 0 { 4 } else { 0 };
            let at = address.checked_add(6 + times + phases)?;
            let width = 1 << (flags & 3);
            blocks.push((at.checked_add(width)?, self.number(at, width)?));
            (is_second, prefix) = (true, if flags & 4 > 0 { 6 } else { 4 });
        } else {
            blocks.push((address.checked_add(16)?, self.number(address.checked_add(8)?, 4)?));
            (is_second, prefix) = (false, 8);
        }
        let mut next = 0;
        let mut untaken = UntakenBytes::of(self.0);
        while let Some(&(start, length)) = blocks.get(next) {
            next += 1;
            untaken.take(length)?;
            let mut rest = self.bytes(start, length)?;
            while let Some((head, behind)) = rest.split_at_checked(prefix) {
                let (kind, size) = match is_second {
                    true => (u16::from(head[0]), number(head, 1, 2)?),
                    false => (number(head, 0, 2)? as u16, number(head, 2, 2)?),
                };
                let Some((data, behind)) = behind.split_at_checked(size as usize) else { break };
                if kind == 0x10 && blocks.len() < BLOCKS_MAX {
                    let at = number(data, 0, 8)?;
                    let bytes = number(data, 8, 8)?;
                    // A block of the second kind begins with its name and ends with its checksum.
                    blocks.push(if is_second { (at.checked_add(4)?, bytes.checked_sub(8)?) } else { (at, bytes) });
                }
                messages.push((kind, data));
                rest = behind;
            }
        }
        Some(messages)
    }

    fn dataset(&self, address: u64) -> Result<Vec<f64>, ImportRefusal> {
        let damaged = || refuse("a dataset", "something else");
        let Some(messages) = self.messages(address) else { return damaged() };
        let of = |kind: u16| messages.iter().find(|(found, _)| *found == kind).map(|(_, data)| *data);
        let (Some(space), Some(datatype), Some(layout)) = (of(0x01), of(0x03), of(0x08)) else { return damaged() };
        let Some(form) = number_form(datatype) else {
            return refuse("floats of 4 or 8 bytes, or integers", "another type");
        };
        let Some(extents) = extents(space) else { return damaged() };
        let Some(values) = extents.iter().try_fold(1_u64, |n, e| n.checked_mul(*e)) else { return damaged() };
        match layout {
            [3 | 4, 0, place @ ..] => form.decode(place.get(2..).unwrap_or_default(), values as usize),
            [3 | 4, 1, place @ ..] => {
                let (Some(at), Some(bytes)) = (number(place, 0, 8), number(place, 8, 8)) else { return damaged() };
                let data = if bytes == 0 { Some(&[][..]) } else { bytes_of(self.0, at, bytes) };
                data.map_or_else(damaged, |data| form.decode(data, values as usize))
            }
            [3, 2, place @ ..] => {
                let chunks = Chunks::of(self.0, place, extents, form.width);
                let (Some(chunks), Some(pipeline)) = (chunks, Pipeline::of(of(0x0b))) else { return damaged() };
                form.decode(&chunks.read(&pipeline)?, values as usize)
            }
            [4, 2, ..] => refuse("chunks as libver=\"earliest\" makes them", "those of libver=\"latest\""),
            _ => refuse("values in one piece or in chunks", "another layout"),
        }
    }
}

/// The form of the numbers of a datatype message.
fn number_form(datatype: &[u8]) -> Option<NumberForm> {
    let [class, bits, _, _, width @ ..] = datatype else { return None };
    let width = number(width, 0, 4)? as usize;
    let kind = match (class & 0x0f, bits & 8 > 0) {
        (0, true) => NumberKind::Signed,
        (0, false) => NumberKind::Unsigned,
        (1, _) if bits & 0x40 == 0 => NumberKind::Float,
        _ => return None,
    };
    NumberForm::new(kind, width, bits & 1 > 0)
}

/// A link message, where it names an object of the same file.
fn hard_link(data: &[u8]) -> Option<(Vec<u8>, u64)> {
    let flags = *data.get(1)?;
    let mut at = 2;
    if flags & 8 > 0 {
        if *data.get(at)? != 0 {
            return None;
        }
        at += 1;
    }
    at += if flags & 4 > 0 { 8 } else { 0 };
    at += if flags & 0x10 > 0 { 1 } else { 0 };
    let width = 1 << (flags & 3);
    let length = usize::try_from(number(data, at, width)?).ok()?;
    let start = at + width;
    let name = data.get(start..start.checked_add(length)?)?;
    Some((name.to_vec(), number(data, start + length, 8)?))
}

fn extents(space: &[u8]) -> Option<Vec<u64>> {
    let rank = usize::from(*space.get(1)?);
    let start = if *space.first()? == 1 { 8 } else { 4 };
    (0..rank).map(|axis| number(space, start + 8 * axis, 8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each node of a group's tree was walked once for every way to it: 2^60 ways in 4 kB.
    #[test]
    fn nodes_of_a_group_are_walked_once() {
        // An object header with one message, of a symbol table.
        let header = [1, 0, 1, 0, 1, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 16, 0, 0, 0, 0, 0];
        let mut file = [SIGNATURE, &[0; 56], &72_u64.to_le_bytes(), &header].concat();
        let first = file.len() as u64 + 16;
        file.extend([first, 0].map(u64::to_le_bytes).concat());
        for n_entries in [[2_u8; 16].as_slice(), &[0]].concat() {
            let next = file.len() as u64 + 64;
            file.extend([b"TREE\0\0", &[n_entries, 0][..], &[0xff; 16]].concat());
            file.extend([0, next, 0, next, 0].map(u64::to_le_bytes).concat());
        }
        let refused = parse(&file, "b").unwrap_err().found;
        assert_eq!(refused, "one that is damaged or of another kind");
    }
}
