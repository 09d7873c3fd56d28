//! The same work in LMDB, through heed: one value for each block, one transaction for each commit.

#![expect(unsafe_code, reason = "heed maps a file, which other programs could change")]

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
