//! Chunks: immutable pieces of a backup, each named by the SHA-256 of its bytes.

use crate::error::BackupError;
use crate::place::Place;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The name of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChunkId(pub(crate) [u8; 32]);

/// A chunk as an index or a generation lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkRef {
    pub(crate) id: ChunkId,
    pub(crate) length: u64,
}

impl ChunkRef {
    /// The reference to these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { id: ChunkId(Sha256::digest(bytes).into()), length: bytes.len() as u64 }
    }

    /// The chunk's file or object below the place.
    pub(crate) fn name(&self) -> String {
        self.id.file()
    }

    /// Reads a chunk and checks it.
    pub(crate) async fn read(self, place: &Place) -> Result<Bytes, BackupError> {
        let name = self.name();
        let what = place.show(&name);
        if self.length > CHUNK_BYTES_MAX {
            return Err(BackupError::damaged(what, "the index gives it a length that no chunk has"));
        }
        let bytes = place.get(&name, self.length).await?;
        let found = bytes.clone();
        let found = blocking(move || Self::of(&found)).await?;
        if found.length != self.length {
            let reason = format!("it has {} bytes instead of {}", found.length, self.length);
            return Err(BackupError::damaged(what, reason));
        }
        if found.id != self.id {
            return Err(BackupError::damaged(what, "its bytes do not have the checksum of its name"));
        }
        Ok(bytes)
    }
}

impl ChunkId {
    /// The file or object of the chunk with this name.
    pub(crate) fn file(self) -> String {
        let hex = self.to_string();
        format!("chunks/{}/{hex}", &hex[..2])
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for ChunkId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut id = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(());
        }
        for (byte, place) in id.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[place..place + 2], 16).map_err(|_| ())?;
        }
        Ok(Self(id))
    }
}

/// Runs work that blocks or takes milliseconds outside of the runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(run).await;
    done.map_err(BackupError::thread)
}

/// No chunk is longer: a data chunk ends with the row that fills it, and a row has a few MiB at most.
pub(crate) const CHUNK_BYTES_MAX: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_chunk_that_no_backup_writes_is_not_read() {
        let place = Place::directory("nowhere");
        for (length, expected) in [(33 << 20, "a length that no chunk has"), (9 << 20, "is missing")] {
            let error = ChunkRef { id: ChunkId([7; 32]), length }.read(&place).await.expect_err("a refusal");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
