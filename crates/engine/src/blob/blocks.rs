//! Put Block, Put Block List, Get Block List.
//!
//! A block is a row of its own. Put Block writes the blob's row only for the first block, or to replace one, so that
//! parallel uploads do not conflict. Put Block List reads the rows of the blocks, and its commit ends their generation:
//! all of them become unreachable at once, however many, and are removed afterwards.

use super::Blobs;
use super::access::{Admit, BlobRef, Written};
use super::bytes::{ByteStore, Extent};
use super::change::{Attempts, Change, Decision};
use super::codec::damaged;
use super::keys::{self, RowName};
use super::layout::{Block, Blocks, Layout, Piece, decode_uncommitted, encode_uncommitted};
use super::put::replacement;
use super::reclaim::Leftover;
use super::reject::BlobReject;
use super::row::{BlobRow, Pending};
use super::store::read_error;
use super::work_slice::WorkSlice;
use crate::contract::{Engine, Expect, Flow, Key};
use crate::error::EngineError;
use larimar_model::blob::{
    AccessConditions, BlobProperties, BlobType, BlockId, BlockListEntry, BlockListKind, LeaseId, NewBlob, SnapshotTime,
};
use larimar_model::{Timestamp, limits};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The blocks of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList {
    /// The blob's properties; `None` if no list was ever committed.
    pub properties: Option<BlobProperties>,
    /// Ids and lengths of the blocks that make up the blob, in their order.
    pub committed: Vec<(String, u64)>,
    /// Ids and lengths of the uncommitted blocks, in the order of their ids.
    pub uncommitted: Vec<(String, u64)>,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Puts a block that the next list can commit. An uncommitted block with the same id is replaced.
    ///
    /// # Errors
    /// The lease, another type of blob, an id of another length than the others', too many blocks.
    pub async fn put_block(
        &self,
        at: BlobRef<'_>,
        id: &BlockId,
        extent: Extent,
        lease: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let put = self.try_put_block(at, id, extent, lease, now).await;
        self.settle(put, &[extent])
    }

    async fn try_put_block(
        &self,
        at: BlobRef<'_>,
        id: &BlockId,
        extent: Extent,
        lease: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let now = self.now(now).await?;
        let id_length = u8::try_from(id.as_str().len()).map_err(|_| BlobReject::InvalidBlobOrBlock)?;
        let body = &encode_uncommitted(&extent);
        self.change_unlocked(at, now, |stored| async move {
            let row = stored.row.unwrap_or_else(|| BlobRow::uncommitted(now));
            admit_block(&row, lease, now)?;
            row.released.admit([extent])?;
            let change = match row.pending.id_length {
                0 => {
                    let generation = now.ticks().max(row.pending.generation + 1);
                    let pending = Pending { generation, id_length };
                    let block = (keys::uncommitted(generation, id.as_str()), body.clone());
                    Change::put(BlobRow { pending, ..row }).with_puts([block])
                }
                other if other != id_length => return Err(BlobReject::InvalidBlobOrBlock.into()),
                _ => {
                    self.check_block_count(at, row.pending.generation, &extent).await?;
                    let name = keys::uncommitted(row.pending.generation, id.as_str());
                    let replaced = if stored.is_row_taken { self.load_uncommitted(at, &name).await? } else { None };
                    match replaced {
                        None => Change::beside_blob().with_put_if(name, Expect::Absent, body.clone()),
                        // A list that has read the replaced block must not commit it afterwards: the blob's row is
                        // written too, so that its version changes.
                        Some((version, replaced)) => Change::put(row)
                            .with_put_if(name, Expect::Version(version), body.clone())
                            .leaving(Leftover::unshared(vec![replaced])),
                    }
                }
            };
            Ok(Decision::Commit(change, ()))
        })
        .await
    }

    /// The row of an uncommitted block: its version and its payload.
    async fn load_uncommitted(&self, at: BlobRef<'_>, row: &str) -> Result<Option<(Timestamp, Extent)>, EngineError> {
        let key = Key { space: at.container, partition: at.name.as_str(), row };
        let found = self.engine.get(key, |row| row.map(|row| (row.version, decode_uncommitted(row.body)))).await;
        match found.map_err(read_error)? {
            Some((version, extent)) => Ok(Some((version, extent.ok_or_else(|| damaged("a block's row"))?))),
            None => Ok(None),
        }
    }

    /// Refuses a block if there are too many. Counting costs a scan, so it happens for one block in 256, chosen by a
    /// hash of its address: the limit may be exceeded by about as many.
    async fn check_block_count(&self, at: BlobRef<'_>, generation: u64, extent: &Extent) -> Result<(), EngineError> {
        let mut hasher = DefaultHasher::new();
        extent.hash(&mut hasher);
        if !hasher.finish().is_multiple_of(256) {
            return Ok(());
        }
        let mut count = 0;
        self.visit_rows(at, (&keys::uncommitted(generation, ""), keys::UNCOMMITTED.1), |_| {
            count += 1;
            Ok(if count > limits::BLOCKS_UNCOMMITTED_MAX { Flow::StopHere } else { Flow::Continue })
        })
        .await?;
        if count > limits::BLOCKS_UNCOMMITTED_MAX { Err(BlobReject::BlockCountExceedsLimit.into()) } else { Ok(()) }
    }

    /// Makes a blob of blocks, in the order of the list. Uncommitted blocks that the list does not name are removed. If
    /// a block is replaced at the same time, the list has either the old or the new one.
    ///
    /// # Errors
    /// Conditions, the lease, another type of blob, [`BlobReject::InvalidBlockList`], [`BlobReject::BlockListTooLong`].
    pub async fn put_block_list(
        &self,
        at: BlobRef<'_>,
        list: &[BlockListEntry],
        new: &NewBlob,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        if list.len() > limits::BLOCKS_COMMITTED_MAX {
            return Err(BlobReject::BlockListTooLong.into());
        }
        let now = self.now(now).await?;
        self.change(at, now, |stored| async move {
            let old = stored.row;
            access.admit_create(old.as_ref(), now)?;
            if old.as_ref().is_some_and(|old| old.is_committed && old.kind != BlobType::Block) {
                return Err(BlobReject::InvalidBlobType.into());
            }
            let Some(known) = self.known_blocks(at, old.as_ref(), list).await? else { return Ok(Decision::Retry) };
            let mut row = replacement(BlobType::Block, new, old.as_ref(), now)?;
            row.created = old.as_ref().filter(|old| old.is_committed).map_or(now, |old| old.created);
            // Blocks that stay in the list may be shared with snapshots.
            row.shared_since = old.as_ref().and_then(|old| old.shared_since);
            let set = row.changed.ticks();
            let (blocks, chunks) = Blocks::cut(set, list, |part| known.resolve(part)).await?;
            row.length = blocks.length();
            row.layout = Layout::Blocks(blocks);
            let written = Written { last_modified: row.changed };
            let leftover = old.map(Leftover::of).unwrap_or_default();
            // The new list may have blocks of the old one, so the payloads that are still in use must be looked up.
            let has_rows = leftover.has_rows || !leftover.extents.is_empty();
            let chunks = chunks.into_iter().enumerate().map(|(n, body)| (keys::chunk(set, n), body));
            let change = Change::put(row).with_puts(chunks).leaving(Leftover { has_rows, ..leftover });
            Ok(Decision::Commit(change, written))
        })
        .await
    }

    /// The blocks that a list may name; `None` if the blob was changed while they were read.
    async fn known_blocks(
        &self,
        at: BlobRef<'_>,
        old: Option<&BlobRow>,
        list: &[BlockListEntry],
    ) -> Result<Option<KnownBlocks>, EngineError> {
        let mut known = KnownBlocks::default();
        let Some(old) = old else { return Ok(Some(known)) };
        if list.iter().any(|entry| !matches!(entry, BlockListEntry::Committed(_))) {
            self.visit_uncommitted(at, old.pending, |id, extent| {
                known.uncommitted.push((id.to_owned(), extent));
            })
            .await?;
        }
        if let Layout::Blocks(blocks) = &old.layout
            && known.lack_any(list).await
        {
            known.committed.reserve(blocks.count() as usize);
            let is_whole = self.visit_blocks(at, blocks, |block| {
                known.committed.insert(block.id, block.piece);
            });
            if !is_whole.await? {
                return Ok(None);
            }
            known.committed.remove("");
        }
        Ok(Some(known))
    }

    /// Visits the uncommitted blocks, in the order of their ids.
    async fn visit_uncommitted(
        &self,
        at: BlobRef<'_>,
        pending: Pending,
        mut visit: impl FnMut(&str, Extent) + Send,
    ) -> Result<(), EngineError> {
        if pending.id_length == 0 {
            return Ok(());
        }
        let from = keys::uncommitted(pending.generation, "");
        let to = keys::uncommitted(pending.generation + 1, "");
        self.visit_rows(at, (&from, &to), |row| {
            let Some(RowName::Uncommitted { id, .. }) = RowName::parse(row.row) else {
                return Err(damaged("the name of a blob's row"));
            };
            visit(id, decode_uncommitted(row.body).ok_or_else(|| damaged("a block's row"))?);
            Ok(Flow::Continue)
        })
        .await
    }

    /// Lists the blocks of a blob or a snapshot.
    ///
    /// # Errors
    /// [`BlobReject::BlobNotFound`], another type of blob, conditions, the lease if one is named.
    pub async fn block_list(
        &self,
        at: BlobRef<'_>,
        snapshot: Option<SnapshotTime>,
        kind: BlockListKind,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<BlockList, EngineError> {
        let now = self.now(now).await?;
        let name = snapshot.map_or(keys::BLOB.to_owned(), keys::snapshot);
        let mut attempts = Attempts::default();
        loop {
            let _lock = self.next_read(at, &mut attempts).await?;
            let seen = self.load(at, &name).await?.filter(|(_, row)| !row.is_vacant());
            let (version, row) = seen.ok_or(BlobReject::BlobNotFound)?;
            if row.kind != BlobType::Block {
                return Err(BlobReject::InvalidBlobType.into());
            }
            match row.is_committed {
                true => {
                    access.admit_read(&row, now)?;
                    row.admit_online(now)?;
                }
                false => row.lease.admit_read(access.lease, now).map_err(BlobReject::from)?,
            }
            let mut list = BlockList::default();
            if kind != BlockListKind::Committed {
                let listed = |id: &str, extent: Extent| list.uncommitted.push((id.to_owned(), extent.length));
                self.visit_uncommitted(at, row.pending, listed).await?;
                // Rows of blocks that were committed meanwhile are removed one by one: only an unchanged blob row
                // proves that all were read.
                let is_pending = row.pending.id_length > 0;
                if is_pending && self.load(at, &name).await?.is_none_or(|(later, _)| later != version) {
                    continue;
                }
            }
            if let Layout::Blocks(blocks) = &row.layout
                && kind != BlockListKind::Uncommitted
            {
                let is_whole = self.visit_blocks(at, blocks, |block| {
                    if !block.id.is_empty() {
                        list.committed.push((block.id, block.piece.length));
                    }
                });
                if !is_whole.await? {
                    continue;
                }
            }
            list.properties = row.is_committed.then(|| row.into_properties(now));
            return Ok(list);
        }
    }
}

fn admit_block(row: &BlobRow, lease: Option<LeaseId>, now: Timestamp) -> Result<(), BlobReject> {
    if row.is_committed && row.kind != BlobType::Block {
        return Err(BlobReject::InvalidBlobType);
    }
    row.lease.admit_write(lease, now)?;
    row.admit_online(now)
}

/// The blocks that a list may name.
#[derive(Debug, Default)]
struct KnownBlocks {
    /// In the order of their ids, like their rows. A growing map would rehash without yielding.
    uncommitted: Vec<(String, Extent)>,
    committed: HashMap<String, Piece>,
}

impl KnownBlocks {
    fn uncommitted(&self, id: &BlockId) -> Option<Piece> {
        let found = self.uncommitted.binary_search_by(|(known, _)| known.as_str().cmp(id.as_str())).ok()?;
        Some(Piece::whole(self.uncommitted[found].1))
    }

    /// Whether a list names blocks that must be looked up among the committed ones.
    async fn lack_any(&self, list: &[BlockListEntry]) -> bool {
        let mut slice = WorkSlice::default();
        for entry in list {
            match entry {
                BlockListEntry::Uncommitted(_) => {}
                BlockListEntry::Latest(id) if self.uncommitted(id).is_some() => {}
                BlockListEntry::Committed(_) | BlockListEntry::Latest(_) => return true,
            }
            slice.add(1).await;
        }
        false
    }

    fn resolve(&self, list: &[BlockListEntry]) -> Result<Vec<Block>, BlobReject> {
        let committed = |id: &BlockId| self.committed.get(id.as_str()).copied();
        list.iter()
            .map(|entry| {
                let piece = match entry {
                    BlockListEntry::Committed(id) => committed(id),
                    BlockListEntry::Uncommitted(id) => self.uncommitted(id),
                    BlockListEntry::Latest(id) => self.uncommitted(id).or_else(|| committed(id)),
                };
                let piece = piece.ok_or(BlobReject::InvalidBlockList)?;
                Ok(Block { id: entry.id().as_str().to_owned(), piece })
            })
            .collect()
    }
}
