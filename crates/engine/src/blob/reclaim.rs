//! Reclaiming what nothing refers to any more: rows, and payloads that no row points to.
//!
//! A change reclaims what it replaces right after its commit (`unreachable.rs`). What a crash left is found later:
//! `containers.rs` goes over the rows of all containers and then over the payloads in the store of bytes, and `dropped.rs`
//! over the rows of deleted containers.

pub(crate) mod containers;
pub(crate) mod dropped;
pub(crate) mod unreachable;

use super::access::BlobRef;
use super::bytes::{ByteStore, Extent};
use super::row::BlobRow;
use super::{Blobs, keys};
use crate::contract::{Engine, Flow};
use crate::error::EngineError;
use larimar_model::Timestamp;
use larimar_model::blob::SnapshotTime;
use std::collections::HashSet;

/// Rows and payloads that a change made unreachable.
#[derive(Debug, Default)]
pub(crate) struct Leftover {
    /// Payloads that the replaced row pointed to.
    pub(crate) extents: Vec<Extent>,
    /// Whether other rows may have become unreachable.
    pub(crate) has_rows: bool,
    /// Which snapshots may point to the same payloads.
    pub(crate) shared: Shared,
}

/// Which snapshots may point to the payloads of a change's leftover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shared {
    /// None.
    #[default]
    Nowhere,
    /// This one and later ones.
    Since(SnapshotTime),
    /// Any, and the blob itself.
    Anywhere,
}

impl Leftover {
    /// What becomes unreachable when a blob's row is replaced or deleted.
    pub(crate) fn of(old: BlobRow) -> Self {
        Self {
            has_rows: old.layout.has_rows() || old.pending.id_length > 0,
            shared: old.shared_since.map_or(Shared::Nowhere, Shared::Since),
            extents: old.layout.extents().collect(),
        }
    }

    /// Payloads that no other row points to.
    pub(crate) fn unshared(extents: Vec<Extent>) -> Self {
        Self { extents, ..Self::default() }
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Reclaims what a change made unreachable. Errors are ignored, because the change is committed: the next pass over
    /// the container finds what is left.
    pub(crate) async fn reclaim_leftover(&self, at: BlobRef<'_>, leftover: Leftover, now: Timestamp) {
        let _ = match leftover.shared {
            Shared::Nowhere if !leftover.has_rows => {
                self.discard(leftover.extents);
                Ok(())
            }
            Shared::Since(since) if !leftover.has_rows => self.discard_unshared(at, leftover.extents, since, now).await,
            _ => self.reclaim_unreachable(at, leftover.extents, now).await.map(drop),
        };
    }

    /// Discards payloads of replaced content, except those that a snapshot of that content shares. No later commit
    /// makes a row point to them, so a payload that no such snapshot has is garbage. Usually the first snapshot has
    /// them all, and the others are not read.
    async fn discard_unshared(
        &self,
        at: BlobRef<'_>,
        extents: Vec<Extent>,
        since: SnapshotTime,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let mut unshared: HashSet<Extent> = extents.iter().copied().collect();
        let mut has_rows = false;
        self.visit_rows(at, (&keys::snapshot(since), keys::SNAPSHOTS.1), |row| {
            let layout = BlobRow::decode(row.body)?.layout;
            has_rows |= layout.has_rows();
            for extent in layout.extents() {
                unshared.remove(&extent);
            }
            Ok(if unshared.is_empty() { Flow::StopHere } else { Flow::Continue })
        })
        .await?;
        if has_rows && !unshared.is_empty() {
            // The snapshot's other rows may point to the payloads too.
            return self.reclaim_unreachable(at, extents, now).await.map(drop);
        }
        self.discard(unshared.into_iter().collect());
        Ok(())
    }

    pub(crate) fn discard(&self, extents: Vec<Extent>) {
        if !extents.is_empty() {
            self.bytes.discard(extents);
        }
    }
}
