//! Stores payloads of a backup or of the archive in the store of bytes that is restored into.

use crate::chunk::ChunkRef;
use crate::error::BackupError;
use crate::place::Place;
use bytes::Bytes;
use futures_util::future::try_join_all;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Extent, Owner};
use larimar_engine::{Fault, SpaceId};
use parking_lot::Mutex;

/// A payload to store: its blob, its old address, and its bytes or pieces.
pub(crate) struct NewPayload<'a> {
    pub(crate) space: SpaceId,
    pub(crate) blob: &'a str,
    pub(crate) extent: Extent,
    pub(crate) source: Source<'a>,
}

pub(crate) enum Source<'a> {
    Inline(&'a [u8]),
    Pieces(&'a [ChunkRef]),
}

/// Payloads that were stored and that no row points to yet: they are discarded with the value.
pub(crate) struct Unreferenced<'a, B: ByteStore> {
    store: &'a B,
    extents: Mutex<Vec<Extent>>,
}

impl<B: ByteStore> Unreferenced<'_, B> {
    /// Rows point to them now.
    pub(crate) fn keep(self) {
        self.extents.lock().clear();
    }
}

impl<B: ByteStore> Drop for Unreferenced<'_, B> {
    fn drop(&mut self) {
        let extents = std::mem::take(self.extents.get_mut());
        if !extents.is_empty() {
            self.store.discard(extents);
        }
    }
}

/// Stores payloads, some at a time; returns their addresses, in order.
pub(crate) async fn store_payloads<'a, B: ByteStore>(
    place: &Place,
    store: &'a B,
    payloads: &[NewPayload<'_>],
) -> Result<(Vec<Extent>, Unreferenced<'a, B>), BackupError> {
    let mut addresses = Vec::with_capacity(payloads.len());
    let unreferenced = Unreferenced { store, extents: Mutex::default() };
    let finished = &unreferenced.extents;
    let mut rest = payloads;
    while !rest.is_empty() {
        let (group, after) = rest.split_at(group_len(rest));
        let stored = group.iter().map(|payload| async move {
            let owner = Owner { space: payload.space, blob: payload.blob };
            let mut writer = store.begin(owner, Some(payload.extent.length)).await?;
            match payload.source {
                Source::Inline(bytes) => writer.write(Bytes::copy_from_slice(bytes)).await?,
                Source::Pieces(pieces) => {
                    for piece in pieces {
                        writer.write(piece.read(place).await?).await?;
                    }
                }
            }
            let extent = writer.finish().await?;
            finished.lock().push(extent);
            Ok::<_, BackupError>(extent)
        });
        addresses.extend(try_join_all(stored).await?);
        rest = after;
    }
    Ok((addresses, unreferenced))
}

/// How many payloads are stored at once: small ones wait for one sync together; each large one holds a few MiB.
fn group_len(payloads: &[NewPayload<'_>]) -> usize {
    let mut weight = 0;
    let fits = payloads.iter().take(PAYLOADS_AT_ONCE).take_while(|payload| {
        weight += payload.extent.length.min(PIECE_BYTES);
        weight <= GROUP_BYTES
    });
    fits.count().max(1)
}

pub(crate) fn no_store() -> Fault {
    Fault::Unavailable("the backup has blobs, and there is no store for their bytes".to_owned())
}

const PAYLOADS_AT_ONCE: usize = 64;
const PIECE_BYTES: u64 = 4 << 20;
const GROUP_BYTES: u64 = 8 * PIECE_BYTES;
