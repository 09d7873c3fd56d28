//! Text files as people pack them: plain, by gzip or zstd, alone or in a tar archive. The first
//! bytes tell, not the name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::MatrixMarketError;

/// Bytes read at a time.
const CAPACITY: usize = 1 << 16;
/// Bytes of a header in a tar archive, and of the blocks that members fill.
const BLOCK: usize = 512;
/// Members of an archive that are looked at.
const MEMBERS_MAX: usize = 1000;
/// Longest list of members in an error, in characters.
const LIST_MAX: usize = 80;

/// Ways of packing that are not read: their first bytes, their names, and what to do.
const OTHERS: [(&[u8], &str); 6] = [
    (b"\xfd7zXZ\0", "xz (unpack it with xz -d)"),
    (b"BZh", "bzip2 (unpack it with bunzip2)"),
    (b"PK\x03\x04", "zip (unpack it with unzip)"),
    (b"\x1f\x9d", "compress (unpack it with uncompress)"),
    (b"\xff\xfe", "UTF-16 text (save it as UTF-8)"),
    (b"\xfe\xff", "UTF-16 text (save it as UTF-8)"),
];

/// The part of an archive of SuiteSparse that is wanted.
#[derive(Clone, Copy)]
pub(super) enum PackedMember {
    /// `NAME/NAME.mtx`.
    Matrix,
    /// `NAME/NAME_b.mtx`.
    RightHandSide,
}

impl PackedMember {
    fn file_name(self, folder: &str) -> String {
        match self {
            Self::Matrix => format!("{folder}.mtx"),
            Self::RightHandSide => format!("{folder}_b.mtx"),
        }
    }

    fn is(self, path: &str) -> bool {
        let Some((folders, file)) = path.rsplit_once('/') else { return false };
        file == self.file_name(folders.rsplit('/').next().unwrap_or_default())
    }
}

/// Opens the text of a file: unpacked, and of an archive the member that is wanted.
pub(super) fn open(path: &Path, name: &str, member: PackedMember) -> Result<Box<dyn BufRead>, MatrixMarketError> {
    let failed = |source| MatrixMarketError::Read { path: name.to_owned(), line: 0, source };
    let refuse = |expected: &str, found: &str| {
        Err(MatrixMarketError::Form { path: name.to_owned(), expected: expected.to_owned(), found: found.to_owned() })
    };
    let file = BufReader::with_capacity(CAPACITY, File::open(path).map_err(failed)?);
    let (start, file) = peeked(Box::new(file)).map_err(failed)?;
    if let Some((_, found)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return refuse("plain text, gzip or zstd", found);
    }
    let unpacked: Box<dyn BufRead> = if start.starts_with(b"\x1f\x8b") {
        Box::new(BufReader::with_capacity(CAPACITY, MultiGzDecoder::new(file)))
    } else if start.starts_with(b"\x28\xb5\x2f\xfd") {
        let decoder = zstd::stream::read::Decoder::with_buffer(file).map_err(failed)?;
        Box::new(BufReader::with_capacity(CAPACITY, decoder))
    } else {
        file
    };
    let (start, text) = peeked(unpacked).map_err(failed)?;
    if start.get(257..262) != Some(b"ustar") {
        return Ok(text);
    }
    match found_member(text, member).map_err(failed)? {
        FoundMember::Text(text) => Ok(text),
        FoundMember::Others(names) => {
            let names: String = names.join(", ").chars().take(LIST_MAX).filter(|c| !c.is_control()).collect();
            refuse(&format!("an archive with NAME/{}", member.file_name("NAME")), &names)
        }
    }
}

/// Reads the first bytes of a text, and puts them back in front of it.
fn peeked(mut text: Box<dyn BufRead>) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let mut start = Vec::with_capacity(BLOCK);
    text.by_ref().take(BLOCK as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Box::new(Cursor::new(start).chain(text))))
}

/// The member of an archive, or the names of those it has.
enum FoundMember {
    Text(Box<dyn BufRead>),
    Others(Vec<String>),
}

/// Walks through an archive to the member that is wanted.
fn found_member(mut archive: Box<dyn BufRead>, member: PackedMember) -> io::Result<FoundMember> {
    let mut names = Vec::new();
    let mut header = [0; BLOCK];
    while names.len() < MEMBERS_MAX {
        archive.read_exact(&mut header)?;
        if header[0] == 0 {
            break;
        }
        let name = words(&header[..100]);
        let is_file = matches!(header[156], 0 | b'0');
        let size = size(&header[124..136]).ok_or_else(|| io::Error::other(format!("damaged archive at {name}")))?;
        if is_file && member.is(&name) {
            return Ok(FoundMember::Text(Box::new(archive.take(size))));
        }
        let blocks = size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64);
        io::copy(&mut archive.by_ref().take(blocks), &mut io::sink())?;
        if is_file {
            names.push(name);
        }
    }
    Ok(FoundMember::Others(names))
}

/// The text of a field, which ends with its first zero byte.
fn words(field: &[u8]) -> String {
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The size of a member: octal, or binary where it has more digits.
fn size(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        return Some(u64::from_be_bytes(field[4..12].try_into().ok()?));
    }
    u64::from_str_radix(words(field).trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::{read_matrix, read_vector};

    const MATRIX: &str = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4\n";
    const VECTOR: &str = "%%MatrixMarket matrix array real general\n1 1\n2\n";

    fn archive(members: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, text) in members {
            let mut header = [0; BLOCK];
            header[..name.len()].copy_from_slice(name.as_bytes());
            write!(&mut header[124..136], "{:011o}", text.len()).unwrap();
            header[156] = if name.ends_with('/') { b'5' } else { b'0' };
            header[257..263].copy_from_slice(b"ustar ");
            bytes.extend_from_slice(&header);
            bytes.extend_from_slice(text.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        }
        bytes.resize(bytes.len() + 2 * BLOCK, 0);
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// SuiteSparse delivers matrices in archives, which had to be unpacked by hand.
    #[test]
    fn archives_of_suitesparse_are_read_as_they_come() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nos0.tar.gz");
        let members = [("nos0/", ""), ("nos0/notes.txt", "1"), ("nos0/nos0_b.mtx", VECTOR), ("nos0/nos0.mtx", MATRIX)];
        std::fs::write(&path, gzip(&archive(&members))).unwrap();
        assert_eq!(read_matrix(&path).unwrap().row(0).1, &[4.0]);
        assert_eq!(read_vector(&path).unwrap(), [2.0]);
        std::fs::write(&path, archive(&members[..3])).unwrap();
        let refused = read_matrix(&path).unwrap_err().to_string();
        assert!(refused.ends_with("NAME/NAME.mtx expected, nos0/notes.txt, nos0/nos0_b.mtx found"), "{refused}");
        let whole = gzip(&archive(&members));
        for cut in [whole.len() / 2, whole.len() - 9] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(read_matrix(&path).is_err() || cut > whole.len() / 2, "{cut}");
        }
    }

    #[test]
    fn packing_is_told_by_the_first_bytes_and_named_where_it_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mtx");
        for packed in [MATRIX.into(), gzip(MATRIX.as_bytes()), zstd::encode_all(MATRIX.as_bytes(), 1).unwrap()] {
            std::fs::write(&path, packed).unwrap();
            assert_eq!(read_matrix(&path).unwrap().row(0).1, &[4.0]);
        }
        for (magic, found) in OTHERS {
            std::fs::write(&path, [magic, MATRIX.as_bytes()].concat()).unwrap();
            let refused = read_matrix(&path).unwrap_err().to_string();
            assert!(refused.ends_with(&format!("plain text, gzip or zstd expected, {found} found")), "{refused}");
        }
    }
}
