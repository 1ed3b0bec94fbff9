//! Copies payloads and computes their checksums; remembers the last ones, because rows share them.
//!
//! Snapshots and regions of pages share payloads with rows beside them in key order. What is no longer remembered is
//! copied once more: that costs room, and nothing else.

use super::MigrationError;
use crate::blob::bytes::{ByteStore, ByteWriter, Extent, Owner};
use crate::contract::SpaceId;
use crate::error::Fault;
use futures_util::future::try_join_all;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};

/// What is known of payloads that were copied or read.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    recent: HashMap<Extent, Known>,
    /// Those before: a generation that is forgotten as a whole.
    older: HashMap<Extent, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// Where it is in the destination; its own address if it was only read.
    address: Extent,
    /// The first bytes of its SHA-256.
    checksum: [u8; 24],
}

impl Payloads {
    /// Copies those payloads that are not known. Returns when all of them are durable.
    pub(super) async fn copy(
        &mut self,
        from: Option<&impl ByteStore>,
        to: Option<&impl ByteStore>,
        container: SpaceId,
        pointed: &[(&str, Extent)],
        mut tell: impl FnMut(u64),
    ) -> Result<(), MigrationError> {
        for group in groups(&self.unknown(pointed)) {
            let copies = group.iter().map(|(blob, extent)| async move {
                let (Some(from), Some(to)) = (from, to) else { return Err(no_store()) };
                let owner = Owner { space: container, blob };
                let mut writer = to.begin(owner, Some(extent.length)).await?;
                let checksum = read(from, blob, extent, async |bytes| writer.write(bytes).await).await?;
                let address = writer.finish().await?;
                Ok((*extent, Known { address, checksum }))
            });
            let known = try_join_all(copies).await?;
            tell(known.iter().map(|(extent, _)| extent.length).sum());
            self.recent.extend(known);
        }
        Ok(())
    }

    /// Reads those payloads that are not known.
    pub(super) async fn read(
        &mut self,
        from: Option<&impl ByteStore>,
        pointed: &[(&str, Extent)],
        mut tell: impl FnMut(u64),
    ) -> Result<(), MigrationError> {
        for group in groups(&self.unknown(pointed)) {
            let reads = group.iter().map(|(blob, extent)| async move {
                let Some(from) = from else { return Err(no_store()) };
                let checksum = read(from, blob, extent, async |_| Ok(())).await?;
                Ok((*extent, Known { address: *extent, checksum }))
            });
            let known = try_join_all(reads).await?;
            tell(known.iter().map(|(extent, _)| extent.length).sum());
            self.recent.extend(known);
        }
        Ok(())
    }

    /// Where a payload is in the destination. It was copied.
    pub(super) fn address(&self, extent: &Extent) -> Extent {
        self.recent[extent].address
    }

    /// The checksum of a payload that was copied or read, in the place of its address.
    pub(super) fn checksum(&self, extent: &Extent) -> Extent {
        let checksum = self.recent[extent].checksum;
        let (file, rest) = checksum.split_first_chunk().expect("24 bytes begin with 16");
        let offset = u64::from_be_bytes(rest.try_into().expect("8 bytes are left"));
        Extent { file: *file, offset, length: extent.length }
    }

    /// Those payloads that are not known, each once, small ones first. All others are remembered for longer.
    fn unknown<'p>(&mut self, pointed: &[(&'p str, Extent)]) -> Vec<(&'p str, Extent)> {
        if self.recent.len() >= REMEMBERED_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        let mut seen = HashSet::new();
        let mut unknown = Vec::new();
        for (blob, extent) in pointed {
            match self.older.remove(extent) {
                Some(known) => {
                    self.recent.insert(*extent, known);
                }
                None if self.recent.contains_key(extent) || !seen.insert(*extent) => {}
                None => unknown.push((*blob, *extent)),
            }
        }
        unknown.sort_by_key(|(_, extent)| extent.length > SMALL_BYTES_MAX);
        unknown
    }
}

/// Groups of payloads that are copied at the same time: many small ones, because each waits for a sync, or few large ones.
fn groups<'g, 'p>(payloads: &'g [(&'p str, Extent)]) -> impl Iterator<Item = &'g [(&'p str, Extent)]> {
    let (small, large) = payloads.split_at(payloads.partition_point(|(_, extent)| extent.length <= SMALL_BYTES_MAX));
    small.chunks(SMALL_AT_ONCE).chain(large.chunks(LARGE_AT_ONCE))
}

/// Reads a payload in pieces, passes them on, and returns its checksum.
async fn read(
    from: &impl ByteStore,
    blob: &str,
    extent: &Extent,
    mut pass: impl AsyncFnMut(crate::blob::bytes::Bytes) -> Result<(), Fault>,
) -> Result<[u8; 24], MigrationError> {
    let cannot = |error: Fault| MigrationError::Payload { blob: blob.to_owned(), error };
    let (mut hash, mut place) = (Sha256::new(), 0);
    while place < extent.length {
        let bytes = from.read(extent, place..extent.length).await.map_err(cannot)?;
        if bytes.is_empty() {
            return Err(cannot(Fault::Damaged("a payload ends before its length".to_owned())));
        }
        hash.update(&bytes);
        place += bytes.len() as u64;
        pass(bytes).await?;
    }
    let checksum: [u8; 32] = hash.finalize().into();
    Ok(*checksum.first_chunk().expect("32 bytes begin with 24"))
}

/// Whether there are stores of bytes is checked before anything is copied.
fn no_store() -> MigrationError {
    MigrationError::Fault(Fault::Unavailable("a container was filled while the run had no store of bytes".to_owned()))
}

/// Payloads that are remembered at least, beside those of the slice at hand: two regions of a page blob, written page by
/// page.
const REMEMBERED_MAX: usize = 1 << 16;
const SMALL_BYTES_MAX: u64 = 256 << 10;
const SMALL_AT_ONCE: usize = 32;
/// Each holds a few MiB.
const LARGE_AT_ONCE: usize = 4;
