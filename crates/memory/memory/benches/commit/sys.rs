//! The same work in LMDB, through heed: one value for each block, one transaction for each commit.
//! And a plain map of a file.

#![expect(unsafe_code, reason = "files that are mapped could be changed by other programs")]

use std::fs::File;
use std::io;
use std::path::Path;

use heed::types::{Bytes, U32};
use heed::{Database, Env, EnvOpenOptions, byteorder::BigEndian};

/// A database of blocks.
pub(crate) struct Lmdb {
    env: Env,
    blocks: Database<U32<BigEndian>, Bytes>,
}

impl Lmdb {
    /// Makes a database in a folder.
    pub(crate) fn new(folder: &Path, map_bytes: usize) -> heed::Result<Self> {
        // SAFETY: the folder is a temporary one of this program alone.
        let env = unsafe { EnvOpenOptions::new().map_size(map_bytes).open(folder) }?;
        let mut transaction = env.write_txn()?;
        let blocks = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Self { env, blocks })
    }

    /// Puts blocks, in one transaction.
    pub(crate) fn commit<'a>(&self, blocks: impl Iterator<Item = (usize, &'a [u8])>) -> heed::Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (block, bytes) in blocks {
            self.blocks.put(&mut transaction, &(block as u32), bytes)?;
        }
        transaction.commit()
    }
}

/// A map of a file of this program alone. It stays as long as the program.
pub(crate) struct SharedMap(&'static mut [u8]);

impl SharedMap {
    /// Maps the first bytes of a file, which has as many.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, and nothing unmaps it.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
        // SAFETY: the bytes are mapped, and nothing else stores to the temporary file.
        Ok(Self(unsafe { std::slice::from_raw_parts_mut(start.cast(), bytes) }))
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0
    }
}
